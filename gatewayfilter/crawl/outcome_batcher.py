"""Settles pages together: a transaction for several costs hardly more than one."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.outcomes import Settle, Settlement
from gatewayfilter.errors import GatewayFilterError

_log = logging.getLogger(__name__)

SETTLE_S = 0.03
"""For which settlements are gathered; each page holds its place for so much longer."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """What to tell the frontier of a page, and that it was told."""

    settle: Settle
    done: asyncio.Future[None]


class SettlementDesk:
    """Gathers settlements and runs them in the queue's thread.

    Args:
        context: the crawler's collaborators.
        settlement: made what is settled.
        queue: the one thread in which the frontier and the set of seen URLs are used.
        closing: set when nothing is gathered any more.
    """

    def __init__(self, context: CrawlContext, settlement: Settlement, queue: Executor, closing: threading.Event) -> None:
        self._together = settlement.together
        self._seen = context.seen
        self._queue = queue
        self._closing = closing
        self._waiting: list[_Ended] = []
        self._settling: asyncio.Task[None] | None = None

    async def settle(self, settle: Settle) -> None:
        """Settles a page together with those that end within `SETTLE_S`; returns when that stands or was refused."""
        settlement = _Ended(settle, asyncio.get_running_loop().create_future())
        self._waiting.append(settlement)
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self._settle_all())
        await settlement.done

    async def run(self, work: Callable[[], object]) -> None:
        """Runs something in the queue's thread."""
        await asyncio.get_running_loop().run_in_executor(self._queue, work)

    async def finish(self) -> None:
        """Waits until all that was gathered is settled."""
        if self._settling is not None:
            await self._settling

    async def _settle_all(self) -> None:
        while self._waiting:
            if not self._closing.is_set():
                await asyncio.sleep(SETTLE_S)
            settlements, self._waiting = self._waiting, []
            try:
                await self.run(partial(self._settle, settlements))
            except GatewayFilterError as error:  # the leases run out, and the URLs are handed out again
                _log.warning("cannot settle pages: %s", error)
            finally:
                for settlement in settlements:
                    if not settlement.done.done():
                        settlement.done.set_result(None)

    def _settle(self, settlements: Sequence[_Ended]) -> None:
        """Runs in the queue's thread. What is written is taken for seen only when it stands."""
        seen: list[bytes] = []
        with self._together():
            for settlement in settlements:
                digests = settlement.settle()
                if isinstance(digests, list):
                    seen += digests
        for digest in seen:
            self._seen.add(digest)
