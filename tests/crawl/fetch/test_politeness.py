import asyncio
import time

import pytest

from gatewayfilter.crawl.fetch import politeness
from gatewayfilter.crawl.fetch.politeness import Politeness, retry_after_s
from gatewayfilter.crawl.net.fetch_errors import HostBusyError
from gatewayfilter.telemetry import Counters
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


def adapting(clock: Clock, **changes: object) -> tuple[Politeness, Counters]:
    counters = Counters()
    settings = loopback_settings(**{"per_host_delay_s": 1.0, "per_host_delay_max_s": 20.0, **changes})
    return Politeness(settings, clock, counters), counters


@pytest.mark.parametrize(("latency_s", "delay_s"), [(0.01, 1.0), (0.9, 1.0), (3.0, 3.0), (500.0, 20.0)])
async def test_a_slow_host_is_asked_as_seldom_as_it_answers(latency_s: float, delay_s: float) -> None:
    turns, _ = adapting(Clock())
    assert turns.delay_s("a.test") == 1.0
    for _ in range(3):
        turns.answered("a.test", 200, latency_s)
    assert turns.delay_s("a.test") == delay_s
    assert turns.delay_s("b.test") == 1.0


async def test_a_host_that_is_quick_again_is_soon_asked_as_before() -> None:
    turns, _ = adapting(Clock())
    turns.answered("a.test", 200, 8.0)
    delays = []
    for _ in range(6):
        turns.answered("a.test", 200, 0.02)
        delays.append(turns.delay_s("a.test"))
    assert delays == sorted(delays, reverse=True)
    assert delays[0] == pytest.approx(4.0, abs=0.1)
    assert delays[-1] == 1.0


@pytest.mark.parametrize("status", [429, 503, None])
async def test_what_is_too_much_doubles_the_delay_up_to_its_bound_and_good_answers_take_it_back(status: int | None) -> None:
    turns, counters = adapting(Clock())

    def bad() -> None:
        if status is None:
            turns.failed("a.test")
        else:
            turns.answered("a.test", status, 0.01)

    delays = []
    for _ in range(7):
        bad()
        delays.append(turns.delay_s("a.test"))
    assert delays == [2.0, 3.0, 5.0, 9.0, 17.0, 20.0, 20.0]
    assert counters["hosts_throttled"] == 1
    for _ in range(8):
        turns.answered("a.test", 200, 0.01)
    assert turns.delay_s("a.test") == 1.0


async def test_other_errors_of_single_pages_change_nothing() -> None:
    turns, _ = adapting(Clock())
    for status in (200, 301, 404, 500, 502):
        turns.answered("a.test", status, 0.01)
    assert turns.delay_s("a.test") == 1.0


async def test_a_slowed_host_has_one_connection_until_it_is_well() -> None:
    turns, _ = adapting(Clock(), per_host_delay_s=0.0, per_host_concurrency=3)
    turns.answered("a.test", 503, 0.01)
    async with turns.turn("a.test", urgent=True, patience_s=0.0):
        with pytest.raises(HostBusyError):
            await take(turns, urgent=True)
    turns.answered("a.test", 200, 0.01)
    async with turns.turn("a.test", urgent=True, patience_s=0.0):
        await take(turns, urgent=True)


async def test_time_forgives() -> None:
    clock = Clock()
    turns, _ = adapting(clock)
    for _ in range(5):
        turns.failed("a.test")
    turns.answered("a.test", 503, 9.0)
    clock.now += politeness.FORGIVE_S + 1
    await take(turns, urgent=True)
    assert turns.delay_s("a.test") == 1.0


async def test_what_robots_txt_wishes_is_kept_as_far_as_the_bound() -> None:
    clock = Clock()
    turns, _ = adapting(clock)
    turns.wishes("a.test", 7.0)
    assert turns.delay_s("a.test") == 7.0
    turns.wishes("a.test", 300.0)
    assert turns.delay_s("a.test") == 20.0
    await take(turns)
    with pytest.raises(HostBusyError) as caught:
        await take(turns)
    assert caught.value.retry_after_s == pytest.approx(20.0)
    await take(turns, urgent=True)


