import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gatewayfilter.errors import StoreError, StoreUnavailableError
from gatewayfilter.interfaces import CrawlRequest, UnblockRequest
from gatewayfilter.model import LogRecord, QuotaUse
from gatewayfilter.proxy.sync import store_writer
from gatewayfilter.proxy.sync.store_writer import AskQueue, LogQueue, StoreWriter
from gatewayfilter.proxy.sync.usage_counter import UsageCounter
from gatewayfilter.telemetry import Counters


class Database:
    """Keeps what is written; fails the first `failures` times."""

    def __init__(self, failures: int = 0, error: type[Exception] = StoreUnavailableError) -> None:
        self.offers: list[list[CrawlRequest]] = []
        self.records: list[list[LogRecord]] = []
        self.failures = failures
        self.error = error
        self.wrote = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def _work(self, keep: Callable[[], None]) -> None:
        self.may_go_on.wait(5)
        if self.failures:
            self.failures -= 1
            raise self.error("the database is locked")
        keep()
        self.wrote.set()

    def add(self, batch: Sequence[CrawlRequest], _now: float) -> int:
        self._work(lambda: self.offers.append(list(batch)))
        return len(batch)

    def write(self, batch: Sequence[LogRecord]) -> None:
        self._work(lambda: self.records.append(list(batch)))


def record(number: int) -> LogRecord:
    return LogRecord(float(number), "", "GET", "http://a/", "document", "allow", "unknown")


def test_an_offer_is_written_at_once_and_records_go_along() -> None:
    database, counters = Database(), Counters()
    writer = StoreWriter(database.add, database.write, counters)
    writer.start()
    writer.log.write(record(1))
    assert writer.offers.offer(CrawlRequest("http://a/"))
    assert database.wrote.wait(5)
    assert writer.stop()
    assert [offer.url for batch in database.offers for offer in batch] == ["http://a/"]
    assert database.records == [[record(1)]]
    assert counters.as_dict() == {"log_written": 1, "crawl_requests_written": 1}


def test_what_came_while_writing_goes_in_one_batch() -> None:
    database, counters = Database(), Counters()
    database.may_go_on.clear()
    writer = StoreWriter(database.add, database.write, counters)
    for number in range(5):
        writer.offers.offer(CrawlRequest(f"http://a/{number}"))
    writer.start()
    database.may_go_on.set()
    assert writer.stop()
    assert [len(batch) for batch in database.offers] == [5]


def test_an_offer_waits_for_others_where_no_request_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    database, waited = Database(), list[float]()
    writer = StoreWriter(database.add, database.write, Counters(), gather_s=0.1)

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        writer.offers.offer(CrawlRequest("http://a/2"))

    monkeypatch.setattr("gatewayfilter.proxy.sync.store_writer.time.sleep", sleep)
    writer.start()
    writer.offers.offer(CrawlRequest("http://a/1"))
    assert database.wrote.wait(5)
    assert writer.stop()
    assert (waited, [len(batch) for batch in database.offers]) == ([0.1], [2])


def test_records_wait_for_their_turn_however_often_offers_come() -> None:
    database, counters = Database(), Counters()
    writer = StoreWriter(database.add, database.write, counters)
    writer._log_at = time.monotonic() + 60.0
    writer.start()
    for number in range(3):
        database.wrote.clear()
        writer.log.write(record(number))
        writer.offers.offer(CrawlRequest(f"http://a/{number}"))
        assert database.wrote.wait(5)
    assert database.records == []
    assert writer.stop()
    assert [len(batch) for batch in database.records] == [3]


def test_more_records_than_a_batch_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "_LOG_EVERY_S", 60.0)
    monkeypatch.setattr(store_writer, "_BATCH", 10)
    database, counters = Database(), Counters()
    writer = StoreWriter(database.add, database.write, counters)
    for number in range(30):
        writer.log.write(record(number))
    writer.start()
    for _ in range(1_000):
        if counters["log_written"] == 30:
            break
        threading.Event().wait(0.005)
    assert counters["log_written"] == 30, "as many as a batch are one"
    assert writer.stop()
    assert [len(batch) for batch in database.records] == [10, 10, 10]


