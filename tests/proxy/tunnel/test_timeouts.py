"""What is due comes in order and once; what was lifted does not."""

import asyncio
from collections.abc import Callable
from typing import cast

from gatewayfilter.proxy.tunnel.timeouts import Deadlines
from tests.proxy.connection_fakes import until


async def test_only_what_is_left_is_acted_on() -> None:
    over: list[str] = []
    limits: Deadlines[str] = Deadlines(asyncio.get_running_loop(), 0.02, over.append)
    for item in ("a", "b", "c"):
        limits.add(item)
    limits.remove("b")
    limits.remove("never there")
    assert len(limits) == 2
    await until(lambda: len(over) == 2)
    assert over == ["a", "c"]
    assert len(limits) == 0
    limits.add("later")
    await until(lambda: over[-1] == "later")


async def test_adding_again_starts_anew() -> None:
    over: list[str] = []
    limits: Deadlines[str] = Deadlines(asyncio.get_running_loop(), 0.02, over.append)
    limits.add("a")
    limits.add("b")
    limits.add("a")
    await until(lambda: len(over) == 2)
    assert over == ["b", "a"]


async def test_one_that_is_due_may_lift_the_others() -> None:
    over: list[str] = []

    def act(item: str) -> None:
        over.append(item)
        limits.remove("b")
        limits.add("c")

    limits: Deadlines[str] = Deadlines(asyncio.get_running_loop(), 0.0, act)
    limits.add("a")
    limits.add("b")
    await until(lambda: over[-1:] == ["c"])
    assert over[:2] == ["a", "c"]
    limits.close()
    seen = len(over)
    await asyncio.sleep(0.01)
    assert len(over) == seen


async def test_what_has_a_limit_is_told() -> None:
    limits: Deadlines[str] = Deadlines(asyncio.get_running_loop(), 60.0, lambda _: None)
    limits.add("a")
    assert ("a" in limits, "b" in limits, len(limits)) == (True, False, 1)
    limits.close()
    assert ("a" in limits, len(limits)) == (False, 0)


class Clock:
    """A loop with a clock that the test sets, and one timer."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.cancelled = 0

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, act: Callable[[], None]) -> "Clock":
        self.timers.append((at, act))
        return self

    def cancel(self) -> None:
        self.cancelled += 1


def test_one_timer_stands_for_the_item_that_is_due_first() -> None:
    clock, over = Clock(), list[str]()
    limits: Deadlines[str] = Deadlines(cast("asyncio.AbstractEventLoop", clock), 5.0, over.append)
    limits.close()
    assert clock.cancelled == 0
    limits.add("a")
    clock.now = 102.0
    limits.add("b")
    limits.add("c")
    assert [at for at, _ in clock.timers] == [105.0]
    clock.now = 105.0
    clock.timers[-1][1]()
    assert (over, [at for at, _ in clock.timers]) == (["a"], [105.0, 107.0])
    limits.add("d")
    assert len(clock.timers) == 2
    limits.close()
    assert (clock.cancelled, len(limits)) == (1, 0)
    limits.add("e")
    assert [at for at, _ in clock.timers] == [105.0, 107.0, 110.0]
