"""A database that is away, and comes back."""

from functools import partial
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.store import reconnecting_store
from gatewayfilter.store.reconnecting_store import ReconnectingStore
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
