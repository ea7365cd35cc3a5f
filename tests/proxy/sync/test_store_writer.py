import threading
import time
from collections.abc import Callable, Sequence

import pytest

from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.model import LogRecord
from gatewayfilter.proxy.sync import store_writer
from gatewayfilter.proxy.sync.store_writer import LogQueue, StoreWriter
from gatewayfilter.telemetry import Counters


class Database:
    """Keeps what is written; fails the first `failures` times."""

    def __init__(self, failures: int = 0, error: type[Exception] = StoreError) -> None:
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
    for number in range(25):
        writer.log.write(record(number))
    writer.start()
    while counters["log_written"] < 20:
        threading.Event().wait(0.005)
    assert writer.stop()
    assert [len(batch) for batch in database.records] == [10, 10, 5]


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
    database, counters = Database(failures=2 if error is StoreError else 1, error=error), Counters()
    writer = StoreWriter(database.add, database.write, counters)
    writer.start()
    writer.offers.offer(CrawlRequest("http://lost/"))
    while not counters["crawl_requests_dropped"]:
        threading.Event().wait(0.005)
    writer.offers.offer(CrawlRequest("http://kept/"))
    assert database.wrote.wait(5)
    assert writer.stop()
    assert [offer.url for batch in database.offers for offer in batch] == ["http://kept/"]
    assert "lost" in caplog.text
