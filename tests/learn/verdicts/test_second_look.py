"""The second look: facts about a host move a verdict by one step, within bounds, and forge nothing."""

from dataclasses import replace
from math import e
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.classify import BLOCKED_FROM
from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.interfaces import HostFacts, Page
from gatewayfilter.learn import HostListing, HostSecondLook, TrustedHosts, UserContentHosts
from gatewayfilter.learn.verdicts.second_look import MOST_AGAINST
from gatewayfilter.model import HOST_ZONE, Classification, Evidence, ListAction, Source
from gatewayfilter.settings import LearnSettings, Strictness
from gatewayfilter.store import Store
from tests.learn.review_world import NOW, World

URL = "http://shop.example/a"
PAGE = Page(URL, URL, 200, {"content-type": "text/html"}, b"x")
CASINO = Evidence("casino", "gambling", 12.0, "main", 3)
HARMFUL = Classification("gambling", 30.0, 20.0, {"gambling": 30.0}, (CASINO,), text_digest=b"own" * 5 + b".")
DOUBTFUL = replace(HARMFUL, category="", doubt="gambling", certainty=0.8)
HARMLESS = replace(HARMFUL, category="")
NOTHING = HostFacts({}, 0, None, linked=False)


class Facts:
    """Facts as they are given."""

    def __init__(self, facts: HostFacts) -> None:
        self.facts = facts

    def facts_of(self, url: str, host: str, text_digest: bytes) -> HostFacts:
        assert (url, host, text_digest) == (URL, "shop.example", HARMFUL.text_digest)
        return self.facts


def look(found: Classification, facts: HostFacts = NOTHING, *, user_content: tuple[str, ...] = ()) -> Classification:
    hosts = UserContentHosts(user_content)
    return HostSecondLook(TrustedHosts(user_content=hosts), hosts, facts=Facts(facts), clock=lambda: NOW).look(PAGE, found)


def facts_in(found: Classification) -> list[tuple[str, float]]:
    return [(hit.word, hit.weight) for hit in found.evidence if hit.zone == HOST_ZONE]


def pages(harmful: int, harmless: int, *, days: float = 0, linked: bool = False) -> HostFacts:
    return HostFacts({"gambling": harmful} if harmful else {}, harmless, NOW - days * 86_400, linked=linked)


AT_LIMIT = BLOCKED_FROM[Strictness.STANDARD]
CASES: list[tuple[str, Classification, HostFacts, str, str]] = [
    ("nothing is known of the host", HARMFUL, NOTHING, "gambling", ""),
    ("its other pages are harmless", HARMFUL, pages(0, 5), "", "gambling"),
    ("as many are harmful", HARMFUL, pages(5, 5), "gambling", ""),
    ("they are harmful", HARMFUL, pages(3, 0), "gambling", ""),
    ("a clear score", replace(HARMFUL, score=61.0), pages(0, 5000, days=900), "gambling", ""),
    ("a clear certainty", replace(HARMFUL, certainty=0.9992), pages(0, 5000, days=900), "gambling", ""),
    ("a certainty just over the limit", replace(HARMFUL, certainty=AT_LIMIT + 0.001), pages(0, 5), "", "gambling"),
    ("blocked at a lower figure than ours, and nothing known", replace(HARMFUL, certainty=0.7), NOTHING, "gambling", ""),
    ("doubtful among harmful pages", replace(DOUBTFUL, certainty=0.8), pages(3, 0, linked=True), "gambling", ""),
    ("doubtful, less than even, among harmful pages", replace(DOUBTFUL, certainty=0.4), pages(99, 0), "", "gambling"),
    ("doubtful among harmless pages", replace(DOUBTFUL, certainty=0.6), pages(0, 9), "", ""),
    ("doubtful without a certainty", replace(DOUBTFUL, certainty=None), pages(99, 0), "", "gambling"),
    ("linked from a harmful page alone", replace(DOUBTFUL, certainty=0.8), pages(0, 0, linked=True), "", "gambling"),
    ("harmless, on a harmful host", HARMLESS, pages(999, 0, linked=True), "", ""),
]


