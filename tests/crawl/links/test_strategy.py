"""The strategies of crawl tasks and of harmful pages: which links are followed, where they lead, when pages are due again."""

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.links.strategy import MAX_PAGE_LINKS, Strategy, strategy_of
from gatewayfilter.interfaces import Priority
from gatewayfilter.settings import Follow
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

NEWS = {
    "depth": 3,
    "pages_per_site": 7,
    "follow": "harmful",
    "hosts": ("a.example", "*.b.example"),
    "sitemaps": True,
    "priority": 55,
    "recrawl_hours": 36,
}
SETTINGS = CrawlSettings.model_validate({"tasks": {"news": NEWS}, "follow_links": 9})


def test_a_task_has_the_strategy_that_is_set() -> None:
    assert strategy_of(SETTINGS, "news") == Strategy(
        task="news",
        depth=3,
        follow=Follow.HARMFUL,
        hosts=("a.example", "*.b.example"),
        links_a_page=MAX_PAGE_LINKS,
        pages_per_site=7,
        priority=55,
        recrawl_s=36 * 3600.0,
        sitemaps=True,
    )


def test_a_task_that_is_no_longer_set_follows_nothing() -> None:
    gone = strategy_of(SETTINGS, "gone")
    assert (gone.task, gone.follow, gone.sitemaps, gone.recrawl_s) == ("gone", Follow.NONE, False, 0.0)
    assert gone.follows(0, harmful=True) is False


def test_harmful_pages_lead_on_however_deep() -> None:
    focused = strategy_of(SETTINGS, "")
    assert focused == Strategy("", 2**31, Follow.HARMFUL, (), 9, 0, Priority.LINK, 0.0)
    assert focused.follows(1_000_000, harmful=True) is True
    assert focused.follows(0, harmful=False) is False
    off = strategy_of(CrawlSettings(follow_links=0), "")
    assert off.follows(0, harmful=True) is False


@all_cases(
    ("follow", "depth", "harmful", "follows"),
    [
        (Follow.ALL, 0, False, True),
        (Follow.ALL, 1, True, True),
        (Follow.ALL, 2, True, False),
        (Follow.HARMFUL, 1, True, True),
        (Follow.HARMFUL, 1, False, False),
        (Follow.HARMFUL, 2, True, False),
        (Follow.NONE, 0, True, False),
    ],
)
def test_which_pages_lead_on(follow: Follow, depth: int, *, harmful: bool, follows: bool) -> None:
    strategy = Strategy("news", 2, follow, (), 10, 5, 50, 0.0)
    assert strategy.follows(depth, harmful=harmful) is follows


@all_cases(("recrawl_s", "period_s"), [(0.0, 86_400.0), (86_400.0, 86_400.0), (90_000.0, 90_000.0)])
def test_pages_of_a_site_count_for_a_day_at_least(recrawl_s: float, period_s: float) -> None:
    assert Strategy("news", 2, Follow.ALL, (), 10, 5, 50, recrawl_s).period_s == period_s


@all_cases(
    ("hosts", "link", "leads"),
    [
        ((), "http://img.own.example/", True),
        ((), "http://other.example/", False),
        (("a.example",), "http://a.example/", True),
        (("a.example",), "http://www.a.example/", False),
        (("a.example",), "http://www.own.example/", False),
        (("*.b.example",), "http://b.example/", True),
        (("*.b.example",), "http://x.y.b.example/", True),
        (("*.b.example",), "http://notb.example/", False),
        (("a.example", "*.b.example"), "http://x.b.example/", True),
    ],
)
def test_where_links_may_lead(hosts: tuple[str, ...], link: str, *, leads: bool) -> None:
    strategy = Strategy("news", 2, Follow.ALL, hosts, 10, 5, 50, 0.0)
    assert strategy.leads_to(parse_url("http://www.own.example/"), parse_url(link)) is leads
