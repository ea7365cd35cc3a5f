"""Which found links are queued: those not seen yet, within the budgets of their site and task, one after the other."""

from dataclasses import replace

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext
from gatewayfilter.crawl.link_queue import LinkFollower, seen_key
from gatewayfilter.crawl.links import page_links
from gatewayfilter.crawl.links.strategy import MAX_PAGE_LINKS, Strategy, strategy_of
from gatewayfilter.interfaces import CrawlRequest, Priority
from gatewayfilter.settings import CrawlTask, Follow
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import digest_of, parse_url
from tests.case_tables import all_cases
from tests.crawl.crawl_fakes import FakeFrontier, FakeSink

NOW = 1_700_000_000.0
DAY_S = 86_400.0
TASK = Strategy("news", 3, Follow.ALL, (), MAX_PAGE_LINKS, 2, 30, 0.0)
FOUND = [parse_url(f"http://{host}.test/{number}") for host in ("www.a", "b", "x.a") for number in (1, 2)]


class Sites:
    """Lets a task queue so many links of a site as it asks for at most, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def take(self, task: str, site: str, count: int, most: int, now: float, period_s: float) -> int:
        self.asked.append((task, site, count, most, now, period_s))
        return min(count, most)


def followed(context: CrawlContext, strategy: Strategy, depth: int = 1) -> tuple[list[CrawlRequest], int]:
    """Returns what was queued, and how many digests are to be marked as seen."""
    frontier = context.frontier
    assert isinstance(frontier, FakeFrontier)
    before = len(frontier.added)
    digests = LinkFollower(context).follow(FOUND, strategy, depth)
    return frontier.added[before:], len(digests)


def context_of(*, task_sites: Sites | None = None, delay_s: float = 2.0) -> CrawlContext:
    settings = CrawlSettings(per_host_delay_s=delay_s)
    return CrawlContext(FakeFrontier(), FakeSink(), settings, Counters(), clock=lambda: NOW, task_sites=task_sites)


def test_links_of_harmful_pages_come_one_after_the_other_as_the_delay_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_links, "SITE_LINKS_A_DAY", 3)
    context = context_of()
    context.seen.add(FOUND[1].digest)
    queued, marked = followed(context, strategy_of(context.settings, ""))
    assert [(offer.url, offer.not_before) for offer in queued] == [
        (FOUND[index].text, NOW + at * 2.0) for at, index in enumerate((0, 2, 3, 4, 5))
    ]
    assert {(offer.priority, offer.task, offer.depth) for offer in queued} == {(Priority.LINK, "", 0)}
    assert (marked, context.counters.as_dict()) == (5, {"links_followed": 5})
    monkeypatch.setattr(page_links, "SITE_LINKS_A_DAY", 2)
    other = context_of()
    assert len(followed(other, strategy_of(other.settings, ""))[0]) == 4
    assert other.counters.as_dict() == {"links_followed": 4, "links_over_budget": 2}


def test_a_task_may_queue_so_many_links_of_a_site_in_its_period() -> None:
    sites = Sites()
    context = context_of(task_sites=sites)
    context.seen.add(seen_key(FOUND[2], "other"))  # each task has what it has seen
    context.seen.add(FOUND[3].digest)
    queued, marked = followed(context, TASK, depth=2)
    assert [offer.url for offer in queued] == [FOUND[index].text for index in range(4)]
    assert {(offer.priority, offer.task, offer.depth) for offer in queued} == {(30, "news", 2)}
    assert sites.asked == [("news", "a.test", 4, 2, NOW, DAY_S), ("news", "b.test", 2, 2, NOW, DAY_S)]
    assert (marked, context.counters.as_dict()) == (4, {"links_followed": 4, "links_over_budget": 2})
    context.seen.add(seen_key(FOUND[0], "news"))
    assert followed(context, TASK)[0][0].url == FOUND[1].text


def test_a_task_without_a_count_of_sites_queues_nothing() -> None:
    context = context_of()
    assert followed(context, TASK) == ([], 0)
    assert context.counters.as_dict() == {"links_over_budget": 6}
    assert LinkFollower(context).follow([], TASK, 1) == []
    assert context.counters.as_dict() == {"links_over_budget": 6}


def test_what_a_url_is_remembered_by() -> None:
    url = FOUND[0]
    assert seen_key(url, "") == url.digest
    assert seen_key(url, "news") == digest_of(f"news\n{url.text}")


@all_cases(
    ("follow", "depth", "links", "harmful", "harmless"),
    [
        (Follow.ALL, 2, 5, True, True),
        (Follow.ALL, 3, 5, False, False),
        (Follow.ALL, 2, 0, False, False),
        (Follow.HARMFUL, 2, 5, True, False),
        (Follow.NONE, 2, 5, False, False),
    ],
)
def test_the_links_of_which_pages_are_followed(follow: Follow, depth: int, links: int, *, harmful: bool, harmless: bool) -> None:
    strategy = replace(TASK, follow=follow, links_a_page=links)
    assert (strategy.follows(depth, harmful=True), strategy.follows(depth, harmful=False)) == (harmful, harmless)


def test_the_strategy_of_a_task() -> None:
    task = CrawlTask(depth=4, follow=Follow.ALL, hosts=("*.a.test", "b.test"), pages_per_site=9, priority=40, recrawl_hours=48)
    settings = CrawlSettings(tasks={"news": task}, follow_links=7)
    found = strategy_of(settings, "news")
    assert found == Strategy("news", 4, Follow.ALL, ("*.a.test", "b.test"), 1000, 9, 40, 2 * DAY_S, sitemaps=task.sitemaps)
    assert (found.period_s, replace(found, recrawl_s=60.0).period_s) == (2 * DAY_S, DAY_S)
    assert not strategy_of(settings, "gone").follows(0, harmful=True)
    focused = strategy_of(settings, "")
    assert (focused.links_a_page, focused.pages_per_site, focused.priority, focused.recrawl_s) == (7, 0, Priority.LINK, 0.0)
    assert focused.follows(2**31 - 1, harmful=True)
    own = parse_url("http://www.site.test/")
    leads = {
        host: found.leads_to(own, parse_url(f"http://{host}/"))
        for host in ("a.test", "x.a.test", "xa.test", "b.test", "c.b.test")
    }
    assert leads == {"a.test": True, "x.a.test": True, "xa.test": False, "b.test": True, "c.b.test": False}
    assert focused.leads_to(own, parse_url("http://img.site.test/"))
    assert not focused.leads_to(own, parse_url("http://other.test/"))