def test_full_queues_drop_and_count() -> None:
    database, counters = Database(), Counters()
    writer = StoreWriter(database.add, database.write, counters, offer_capacity=2, log_capacity=3)
    assert [writer.offers.offer(CrawlRequest(f"http://a/{number}")) for number in range(4)] == [True, True, False, False]
    for number in range(5):
        writer.log.write(record(number))
    assert counters.as_dict() == {"log_dropped": 2, "crawl_requests_dropped": 2}


def test_long_urls_fill_the_queue_sooner() -> None:
    counters = Counters()
    queue = LogQueue(1_000, counters, most_characters=100)
    for _ in range(5):
        queue.write(record(1)._replace(url="u" * 40))
    assert (len(queue), counters.as_dict()) == (3, {"log_dropped": 2})
    assert len(queue.take(2)) == 2
    queue.write(record(2))
    assert len(queue.take(10)) == 2
    for lengths, room in (((50, 49), True), ((50, 50), False)):
        queue = LogQueue(1_000, Counters(), most_characters=100)
        for length in lengths:
            queue.write(record(1)._replace(url="u" * length))
        queue.write(record(2))
        assert (len(queue) == 3) is room


def test_stop_writes_everything_out() -> None:
    database, counters = Database(), Counters()
    writer = StoreWriter(database.add, database.write, counters)
    for number in range(2500):
        writer.log.write(record(number))
    writer.start()
    assert writer.stop()
    assert [entry.at for batch in database.records for entry in batch] == [float(number) for number in range(2500)]


def test_stop_without_start_is_nothing() -> None:
    database = Database()
    assert StoreWriter(database.add, database.write, Counters()).stop()


def test_a_busy_database_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "_RETRY_AFTER_S", (0.0, 0.0))
    database, counters = Database(failures=2), Counters()
    writer = StoreWriter(database.add, database.write, counters)
    writer.start()
    writer.offers.offer(CrawlRequest("http://a/"))
    assert database.wrote.wait(5)
    assert writer.stop()
    assert counters["store_errors"] == 2
    assert counters["crawl_requests_written"] == 1


@pytest.mark.parametrize("error", [StoreError, RuntimeError])
def test_a_dead_database_loses_the_batch_but_not_the_thread(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_writer, "_RETRY_AFTER_S", (0.0,))
    database, counters = Database(failures=1, error=error), Counters()
    writer = StoreWriter(database.add, database.write, counters)
    writer.start()
    writer.offers.offer(CrawlRequest("http://lost/"))
    while not counters["crawl_requests_dropped"]:
        threading.Event().wait(0.005)
    writer.offers.offer(CrawlRequest("http://kept/"))
    assert database.wrote.wait(5)
    assert writer.stop()
    assert [offer.url for batch in database.offers for offer in batch] == ["http://kept/"]
    assert counters["store_errors"] == 1
    assert "lost" in caplog.text


class AwayDatabase:
    """A database that is locked until it is `back`, and keeps what it was given, by kind."""

    def __init__(self) -> None:
        self.back = threading.Event()
        self.tries = 0
        self.kept: dict[str, list[object]] = {"offers": [], "records": [], "asks": [], "links": [], "uses": []}

    def _keep(self, kind: str, items: Sequence[object]) -> int:
        self.tries += 1
        if not self.back.is_set():
            raise StoreUnavailableError("the database is locked")
        self.kept[kind].extend(items)
        return len(items)

    def add(self, offers: Sequence[CrawlRequest], _now: float) -> int:
        return self._keep("offers", offers)

    def write(self, records: Sequence[LogRecord]) -> None:
        self._keep("records", records)

    def ask(self, requests: Sequence[UnblockRequest]) -> int:
        return self._keep("asks", requests)

    def redeem(self, links: Sequence[int], _now: float) -> int:
        return self._keep("links", links)

    def use(self, uses: Sequence[QuotaUse]) -> int:
        return self._keep("uses", uses)


