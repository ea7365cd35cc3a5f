import pytest

from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.review import unblock_requests as module


def ask(url: str = "http://a.example/", client: str = "10.0.0.1", at: float = 1.0, comment: str = "") -> UnblockRequest:
    return UnblockRequest(url, client, "blacklist", "list", "a.example", "gambling", comment, at)


def test_one_row_a_page_and_client(store: Store) -> None:
    assert store.unblock.ask([ask(), ask(client="10.0.0.2", at=2.0)]) == 2
    assert store.unblock.ask([ask(at=3.0, comment="please")]) == 0
    first, second = store.unblock.open_requests()
    assert (first.client, first.times, first.comment, first.at) == ("10.0.0.1", 2, "please", 3.0)
    assert (second.client, second.times) == ("10.0.0.2", 1)
    assert store.unblock.open_requests(1) == [first]


def test_settling_takes_the_page_off_for_everybody(store: Store) -> None:
    store.unblock.ask([ask(), ask(client="10.0.0.2"), ask(url="http://b.example/")])
    other, *_ = [found for found in store.unblock.open_requests() if found.url == "http://a.example/"]
    settled = store.unblock.complete(other.request_id)
    assert settled == other
    assert store.unblock.complete(other.request_id) is None
    assert [found.url for found in store.unblock.open_requests()] == ["http://b.example/"]


def test_the_oldest_make_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 3)
    monkeypatch.setattr(module, "_SURPLUS", module._SURPLUS.offset(3))
    store.unblock.ask([ask(url=f"http://a.example/{number}", at=float(number)) for number in range(5)])
    assert [found.at for found in store.unblock.open_requests()] == [4.0, 3.0, 2.0]
