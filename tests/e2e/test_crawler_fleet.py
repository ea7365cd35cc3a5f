"""The running filter's crawlers: several share the queue, one is killed, all are killed, and their number is changed."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.crawl import Backlog, WarcArchive
from gatewayfilter.interfaces import Page, QueueState
from gatewayfilter.store import Store
from tests.e2e.conftest import CASINO
from tests.e2e.e2e_gateway import GatewayProcess, until
from tests.e2e.fleet_sites import Sites, ring_name

pytestmark = pytest.mark.slow

FLEET = 3


@pytest.fixture
def sites(state: Path) -> Iterator[Sites]:
    opened = Sites([ring_name(state, index) for index in range(FLEET)])
    yield opened
    opened.close()


def fleet(state: Path, workers: int) -> GatewayProcess:
    return GatewayProcess(state, crawl__workers=str(workers), crawl__timeout_s="30", crawl__follow_links="0")


def share_the_queue(gateway: GatewayProcess, workers: int) -> None:
    """Waits until each crawler knows of all."""
    until("one fleet", lambda: gateway.log.read_text().count(f"{workers} crawlers share the queue") >= workers, 40.0)


def judged(state: Path, urls: list[str]) -> set[str]:
    with closing(Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")) as store:
        return {url for url in urls if store.verdicts.find(url) is not None}


def states(state: Path) -> Counter[str]:
    with closing(Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")) as store:
        return Counter(row.state.value for row in store.frontier.show(1000))


def leased(state: Path) -> dict[str, str]:
    with closing(Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")) as store:
        return {row.url: row.state.value for row in store.frontier.show(1000, QueueState.LEASED)}


def queue(gateway: GatewayProcess, urls: list[str]) -> None:
    done = gateway.cli("queue", "add", *urls)
    assert done.returncode == 0, done.stderr


def test_crawlers_share_the_sites_and_one_that_is_killed_loses_nothing(state: Path, sites: Sites) -> None:
    with fleet(state, FLEET) as gateway:
        share_the_queue(gateway, FLEET)
        queue(gateway, sites.urls)
        until("all judged", lambda: judged(state, sites.urls) == set(sites.urls), 40.0)
        assert set(sites.pages().values()) == {1}  # each page once, by whomever
        names = ("learner", "crawler-1", "crawler-2")
        until(
            "all counted",
            lambda: sum(gateway.status(name)["counters"].get("pages_fetched", 0) for name in names) == len(sites.urls),
            10.0,
        )
        fetched = {name: gateway.status(name)["counters"].get("pages_fetched", 0) for name in names}
        assert fetched == dict.fromkeys(names, len(sites.urls) // FLEET)  # each its own sites, no others
        until("block", lambda: gateway.get(sites.urls[0]).reason == "learned")

        sites.go.clear()
        more = [f"{url}?again" for url in sites.urls]
        queue(gateway, more)
        of_victim = {f"{url}?again" for url in sites.urls_of(ring_name(state, 1))}

        def pages_in_work() -> set[str]:
            found = set(leased(state))
            return found & of_victim if len(found) >= len(more) // 2 else set()

        until("pages in work", pages_in_work, 20.0)
        victim = gateway.child("crawler-1")
        victim.send_signal(signal.SIGKILL)
        until("a new crawler", lambda: gateway.status("crawler-1").get("pid", victim.pid) != victim.pid, 20.0)
        sites.go.set()
        until("all judged", lambda: judged(state, more) == set(more), 60.0)
        assert set(sites.pages().values()) <= {1, 2}
        # By the new one at its start, or by the others where that took it longer than it takes to be given up.
        until(
            "leases returned",
            lambda: any(gateway.status(name).get("counters", {}).get("leases_returned", 0) for name in names),
            10.0,
        )


def test_when_everything_is_killed_nothing_is_lost_and_what_was_settled_is_not_done_again(state: Path, sites: Sites) -> None:
    first, second = sites.urls[: len(sites.urls) // 2], sites.urls[len(sites.urls) // 2 :]
    gateway = fleet(state, 2).start()
    share_the_queue(gateway, 2)
    queue(gateway, first)
    until("the first half settled", lambda: states(state)["done"] == len(first), 40.0)
    sites.go.clear()
    queue(gateway, second)
    until("pages in work", lambda: len(leased(state)) >= len(second) // 2, 20.0)
    gateway.kill()
    assert leased(state)
    sites.go.set()
    with fleet(state, 2):
        until("all judged", lambda: judged(state, sites.urls) == set(sites.urls), 60.0)  # long before the leases end
    pages = sites.pages()
    assert {pages[url] for url in first} == {1}
    assert {pages[url] for url in second} <= {1, 2}


def test_pages_that_wait_with_a_crawler_that_is_no_more_are_judged(state: Path, used: Path, sites: Sites) -> None:
    url = sites.urls[0]
    assert used == state
    folder = state / "archive"
    page = Page(url, url, 200, {"content-type": "text/html; charset=utf-8"}, CASINO.encode())
    reference = WarcArchive(folder, 10_000_000).keep(page, time.time())
    Backlog(folder / "backlog-2.log").put(reference)
    with fleet(state, 1) as gateway:
        until("block", lambda: gateway.get(url).reason == "learned", 20.0)
    assert not (folder / "backlog-2.log").exists()
