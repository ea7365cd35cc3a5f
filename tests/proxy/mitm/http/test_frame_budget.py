"""How many frames an end of HTTP/2 may send for nothing: at once, a second, and with data; and which frames count."""

from types import SimpleNamespace
from typing import Any

import h2.events
import pytest

from gatewayfilter.proxy.mitm.http import frame_budget
from gatewayfilter.proxy.mitm.http.frame_budget import MOST_CALLS, FrameBudget, is_call
from tests.case_tables import all_cases

PING, RESET = object.__new__(h2.events.PingReceived), object.__new__(h2.events.StreamReset)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(frame_budget, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def allowed(budget: FrameBudget, most: int = 2 * MOST_CALLS) -> int:
    """Returns how many calls are within the budget before one that is not."""
    return next((count for count in range(most) if not budget.may_call()), most)


def free_pings(budget: FrameBudget) -> int:
    """Returns how many pings are within the budget of an end that has no calls left."""
    budget._calls_left = 0
    return next(count for count in range(2 * MOST_CALLS) if not budget.may_cause(PING))


def test_so_many_come_at_once_and_further_ones_by_the_second(clock: SimpleNamespace) -> None:
    budget = FrameBudget()
    assert allowed(budget) == MOST_CALLS
    for seconds, more in ((0.0, 0), (0.125, 6), (1.0, 50), (1e6, MOST_CALLS)):
        budget._calls_left = 0
        clock.now += seconds
        assert allowed(budget) == more, seconds
    assert allowed(FrameBudget()) == MOST_CALLS, "each end has its own"


@all_cases(
    ("sizes", "pings"), [((), 0), ((0,), 1), ((4_095,), 1), ((4_096,), 2), ((4_096, 1), 3), ((5_000 * 4_096,), MOST_CALLS)]
)
def test_so_many_pings_go_with_data(sizes: tuple[int, ...], pings: int) -> None:
    budget = FrameBudget()
    for size in sizes:
        budget.note_sent(size)
    assert free_pings(budget) == pings


def test_other_frames_do_not_go_with_data(clock: SimpleNamespace) -> None:
    budget = FrameBudget()
    budget.note_sent(4_096)
    budget._calls_left = 1
    assert [budget.may_cause(event) for event in (RESET, RESET, PING, PING, PING)] == [True, False, True, True, False]


def data(body: bytes, *, ends: bool) -> Any:
    made: Any = object.__new__(h2.events.DataReceived)
    made.data, made.stream_ended = body, "the end" if ends else None
    return made


@all_cases(
    ("event", "counts"),
    [
        (PING, True),
        (RESET, True),
        (object.__new__(h2.events.UnknownFrameReceived), True),
        (object.__new__(h2.events.RequestReceived), False),
        (object.__new__(h2.events.WindowUpdated), False),
        (data(b"", ends=False), True),
        (data(b"", ends=True), False),
        (data(b"x", ends=False), False),
        (data(b"x", ends=True), False),
    ],
)
def test_which_frames_count(event: Any, *, counts: bool) -> None:
    assert is_call(event) is counts
