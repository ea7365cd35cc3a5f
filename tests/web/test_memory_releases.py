"""When the web process gives memory back."""

import pytest

from gatewayfilter.web.memory import ReleaseTimes, resident_bytes


class Machine:
    """Its clock and the memory in use, as the test sets them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.used = 100_000_000

    def times(self) -> ReleaseTimes:
        return ReleaseTimes(lambda: self.used, lambda: self.now)


@pytest.mark.parametrize(
    ("passed_s", "grown", "due"),
    [
        (0.0, 0, False),
        (14.9, 1_999_999, False),
        (15.0, 0, True),
        (0.9, 50_000_000, False),
        (1.0, 2_000_000, True),
        (15.0, -5_000_000, True),
    ],
)
def test_it_is_due_from_time_to_time_and_soon_after_growth(passed_s: float, grown: int, *, due: bool) -> None:
    machine = Machine()
    times = machine.times()
    machine.now, machine.used = passed_s, machine.used + grown
    assert times.due is due


def test_growth_counts_from_what_a_release_left() -> None:
    machine = Machine()
    times = machine.times()
    due: list[bool] = []
    for now, used, releases in ((2.0, 110_000_000, True), (4.0, 110_000_000, False), (4.0, 112_000_000, False)):
        machine.now, machine.used = now, used
        due.append(times.due)
        if releases:
            times.released()
    assert due == [True, False, True]


def test_this_process_has_memory() -> None:
    assert 10_000_000 < resident_bytes() < 100_000_000_000