@pytest.mark.parametrize(("found", "facts", "category", "doubt"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_facts_move_a_verdict_by_one_step(found: Classification, facts: HostFacts, category: str, doubt: str) -> None:
    seen = look(found, facts)
    assert (seen.category, seen.doubt) == (category, doubt)


def test_each_fact_stands_in_the_evidence() -> None:
    seen = look(HARMFUL, pages(0, 4, days=40, linked=True))
    assert facts_in(seen) == [
        ("0 of 4 other pages of shop.example are harmful", -1.5),
        ("shop.example is known for 40 days", -0.5),
        ("a harmful page links to it", 0.5),
    ]
    assert seen.evidence[0] == CASINO
    assert {hit.position for hit in seen.evidence[1:]} == {-1}
    assert facts_in(look(HARMFUL, pages(5, 2))) == [("5 of 7 other pages of shop.example are harmful", 0.788)]
    assert "other pages" not in look(HARMFUL, pages(4, 0)).summary()  # it lists words


def test_a_page_blocked_below_its_limit_names_the_facts_of_its_host() -> None:
    blocked = look(replace(DOUBTFUL, certainty=0.85, score=12.0, limit=20.0), pages(4, 0))
    assert blocked.harmful
    assert "; blocked because 4 of 4 other pages of" in blocked.summary()


def test_what_users_publish_proves_nothing_of_each_other() -> None:
    assert facts_in(look(HARMFUL, pages(0, 50), user_content=("shop.example",))) == []


@given(
    certainty=st.one_of(st.none(), st.floats(0, 1)),
    ratio=st.floats(1.0, 50),
    harmless=st.integers(0, 10**6),
    days=st.floats(0, 10_000),
)
def test_nothing_that_a_site_arranges_frees_a_clear_page(
    certainty: float | None, ratio: float, harmless: int, days: float
) -> None:
    found = replace(HARMFUL, certainty=certainty, score=20.0 * ratio)
    odds = ratio**2 if certainty is None else certainty / max(1 - certainty, 1e-9) / (AT_LIMIT / (1 - AT_LIMIT))
    seen = look(found, pages(0, harmless, days=days))
    assert seen.harmful or odds < 2.7182818**MOST_AGAINST * 1.001
    assert seen.harmful or seen.doubt == "gambling"  # it is reviewed in any case


@given(harmful=st.integers(0, 10**6), linked=st.booleans(), certainty=st.floats(0, 1))
def test_no_page_is_blocked_for_its_host(harmful: int, linked: bool, certainty: float) -> None:  # noqa: FBT001
    facts = pages(harmful, 0, linked=linked)
    assert look(replace(HARMLESS, certainty=certainty), facts) == replace(HARMLESS, certainty=certainty)
    if look(replace(DOUBTFUL, certainty=certainty), facts).harmful:
        assert certainty >= 0.5


def test_a_black_list_of_the_category_supports(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    now = [0.0]
    listing = HostListing(folder, lambda: now[0])
    assert listing.source_of("www.shop.example", "gambling") == ""
    builder = SnapshotBuilder()
    builder.add_keys(builder.add_source(Source("mine", category="gambling")), [".shop.example"])
    builder.add_keys(builder.add_source(Source("learned:adult", category="adult", learned=True)), [".shop.example"])
    builder.add_keys(builder.add_source(Source("white", ListAction.ALLOW, "gambling")), [".good.example"])
    folder.publish(builder.build())
    now[0] = 4.9
    assert listing.source_of("www.shop.example", "gambling") == "", "it is looked for every five seconds"
    now[0] = 5.0
    assert listing.source_of("www.shop.example", "gambling") == "mine"
    for host, category in (("www.shop.example", "adult"), ("good.example", "gambling"), ("other.example", "gambling")):
        assert listing.source_of(host, category) == ""
    hosts = UserContentHosts(())
    doubtful = replace(DOUBTFUL, certainty=0.97)
    assert HostSecondLook(TrustedHosts(), hosts, facts=Facts(NOTHING), listing=listing).look(PAGE, doubtful).harmful


def test_a_snapshot_that_was_opened_is_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, now, opened = SnapshotFolder(tmp_path), [0.0], list[bool]()
    folder.publish(SnapshotBuilder().build())
    open_newest = SnapshotFolder.open_newest

    def counted(self: SnapshotFolder, *, verify: bool = True) -> Any:
        opened.append(verify)
        return open_newest(self, verify=verify)

    monkeypatch.setattr(SnapshotFolder, "open_newest", counted)
    listing = HostListing(folder, lambda: now[0])
    for _ in range(3):
        assert listing.source_of("a.example", "ads") == ""
        now[0] += 5.0
    assert opened == [False], "who published it has verified it"


def test_a_doubtful_page_is_learned_as_allowed_and_counts_for_no_host(store: Store) -> None:
    world = World(store, LearnSettings(), second_look=_Doubting())
    found = world.visit()
    assert found is not None
    assert (found.category, found.doubt) == ("", "gambling")
    assert world.learned() == "allow"
    assert world.counters["second_looks"] == 1
    assert store.verdicts.host_pages("play.example").pages == 0
    world.visit("http://other.example/")  # by its fingerprint, which keeps the classifier's own verdict
    assert world.counters["second_looks"] == 2


def test_a_persons_decision_gets_no_second_look(store: Store) -> None:
    plain = World(store, LearnSettings())
    plain.visit()
    plain.desk.approve(1, "ada")
    world = World(store, LearnSettings(), second_look=_Doubting())
    found = world.visit("http://other.example/")
    assert found is not None
    assert found.category == "gambling"


class _Doubting:
    def look(self, page: Page, found: Classification) -> Classification:
        assert page.url
        return replace(found, category="", doubt=found.category) if found.harmful else found


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (pages(0, 3, days=30), ["0 of 3 other pages of shop.example are harmful", "shop.example is known for 30 days"]),
        (pages(0, 3, days=29.99), ["0 of 3 other pages of shop.example are harmful"]),
        (pages(0, 2, days=900), ["0 of 2 other pages of shop.example are harmful"]),
        (pages(1, 3, days=900), ["1 of 4 other pages of shop.example are harmful"]),
        (replace(pages(0, 3), known_since=None), ["0 of 3 other pages of shop.example are harmful"]),
        (replace(NOTHING, known_since=0.0), []),
    ],
)
def test_a_host_is_known_after_thirty_days_with_three_harmless_pages_and_no_harmful_one(
    facts: HostFacts, told: list[str]
) -> None:
    assert [text for text, _ in facts_in(look(HARMFUL, facts))] == told


@pytest.mark.parametrize(
    ("found", "facts", "category", "doubt"),
    [
        (replace(DOUBTFUL, certainty=0.5), pages(99, 0, linked=True), "gambling", ""),
        (replace(DOUBTFUL, certainty=0.499), pages(99, 0, linked=True), "", "gambling"),
        (replace(DOUBTFUL, certainty=0.6), pages(0, 0, linked=True), "gambling", ""),  # the least fact that counts
        (replace(DOUBTFUL, certainty=0.6), pages(1, 1), "", "gambling"),
        (replace(DOUBTFUL, certainty=0.9), pages(0, 9), "", "gambling"),
        (replace(DOUBTFUL, certainty=0.81), pages(0, 9), "", ""),
        (replace(DOUBTFUL, certainty=0.83), pages(0, 9), "", "gambling"),
        (replace(DOUBTFUL, certainty=0.3), pages(0, 0, linked=True), "", "gambling"),
    ],
)
def test_a_page_in_doubt_is_blocked_from_even_odds_and_freed_below_them(
    found: Classification, facts: HostFacts, category: str, doubt: str
) -> None:
    low = HostSecondLook(TrustedHosts(), UserContentHosts(()), Strictness.STRICT, Facts(facts), clock=lambda: NOW)
    seen = low.look(PAGE, found)
    assert (seen.category, seen.doubt) == (category, doubt)


def test_the_certainty_that_is_told_is_that_after_the_facts() -> None:
    assert look(replace(DOUBTFUL, certainty=0.5), pages(0, 9)).certainty == pytest.approx(1 / (1 + 2.7182818**1.5), abs=1e-6)
    assert look(DOUBTFUL, replace(NOTHING, linked=True)).certainty == pytest.approx(1 / (1 + 0.25 * 2.7182818**-0.5), abs=1e-6)
    assert look(replace(DOUBTFUL, certainty=1.0), pages(0, 9)).certainty == pytest.approx(1 - 1 / (1 + 2.7182818**10.5), abs=1e-5)
    assert look(replace(DOUBTFUL, certainty=None), pages(0, 9)).certainty is None
    told = look(replace(DOUBTFUL, certainty=0.5), pages(0, 9)).certainty
    assert told == 0.182_426, "six digits"


def test_a_page_that_facts_take_to_the_limit_stays_blocked() -> None:
    at_limit = replace(HARMFUL, score=HARMFUL.limit * e)  # its log-odds are 2 above the limit
    facts = Facts(pages(0, 9, days=40))  # which take 2
    relaxed = HostSecondLook(TrustedHosts(), UserContentHosts(()), Strictness.RELAXED, facts, clock=lambda: NOW)
    assert relaxed.look(PAGE, at_limit).harmful
    assert not relaxed.look(PAGE, replace(at_limit, score=at_limit.score - 0.1)).harmful