async def test_zero_switches_it_off() -> None:
    turns, counters = adapting(Clock(), per_host_delay_max_s=0.0)
    turns.wishes("a.test", 7.0)
    turns.answered("a.test", 503, 9.0)
    turns.failed("a.test")
    assert turns.delay_s("a.test") == 1.0
    assert counters["hosts_throttled"] == 0


async def test_waiters_are_let_in_when_places_become_free() -> None:
    turns = Politeness(loopback_settings(per_host_concurrency=2))
    order: list[int] = []

    async def work(number: int) -> None:
        async with turns.turn("a.test", urgent=True, patience_s=9.0):
            order.append(number)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(work(number)) for number in range(6)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 1, 2, 4, 5]
    await take(turns, urgent=True)


async def waiting(turns: Politeness, count: int) -> tuple[list[asyncio.Task[None]], list[int], asyncio.Event]:
    """Begins requests that hold their places until the event; returns them with the numbers of those that have one."""
    inside: list[int] = []
    leave = asyncio.Event()

    async def work(number: int) -> None:
        async with turns.turn("a.test", urgent=True, patience_s=9.0):
            inside.append(number)
            await leave.wait()

    tasks = [asyncio.create_task(work(number)) for number in range(count)]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks, inside, leave


async def test_one_who_gives_up_when_let_in_lets_the_next_one_in() -> None:
    turns = Politeness(loopback_settings(per_host_concurrency=1))
    tasks, inside, leave = await waiting(turns, 3)
    assert inside == [0]
    leave.set()
    await asyncio.sleep(0)  # the first has left, and its place is the second's
    tasks[1].cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert inside == [0, 2]


async def test_one_who_gives_up_while_waiting_gives_nobody_a_place() -> None:
    turns = Politeness(loopback_settings(per_host_concurrency=1))
    tasks, inside, leave = await waiting(turns, 3)
    tasks[1].cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    assert inside == [0]
    leave.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert inside == [0, 2]


async def test_a_host_that_is_well_again_has_its_other_connections_at_once() -> None:
    turns, _ = adapting(Clock(), per_host_delay_s=0.0, per_host_concurrency=3)
    turns.answered("a.test", 503, 0.01)
    tasks, inside, leave = await waiting(turns, 4)
    assert inside == [0]
    turns.answered("a.test", 200, 0.01)
    for _ in range(3):
        await asyncio.sleep(0)
    assert inside == [0, 1, 2]
    leave.set()
    await asyncio.gather(*tasks)


