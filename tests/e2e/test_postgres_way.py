"""Two filters on one PostgreSQL: what one learns and what a person says holds in both, and outlives a restart."""

import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.e2e_gateway import GatewayProcess, Origin, until
from tests.e2e.fleet_sites import Sites, ring_name
from tests.store.postgres_cluster import cluster, why_not

pytestmark = [pytest.mark.real, pytest.mark.skipif(bool(why_not()), reason=why_not())]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with cluster() as url:
        yield url


@pytest.fixture(scope="module")
def two(database: str, tmp_path_factory: pytest.TempPathFactory, trusting: dict[str, str]) -> Iterator[list[GatewayProcess]]:
    folder = tmp_path_factory.mktemp("filters")
    filters = [GatewayProcess(folder / name, store__url=database, **trusting) for name in ("first", "second")]
    for one in filters:
        one.start()
    yield filters
    for one in filters:
        one.stop()


def _fetched(one: GatewayProcess) -> int:
    return int(one.status("learner").get("counters", {}).get("pages_fetched", 0))


def _share_the_queue(one: GatewayProcess) -> bool:
    """Whether a filter's crawler knows of the other one now: either may have been stopped and started by another test."""
    lines = [line for line in one.said().splitlines() if "crawlers share the queue" in line]
    return bool(lines) and " 2 crawlers share the queue" in lines[-1]


def _is_idle(one: GatewayProcess) -> bool:
    states = one.json("queue", "stats")
    return not states["waiting"] and not states["leased"]


def _reason_is(one: GatewayProcess, url: str, reason: str) -> bool:
    return one.get(url).reason == reason


def test_a_word_spoken_at_one_holds_in_both(two: list[GatewayProcess], http_site: Origin) -> None:
    url = f"{http_site.base}/garden/3"
    assert two[1].get(url).status == 200
    assert two[0].cli("list", "add", "--block", url).returncode == 0
    for one in two:
        until("block page", partial(_reason_is, one, url, "manual-block"), 5.0)
    assert two[1].cli("list", "remove", url).returncode == 0
    for one in two:
        until("page again", partial(_reason_is, one, url, ""), 5.0)


def test_what_one_learns_the_other_blocks(two: list[GatewayProcess], http_site: Origin) -> None:
    url = f"{http_site.base}/casino/7"
    assert two[0].get(url).status == 200
    until("block page", lambda: two[0].get(url).reason == "learned", 10.0)
    until("block page at the other", lambda: two[1].get(url).reason == "learned", 10.0)
    assert two[1].json("check", url)["classification"]["classification"]["category"] == "gambling"


def test_both_share_the_queue_and_one_does_the_work_of_both(two: list[GatewayProcess]) -> None:
    sites = Sites([ring_name(one.state) for one in two])
    try:
        for one in two:
            until("one fleet", partial(_share_the_queue, one), 40.0)
        until("the pages of other tests settled", lambda: _is_idle(two[0]), 40.0)
        settled = time.time()
        for one in two:  # a status file is up to a second old
            until("a count of all before", lambda one=one: one.status("learner").get("at", 0.0) > settled, 10.0)  # type: ignore[misc]
        before = [_fetched(one) for one in two]
        assert two[0].cli("queue", "add", *sites.urls).returncode == 0
        until("all fetched", lambda: set(sites.urls) <= set(sites.pages()), 40.0)
        until("all settled", lambda: _is_idle(two[0]), 20.0)
        # Links of the harmful pages are among them.
        until("all counted", lambda: sum(map(_fetched, two)) - sum(before) == sites.pages().total(), 20.0)
        assert set(sites.pages().values()) == {1}  # each page once, by whichever filter
        counts = [_fetched(one) - was for one, was in zip(two, before, strict=True)]
        assert min(counts) >= len(sites.urls) // 2, (counts, [one.log.read_text()[-3000:] for one in two])
        for one in two:
            until("block page", lambda one=one: one.get(sites.urls[0]).reason == "learned", 10.0)  # type: ignore[misc]

        assert two[1].stop() == 0
        more = [f"{url}?again" for url in sites.urls]
        assert two[0].cli("queue", "add", *more).returncode == 0
        until("all fetched by one", lambda: set(more) <= set(sites.pages()), 60.0)
        assert all(sites.pages()[url] == 1 for url in more)
    finally:
        sites.close()
        if two[1].process is not None and two[1].process.poll() is not None:
            two[1].start()


def test_a_restart_finds_everything(two: list[GatewayProcess], http_site: Origin) -> None:
    url = f"{http_site.base}/garden/4"
    assert two[0].cli("list", "add", "--block", url).returncode == 0
    assert two[0].stop() == 0
    two[0].start()
    assert two[0].get(url).reason == "manual-block"
    assert not list(two[0].state.glob("**/*.sqlite3"))
