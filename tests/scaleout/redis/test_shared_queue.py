"""The shared queue against real servers: clocks, outages, kills of crawlers and of a cluster's master."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gatewayfilter.errors import StoreUnavailableError
from gatewayfilter.interfaces import CrawlRequest, Lease, Priority, QueuedUrl
from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker
from gatewayfilter.scaleout.redis.connection import RedisAwayError, RedisConnection
from gatewayfilter.scaleout.redis.crawlers import RedisCrawlers
from gatewayfilter.scaleout.redis.frontier import RedisFrontier
from gatewayfilter.scaleout.redis.shared_queue import SharedCrawlers, SharedQueue
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.e2e.e2e_gateway import until
from tests.scaleout.redis.redis_servers import (
    Server,
    cluster,
    cluster_url,
    masters_of,
    notice_deaths,
    quiet_clock,
    server,
    wait_for_replicas,
    why_not,
)
from tests.scaleout.redis.shared_state import connection_to

pytestmark = [pytest.mark.services, pytest.mark.skipif(bool(why_not()), reason=why_not())]

A, B, C = (f"http://{name}.example/" for name in "abc")
AHEAD_S = 600.0
LONG_S = 60.0
"""Less than the clocks differ, and longer than a busy machine stalls."""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path / 'own.sqlite3'}")) as store:
        yield store


def test_clocks_that_differ_by_minutes_change_no_lease(redis: Server) -> None:
    right = RedisFrontier(connection_to(redis))
    ahead = RedisFrontier(connection_to(redis), clock=lambda: time.time() + AHEAD_S)
    behind = RedisFrontier(connection_to(redis), clock=lambda: time.time() - AHEAD_S)
    now = time.time()
    right.add([CrawlRequest(A), CrawlRequest(B)], now)
    (first,) = right.lease(1, LONG_S, now)
    (second,) = ahead.lease(9, LONG_S, now + AHEAD_S)
    assert (first.url, second.url) == (A, B), "the first one is leased still"
    assert behind.lease(9, LONG_S, now - AHEAD_S) == []
    assert right.extend(first, 1.0)
    right.add([CrawlRequest(C)], time.time())
    (short,) = ahead.lease(9, 1.0, time.time() + AHEAD_S)
    (again,) = _until(lambda: behind.lease(9, LONG_S, time.time() - AHEAD_S))
    assert (short.url, again.url, again.attempts) == (C, C, 2)
    assert not ahead.extend(short, 1.0)
    assert not ahead.done(short)
    assert behind.retry(again, time.time() - AHEAD_S + LONG_S, "busy", counted=False)
    assert ahead.lease(9, LONG_S, time.time() + AHEAD_S) == []
    assert ahead.retry(second, time.time() + AHEAD_S + 1.0, "busy", counted=False)
    (third,) = _until(lambda: behind.lease(9, LONG_S, time.time() - AHEAD_S))
    assert third.url == B
    assert ahead.done(third, rest_until=time.time() + AHEAD_S + LONG_S)
    assert right.add([CrawlRequest(B)], time.time()) == 0


def test_heartbeats_run_by_the_clock_of_the_server(redis: Server) -> None:
    right = RedisCrawlers(connection_to(redis))
    ahead = RedisCrawlers(connection_to(redis), clock=lambda: time.time() + AHEAD_S)
    right.beat("one", time.time())
    ahead.beat("two", time.time() + AHEAD_S)
    assert right.alive(time.time() - LONG_S) == ahead.alive(time.time() + AHEAD_S - LONG_S) == ["one", "two"]

    def alone() -> bool:
        right.beat("one", time.time())
        return ahead.alive(time.time() + AHEAD_S - 2) == ["one"]

    until("the end of the silent one", alone)
    assert right.leave("two")
    assert not right.leave("two")


def test_an_outage_degrades_to_the_machines_own_queue_and_nothing_is_lost(
    own: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counters = Counters()
    with server(tmp_path / "redis", 0, "--appendonly", "yes", "--appendfsync", "always") as redis:
        connection = connection_to(redis)
        queue = SharedQueue(RedisFrontier(connection), own.frontier, counters)
        crawlers = SharedCrawlers(RedisCrawlers(connection), own.crawlers)
        crawlers.beat("one", time.time())
        crawlers.beat("two", time.time())
        assert crawlers.alive(time.time() - LONG_S) == ["one", "two"]
        queue.add([CrawlRequest(A)], time.time())
        (lease,) = queue.lease(1, 600.0, time.time())
        redis.kill()
        assert queue.add([CrawlRequest(B), CrawlRequest(C, Priority.LINK, task="news", depth=3)], time.time()) == 2
        assert counters["queue_away"] == 2
        with pytest.raises(StoreUnavailableError, match=r"queue\.url"):
            queue.done(lease)
        assert crawlers.alive(time.time() - LONG_S) == ["one", "two"], "no crawler is taken for dead by an outage"
        (local,) = queue.lease(1, 60.0, time.time())
        assert local.url == B
        assert queue.done(local)
        assert queue.stats(time.time())["waiting"] == 1
        redis.start_again()
        end = time.monotonic() + 60
        while connection.is_away and time.monotonic() < end:
            crawlers.beat("one", time.time())
        leases = _until(lambda: queue.lease(9, 60.0, time.time()))
        assert all(found.token.startswith("redis-") for found in leases)
        assert [(found.url, found.priority, found.task, found.depth) for found in leases] == [(C, Priority.LINK, "news", 3)]
        assert queue.done(lease), "a lease outlives the outage"
        assert own.frontier.stats(time.time())["waiting"] == 0
        assert queue.stats(time.time())["leased"] == 1
        connection.close()
    messages = [record.message for record in caplog.records]
    assert len([message for message in messages if "does not answer" in message]) == 1
    assert "hush" not in caplog.text


@pytest.mark.timeout(300)
def test_a_master_that_is_killed_loses_nothing_that_was_acknowledged(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with cluster(tmp_path / "cluster") as servers:
        connection = RedisConnection(cluster_url(servers), 1.0, CircuitBreaker("the queue", "alone"))
        frontier = RedisFrontier(connection)
        acknowledged: set[str] = set()
        done: set[str] = set()
        unanswered: set[str] = set()  # the server may have done them, though no answer came in time
        killed = back = away_s = 0.0
        for number in range(100_000):
            url = f"http://s{number % 50}.example/{number}"
            try:
                frontier.add([CrawlRequest(url)], time.time())
                acknowledged.add(url)
                if number % 3 == 0 and (leases := frontier.lease(1, 600.0, time.time())):
                    unanswered.add(leases[0].url)
                    if frontier.done(leases[0]):
                        done.add(leases[0].url)
                    unanswered.remove(leases[0].url)
            except RedisAwayError:
                time.sleep(0.02)
                continue
            if not killed and len(acknowledged) >= 300:
                master = next(one for one in masters_of(servers) if one.client().dbsize())
                wait_for_replicas([master])
                notice_deaths(servers)
                master.kill()
                killed, away_for_s = time.monotonic(), quiet_clock()
            elif killed and not back:
                back, away_s = time.monotonic(), away_for_s()
            if back and len(acknowledged) >= 400:
                break
            assert not killed or away_for_s() < 40, "the queue did not come back"
        left = {row.url for row in until("the queue", lambda: _shown(frontier))}
        assert acknowledged - left - done - unanswered == set()
        words = "Redis master of the queue (cluster-node-timeout 1 s) | the queue takes and gives URLs"
        record_property("recovery", f"{words} | {back - killed:.1f}")
        assert away_s < 20
        connection.close()


def _shown(frontier: RedisFrontier) -> list[QueuedUrl]:
    with suppress(RedisAwayError):
        return frontier.show(10_000)
    return []


def _until(read: Callable[[], list[Lease]]) -> list[Lease]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := read():
            return found
        time.sleep(0.05)
    return []
