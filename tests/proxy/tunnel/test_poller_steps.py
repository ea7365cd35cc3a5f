"""One look of a selector, step by step, over doubles of the epoll set and of the loop."""

import selectors
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.proxy.tunnel.poller import GONE, READ, WRITE, LoopPoller, WireSelector
from tests.proxy.tunnel.test_poller import Polls, selector_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="epoll is Linux's")


@pytest.mark.parametrize("whose", ["poller", "loop"])
def test_a_number_that_is_used_again_keeps_nothing_from_those_behind_it(whose: str) -> None:
    found = selector_of(Polls([(7, READ), (8, READ), (9, READ)]))
    told: list[str] = []

    def first(_: int) -> None:
        told.append("first")
        found.forget(8)
        if whose == "poller":
            found.watch(8, READ, lambda _: told.append("new"))
        else:
            found.register(8, selectors.EVENT_READ)

    found.watch(7, READ, first)
    found.watch(8, READ, lambda _: told.append("before"))
    found.watch(9, READ, lambda _: told.append("last"))
    assert found.select(0) == []
    assert told == ["first", "last"]


def test_what_the_loop_reads_is_called_at_once_unless_it_was_cancelled() -> None:
    called: list[int] = []

    def handle(number: int, *, cancelled: bool = False) -> Any:
        return SimpleNamespace(_run=lambda: called.append(number), cancelled=lambda: cancelled)

    found = selector_of(Polls([(number, READ) for number in range(7, 12)]))
    found._ready = ()  # the loop has nothing to do
    readers = {7: handle(7), 8: None, 9: handle(9, cancelled=True), 10: handle(10), 11: handle(11)}
    keys = {number: found.register(number, selectors.EVENT_READ, (reader, None)) for number, reader in readers.items()}
    assert found.select(0) == [(keys[number], selectors.EVENT_READ) for number in (8, 9)]
    assert called == [7, 10, 11]


def test_a_closed_selector_cannot_be_asked() -> None:
    found = WireSelector()
    found.close()
    with pytest.raises(ValueError, match="closed"):
        found.select(0)


def test_what_a_loop_is_told_to_watch_and_to_leave() -> None:
    did: list[tuple[object, ...]] = []
    names = ("add_reader", "remove_reader", "add_writer", "remove_writer")
    loop: Any = SimpleNamespace(**{name: lambda *what, name=name: did.append((name, *what)) for name in names})

    def done() -> list[tuple[object, ...]]:
        found = did.copy()
        did.clear()
        return found

    poller = LoopPoller(loop)
    reads, writes = ("add_reader", 7, print, READ), ("add_writer", 7, print, WRITE | GONE)
    for events, told in (
        (WRITE, [writes]),
        (READ | WRITE, [reads, writes]),
        (READ, [reads, ("remove_writer", 7)]),
        (WRITE, [("remove_reader", 7), writes]),
    ):
        poller.watch(7, events, print)
        assert done() == told
    poller.forget(7)
    assert done() == [("remove_reader", 7), ("remove_writer", 7)]
    poller.forget(7)
    poller.watch(7, READ, print)
    assert done() == [reads]
