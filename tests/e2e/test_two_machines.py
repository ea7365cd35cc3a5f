"""Two filters with state folders of their own, as on two machines, that share the queue and the cache of one Redis."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.interfaces import QueueState
from gatewayfilter.store import Store
from tests.e2e.e2e_gateway import GatewayProcess, until
from tests.e2e.fleet_sites import Sites, ring_name
from tests.scaleout.redis.redis_fixtures import redis, redis_server
from tests.scaleout.redis.redis_servers import Server
from tests.scaleout.redis.shared_state import frontier_of

__all__ = ["redis", "redis_server"]
pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]  # two filters: on a busy machine each wait is put off


@pytest.fixture
def states(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "one", tmp_path / "two"


@pytest.fixture
def sites(states: tuple[Path, Path]) -> Iterator[Sites]:
    opened = Sites([ring_name(state) for state in states])
    yield opened
    opened.close()


def machine(state: Path, server: Server) -> GatewayProcess:
    key = state.with_name("shared.key")
    key.write_bytes(b"k" * 32)
    shared = {"queue__url": server.url, "cache__url": server.url, "cache__key_file": str(key)}
    return GatewayProcess(state, **shared, crawl__workers="1", crawl__timeout_s="30", crawl__follow_links="0")


def judged(state: Path, urls: list[str]) -> set[str]:
    with closing(Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")) as store:
        return {url for url in urls if store.verdicts.find(url) is not None}


def test_two_machines_fetch_each_page_once_and_one_that_is_killed_loses_nothing(
    states: tuple[Path, Path], sites: Sites, redis: Server, record_property: Callable[[str, object], None]
) -> None:
    one, two = states
    frontier = frontier_of(redis)
    with machine(one, redis) as first:
        second = machine(two, redis).start()
        for gateway in (first, second):
            until("one fleet", lambda gateway=gateway: "2 crawlers share the queue" in gateway.log.read_text(), 40.0)  # type: ignore[misc]
        done = first.cli("queue", "add", *sites.urls)
        assert done.returncode == 0, done.stderr
        until("all judged", lambda: judged(one, sites.urls) | judged(two, sites.urls) == set(sites.urls), 40.0)
        assert set(sites.pages().values()) == {1}
        assert len(judged(one, sites.urls)) == len(judged(two, sites.urls)) == len(sites.urls) // 2

        sites.go.clear()
        more = [f"{url}?again" for url in sites.urls]
        assert second.cli("queue", "add", *more).returncode == 0
        of_second = {f"{url}?again" for url in judged(two, sites.urls)}  # a site stays with its crawler

        def pages_in_work() -> set[str]:
            leased = {queued.url for queued in frontier.show(1000, QueueState.LEASED)}
            return leased & of_second if len(leased) >= len(more) // 2 else set()

        until("pages in work", pages_in_work, 20.0)
        second.kill()
        killed = time.monotonic()
        sites.go.set()
        until("all judged", lambda: judged(one, more) | judged(two, more) == set(more), 60.0)
        record_property("recovery", f"crawler with pages in work | another one has judged them | {time.monotonic() - killed:.1f}")
        assert set(sites.pages().values()) <= {1, 2}
        assert "leases of crawlers that ended are leased again" in first.log.read_text()
        until("hits of the cache", lambda: first.status("learner")["counters"].get("cache_hits", 0) > 0)
        until("no lease left", lambda: frontier.stats(0.0)["leased"] == 0, 20.0)  # verdicts stand before their leases end
