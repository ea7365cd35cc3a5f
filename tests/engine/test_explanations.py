"""The sentences of `check` on each decider's finding."""

from collections.abc import Sequence

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, ManualRule, Request, ResourceType, Source
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

BLOCK, ALLOW = ListAction.BLOCK, ListAction.ALLOW
PAGE = "http://x.test/page"


def told(
    url: str = PAGE,
    kind: ResourceType = ResourceType.SCRIPT,
    *,
    black: Sequence[str] = (),
    white: Sequence[str] = (),
    adblock: Sequence[str] = (),
    learned: Sequence[LearnedEntry] = (),
    rules: Sequence[ManualRule] = (),
    off: Sequence[str] = (),
) -> dict[str, tuple[str, str]]:
    """Returns answer and sentence of each decider."""
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("bad", BLOCK, "phishing")), black)
    builder.add_keys(builder.add_source(Source("plain", BLOCK)), [".plain.test"])
    builder.add_keys(builder.add_source(Source("good", ALLOW, "news")), white)
    builder.add_adblock_list(builder.add_source(Source("ads", BLOCK, "ads")), adblock)
    builder.add_adblock_list(
        builder.add_source(Source("more", BLOCK, "annoyances")), ["||x.test/pag"] if "annoyances" in off else []
    )
    builder.add_learned(learned)
    builder.set_rules(rules)
    engine = FilterEngine(Snapshot.from_bytes(builder.build()), off_categories=off, clock=lambda: 1000.0)
    page = parse_url("http://page.test/") if kind is not ResourceType.DOCUMENT else None
    explained = engine.explain(Request(parse_url(url), page, kind))
    return {answer.decider: (answer.answer, answer.explanation) for answer in explained.answers}


def rule(pattern: str, action: ListAction = BLOCK, kind: EntryKind = EntryKind.DOMAIN, *, enabled: bool = True) -> ManualRule:
    return ManualRule(1, action, kind, pattern, enabled=enabled)


NO_RULE = "none of your own rules covers this URL"


@all_cases(
    ("rules", "answer", "sentence"),
    [
        ([], "miss", NO_RULE),
        ([rule(".y.test")], "miss", NO_RULE),
        ([rule(".x.test")], "block", "a person's rule blocks .x.test"),
        ([rule(".x.test", ALLOW)], "allow", "a person's rule allows .x.test"),
        ([rule("pag[e]", kind=EntryKind.REGEX)], "block", "a person's rule blocks /pag[e]/"),
        ([rule(".x.test"), rule("x.test/page", kind=EntryKind.URL)], "block", None),
        ([rule(".x.test", enabled=False)], "miss", f"{NO_RULE}; switched off: .x.test"),
        (
            [rule(f"*x.test/p{'*' * number}ge", kind=EntryKind.WILDCARD, enabled=False) for number in range(1, 6)],
            "miss",
            f"{NO_RULE}; switched off: *x.test/p*ge, *x.test/p**ge, *x.test/p***ge",
        ),
    ],
)
def test_rules_of_people(rules: list[ManualRule], answer: str, sentence: str | None) -> None:
    found = told(rules=rules)["manual"]
    assert found[0] == answer
    if sentence is None:
        assert found[1].endswith("; 1 more of people's rules cover it")
    else:
        assert found[1] == sentence


def test_keys_are_counted() -> None:
    assert told()["bloom"] == ("miss", "none of 4 keys of this URL is on any list")
    assert told(black=["x.test/page", ".x.test"])["bloom"] == ("maybe", "2 of 4 keys may be listed: x.test/page, .x.test")


@all_cases(
    ("url", "black", "off", "answer", "sentence"),
    [
        (PAGE, [".x.test"], [], "block", "bad (phishing) lists .x.test"),
        ("http://plain.test/", [], [], "block", "plain lists .plain.test"),
        (PAGE, [], [], "skipped", "the quick look found that no list has it"),
        (PAGE, [".x.test"], ["phishing"], "pass", "bad lists .x.test, but its category phishing is switched off"),
    ],
)
def test_entries_of_a_list(url: str, black: list[str], off: list[str], answer: str, sentence: str) -> None:
    assert told(url, black=black, off=off)["blacklist"] == (answer, sentence)


