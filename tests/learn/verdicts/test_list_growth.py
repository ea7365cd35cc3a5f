from dataclasses import replace

import pytest

from gatewayfilter.config import LearnSettings
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import Page
from gatewayfilter.learn import ListGrowth
from gatewayfilter.learn.verdicts.list_growth import CONFIRMED
from gatewayfilter.model import ChangeKind, Classification, Evidence, LearnedEntry, ListAction
from gatewayfilter.store import Store

NOW = 1_000_000.0
DAY_S = 86_400.0
SETTINGS = LearnSettings(block_days=30, allow_days=7)
HARMFUL = Classification("gambling", 42.0, 20.0, {"gambling": 42.0}, (Evidence("casino", "gambling", 12.0, "title", 3),))
HARMLESS = Classification("", 1.0, 20.0)


def page(url: str, final_url: str = "") -> Page:
    return Page(url, final_url or url, 200, {"content-type": "text/html"}, b"<html>")


@pytest.fixture
def list_growth(store: Store) -> ListGrowth:
    return ListGrowth(store.lists, store.verdicts, SETTINGS, clock=lambda: NOW)


def test_a_harmful_page_is_blocked_with_its_evidence(store: Store, list_growth: ListGrowth) -> None:
    url = "http://play.example/win?now=1"
    learned = list_growth.learn(page(url), HARMFUL)
    assert learned == LearnedEntry(
        key="play.example/win?now=1",
        action=ListAction.BLOCK,
        category="gambling",
        url=url,
        detail="score 42.0 (limit 20.0): casino",
        created_at=NOW,
        expires_at=NOW + 30 * DAY_S,
    )
    assert list(store.lists.learned()) == [learned]
    assert [(change.kind, change.learned) for change in store.feed.read(0)] == [(ChangeKind.LEARNED_ADDED, learned)]
    assert store.verdicts.find(url) == (HARMFUL, NOW)


def test_a_harmless_page_is_allowed_for_a_shorter_time(store: Store, list_growth: ListGrowth) -> None:
    learned = list_growth.learn(page("http://news.example/"), HARMLESS)
    assert (learned.action, learned.category, learned.expires_at) == (ListAction.ALLOW, "", NOW + 7 * DAY_S)
    assert list(store.lists.learned()) == [learned]


def test_after_a_redirect_both_urls_are_listed(store: Store, list_growth: ListGrowth) -> None:
    learned = list_growth.learn(page("http://short.example/x", "https://play.example/win"), HARMFUL)
    assert learned.key == "short.example/x"
    assert {(entry.key, entry.url, entry.action) for entry in store.lists.learned()} == {
        ("short.example/x", "http://short.example/x", ListAction.BLOCK),
        ("play.example/win", "https://play.example/win", ListAction.BLOCK),
    }
    for url in ("http://short.example/x", "https://play.example/win"):
        assert store.verdicts.find(url) == (HARMFUL, NOW)


def test_a_redirect_to_https_is_one_entry_under_the_url_asked_for(store: Store, list_growth: ListGrowth) -> None:
    learned = list_growth.learn(page("http://play.example/win", "https://play.example/win"), HARMFUL)
    assert list(store.lists.learned()) == [learned]
    assert learned.url == "http://play.example/win"
    assert store.verdicts.find("https://play.example/win") == (HARMFUL, NOW)


@pytest.mark.parametrize("url", ["http://play.example/", "http://play.example/a/b/", "http://play.example:8080/?x"])
def test_nothing_but_the_url_itself_is_ever_learned(store: Store, list_growth: ListGrowth, url: str) -> None:
    list_growth.learn(page(url), HARMFUL)
    (entry,) = store.lists.learned()
    assert f"http://{entry.key}" == url


