"""A host with a blocked page is named: whatever blocks the page, however the host is written, as long as it is blocked."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.patch import learned_changes, patch_snapshot
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.engine.state.manual_rules import classify_pattern
from gatewayfilter.model import (
    Change,
    ChangeKind,
    HostAction,
    LearnedEntry,
    ListAction,
    ManualRule,
    Request,
    ResourceType,
    Source,
)
from gatewayfilter.urls import digest_of, parse_url
from tests.case_tables import all_cases

ALLOW, BLOCK, SPLICE = ListAction.ALLOW, ListAction.BLOCK, ListAction.SPLICE
NOW = 1_000.0
HOST = "pay.bank.example"


def entry(key: str, action: ListAction = BLOCK, category: str = "gambling", expires_at: float = NOW + 100) -> LearnedEntry:
    return LearnedEntry(key, action, category if action is BLOCK else "", "", "score 9", 0.0, expires_at)


def builder_of(
    black: Sequence[str] = (),
    *,
    white: Sequence[str] = (),
    splice: Sequence[str] = (),
    adblock: Sequence[str] = (),
    manual: Sequence[tuple[ListAction, str]] = (),
    learned: Sequence[LearnedEntry] = (),
) -> SnapshotBuilder:
    builder = SnapshotBuilder(created_at=0.0, feed_seq=1)
    builder.add_keys(builder.add_source(Source("bad", BLOCK, "phishing")), black)
    builder.add_keys(builder.add_source(Source("good", ALLOW)), white)
    builder.add_keys(builder.add_source(Source("banks", SPLICE, "finance")), splice)
    builder.add_adblock_list(builder.add_source(Source("ads", BLOCK, "ads")), adblock)
    builder.add_learned(learned)
    builder.set_rules(ManualRule(number, action, *classify_pattern(text)) for number, (action, text) in enumerate(manual, 1))
    return builder


class Running:
    """An engine with a clock that is put on by hand."""

    def __init__(self, builder: SnapshotBuilder, off: Sequence[str] = ()) -> None:
        self.now = NOW
        self.seq = 1
        self.image = builder.image(counting=True)
        self.engine = FilterEngine(Snapshot.from_bytes(self.image.to_bytes()), off_categories=off, clock=lambda: self.now)
        self.news: dict[str, LearnedEntry | None] = {}

    def named(self, host: str = HOST) -> bool:
        return self.engine.decide_host(host, "192.0.2.9").named

    def learn(self, what: LearnedEntry, *, gone: bool = False) -> None:
        self.seq += 1
        kind = ChangeKind.LEARNED_REMOVED if gone else ChangeKind.LEARNED_ADDED
        self.engine.apply([Change(self.seq, kind, learned=what)])
        self.news[what.key] = None if gone else what

    def publish(self) -> None:
        counters = self.image.counters
        assert counters is not None
        news = learned_changes(self.news, self.now)
        old = Snapshot.from_bytes(self.image.to_bytes())
        self.image = patch_snapshot(old, counters, news, [], feed_seq=self.seq, created_at=self.now)
        self.news = {}
        self.engine.swap(Snapshot.from_bytes(self.image.to_bytes()))


@pytest.mark.parametrize(
    "key",
    [
        f"{HOST}/trap",
        f"{HOST}/",
        f"{HOST}/a?b=1",
        f"{HOST}:8443/trap",
        f"{HOST}/trap/*",
        f"{HOST}:8443/*",
        f"{HOST}/*",
    ],
)
def test_any_page_of_a_list_or_learned_names_its_host(key: str) -> None:
    for builder in (builder_of([key]), builder_of(learned=[entry(key)]), builder_of(splice=[HOST], black=[key])):
        found = FilterEngine(Snapshot.from_bytes(builder.build()), clock=lambda: NOW).decide_host(HOST)
        assert (found.action, found.named) == (HostAction.INTERCEPT, True)
        assert found.because is not None
        assert found.because.source_list in {"bad", "learned:gambling"}
        assert found.because.blocked


@pytest.mark.parametrize(
    ("key", "host", "named"),
    [
        ("[2001:db8::7]/x", "[2001:db8::7]", True),
        ("[2001:db8::7]:8443/x", "[2001:DB8:0::7]", True),
        ("192.0.2.7:81/x", "192.0.2.7", True),
        ("192.0.2.7/x", "192.0.2.8", False),
        ("bank.example/x", "www.bank.example", True),
        ("bank.example/x", "WWW.Bank.Example.", True),
        ("www.bank.example/x", "bank.example", False),  # a page of www. alone, which `bank.example` never serves
        ("bank.example/x", "pay.bank.example", False),
        (f"{HOST}/x", "PAY.bank.example.", True),
        (f"{HOST}/x", "bank.example", False),
        ("xn--bcher-kva.example/x", "bücher.example", True),
        ("other.example/x", HOST, False),
    ],
)
def test_hosts_however_they_are_written(key: str, host: str, named: bool) -> None:  # noqa: FBT001  a column of the table
    assert Running(builder_of([key])).named(host) is named
    assert Running(builder_of(learned=[entry(key)])).named(host) is named
    running = Running(builder_of())
    running.learn(entry(key))
    assert running.named(host) is named


def test_what_allows_names_nobody() -> None:
    running = Running(builder_of(white=[f"{HOST}/x", f"{HOST}/y/*"], learned=[entry(f"{HOST}/z", ALLOW)]))
    running.learn(entry(f"{HOST}/w", ALLOW))
    assert not running.named()


def test_categories_that_are_off_do_not_count() -> None:
    def named(builder: SnapshotBuilder, *off: str) -> bool:
        return Running(builder, off).named()

    assert not named(builder_of([f"{HOST}/x"]), "phishing")
    assert not named(builder_of(learned=[entry(f"{HOST}/x")]), "gambling")
    assert not named(builder_of(adblock=[f"||{HOST}/x"]), "ads")
    both = builder_of(learned=[entry(f"{HOST}/x"), entry(f"{HOST}/y", category="adult")])
    assert named(both, "gambling")
    assert not named(both, "gambling", "adult")


@all_cases("text", ["not a host", "", "a/b", f"{HOST}@evil.example", "..", "\ud800"])
def test_what_is_no_host_never_passes(text: str) -> None:
    assert Running(builder_of()).named(text)


def test_a_list_of_digests_may_be_about_any_host() -> None:
    builder = builder_of(splice=["bank.example"])
    assert not FilterEngine(Snapshot.from_bytes(builder.build())).decide_host(HOST).named
    digests = np.frombuffer(digest_of(f"{HOST}/x"), np.uint8).reshape(1, 16)
    builder.add_digests(builder.add_source(Source("digests", BLOCK, "phishing")), digests)
    engine = FilterEngine(Snapshot.from_bytes(builder.build()))
    assert engine.decide_host("any.example").named
    assert engine.decide_host("bank.example").action is HostAction.SPLICE  # chosen by hand
    assert FilterEngine(Snapshot.from_bytes(builder.build()), off_categories=["phishing"]).decide_host(HOST).named is False


@pytest.mark.parametrize(("action", "count"), [(BLOCK, 0), (ListAction.ALLOW, 1)])
def test_a_list_of_digests_that_blocks_nothing_is_about_no_host(action: ListAction, count: int) -> None:
    builder = builder_of()
    digests = np.frombuffer(digest_of(f"{HOST}/x") * count, np.uint8).reshape(count, 16)
    assert builder.add_digests(builder.add_source(Source("digests", action)), digests) == count
    assert not FilterEngine(Snapshot.from_bytes(builder.build())).decide_host("any.example").named


ADBLOCK = [
    (f"||{HOST}/ads/", True),
    ("||bank.example/ads/", True),
    ("||bank.example/ads/$third-party", True),
    (f"|https://{HOST}/x.js|", True),
    (f"{HOST}/x.js", True),
    ("://pay.bank.example/x", True),
    ("||pay*.bank.example/x", True),
    ("||bank.*/x", True),
    ("||bank.example:8443^", True),
    ("||bank.example^*/x.js", True),
    (f"||{HOST}^$ping", True),
    (f"||{HOST}^$xmlhttprequest,1p", True),
    (f"||{HOST}^$domain=shop.example", True),
    (f"||{HOST}^$method=post", True),
    (f"/x.js$to={HOST}", True),
    (f"/x.js$domain={HOST}", True),
    (f"/x.js$domain={HOST},third-party", False),
    (f"||ads.example^$domain={HOST}", False),
    ("/bank\\.example\\/x[0-9]/", True),
    ("||www.bank.example/x", False),
    ("||k.example/x", False),
    ("/ads/*", False),
    ("x.js", False),
    (".example/ads/", False),
    (f"@@||{HOST}/x", False),
    (f"||{HOST}^$removeparam=x", False),
    (f"{HOST}##.ad", False),
]


@pytest.mark.parametrize(("rule", "named"), ADBLOCK)
def test_an_adblock_rule_that_speaks_of_the_host_names_it(rule: str, named: bool) -> None:  # noqa: FBT001  a column of the table
    running = Running(builder_of(adblock=[rule]))
    assert running.named() is named
    # What a splice list chose stays: nearly every bank has a rule about the counting of its visitors.
    assert Running(builder_of(adblock=[rule], splice=[".bank.example"])).engine.decide_host(HOST).action is HostAction.SPLICE


@all_cases(
    ("pattern", "named"),
    [
        (f"{HOST}/x", True),
        (f"{HOST}:8443", True),
        ("*.bank.example/x*", True),
        ("/bank\\.example\\/x/", True),
        ("/pay\\.bank\\.example\\/x[0-9]+/", True),
        ("/other\\.example\\/x/", False),
        ("*/banner/*", False),
        ("/x[0-9]+/", False),
    ],
)
def test_peoples_blocks_of_parts(pattern: str, named: bool) -> None:  # noqa: FBT001  a column of the table
    assert Running(builder_of(manual=[(BLOCK, pattern)])).named() is named


def test_learned_pages_come_and_go() -> None:
    """In the overlay, in a snapshot that follows, and by the clock."""
    running = Running(builder_of(learned=[entry(f"{HOST}/1"), entry("other.example/1")]))
    assert running.named()
    running.learn(entry(f"{HOST}/1"), gone=True)
    assert not running.named()
    assert running.named("other.example")
    running.publish()
    assert not running.named()
    assert running.named("other.example")
    running.learn(entry(f"{HOST}/2", category="adult"))
    assert running.named()
    running.publish()
    assert running.named()
    running.learn(entry(f"{HOST}/2", ALLOW))  # judged anew: harmless
    assert not running.named()
    running.publish()
    assert not running.named()
    running.learn(entry(f"{HOST}/3", expires_at=NOW + 10))
    assert running.named()
    running.publish()
    assert running.named()
    running.now += 10
    assert not running.named()


def test_one_of_two_pages_that_leaves_is_not_enough() -> None:
    running = Running(builder_of(learned=[entry(f"{HOST}/1"), entry(f"{HOST}/2/*")]))
    running.learn(entry(f"{HOST}/1"), gone=True)
    assert running.named()
    running.publish()
    assert running.named()
    running.learn(entry(f"{HOST}/2/*"), gone=True)
    assert not running.named()
    running.publish()
    assert not running.named()


def test_many_changes_of_one_host() -> None:
    pages = [entry(f"{HOST}/{number}") for number in range(400)]
    running = Running(builder_of(learned=pages))
    for page in pages[:256]:
        running.learn(page, gone=True)
    assert running.named()
    for page in pages[256:]:
        running.learn(page, gone=True)
    assert running.named(), "more than are compared: until the next snapshot"
    running.publish()
    assert not running.named()
    for page in pages:
        running.learn(page)
    assert running.named()
    running.publish()
    assert running.named()


PATHS = ["/", "/a", "/a/b", "/a/b?c=1"]
KEYS = [
    f"{host}{path}{below}" for host in (HOST, "www.bank.example", "bank.example") for path in PATHS[:3] for below in ("", "/*")
]
HOSTS = [HOST, "www.bank.example", "bank.example"]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from(KEYS), max_size=2),
    st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=6),
    st.lists(st.sampled_from([f"||{host}{path}" for host in HOSTS for path in ("/a", "^", "/a/b$domain=x.example")]), max_size=2),
    st.integers(0, 6),
)
def test_a_host_that_is_not_named_has_no_blocked_page(
    black: list[str], learned: list[tuple[str, bool]], adblock: list[str], published: int
) -> None:
    running = Running(builder_of([key.replace("//*", "/*") for key in black], adblock=adblock))
    for number, (key, gone) in enumerate(learned):
        running.learn(entry(key.replace("//*", "/*")), gone=gone)
        if number == published:
            running.publish()
    for host in HOSTS:
        if running.named(host):
            continue
        for path in PATHS:
            for kind in (ResourceType.DOCUMENT, ResourceType.SCRIPT):
                request = Request(parse_url(f"https://{host}{path}"), parse_url("https://x.example/"), kind)
                assert not running.engine.decide(request).blocked
