"""The time-out of a connection: when it begins, what holds it up, and what is left of it."""

import asyncio
import time
from typing import Any

import pytest

from gatewayfilter.proxy.mitm.fastpath import connection_handler
from gatewayfilter.proxy.mitm.fastpath.connection_handler import IdleTimer
from tests.proxy.connection_fakes import until


async def test_the_time_out_counts_from_the_last_activity_and_not_while_a_hook_waits() -> None:
    ends: list[float] = []

    async def end() -> None:
        ends.append(time.time())

    timer = IdleTimer(1, end)
    timer.timeout = 0.05  # type: ignore[assignment]
    timer.begin()
    await until(lambda: ends)
    timer.last_activity = time.time()
    timer.begin()
    timer.last_activity += 3600
    await asyncio.sleep(0.15)
    assert len(ends) == 1
    timer.end()
    with timer.disarm(), timer.disarm():
        timer.last_activity = 0
        timer.begin()
        await asyncio.sleep(0.15)
        assert len(ends) == 1
    await until(lambda: len(ends) == 2)
    timer.begin()
    timer.end()
    await asyncio.sleep(0.15)
    assert len(ends) == 2
    timer.timeout, timer.last_activity = 10, time.time() - 9.95
    timer.begin()
    timer.end()
    await asyncio.sleep(0.15)
    assert len(ends) == 2
    timer.begin()
    await until(lambda: len(ends) == 3)


async def test_a_time_out_is_begun_once_and_at_once_where_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, waits, ends = asyncio.get_running_loop(), list[float](), list[int]()
    later = loop.call_later

    def note(delay: float, *more: Any, **named: Any) -> asyncio.TimerHandle:
        waits.append(delay)
        return later(3600, *more, **named)

    async def end() -> None:
        ends.append(1)

    monkeypatch.setattr(loop, "call_later", note)
    timer, running = IdleTimer(600, end), connection_handler._deadlines(loop, 600)
    timer.last_activity = time.time() - 1000
    timer.begin()
    with timer.disarm():
        pass
    assert (waits, timer in running) == ([0], False), "it is not begun twice"
    timer.end()
    for ends_meanwhile in (False, True):
        timer.begin()
        running.remove(timer)  # it is due
        with timer.disarm():
            timer.over()
            if ends_meanwhile:
                timer.end()
            assert timer not in running
        assert (timer in running) is not ends_meanwhile
    timer.last_activity = time.time() - 300
    timer.over()
    assert waits == [0, pytest.approx(300, abs=100)]
    assert not ends
    timer.last_activity = time.time() - 1000
    timer.over()
    await asyncio.sleep(0)
    assert ends == [1]


async def test_connections_that_have_ended_leave_no_timer_behind() -> None:
    async def end() -> None:
        raise AssertionError("there was time left")

    loop = asyncio.get_running_loop()
    before = len(vars(loop)["_scheduled"])
    timers = [IdleTimer(60, end) for _ in range(50)]
    for timer in timers:
        timer.begin()
    for timer in timers:
        timer.end()
    assert len(vars(loop)["_scheduled"]) <= before + 1
