"""The follower of requests and links: what another process writes is seen, and a database that is away stops nothing."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import BypassLink, RecognizedClient, UnblockChanges, UnblockRequest
from gatewayfilter.model import EntryKind, LinkClaims, Request, sign_link
from gatewayfilter.proxy.pages.own_requests import OwnRequests
from gatewayfilter.proxy.sync.store_writer import StoreWriter
from gatewayfilter.proxy.sync.unblock_follower import UnblockFollower
from gatewayfilter.store import Store
from gatewayfilter.store.reconnecting_store import ReconnectingStore
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url

KEY = b"k" * 32
URL = "http://a.example/"


class Known:
    def recognize(self, address: str, user: str = "") -> RecognizedClient:
        del address, user
        return RecognizedClient("kim", ("client:kim", ""))


def own() -> OwnRequests:
    return OwnRequests(KEY, Known(), str, time.time)


def until(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_is_written_is_seen_by_another_process(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'db.sqlite3'}")
    worker = ReconnectingStore(lambda: Store.open(f"sqlite:///{tmp_path / 'db.sqlite3'}"))
    view = own()
    asker = view.asker(Request(parse_url(URL), client="10.0.0.7"))
    follower = UnblockFollower(worker.unblock.changes, view)
    writer = StoreWriter(lambda *_: 0, lambda _: None, Counters(), ask=worker.unblock.ask, redeem=worker.unblock.redeem)
    follower.start()
    writer.start()
    writer.asks.take(UnblockRequest(URL, "10.0.0.7", "blacklist", "", "", "", "", time.time(), client_name="kim"))
    until(lambda: (found := view.state_of(asker, URL)) is not None and found.request_id)
    link = store.bypass.add(BypassLink(URL, EntryKind.URL, "a.example/", "client:kim", time.time() + 60, True, time.time()))
    token = sign_link(KEY, LinkClaims(link.link_id, URL, link.scope, link.until, True))
    assert view.read_link(token, asker)[1] == ""
    writer.redeems.take(link.link_id)
    until(lambda: view.read_link(token, asker)[1] == "link-used")
    assert [rule.pattern for rule in store.lists.rules()] == ["a.example/"]
    writer.stop()
    follower.stop()
    worker.close()
    store.close()


def test_a_database_that_is_away_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.sync.unblock_follower._EVERY_S", 0.01)
    answers: list[UnblockChanges | Exception] = [StoreError("away"), ValueError("a bug"), UnblockChanges(7), StoreError("away")]
    asked: list[int] = []

    def read(after: int) -> UnblockChanges:
        asked.append(after)
        answer = answers[min(len(asked), len(answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    others = threading.enumerate()  # of other tests
    follower = UnblockFollower(read, own())
    follower.start()
    until(lambda: len(asked) >= 4)
    follower.stop()
    assert asked[:4] == [-1, -1, -1, 7]
    assert "unblock-follower" not in [thread.name for thread in threading.enumerate() if thread not in others]


def test_a_follower_that_never_started_can_be_stopped() -> None:
    UnblockFollower(lambda _: UnblockChanges(1), own()).stop()


@pytest.mark.parametrize("clients", [1, 3000])
def test_the_view_is_bounded(clients: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.pages.own_requests._MOST_KEPT", 1000)
    view = own()
    requests = [
        UnblockRequest(f"http://a.example/{number}", str(number % clients), "", "", "", "", "", float(number), request_id=number)
        for number in range(1, 3001)
    ]
    view.take_in(UnblockChanges(1, requests))
    assert sum(map(len, view._newest.values())) == 500
    assert view._count == 500


def test_a_whole_view_takes_the_place_of_the_one_before() -> None:
    view = own()
    stored = UnblockRequest("http://a.example/", "10.0.0.7", "", "", "", "", "", 7.0, request_id=1)
    noted = UnblockRequest("http://b.example/", "10.0.0.7", "", "", "", "", "", 7.0)
    view.take_in(UnblockChanges(9, [stored, noted]))
    restored = UnblockRequest("http://c.example/", "10.0.0.7", "", "", "", "", "", 7.0, request_id=1)
    view.take_in(UnblockChanges(3, [restored], whole=True))
    assert set(view._newest["10.0.0.7"]) == {"http://b.example/", "http://c.example/"}
    assert view._count == 2
