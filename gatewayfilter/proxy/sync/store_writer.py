"""The store writer: bounded queues from the hooks to the database, and one writer thread a worker.

A hook only appends. The writer wakes at once for an offer, because a first visit waits for its verdict; log records, of which
there is one a request, wait for their turn a few times a second, however often offers come: a transaction costs as much as the
writing of a hundred records.

While the database is locked, full or away, what waits stays in its queue, up to the queue's bound, and is written later; beyond
the bound it is dropped and counted.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from queue import Empty, SimpleQueue
from typing import Final

from gatewayfilter.errors import StoreError, StoreUnavailableError
from gatewayfilter.interfaces import CrawlRequest, UnblockRequest
from gatewayfilter.model import LogRecord, QuotaUse
from gatewayfilter.proxy.sync.usage_counter import UsageCounter
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

_LOG_EVERY_S: Final = 0.25
_BATCH: Final = 1000
_RETRY_AFTER_S: Final = (0.05, 0.2, 0.5)
"""Waits between the tries of a batch while the database is unavailable; after the last one the batch waits in its queue."""
_STOP_S: Final = 3.0
_MOST_ASKS: Final = 200
_MOST_LOG_CHARACTERS: Final = 16_000_000
"""Characters of URLs that wait for a database which is away; with short ones the number of records is the bound."""


class _Outcome(Enum):
    """What became of a write: done, to be tried later, or refused for what was to be written."""

    DONE = auto()
    WAITS = auto()
    LOST = auto()


class QueueCrawlRequestSink:
    """Implements `CrawlRequestSink` over a bounded queue.

    Attributes:
        held: offers that could not be written and come before the queue; a batch at most.
    """

    def __init__(self, queue: SimpleQueue[CrawlRequest | None], capacity: int, counters: Counters) -> None:
        self.held: list[CrawlRequest] = []
        self._queue = queue
        self._capacity = capacity
        self._counters = counters

    def offer(self, offer: CrawlRequest) -> bool:
        """Takes an offer, or counts `crawl_requests_dropped` and returns False when the queue is full."""
        if self._queue.qsize() + len(self.held) >= self._capacity:
            self._counters.add("crawl_requests_dropped")
            return False
        self._queue.put(offer)
        return True


class AskQueue[Item]:
    """Takes requests to unblock pages, or links that were opened, into a bounded queue."""

    def __init__(self, capacity: int) -> None:
        self.waiting: deque[Item] = deque()
        self._capacity = capacity

    def take(self, request: Item) -> bool:
        """Takes a request, or returns False when the queue is full."""
        if len(self.waiting) >= self._capacity:
            return False
        self.waiting.append(request)
        return True

    def drain(self) -> list[Item]:
        """Returns all that wait, the oldest first, and forgets them."""
        return [self.waiting.popleft() for _ in range(len(self.waiting))]

    def take_back(self, items: Sequence[Item]) -> None:
        """Has items wait again that could not be written."""
        self.waiting.extendleft(reversed(items))


class LogQueue:
    """A queue of log records with a bound on their number and on the characters of their URLs.

    The event loop puts, one thread takes: each has a counter of its own, so that neither needs a lock.
    """

    def __init__(self, capacity: int, counters: Counters, most_characters: int = _MOST_LOG_CHARACTERS) -> None:
        self._queue: deque[LogRecord] = deque()
        self._capacity = capacity
        self._counters = counters
        self._most = most_characters
        self._came = 0
        self._went = 0

    def __len__(self) -> int:
        return len(self._queue)

    def write(self, record: LogRecord) -> None:
        """Takes a record, or counts `log_dropped` when the queue is full."""
        if len(self._queue) >= self._capacity or self._came - self._went >= self._most:
            self._counters.add("log_dropped")
        else:
            self._queue.append(record)
            self._came += len(record.url)

    def take(self, most: int) -> list[LogRecord]:
        """Returns up to `most` records, the oldest first, and forgets them."""
        records = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
        self._went += sum(len(record.url) for record in records)
        return records

    def take_back(self, records: Sequence[LogRecord]) -> None:
        """Has records wait again that could not be written; the queue may exceed its bound by them."""
        self._queue.extendleft(reversed(records))
        self._went -= sum(len(record.url) for record in records)


class StoreWriter:
    """Writes offers and log records in batches, from a thread of its own.

    Args:
        add_offers: writes offers, given the time in Unix seconds; returns how many were new (`Frontier.add`).
        write_log: writes records (`DecisionLog.write`).
        ask: writes requests to unblock pages (`UnblockRequests.ask`); `None` drops them.
        redeem: makes the rules of bypass links, given the time in Unix seconds (`UnblockRequests.redeem`); `None` drops them.
        usage: collects the use of quotas.
        add_uses: writes it (`QuotaUsageWriter.add`); `None` drops it.
        counters: `crawl_requests_written`, `log_written`, `crawl_requests_dropped`, `log_dropped`, `store_errors`.
        gather_s: how long the first offer waits for others, to be written with them; 0 where a request may wait for its verdict.
        offer_capacity, log_capacity: what the queues hold; beyond it is dropped and counted.

    Attributes:
        offers: where hooks put offers.
        log: where hooks put log records.
        asks: where hooks put requests to unblock pages.
        redeems: where hooks put the numbers of bypass links that were opened.
    """

    def __init__(  # noqa: PLR0913  each is a queue or a part of one
        self,
        add_offers: Callable[[Sequence[CrawlRequest], float], int],
        write_log: Callable[[Sequence[LogRecord]], None],
        counters: Counters,
        *,
        ask: Callable[[Sequence[UnblockRequest]], int] | None = None,
        redeem: Callable[[Sequence[int], float], int] | None = None,
        usage: UsageCounter | None = None,
        add_uses: Callable[[Sequence[QuotaUse]], int] | None = None,
        gather_s: float = 0.0,
        offer_capacity: int = 10_000,
        log_capacity: int = 50_000,
    ) -> None:
        self._gather_s = gather_s
        self._add_offers = add_offers
        self._write_log = write_log
        self._counters = counters
        self._offer_queue: SimpleQueue[CrawlRequest | None] = SimpleQueue()
        self.offers = QueueCrawlRequestSink(self._offer_queue, offer_capacity, counters)
        self.log = LogQueue(log_capacity, counters)
        self.asks: AskQueue[UnblockRequest] = AskQueue(_MOST_ASKS)
        self.redeems: AskQueue[int] = AskQueue(_MOST_ASKS)
        self._redeem = redeem
        self._ask = ask
        self._usage = usage
        self._add_uses = add_uses
        self._log_at = 0.0
        self._stopping = False
        self._away = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self, timeout_s: float = _STOP_S) -> bool:
        """Writes what is queued and ends the thread. Returns whether that was done in time."""
        self._stopping = True
        if not self._thread.is_alive():
            return True
        self._offer_queue.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping:
            self._write_offers(self._next_offers())
            if (now := time.monotonic()) >= self._log_at:
                self._write_records()
                self._write_asks()
                self._write_uses()
                self._log_at = now if len(self.log) >= _BATCH else now + _LOG_EVERY_S
        self._write_asks()
        self._write_uses()
        while offers := self._drain_offers(self.offers.held):
            self._write_offers(offers)
        while self.log:
            self._write_records()

    def _next_offers(self) -> list[CrawlRequest]:
        if self.offers.held:
            time.sleep(max(0.0, self._log_at - time.monotonic()))
            return self.offers.held
        try:
            first = self._offer_queue.get(timeout=max(0.0, self._log_at - time.monotonic()))
        except Empty:
            return []
        if self._gather_s and not self._stopping:
            time.sleep(self._gather_s)
        return self._drain_offers([] if first is None else [first])

    def _drain_offers(self, offers: list[CrawlRequest]) -> list[CrawlRequest]:
        while len(offers) < _BATCH:
            try:
                offer = self._offer_queue.get_nowait()
            except Empty:
                break
            if offer is not None:
                offers.append(offer)
        return offers

    def _write_offers(self, offers: list[CrawlRequest]) -> None:
        if not offers:
            return
        outcome = self._try(lambda: self._add_offers(offers, time.time()), len(offers), "offers")
        self.offers.held = offers if outcome is _Outcome.WAITS else []
        if outcome is not _Outcome.WAITS:
            self._counters.add("crawl_requests_written" if outcome is _Outcome.DONE else "crawl_requests_dropped", len(offers))

    def _write_records(self) -> None:
        if not (records := self.log.take(_BATCH)):
            return
        outcome = self._try(lambda: self._write_log(records), len(records), "log records")
        if outcome is _Outcome.WAITS:
            self.log.take_back(records)
        else:
            self._counters.add("log_written" if outcome is _Outcome.DONE else "log_dropped", len(records))

    def _write_asks(self) -> None:
        requests = self.asks.drain()
        if requests and (ask := self._ask) is not None:
            outcome = self._try(lambda: ask(requests), len(requests), "requests to unblock pages")
            if outcome is _Outcome.WAITS:
                self.asks.take_back(requests)
        links = self.redeems.drain()
        if links and (redeem := self._redeem) is not None:
            outcome = self._try(lambda: redeem(links, time.time()), len(links), "bypass links")
            if outcome is _Outcome.WAITS:
                self.redeems.take_back(links)

    def _write_uses(self) -> None:
        if self._usage is None or (add := self._add_uses) is None or not len(self._usage):
            return
        uses = self._usage.take(_BATCH)
        outcome = self._try(lambda: add(uses), len(uses), "minutes of quotas")
        if outcome is _Outcome.WAITS:
            self._usage.take_back(uses)
        elif outcome is _Outcome.LOST:
            self._counters.add("quota_uses_dropped", len(uses))

    def _try(self, write: Callable[[], object], count: int, what: str) -> _Outcome:
        for wait_s in (*_RETRY_AFTER_S, None):
            try:
                write()
            except StoreUnavailableError as error:
                self._counters.add("store_errors")
                if self._stopping:
                    _log.warning("%s; %d %s are lost", error, count, what)
                    return _Outcome.LOST
                if wait_s is None:
                    self._tell_away(error)
                    return _Outcome.WAITS
                time.sleep(wait_s)
            except StoreError as error:
                self._counters.add("store_errors")
                _log.warning("%s; %d %s are lost", error, count, what)
                return _Outcome.LOST
            except Exception:  # noqa: BLE001  the thread must go on: there is no other one
                self._counters.add("store_errors")
                _log.exception("writing %d %s failed; they are lost", count, what)
                return _Outcome.LOST
            else:
                self._away = False
                return _Outcome.DONE
        return _Outcome.LOST

    def _tell_away(self, error: StoreUnavailableError) -> None:
        if not self._away:
            self._away = True
            _log.warning("%s; decisions, offers, requests and minutes of quotas wait until it can be written", error)
