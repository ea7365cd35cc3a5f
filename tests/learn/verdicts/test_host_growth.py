"""When a whole host is listed, and when it is not."""

import pytest

from gatewayfilter.interfaces import Page
from gatewayfilter.learn import ListGrowth, UserContentHosts
from gatewayfilter.model import Classification, LearnedEntry, ListAction
from gatewayfilter.settings import DomainGrowth, LearnSettings, bundled_folder
from gatewayfilter.store import Store

NOW = 1_000_000.0
LISTED = LearnSettings(domains=DomainGrowth.BLOCK)


def grown(
    store: Store,
    bad: int,
    good: int = 0,
    *,
    host: str = "play.example",
    settings: LearnSettings | None = None,
    user_content: tuple[str, ...] = (),
    same_text: bool = False,
    refused: bool = False,
) -> LearnedEntry | None:
    """Learns so many bad and good pages of a host and returns what the last bad one made of the host."""
    list_growth = ListGrowth(
        store.lists, store.verdicts, settings or LISTED, lambda: NOW, user_content=UserContentHosts(user_content)
    )
    for number in range(good):
        learn(list_growth, f"http://{host}/good/{number}", Classification("", 0.0, 20.0, text_digest=b"g%015d" % number))
    last = None
    for number in range(bad):
        digest = b"b%015d" % (0 if same_text else number)
        last = learn(list_growth, f"http://{host}/{number}", Classification("gambling", 42.0, 20.0, text_digest=digest))
    return list_growth.learn_host(last, lambda _: refused) if last else None


def learn(list_growth: ListGrowth, url: str, said: Classification) -> Page:
    page = Page(url, url, 200, {}, b"<html>")
    list_growth.learn(page, said)
    return page


def test_a_host_of_harmful_pages_is_listed_whole_with_its_reason(store: Store) -> None:
    entry = grown(store, 5, 4)
    assert entry is not None
    assert (entry.created_at, entry.expires_at) == (NOW, NOW + LISTED.block_days * 86_400.0)
    assert (entry.key, entry.action, entry.category) == (".play.example", ListAction.BLOCK, "gambling")
    assert entry.detail == "5 of 9 pages of play.example are harmful, most of them gambling"
    assert store.lists.find_learned([".play.example"]) == [entry]


@pytest.mark.parametrize(
    ("bad", "good", "more"),
    [
        (4, 0, {}),
        (5, 6, {}),
        (9, 0, {"same_text": True}),
        (9, 0, {"refused": True}),
        (9, 0, {"host": "203.0.113.7"}),
        (9, 0, {"host": "[2001:db8::7]"}),
        (9, 0, {"user_content": ("example",)}),
        (9, 0, {"host": "alice.blogs.example", "user_content": ("blogs.example",)}),
        (9, 0, {"settings": LearnSettings(domains=DomainGrowth.OFF)}),
        (9, 0, {"settings": LearnSettings(domains=DomainGrowth.BLOCK, domain_pages=10)}),
        (9, 2, {"settings": LearnSettings(domains=DomainGrowth.BLOCK, domain_share=0.9)}),
    ],
    ids=[
        "too few",
        "mostly fine",
        "one page many times",
        "a person refused",
        "IPv4",
        "IPv6",
        "public suffix of user content",
        "user content",
        "off",
        "more wanted",
        "greater share wanted",
    ],
)
def test_a_host_is_not_listed(store: Store, bad: int, good: int, more: dict[str, object]) -> None:
    assert grown(store, bad, good, **more) is None  # type: ignore[arg-type]
    assert {entry.key[0] for entry in store.lists.learned()} != {"."}


def test_in_review_mode_a_host_is_told_of_and_not_listed(store: Store) -> None:
    entry = grown(store, 5, settings=LearnSettings(domains=DomainGrowth.REVIEW))
    assert entry is not None
    assert store.lists.find_learned([entry.key]) == []


def test_a_host_is_listed_from_half_of_its_pages_on(store: Store) -> None:
    entry = grown(store, 5, 5)
    assert entry is not None
    assert entry.detail.startswith("5 of 10 pages of play.example")


def test_of_categories_with_as_many_pages_one_is_named(store: Store) -> None:
    list_growth = ListGrowth(store.lists, store.verdicts, LISTED, lambda: NOW)
    for number, category in enumerate(("adult", "gambling", "fraud", "gambling", "adult")):
        found = Classification(category, 42.0, 20.0, text_digest=b"%016d" % number)
        last = learn(list_growth, f"http://play.example/{number}", found)
    entry = list_growth.learn_host(last)
    assert entry is not None
    assert entry.category == "gambling"


def test_a_host_that_a_reviewer_refuses_while_it_is_listed_is_taken_off(store: Store) -> None:
    list_growth = ListGrowth(store.lists, store.verdicts, LISTED, lambda: NOW)
    for number in range(5):
        last = learn(
            list_growth, f"http://play.example/{number}", Classification("adult", 42.0, 20.0, text_digest=b"%016d" % number)
        )
    answers = iter((False, True))
    assert list_growth.learn_host(last, lambda _: next(answers)) is None
    assert store.lists.find_learned([".play.example"]) == []


def test_a_host_is_listed_once(store: Store) -> None:
    assert grown(store, 5) is not None
    assert grown(store, 6) is None


def test_the_bundled_hosts_of_user_content_are_readable() -> None:
    hosts = UserContentHosts.load(bundled_folder() / "user-content.txt")
    assert hosts.holds("github.com")
    assert hosts.holds("raw.githubusercontent.com")
    assert not hosts.holds("notgithub.com")
    assert not UserContentHosts.load(bundled_folder() / "missing.txt").holds("github.com")