def test_stop_writes_requests_and_uses_that_were_not_due() -> None:
    database, counters, usage = AwayDatabase(), Counters(), UsageCounter(None, Counters())
    database.back.set()
    ways: dict[str, Any] = {"ask": database.ask, "redeem": database.redeem, "usage": usage, "add_uses": database.use}
    writer = StoreWriter(database.add, database.write, counters, **ways)
    writer._log_at = time.monotonic() + 60.0
    writer.start()
    asked, use = UnblockRequest("http://a/", "kim", "blacklist", "", "", "", "", 1.0), QuotaUse("kim", "games", 1)
    writer.asks.take(asked)
    writer.redeems.take(7)
    usage.take_back([use])
    assert writer.stop()
    assert database.kept == {"offers": [], "records": [], "asks": [asked], "links": [7], "uses": [use]}
    assert database.tries == 3


def test_offers_that_wait_for_the_database_are_tried_at_the_turn_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "_RETRY_AFTER_S", ())
    database, waited = AwayDatabase(), list[float]()
    writer = StoreWriter(database.add, database.write, Counters())

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        writer._log_at = 0.0
        database.back.set()

    monkeypatch.setattr("gatewayfilter.proxy.sync.store_writer.time.sleep", sleep)
    writer._log_at = time.monotonic() + 60.0
    for number in range(2):
        writer.offers.offer(CrawlRequest(f"http://a/{number}"))
    writer.start()
    for _ in range(5_000):
        if database.kept["offers"]:
            break
        threading.Event().wait(0.001)
    assert writer.stop()
    assert [0.0 < seconds <= 60.0 for seconds in waited[:1]] == [True]
    assert database.kept["offers"] == [CrawlRequest("http://a/0"), CrawlRequest("http://a/1")]


def test_what_waits_for_a_locked_database_is_kept_up_to_the_bound_and_in_order(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_writer, "_RETRY_AFTER_S", (0.0,))
    monkeypatch.setattr(store_writer, "_LOG_EVERY_S", 0.001)
    monkeypatch.setattr(store_writer, "_BATCH", 10)
    database, counters, usage = AwayDatabase(), Counters(), UsageCounter(None, Counters())
    asked = UnblockRequest("http://a/", "kim", "blacklist", "", "", "", "", 1.0)
    usage.take_back([QuotaUse("kim", "games", minute) for minute in range(3)])
    writer = StoreWriter(
        database.add,
        database.write,
        counters,
        ask=database.ask,
        redeem=database.redeem,
        usage=usage,
        add_uses=database.use,
        log_capacity=25,
        offer_capacity=25,
    )
    for number in range(20):
        writer.log.write(record(number))
        assert writer.offers.offer(CrawlRequest(f"http://a/{number}"))
    assert writer.asks.take(asked)
    assert writer.redeems.take(7)
    writer.start()
    while database.tries < 20:  # each kind was tried and put back more than once
        threading.Event().wait(0.001)
    assert [writer.offers.offer(CrawlRequest(f"http://a/{number}")) for number in range(20, 30)] == [True] * 5 + [False] * 5
    for number in range(20, 60):
        writer.log.write(record(number))
    dropped = counters["log_dropped"]
    assert 5 <= dropped <= 35  # a batch that is being tried is not in the queue
    assert counters["log_written"] == 0
    database.back.set()
    while len(database.kept["records"]) < 60 - dropped or len(database.kept["uses"]) < 3 or len(database.kept["offers"]) < 25:
        threading.Event().wait(0.001)
    assert writer.stop()
    times = [entry.at for entry in database.kept["records"] if isinstance(entry, LogRecord)]
    assert times == sorted(times)
    assert times[:20] == [float(number) for number in range(20)]
    assert counters["log_written"] + counters["log_dropped"] == 60
    assert database.kept["offers"] == [CrawlRequest(f"http://a/{number}") for number in range(25)]
    assert (counters["crawl_requests_written"], counters["crawl_requests_dropped"]) == (25, 5)
    assert database.kept["asks"] == [asked]
    assert database.kept["links"] == [7]
    assert database.kept["uses"] == [QuotaUse("kim", "games", minute) for minute in range(3)]
    assert caplog.text.count("wait until it can be written") == 1
    assert "lost" not in caplog.text