def test_several_pages_are_learned_as_one_by_one(store: Store, list_growth: ListGrowth) -> None:
    harmful, harmless = page("http://short.example/x", "https://play.example/win"), page("http://news.example/")
    list_growth.learn_all([(harmful, HARMFUL), (harmless, HARMLESS)])
    together = {(entry.key, entry.action, entry.detail, entry.expires_at) for entry in store.lists.learned()}
    assert store.verdicts.find("http://short.example/x") == (HARMFUL, NOW)
    assert store.verdicts.find("http://news.example/") == (HARMLESS, NOW)
    store.lists.remove_learned([entry.key for entry in store.lists.learned()])
    list_growth.learn(harmful, HARMFUL)
    list_growth.learn(harmless, HARMLESS)
    assert {(entry.key, entry.action, entry.detail, entry.expires_at) for entry in store.lists.learned()} == together
    assert len(together) == 3


def test_pages_learned_together_share_one_transaction(store: Store) -> None:
    list_growth = ListGrowth(store.lists, store.verdicts, SETTINGS, clock=lambda: NOW, together=store.learning)
    broken = replace(HARMFUL, category="half of a pair: \ud800")
    with pytest.raises(StoreError):
        list_growth.learn_all([(page("http://a.example/"), HARMLESS), (page("http://b.example/"), broken)])
    assert store.verdicts.find("http://a.example/") is None
    assert list(store.lists.learned()) == []


def test_what_a_person_confirmed_stays_among_pages_learned_together(store: Store, list_growth: ListGrowth) -> None:
    confirmed = replace(list_growth.learn(page("http://play.example/"), HARMFUL), detail=f"score 42.0{CONFIRMED}")
    store.lists.put_learned([confirmed])
    list_growth.learn_all([(page("http://play.example/"), HARMLESS), (page("http://news.example/"), HARMLESS)])
    assert {entry.key: entry.action for entry in store.lists.learned()} == {
        "play.example/": ListAction.BLOCK,
        "news.example/": ListAction.ALLOW,
    }


def test_a_page_that_changed_changes_its_list(store: Store, list_growth: ListGrowth) -> None:
    url = "http://play.example/"
    block = list_growth.learn(page(url), HARMFUL)
    allow = list_growth.learn(page(url), HARMLESS)
    assert list(store.lists.learned()) == [allow]
    assert [(change.kind, change.learned) for change in store.feed.read(1)] == [
        (ChangeKind.LEARNED_REMOVED, block),
        (ChangeKind.LEARNED_ADDED, allow),
    ]
    assert store.verdicts.find(url) == (HARMLESS, NOW)


def test_an_entry_has_the_certainty_to_four_digits_and_says_why_it_does_not_block(list_growth: ListGrowth) -> None:
    sure = replace(HARMFUL, certainty=0.912_345)
    blocked = list_growth.learn(page("http://a.example/"), sure)
    waiting = list_growth.learn(page("http://b.example/"), sure, block=False)
    doubtful = list_growth.learn(page("http://c.example/"), replace(sure, category="", doubt="gambling"))
    told = [(entry.action, entry.category, entry.certainty) for entry in (blocked, waiting, doubtful)]
    assert told == [
        (ListAction.BLOCK, "gambling", 0.9123),
        (ListAction.ALLOW, "", 0.9123),
        (ListAction.ALLOW, "", 0.9123),
    ]
    assert waiting.detail.startswith("not blocked, waits for a person: gambling, ")
    assert doubtful.detail.startswith("not blocked, in doubt: gambling, ")
    assert [entry.expires_at - NOW for entry in (blocked, waiting, doubtful)] == [30 * DAY_S, 30 * DAY_S, 7 * DAY_S]


@pytest.mark.parametrize(("expires_at", "action"), [(NOW, ListAction.ALLOW), (NOW + 1, ListAction.BLOCK)])
def test_a_decision_stands_until_it_expires(expires_at: float, action: ListAction, store: Store, list_growth: ListGrowth) -> None:
    made = list_growth.learn(page("http://play.example/"), HARMFUL)
    store.lists.put_learned([replace(made, detail=f"score 42.0{CONFIRMED}", expires_at=expires_at)])
    assert list_growth.learn(page("http://play.example/"), HARMLESS).action is action