def test_an_entry_of_the_other_list_is_none_of_this_one() -> None:
    found = told(white=[".x.test"])
    assert found["blacklist"] == ("miss", "no key of this URL is on the blacklist")
    assert found["whitelist"] == ("allow", "good (news) lists .x.test")
    assert told(black=[".x.test"])["whitelist"] == ("miss", "no key of this URL is on the whitelist")


def test_the_evidence_of_a_learned_entry_is_shown() -> None:
    entry = LearnedEntry("x.test/page", BLOCK, "gambling", PAGE, "score 9", 0.0, 2000.0)
    assert told(learned=[entry])["blacklist"] == ("block", "learned:gambling (gambling) lists x.test/page: score 9")


@all_cases(
    ("rules", "answer", "sentence"),
    [
        ([], "miss", "no rule in force blocks it"),
        (["||y.test^"], "miss", "no rule in force blocks it"),
        (["||x.test^"], "block", "||x.test^ of ads, line 1 blocks it"),
        (["! comment", "||x.test^$redirect=noopjs"], "block", None),
        (
            ["||x.test^", "||x.test/page$important"],
            "block",
            "||x.test^ of ads, line 1 blocks it; also matching: ||x.test/page$important (ads, line 2, important)",
        ),
        (["||x.test^", "/page$script"], "block", "||x.test^ of ads, line 1 blocks it; also matching: /page$script (ads, line 2)"),
        (
            ["||x.test^", "@@||x.test^"],
            "pass",
            "the exception @@||x.test^ of ads, line 2, lifts a block; also matching: ||x.test^ (ads, line 1)",
        ),
    ],
)  # fmt: skip
def test_adblock_rules(rules: list[str], answer: str, sentence: str | None) -> None:
    found = told(adblock=rules)["adblock"]
    assert found[0] == answer
    if sentence is None:
        assert found[1].startswith(
            "||x.test^$redirect=noopjs of ads, line 2 blocks it, the stub noopjs stands in for it; the stub is "
        )
    else:
        assert found[1] == sentence


@all_cases(("count", "more"), [(20, ""), (21, ""), (22, " and 1 more"), (24, " and 3 more")])
def test_at_most_twenty_rules_are_named_besides(count: int, more: str) -> None:
    answer, sentence = told(adblock=["||x.test^", *(f"/pa{'*' * number}ge" for number in range(1, count))])["adblock"]
    assert answer == "block"
    assert sentence.endswith(more or ")")
    assert sentence.count("(ads, line") == min(count - 1, 20)


def test_rules_of_categories_that_are_off_are_counted() -> None:
    off = "; 1 matching rules belong to categories that are switched off"
    assert told(off=["annoyances"])["adblock"] == ("pass", f"no rule in force blocks it{off}")
    assert told(off=["annoyances"], adblock=["||x.test^"])["adblock"] == ("block", f"||x.test^ of ads, line 1 blocks it{off}")


@all_cases(
    ("rules", "url", "part"),
    [
        (["||x.test^$removeparam=a"], f"{PAGE}?a=1", f"; it asks for {PAGE} instead: "),
        (["x.test##.ad"], PAGE, "; of a page it would change the response: "),
        (["||x.test^$header=via"], PAGE, "; it hangs on the response's headers or its server's address: ||x.test^$header=via ("),
        (["@@||x.test^$generichide"], PAGE, " on this page: @@||x.test^$generichide (ads, line 1)"),
    ],
)
def test_changes_of_a_page_are_told(rules: list[str], url: str, part: str) -> None:
    assert part in told(url, ResourceType.DOCUMENT, adblock=rules)["adblock"][1]


@all_cases(
    ("url", "black", "answer", "sentence"),
    [
        (PAGE, [], "miss", "this URL has one spelling"),
        (f"{PAGE};a", [], "miss", f"nothing blocks other spellings of this URL: {PAGE}"),
        (f"{PAGE};a", ["x.test/page"], "block", "another spelling of this URL is blocked: x.test/page of bad"),
    ],
)
def test_other_spellings(url: str, black: list[str], answer: str, sentence: str) -> None:
    assert told(url, black=black)["spellings"] == (answer, sentence)


def test_a_rule_of_a_person_for_another_spelling_has_no_list() -> None:
    found = told(f"{PAGE};a", rules=[rule("x.test/page", kind=EntryKind.URL)])
    assert found["spellings"] == ("block", "another spelling of this URL is blocked: x.test/page")
    assert found["unknown"] == ("allow", "URLs on no list are allowed, and offered to the crawler")