def test_a_batch_that_is_refused_for_what_it_holds_does_not_hold_up_the_next(caplog: pytest.LogCaptureFixture) -> None:
    database, counters = Database(failures=1, error=StoreError), Counters()
    writer = StoreWriter(database.add, database.write, counters)
    writer.log.write(record(1))
    writer._write_records()
    writer.log.write(record(2))
    writer._write_records()
    assert [entry.at for batch in database.records for entry in batch] == [2.0]
    assert counters.as_dict() == {"store_errors": 1, "log_dropped": 1, "log_written": 1}
    assert "1 log records are lost" in caplog.text


def test_a_writer_that_stops_while_the_database_is_away_counts_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "_RETRY_AFTER_S", (0.0,))
    database, counters, usage = AwayDatabase(), Counters(), UsageCounter(None, Counters())
    writer = StoreWriter(database.add, database.write, counters, usage=usage, add_uses=database.use)
    usage.take_back([QuotaUse("kim", "games", minute) for minute in range(3)])
    for number in range(2_500):
        writer.log.write(record(number))
        writer.offers.offer(CrawlRequest(f"http://a/{number}"))
    writer.start()
    assert writer.stop()
    assert counters["log_dropped"] == 2_500
    assert counters["crawl_requests_dropped"] == 2_500
    assert counters["quota_uses_dropped"] == 3


def test_queues_take_back_in_order() -> None:
    queue: AskQueue[int] = AskQueue(3)
    assert [queue.take(number) for number in range(4)] == [True, True, True, False]
    queue.take_back(queue.drain()[:2])
    assert queue.drain() == [0, 1]
    log = LogQueue(10, Counters(), most_characters=100)
    for number in range(3):
        log.write(record(number)._replace(url="u" * 40))
    log.take_back(log.take(2))
    log.write(record(3))
    assert len(log) == 3  # the characters count again
    assert [entry.at for entry in log.take(9)] == [0.0, 1.0, 2.0]


def test_a_database_that_is_away_is_asked_again_after_growing_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("gatewayfilter.proxy.sync.store_writer.time.sleep", waited.append)
    database, counters = Database(failures=4), Counters()
    writer = StoreWriter(database.add, database.write, counters)
    writer.log.write(record(1))
    writer._write_records()
    assert (waited, len(writer.log), counters["store_errors"]) == ([0.05, 0.2, 0.5], 1, 4)
    writer._write_records()
    assert (len(waited), database.records) == (3, [[record(1)]])
    database.failures = 4
    writer.log.write(record(2))
    writer._write_records()
    assert caplog.text.count("wait until it can be written") == 2, "it was there in between"


def test_uses_and_requests_that_are_refused_are_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    tries: list[str] = []

    def refuse(kind: str) -> int:
        tries.append(kind)
        raise StoreError("the database is damaged")

    counters, usage = Counters(), UsageCounter(None, Counters())
    writer = StoreWriter(
        lambda *_: 0,
        lambda _: None,
        counters,
        ask=lambda _: refuse("ask"),
        redeem=lambda *_: refuse("redeem"),
        usage=usage,
        add_uses=lambda _: refuse("use"),
    )
    usage.take_back([QuotaUse("kim", "games", minute) for minute in range(3)])
    writer.asks.take(UnblockRequest("http://a/", "kim", "blacklist", "", "", "", "", 1.0))
    writer.redeems.take(7)
    writer.redeems.take(8)
    for _ in range(2):
        writer._write_asks()
        writer._write_uses()
    assert tries == ["ask", "redeem", "use"]
    assert counters.as_dict() == {"store_errors": 3, "quota_uses_dropped": 3}
    for told in ("1 requests to unblock pages are lost", "2 bypass links are lost", "3 minutes of quotas are lost"):
        assert told in caplog.text
