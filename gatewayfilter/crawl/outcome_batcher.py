"""The batcher of completions: a transaction for several URLs costs hardly more than one."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.outcomes import Completion, OutcomeHandler
from gatewayfilter.errors import EXHAUSTED, GatewayFilterError

_log = logging.getLogger(__name__)

GATHER_S = 0.03
"""For which completions are gathered; each page holds its place for so much longer."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A completion, and a future that is done when it was written or refused."""

    completion: Completion
    done: asyncio.Future[None]


class OutcomeBatcher:
    """Gathers completions and writes them in the queue's thread.

    Args:
        context: the crawler's collaborators.
        outcomes: writes them.
        queue: the one thread in which the frontier and the set of seen URLs are used.
        closing: set when nothing is gathered any more.
    """

    def __init__(self, context: CrawlContext, outcomes: OutcomeHandler, queue: Executor, closing: threading.Event) -> None:
        self._outcomes = outcomes
        self._seen = context.seen
        self._queue = queue
        self._closing = closing
        self._waiting: list[_Pending] = []
        self._completing: asyncio.Task[None] | None = None

    async def complete(self, completion: Completion) -> None:
        """Writes a completion together with those that come within `GATHER_S`; returns when it stands or was refused."""
        pending = _Pending(completion, asyncio.get_running_loop().create_future())
        self._waiting.append(pending)
        if self._completing is None or self._completing.done():
            self._completing = asyncio.create_task(self._complete_all())
        await pending.done

    async def call[T](self, work: Callable[[], T]) -> T:
        """Returns what something in the queue's thread returns."""
        return await asyncio.get_running_loop().run_in_executor(self._queue, work)

    async def finish(self) -> None:
        """Waits until all that was gathered is written."""
        if self._completing is not None:
            await self._completing

    async def _complete_all(self) -> None:
        while self._waiting:
            if not self._closing.is_set():
                await asyncio.sleep(GATHER_S)
            batch, self._waiting = self._waiting, []
            try:
                await self.call(partial(self._complete, batch))
            except (GatewayFilterError, *EXHAUSTED) as error:  # the leases run out, and the URLs are handed out again
                _log.warning("cannot complete pages: %s", str(error) or type(error).__name__)
            finally:
                for pending in batch:
                    if not pending.done.done():
                        pending.done.set_result(None)

    def _complete(self, batch: Sequence[_Pending]) -> None:
        """Runs in the queue's thread. URLs are marked as seen only when the transaction stands."""
        seen: list[bytes] = []
        with self._outcomes.together():
            for pending in batch:
                seen += self._outcomes.complete(pending.completion)
        for digest in seen:
            self._seen.add(digest)
