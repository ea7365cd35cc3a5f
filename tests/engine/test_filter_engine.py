"""The pipeline: who decides, in which order, and that `explain` says the same as `decide`."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.deciders import DECIDERS
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import (
    Action,
    Change,
    ChangeKind,
    EntryKind,
    LearnedEntry,
    ListAction,
    ManualRule,
    Reason,
    Request,
    ResourceType,
    Source,
    Verdict,
)
from gatewayfilter.urls import Url, digest_of, parse_url
from tests.case_tables import all_cases

BLOCK, ALLOW = ListAction.BLOCK, ListAction.ALLOW
NOW = 1_000.0
SUMMARY = "score 42.0 (limit 20.0): casino"


def entry(key: str, action: ListAction = BLOCK, category: str = "gambling", expires_at: float = 2_000.0) -> LearnedEntry:
    return LearnedEntry(key, action, category, f"http://{key}", SUMMARY, 0.0, expires_at)


def manual(action: ListAction, kind: EntryKind, pattern: str, expires_at: float | None = None) -> ManualRule:
    return ManualRule(1, action, kind, pattern, comment="asked by Kim", expires_at=expires_at)


def snapshot(
    black: Sequence[str] = (),
    white: Sequence[str] = (),
    adblock: Sequence[str] = (),
    learned: Sequence[LearnedEntry] = (),
    rules: Sequence[ManualRule] = (),
    feed_seq: int = 0,
) -> Snapshot:
    builder = SnapshotBuilder(feed_seq=feed_seq, created_at=0.0)
    builder.add_keys(builder.add_source(Source("bad", BLOCK, "phishing")), black)
    builder.add_keys(builder.add_source(Source("good", ALLOW, "news")), white)
    builder.add_adblock_list(builder.add_source(Source("ads", BLOCK, "ads")), adblock)
    builder.add_learned(learned)
    builder.set_rules(rules)
    return Snapshot.from_bytes(builder.build())


def engine(opened: Snapshot, *, off: Sequence[str] = (), now: float = NOW) -> FilterEngine:
    return FilterEngine(opened, off_categories=off, clock=lambda: now)


def request(url: str, resource_type: ResourceType = ResourceType.SCRIPT) -> Request:
    return Request(parse_url(url), parse_url("http://page.example/"), resource_type)


PAGE = "http://x.example/page"
EVERYTHING = {
    "black": [".x.example"],
    "white": [".x.example"],
    "adblock": ["||x.example^"],
}


def test_the_order_is_the_documented_one() -> None:
    assert [decider.name for decider in DECIDERS] == [
        "manual",
        "bloom",
        "blacklist",
        "adblock",
        "spellings",
        "whitelist",
        "unknown",
    ]


@all_cases(
    ("rules", "black", "adblock", "white", "reason"),
    [
        ("allow block", True, ["||x.example^"], True, Reason.MANUAL_ALLOW),
        ("allow", True, ["||x.example^"], True, Reason.MANUAL_ALLOW),
        ("block", True, ["||x.example^"], True, Reason.MANUAL_BLOCK),
        ("block", False, [], True, Reason.MANUAL_BLOCK),
        ("", True, ["||x.example^"], True, Reason.BLACKLIST),
        ("", True, ["||x.example^", "@@||x.example^"], True, Reason.BLACKLIST),
        ("", True, [], True, Reason.BLACKLIST),
        ("", False, ["||x.example^"], True, Reason.ADBLOCK),
        ("", False, ["||x.example^"], False, Reason.ADBLOCK),
        ("", False, ["||x.example^", "@@||x.example^"], True, Reason.WHITELIST),
        ("", False, ["||x.example^", "@@||x.example^"], False, Reason.ADBLOCK_EXCEPTION),
        ("", False, ["@@||x.example^"], False, Reason.UNKNOWN),
        ("", False, [], True, Reason.WHITELIST),
        ("", False, [], False, Reason.UNKNOWN),
    ],
)
def test_who_decides(rules: str, black: bool, adblock: list[str], white: bool, reason: Reason) -> None:  # noqa: FBT001 - a table
    people = [manual(ListAction(action), EntryKind.DOMAIN, ".x.example") for action in rules.split()]
    if len(people) == 2:
        people[0] = replace(people[0], kind=EntryKind.URL, pattern="x.example/page")
    asked = engine(snapshot(EVERYTHING["black"] if black else (), EVERYTHING["white"] if white else (), adblock, rules=people))
    verdict = asked.decide(request(PAGE))
    assert verdict.reason is reason
    assert verdict.blocked == (reason in {Reason.MANUAL_BLOCK, Reason.BLACKLIST, Reason.ADBLOCK})
    assert verdict.unknown == (reason in {Reason.UNKNOWN, Reason.ADBLOCK_EXCEPTION})


@pytest.mark.parametrize(
    ("key", "covered", "not_covered"),
    [
        ("x.example/a?b=1", ["http://x.example/a?b=1", "wss://x.example/a?b=1"], ["http://x.example/a", "http://x.example:81/a?b=1"]),
        ("x.example", ["http://x.example/", "https://x.example:81/a"], ["http://www.x.example/", "http://ax.example/"]),
        (".x.example", ["http://x.example/", "https://a.b.x.example:81/a"], ["http://ax.example/", "http://example/"]),
        ("x.example/a/*", ["http://x.example/a", "http://x.example/a/b?c", "http://www.x.example/a/"], ["http://x.example/", "http://b.x.example/a"]),
        ("x.example/*", ["http://x.example/"], ["http://x.example:81/"]),
        ("x.example:81/*", ["http://x.example:81/q", "http://www.x.example:81/"], ["http://x.example/q"]),
        ("192.0.2.7", ["http://192.0.2.7/a"], ["http://192.0.2.8/a"]),
        ("[2001:db8::1]", ["http://[2001:db8::1]:81/a"], ["http://[2001:db8::2]/"]),
    ],
)  # fmt: skip
def test_what_a_key_covers(key: str, covered: list[str], not_covered: list[str]) -> None:
    for opened, changes in (
        (snapshot(black=[key]), []),
        (snapshot(learned=[entry(key)]), []),
        (snapshot(), [Change(1, ChangeKind.LEARNED_ADDED, learned=entry(key))]),
    ):
        asked = engine(opened)
        asked.apply(changes)
        assert [url for url in covered if not asked.decide(request(url)).blocked] == []
        assert [url for url in not_covered if asked.decide(request(url)).blocked] == []


def test_verdicts_name_list_rule_and_category() -> None:
    asked = engine(
        snapshot(
            black=["x.example/a/*"],
            white=["good.example"],
            adblock=["! comment", "||ads.example^$script"],
            learned=[entry("l.example/x")],
            rules=[manual(BLOCK, EntryKind.REGEX, "poker"), replace(manual(ALLOW, EntryKind.HOST, "mine.example"), rule_id=2)],
        )
    )
    assert [asked.decide(request(f"http://{url}")) for url in (
        "x.example/a/b", "good.example/", "ads.example/x.js", "l.example/x", "y.example/poker", "mine.example/", "z.example/",
    )] == [
        Verdict(Action.BLOCK, Reason.BLACKLIST, "bad", "x.example/a/*", category="phishing"),
        Verdict(Action.ALLOW, Reason.WHITELIST, "good", "good.example", category="news"),
        Verdict(Action.BLOCK, Reason.ADBLOCK, "ads", "||ads.example^$script", 2, "ads"),
        Verdict(Action.BLOCK, Reason.LEARNED, "learned:gambling", "l.example/x", 0, "gambling", SUMMARY),
        Verdict(Action.BLOCK, Reason.MANUAL_BLOCK, rule="/poker/", detail="asked by Kim"),
        Verdict(Action.ALLOW, Reason.MANUAL_ALLOW, rule="mine.example", detail="asked by Kim"),
        Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True),
    ]  # fmt: skip


def test_among_several_lists_the_first_is_named_and_an_off_one_passed_over() -> None:
    builder = SnapshotBuilder()
    for name in ("first", "second"):
        builder.add_keys(builder.add_source(Source(name, BLOCK, name)), ["x.example/page"])
    builder.add_learned([entry("x.example/page")])
    opened = Snapshot.from_bytes(builder.build())
    named = [engine(opened, off=off).decide(request(PAGE)).source_list for off in ((), ("first",), ("first", "second"))]
    assert named == ["first", "second", "learned:gambling"]
    assert engine(opened, off=("first", "second", "gambling")).decide(request(PAGE)).unknown


def test_off_categories_neither_block_nor_stub() -> None:
    opened = snapshot(**EVERYTHING)  # type: ignore[arg-type]  # one type for all values
    assert engine(opened, off=["phishing"]).decide(request(PAGE)).reason is Reason.ADBLOCK
    assert engine(opened, off=["phishing", "ads"]).decide(request(PAGE)).reason is Reason.WHITELIST
    assert engine(opened, off=["phishing", "ads", "news"]).decide(request(PAGE)).reason is Reason.WHITELIST
    learned = snapshot(learned=[entry("x.example/page")])
    assert engine(learned, off=["gambling"]).decide(request(PAGE)).unknown


def test_the_empty_category_cannot_be_switched_off() -> None:
    builder = SnapshotBuilder()
    builder.add_keys(builder.add_source(Source("plain")), [".x.example"])
    assert engine(Snapshot.from_bytes(builder.build()), off=[""]).decide(request(PAGE)).blocked


@pytest.mark.parametrize("key", ["x.example/page", ".x.example", "x.example/*"])
def test_a_learned_entry_that_expired_is_unknown_again(key: str) -> None:
    now = [0.0]
    for opened, changes in (
        (snapshot(learned=[entry(key, expires_at=50.0)]), []),
        (snapshot(), [Change(1, ChangeKind.LEARNED_ADDED, learned=entry(key, expires_at=50.0))]),
    ):
        asked = FilterEngine(opened, clock=lambda: now[0])
        asked.apply(changes)
        for now[0], unknown in ((49.9, False), (50.0, True), (60.0, True)):
            assert asked.decide(request(PAGE)).unknown is unknown
            assert asked.explain(request(PAGE)).verdict.unknown is unknown


def test_a_persons_rule_that_expired_does_not_count() -> None:
    opened = snapshot(rules=[manual(BLOCK, EntryKind.DOMAIN, ".x.example", expires_at=50.0)])
    assert engine(opened, now=49.0).decide(request(PAGE)).blocked
    assert not engine(opened, now=50.0).decide(request(PAGE)).blocked


def test_the_overlay_hides_what_the_snapshot_learned() -> None:
    opened = snapshot(learned=[entry("x.example/page"), entry(".y.example")])
    asked = engine(opened)
    assert asked.decide(request(PAGE)).blocked
    assert asked.decide(request("http://y.example/")).blocked
    asked.apply([
        Change(1, ChangeKind.LEARNED_REMOVED, learned=entry("x.example/page")),
        Change(2, ChangeKind.LEARNED_ADDED, learned=entry(".y.example", ALLOW, "")),
    ])  # fmt: skip
    assert asked.decide(request(PAGE)).unknown
    verdict = asked.decide(request("http://y.example/"))
    assert (verdict.reason, verdict.source_list) == (Reason.WHITELIST, "learned:harmless")


def test_the_overlay_hides_no_subscription() -> None:
    asked = engine(snapshot(black=["x.example/page"], learned=[entry("x.example/page")]))
    asked.apply([Change(1, ChangeKind.LEARNED_REMOVED, learned=entry("x.example/page"))])
    assert asked.decide(request(PAGE)).source_list == "bad"


def test_a_persons_allow_beats_what_was_learned_at_once() -> None:
    asked = engine(snapshot(learned=[entry("x.example/page")]))
    rule = manual(ALLOW, EntryKind.URL, "x.example/page")
    assert asked.decide(request(PAGE)).reason is Reason.LEARNED
    asked.apply([Change(1, ChangeKind.MANUAL_ADDED, manual=rule)])
    assert asked.decide(request(PAGE)).reason is Reason.MANUAL_ALLOW
    asked.apply([Change(2, ChangeKind.MANUAL_REMOVED, manual=rule)])
    assert asked.decide(request(PAGE)).reason is Reason.LEARNED


def test_apply_and_swap_follow_the_feed() -> None:
    asked = engine(snapshot(feed_seq=5))
    changes = [Change(seq, ChangeKind.LEARNED_ADDED, learned=entry(f"x.example/{seq}")) for seq in range(4, 9)]
    assert asked.feed_seq == 5
    asked.apply(changes[:4])
    assert asked.feed_seq == 7
    blocked = [seq for seq in range(4, 9) if asked.decide(request(f"http://x.example/{seq}")).blocked]
    assert blocked == [6, 7]
    newer = snapshot(learned=[entry("x.example/4"), entry("x.example/5"), entry("x.example/6")], feed_seq=6)
    asked.swap(newer, changes[4:])
    assert (asked.feed_seq, asked.snapshot) == (8, newer)
    assert all(asked.decide(request(f"http://x.example/{seq}")).blocked for seq in range(4, 9))
    asked.swap(snapshot(feed_seq=2))
    assert asked.feed_seq == 2, "an older snapshot: the changes before the ones known here must be read again"


def answer_table(asked: FilterEngine, asks: Request) -> list[tuple[str, str]]:
    return [(answer.decider, answer.answer) for answer in asked.explain(asks).answers]


def test_explain_answers_for_everybody_even_after_the_decision() -> None:
    asked = engine(snapshot(rules=[manual(BLOCK, EntryKind.DOMAIN, ".x.example")], **EVERYTHING))  # type: ignore[arg-type]
    assert answer_table(asked, request(PAGE)) == [
        ("manual", "block"), ("bloom", "maybe"), ("blacklist", "block"),
        ("adblock", "block"), ("spellings", "miss"), ("whitelist", "allow"), ("unknown", "allow"),
    ]  # fmt: skip


def test_explain_of_what_nobody_knows() -> None:
    assert answer_table(engine(snapshot()), request(PAGE)) == [
        ("manual", "miss"), ("bloom", "miss"), ("blacklist", "skipped"),
        ("adblock", "miss"), ("spellings", "miss"), ("whitelist", "skipped"), ("unknown", "allow"),
    ]  # fmt: skip


def test_explain_of_an_exception() -> None:
    asked = engine(snapshot(adblock=["||x.example^", "@@||x.example/page"]))
    answers = {answer.decider: answer for answer in asked.explain(request(PAGE)).answers}
    assert answers["adblock"].answer == "pass"
    assert "lifts a block" in answers["adblock"].explanation
    assert "@@||x.example/page" in answers["adblock"].explanation


@all_cases(
    ("opened", "off", "said"),
    [
        (snapshot(black=["x.example/page"]), ["phishing"], "its category phishing is switched off"),
        (snapshot(learned=[entry("x.example/page", expires_at=1.0)]), [], "that has expired"),
        (snapshot(learned=[entry("x.example/page")]), ["gambling"], "switched off"),
    ],
)
def test_explain_says_why_an_entry_is_silent(opened: Snapshot, off: list[str], said: str) -> None:
    answers = {answer.decider: answer for answer in engine(opened, off=off).explain(request(PAGE)).answers}
    assert answers["blacklist"].answer == "pass"
    assert said in answers["blacklist"].explanation


def test_explain_says_what_the_overlay_hides() -> None:
    asked = engine(snapshot(learned=[entry("x.example/page")]))
    asked.apply([Change(1, ChangeKind.LEARNED_REMOVED, learned=entry("x.example/page"))])
    answers = {answer.decider: answer for answer in asked.explain(request(PAGE)).answers}
    assert "taken back" in answers["blacklist"].explanation
    asked.apply([Change(2, ChangeKind.LEARNED_ADDED, learned=entry("x.example/page", expires_at=1.0))])
    answers = {answer.decider: answer for answer in asked.explain(request(PAGE)).answers}
    assert "learned since the snapshot, but that has expired" in answers["blacklist"].explanation


hosts = st.sampled_from(["x.example", "www.x.example", "a.x.example", "y.example", "192.0.2.7"])
paths = st.sampled_from(["", "a", "a/", "a/b", "a/b?c=1", "ads/x.js"])
urls = st.builds("http://{}{}/{}".format, hosts, st.sampled_from(["", ":81"]), paths)
listed = st.lists(
    st.one_of(
        hosts,
        st.builds(".{}".format, st.sampled_from(["example", "x.example", "y.example"])),
        st.builds("{}/{}".format, hosts, paths),
        st.builds("{}/{}".format, hosts, st.sampled_from(["*", "a/*", "a/b/*"])),
    ),
    max_size=3,
)
adblock_rules = st.lists(
    st.sampled_from(["||x.example^", "@@||x.example/a", "/ads/*$script", "@@/ads/*", "||y.example^$important"]), max_size=3
)
people = st.lists(
    st.builds(
        manual,
        st.sampled_from(ListAction),
        st.just(EntryKind.WILDCARD),
        st.sampled_from(["*.x.example/a*", "*ads*", "y.*"]),
        st.sampled_from([None, NOW, NOW + 1]),
    ),
    max_size=2,
)
entries = st.lists(
    st.builds(entry, st.sampled_from(["x.example/a", ".y.example", "x.example/a/*"]), st.sampled_from(ListAction),
              st.sampled_from(["", "gambling"]), st.sampled_from([NOW, NOW + 1])),
    max_size=3,
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(
    listed, listed, adblock_rules, entries, people, entries, st.booleans(),
    st.sets(st.sampled_from(["phishing", "gambling", "ads", "news"])), st.lists(urls, min_size=1, max_size=4),
)  # fmt: skip
def test_explain_agrees_with_decide(
    black: list[str], white: list[str], adblock: list[str], learned: list[LearnedEntry], rules: list[ManualRule],
    news: list[LearnedEntry], removed: bool, off: set[str], asks: list[str],  # noqa: FBT001 - hypothesis passes it by position
) -> None:  # fmt: skip
    asked = engine(snapshot(black, white, adblock, learned, rules), off=sorted(off))
    kind = ChangeKind.LEARNED_REMOVED if removed else ChangeKind.LEARNED_ADDED
    asked.apply([Change(seq, kind, learned=item) for seq, item in enumerate(news, 1)])
    for text in asks:
        question = request(text)
        verdict = asked.decide(question)
        explanation = asked.explain(question)
        assert explanation.verdict == verdict
        assert [answer.decider for answer in explanation.answers] == [decider.name for decider in DECIDERS]
        first = next(answer for answer in explanation.answers if answer.answer in {"allow", "block"})
        if first.decider == "unknown" and verdict.reason is Reason.ADBLOCK_EXCEPTION:
            assert verdict.rule.startswith("@@")
        assert first.verdict == verdict
        assert {answer.answer for answer in explanation.answers} <= {"allow", "block", "maybe", "miss", "pass", "skipped"}
        assert all(answer.explanation for answer in explanation.answers)


anything = st.text(max_size=30)


@settings(max_examples=30, deadline=None)
@given(st.builds(Url, anything, anything, anything, anything, anything), st.sampled_from(ResourceType), anything, anything)
def test_no_request_that_can_be_built_raises(url: Url, resource_type: ResourceType, method: str, client: str) -> None:
    opened = HOSTILE_TARGET
    asks = Request(url, url, resource_type, method, client)
    assert opened.explain(asks).verdict == opened.decide(asks)


HOSTILE_TARGET = engine(
    snapshot(
        black=[".x.example", "x.example/*"],
        adblock=["||x.example^", "/ads/"],
        rules=[manual(BLOCK, EntryKind.WILDCARD, "*casino*"), manual(BLOCK, EntryKind.REGEX, "ads?[0-9]")],
    )
)


def test_a_url_with_lone_surrogates_is_a_bad_request() -> None:
    asks = Request(Url("http", "x.test", "", "/\ud800", ""))
    assert HOSTILE_TARGET.decide(asks).reason is Reason.BAD_REQUEST
    assert HOSTILE_TARGET.explain(asks).verdict.blocked


@all_cases("host", [".".join("a" * 127), "www." * 60 + "x", "x" * 63 + ".example", "www.", "1.2.3.4", "[::1]"])
def test_odd_hosts_are_decided(host: str) -> None:
    asks = Request(Url("http", host, "", "/" + "a/" * 500, "?" + "q" * 1000))
    assert HOSTILE_TARGET.decide(asks).reason is Reason.UNKNOWN


def test_a_bloom_hit_alone_decides_nothing() -> None:
    """With a filter so coarse that it says "maybe" to half of everything."""
    builder = SnapshotBuilder(error_rate=0.9)
    builder.add_keys(builder.add_source(Source("bad")), [f"site{number}.example/" for number in range(2_000)])
    asked = engine(Snapshot.from_bytes(builder.build()))
    strangers = [f"http://other{number}.example/" for number in range(300)]
    assert any(answer_table(asked, request(url))[1] == ("bloom", "maybe") for url in strangers)
    assert all(asked.decide(request(url)).unknown for url in strangers)
    assert asked.snapshot.blacklist.find(digest_of("site7.example/")) is not None
