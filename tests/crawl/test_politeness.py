import asyncio

import pytest

from gatewayfilter.crawl import politeness
from gatewayfilter.crawl.fetch_errors import HostBusyError
from gatewayfilter.crawl.politeness import Politeness, retry_after_s
from tests.crawl.crawl_origin import loopback_settings


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def take(turns: Politeness, host: str = "a.test", *, urgent: bool = False, patience_s: float = 0.0) -> None:
    async with turns.turn(host, urgent=urgent, patience_s=patience_s):
        pass


async def test_the_delay_between_two_requests() -> None:
    clock = Clock()
    turns = Politeness(loopback_settings(per_host_delay_s=2.0), clock)
    await take(turns)
    with pytest.raises(HostBusyError) as caught:
        await take(turns)
    assert caught.value.retry_after_s == pytest.approx(2.0)
    await take(turns, "b.test")
    clock.now += 2.0
    await take(turns)


async def test_a_visit_goes_ahead_of_the_delay_and_counts() -> None:
    clock = Clock()
    turns = Politeness(loopback_settings(per_host_delay_s=2.0), clock)
    await take(turns)
    await take(turns, urgent=True)
    await take(turns, urgent=True)
    with pytest.raises(HostBusyError) as caught:
        await take(turns)
    assert caught.value.retry_after_s == pytest.approx(6.0)


async def test_waiting_within_patience() -> None:
    turns = Politeness(loopback_settings(per_host_delay_s=0.02))
    await take(turns)
    started = asyncio.get_running_loop().time()
    await take(turns, patience_s=1.0)
    assert asyncio.get_running_loop().time() - started >= 0.01


async def test_concurrency_holds_for_visits_too() -> None:
    turns = Politeness(loopback_settings(per_host_concurrency=2))
    running = most = 0

    async def work() -> None:
        nonlocal running, most
        async with turns.turn("a.test", urgent=True, patience_s=9.0):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(work())
    assert most == 2


async def test_a_crowded_host_is_not_waited_for_without_patience() -> None:
    turns = Politeness(loopback_settings(per_host_concurrency=1))
    async with turns.turn("a.test", urgent=True, patience_s=0.0):
        with pytest.raises(HostBusyError):
            await take(turns, urgent=True)
    await take(turns, urgent=True)


async def test_retry_after_holds_for_visits_too() -> None:
    clock = Clock()
    turns = Politeness(loopback_settings(), clock)
    assert turns.asked_to_wait("a.test", {"retry-after": "30"}, 0.0) == 30.0
    with pytest.raises(HostBusyError) as caught:
        await take(turns, urgent=True, patience_s=5.0)
    assert caught.value.retry_after_s == pytest.approx(30.0)
    clock.now += 30
    await take(turns, urgent=True)


NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("0", 0.0),
        ("120", 120.0),
        ("99999999999999999999", 3600.0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tue, 14 Nov 2023 22:14:20", 60.0),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0.0),
        ("Tue, 14 Nov 2033 22:00:00 GMT", 3600.0),
        ("", 60.0),
        ("-5", 60.0),
        ("soon", 60.0),
        ("²", 60.0),
        ("Tue, 99 Nov 2023 99:99:99 GMT", 60.0),
    ],
)
def test_reading_retry_after(value: str, wait_s: float) -> None:
    assert retry_after_s(value, NOW) == pytest.approx(wait_s)


async def test_hosts_are_forgotten_the_oldest_first_but_not_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(politeness, "MAX_HOSTS", 10)
    turns = Politeness(loopback_settings(per_host_concurrency=1))
    async with turns.turn("kept.test", urgent=True, patience_s=0.0):
        for number in range(50):
            await take(turns, f"{number}.test")
        assert len(turns) == 10
        with pytest.raises(HostBusyError):
            await take(turns, "kept.test", urgent=True)
