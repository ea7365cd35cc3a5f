"""A database that is away, and comes back."""

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.model import LogRecord
from gatewayfilter.store import reconnecting_store
from gatewayfilter.store.reconnecting_store import ReconnectingStore
from gatewayfilter.store.repositories.traffic.decision_log import SqlDecisionLog
from gatewayfilter.wiring import open_store


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(reconnecting_store, "_RETRY_AFTER_S", 0.0)
    return Settings(data_dir=tmp_path)


def test_it_opens_when_first_used(settings: Settings) -> None:
    store = ReconnectingStore(partial(open_store, settings))
    assert not (settings.data_dir / "gatewayfilter.sqlite3").exists()
    assert store.frontier.add([CrawlRequest("http://example.com/")], 0.0) == 1
    assert store.feed.last_seq() == 0
    assert store.feed.read(after=0, limit=1) == []
    store.close()


def test_it_says_why_and_takes_the_database_up_when_it_is_back(settings: Settings) -> None:
    file = settings.data_dir / "gatewayfilter.sqlite3"
    file.write_bytes(b"no database" * 1000)
    store = ReconnectingStore(partial(open_store, settings))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"gatewayfilter\.sqlite3"):
            store.feed.read(0)
    file.unlink()
    assert store.feed.read(0) == []
    store.close()


def test_between_tries_it_does_not_ask_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnecting_store, "_RETRY_AFTER_S", 1000.0)
    file = settings.data_dir / "gatewayfilter.sqlite3"
    file.write_bytes(b"no database" * 1000)
    store = ReconnectingStore(partial(open_store, settings))
    with pytest.raises(StoreError):
        store.feed.last_seq()
    file.unlink()
    with pytest.raises(StoreError, match=r"gatewayfilter\.sqlite3"):
        store.feed.last_seq()


def test_the_log_keeps_its_bound_while_nothing_else_looks_after_it(settings: Settings) -> None:
    """The learner may be late: the rate of a flood depends on the processor alone."""
    most, batch = 2_000_000, [LogRecord(7.0, "192.0.2.1", "GET", "u" * 1_700, "document", "block", "blacklist")] * 500
    store = ReconnectingStore(partial(open_store, settings), most)
    store.log.write([])
    empty = _disk(settings)
    largest = 0
    for _ in range(16):  # 17 MB
        store.log.write(batch)
        largest = max(largest, _disk(settings) - empty)
    store.close()
    assert largest <= most + 2 * 500 * 2_100 + 2 * 4_200_000  # a batch and the room for it, and a write-ahead log of 1,000 pages
    with closing(open_store(settings)) as opened:
        assert 700 <= len(opened.log.tail(10_000)) <= 1_500


def test_a_batch_that_finds_no_room_is_not_written(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer hands it in again: it must not be in the log twice."""
    store = ReconnectingStore(partial(open_store, settings), 2_000_000)
    record = LogRecord(7.0, "192.0.2.1", "GET", "http://a.example/", "document", "block", "blacklist")

    def refuses(*_: object) -> int:
        raise StoreError("the database is locked")

    with monkeypatch.context() as broken:
        broken.setattr(SqlDecisionLog, "shrink", refuses)
        with pytest.raises(StoreError, match="locked"):
            store.log.write([record])
    store.log.write([record])
    store.close()
    with closing(open_store(settings)) as opened:
        assert [found for _, found in opened.log.tail(10)] == [record]


def _disk(settings: Settings) -> int:
    return sum(found.stat().st_size for found in settings.data_dir.glob("gatewayfilter.sqlite3*"))
