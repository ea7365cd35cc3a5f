"""Several writes of one thread in one transaction."""

import threading
from collections.abc import Callable

import pytest

from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.model import Classification, LearnedEntry, ListAction
from gatewayfilter.store import Store

URL = "http://a.example/"
ENTRY = LearnedEntry("h\ta.example", ListAction.BLOCK, "gambling", URL, "", 1.0, 9e9)
VERDICT = Classification("gambling", 42.0, 20.0)


def test_what_is_written_together_stands_together(open_store: Callable[[], Store]) -> None:
    store, other = open_store(), open_store()
    with store.learning():
        store.verdicts.record(URL, VERDICT, 1.0)
        store.lists.put_learned((ENTRY,))
        assert store.verdicts.find(URL) == (VERDICT, 1.0)  # its own thread sees it
        assert other.verdicts.find(URL) is None
        assert other.lists.find_learned((ENTRY.key,)) == []
    assert other.verdicts.find(URL) == (VERDICT, 1.0)
    assert other.lists.find_learned((ENTRY.key,)) == [ENTRY]


def test_what_fails_leaves_nothing(open_store: Callable[[], Store]) -> None:
    store = open_store()

    def fail() -> None:
        with store.learning():
            store.verdicts.record(URL, VERDICT, 1.0)
            store.lists.put_learned((ENTRY,))
            raise StoreError("the disk is full")

    with pytest.raises(StoreError):
        fail()
    assert store.verdicts.find(URL) is None
    assert store.lists.find_learned((ENTRY.key,)) == []
    store.verdicts.record(URL, VERDICT, 2.0)
    assert store.verdicts.find(URL) == (VERDICT, 2.0)


def test_other_threads_wait_and_do_not_join(open_store: Callable[[], Store]) -> None:
    store = open_store()
    written = threading.Event()

    def offer() -> None:
        store.frontier.add([CrawlRequest("http://b.example/")], 1.0)
        written.set()

    thread = threading.Thread(target=offer)
    with store.settling():
        store.frontier.add([CrawlRequest(URL)], 1.0)
        thread.start()
        assert store.frontier.stats(2.0)["waiting"] == 1
    thread.join(20)
    assert written.is_set()
    assert store.frontier.stats(2.0)["waiting"] == 2


def test_leases_settled_together(open_store: Callable[[], Store]) -> None:
    store = open_store()
    store.frontier.add([CrawlRequest(f"http://{name}.example/") for name in "abc"], 1.0)
    leases = store.frontier.lease(3, 60.0, 2.0)
    with store.settling():
        assert [store.frontier.done(lease, 100.0) for lease in leases] == [True] * 3
        assert not store.frontier.done(leases[0], 100.0)
    assert store.frontier.stats(2.0)["done"] == 3