async def test_a_bound_of_a_second_or_less_is_one() -> None:
    turns, counters = adapting(Clock(), per_host_delay_s=0.25, per_host_delay_max_s=0.5)
    turns.failed("a.test")
    assert (turns.delay_s("a.test"), counters["hosts_throttled"]) == (0.5, 1)


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
def test_reading_retry_after(value: str, wait_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Shanghai")  # a date without a zone is in UTC wherever this machine is
        time.tzset()
        assert retry_after_s(value, NOW) == pytest.approx(wait_s)
    time.tzset()


async def test_hosts_are_forgotten_the_oldest_first_but_not_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(politeness, "MAX_HOSTS", 10)
    turns = Politeness(loopback_settings(per_host_concurrency=1))
    async with turns.turn("kept.test", urgent=True, patience_s=0.0):
        for number in range(50):
            await take(turns, f"{number}.test")
        assert len(turns) == 10
        with pytest.raises(HostBusyError):
            await take(turns, "kept.test", urgent=True)


async def test_a_wait_that_is_as_long_as_the_patience_is_waited_for() -> None:
    clock = Clock()
    turns = Politeness(loopback_settings(per_host_delay_s=0.004, per_host_concurrency=1), clock)
    await take(turns)
    await take(turns, patience_s=clock.now + 0.004 - clock.now)
    with pytest.raises(HostBusyError, match=r"a\.test may not be requested for another 0\.0 s"):
        await take(turns, patience_s=0.0079)
    async with turns.turn("b.test", urgent=True, patience_s=0.0):
        for patience_s in (0.0, 0.499):
            with pytest.raises(HostBusyError) as caught:
                await take(turns, "b.test", urgent=True, patience_s=patience_s)
            assert caught.value.retry_after_s == politeness.CROWDED_S == 0.5
        waiting = asyncio.create_task(take(turns, "b.test", urgent=True, patience_s=0.5))
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_turns_follow_each_other_from_the_last_one_or_from_now() -> None:
    clock = Clock()
    turns = Politeness(loopback_settings(per_host_delay_s=2.0), clock)
    await take(turns)
    clock.now += 5.0
    await take(turns)
    clock.now += 0.5
    await take(turns, urgent=True)
    with pytest.raises(HostBusyError) as caught:
        await take(turns)
    assert caught.value.retry_after_s == pytest.approx(3.5)


@pytest.mark.parametrize(("idle_s", "delay_s"), [(politeness.FORGIVE_S - 0.1, 2.0), (politeness.FORGIVE_S, 1.0)])
async def test_when_a_hosts_failures_are_forgiven(idle_s: float, delay_s: float) -> None:
    clock = Clock()
    turns, _ = adapting(clock)
    turns.failed("a.test")
    clock.now += 1.0
    await take(turns, urgent=True)
    clock.now += idle_s
    turns.wishes("a.test", 0.0)
    assert turns.delay_s("a.test") == delay_s
    running, _ = adapting(clock)
    async with running.turn("a.test", urgent=True, patience_s=0.0):
        running.failed("a.test")
        clock.now += idle_s
        running.wishes("a.test", 0.0)
        assert running.delay_s("a.test") == 2.0, "a request is under way"


@pytest.mark.parametrize(
    ("status", "latency_s", "delay_s"),
    [(200, 0.01, 1.0), (499, 0.01, 1.0), (500, 0.01, 2.0), (404, 0.499, 1.0), (404, 0.5, 1.5)],
)
async def test_which_answers_take_a_penalty_back_and_which_are_slow(status: int, latency_s: float, delay_s: float) -> None:
    turns, _ = adapting(Clock(), per_host_delay_s=0.0)
    turns.failed("a.test")
    turns.failed("a.test")
    assert turns.delay_s("a.test") == 2.0
    turns.answered("a.test", status, latency_s)
    assert turns.delay_s("a.test") == delay_s


async def test_latency_is_smoothed_by_half() -> None:
    turns, _ = adapting(Clock())
    turns.answered("a.test", 200, 4.0)
    turns.answered("a.test", 200, 2.0)
    assert turns.delay_s("a.test") == 3.0


async def test_after_a_failure_the_next_turn_is_later_by_the_penalty() -> None:
    clock = Clock()
    turns, _ = adapting(clock, per_host_delay_s=0.0)
    turns.failed("a.test")
    with pytest.raises(HostBusyError) as caught:
        await take(turns)
    assert caught.value.retry_after_s == pytest.approx(1.0)
    assert turns.asked_to_wait("a.test", {"retry-after": "30"}, 0.0) == 30.0
    assert turns.asked_to_wait("a.test", {"retry-after": "5"}, 0.0) == 5.0
    with pytest.raises(HostBusyError) as caught:
        await take(turns, urgent=True)
    assert caught.value.retry_after_s == pytest.approx(30.0), "the longer of two waits counts"
    assert turns.asked_to_wait("c.test", {}, 0.0) == politeness.DEFAULT_RETRY_AFTER_S


async def test_the_least_recently_requested_host_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(politeness, "MAX_HOSTS", 2)
    turns, _ = adapting(Clock())
    turns.failed("a.test")
    turns.failed("b.test")
    turns.wishes("a.test", 0.0)
    turns.wishes("c.test", 0.0)
    assert [turns.delay_s(host) for host in ("a.test", "b.test")] == [2.0, 1.0]
