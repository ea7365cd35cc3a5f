"""Settles pages together: a transaction for several costs hardly more than one."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.outcomes import Completion, OutcomeHandler
from gatewayfilter.errors import GatewayFilterError

_log = logging.getLogger(__name__)

SETTLE_S = 0.03
"""For which settlements are gathered; each page holds its place for so much longer."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """What to tell the frontier of a page, and that it was told."""

    complete: Completion
    done: asyncio.Future[None]


class OutcomeBatcher:
    """Gathers settlements and runs them in the queue's thread.

    Args:
        context: the crawler's collaborators.
        outcomes: made what is settled.
        queue: the one thread in which the frontier and the set of seen URLs are used.
        closing: set when nothing is gathered any more.
    """

    def __init__(self, context: CrawlContext, outcomes: OutcomeHandler, queue: Executor, closing: threading.Event) -> None:
        self._together = outcomes.together
        self._seen = context.seen
        self._queue = queue
        self._closing = closing
        self._waiting: list[_Ended] = []
        self._completing: asyncio.Task[None] | None = None

    async def complete(self, complete: Completion) -> None:
        """Settles a page together with those that end within `SETTLE_S`; returns when that stands or was refused."""
        outcome = _Ended(complete, asyncio.get_running_loop().create_future())
        self._waiting.append(outcome)
        if self._completing is None or self._completing.done():
            self._completing = asyncio.create_task(self._complete_all())
        await outcome.done

    async def run(self, work: Callable[[], object]) -> None:
        """Runs something in the queue's thread."""
        await asyncio.get_running_loop().run_in_executor(self._queue, work)

    async def finish(self) -> None:
        """Waits until all that was gathered is settled."""
        if self._completing is not None:
            await self._completing

    async def _complete_all(self) -> None:
        while self._waiting:
            if not self._closing.is_set():
                await asyncio.sleep(SETTLE_S)
            outcomes, self._waiting = self._waiting, []
            try:
                await self.run(partial(self._complete, outcomes))
            except GatewayFilterError as error:  # the leases run out, and the URLs are handed out again
                _log.warning("cannot settle pages: %s", error)
            finally:
                for outcome in outcomes:
                    if not outcome.done.done():
                        outcome.done.set_result(None)

    def _complete(self, outcomes: Sequence[_Ended]) -> None:
        """Runs in the queue's thread. What is written is taken for seen only when it stands."""
        seen: list[bytes] = []
        with self._together():
            for outcome in outcomes:
                digests = outcome.complete()
                if isinstance(digests, list):
                    seen += digests
        for digest in seen:
            self._seen.add(digest)
