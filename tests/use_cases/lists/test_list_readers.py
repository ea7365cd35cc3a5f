import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.errors import GatewayFilterError, ListError, RuleError, UrlError
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.use_cases.lists.list_readers import read_entries
from gatewayfilter.use_cases.lists.list_writers import COMPLETE_FORMATS, FORMATS, write_entries
from gatewayfilter.use_cases.lists.patterns import read_pattern

BLOCK, ALLOW, SPLICE = ListAction.BLOCK, ListAction.ALLOW, ListAction.SPLICE
EVERY_KIND = [
    (EntryKind.DOMAIN, ".ads.example"),
    (EntryKind.HOST, "one.example"),
    (EntryKind.HOST, "192.0.2.7"),
    (EntryKind.URL, "a.example/x?y=1"),
    (EntryKind.PREFIX, "a.example/z/*"),
    (EntryKind.PREFIX, "b.example/*"),
    (EntryKind.WILDCARD, "*.w.example/x"),
    (EntryKind.WILDCARD, "*.v.example/x*"),
    (EntryKind.WILDCARD, "ads*.example/x"),
    (EntryKind.WILDCARD, "ads*.example/*"),
    (EntryKind.WILDCARD, "*banner*"),
    (EntryKind.REGEX, "track[0-9]+"),
]


def _rules(*actions: ListAction) -> list[ManualRule]:
    return [ManualRule(0, action, kind, pattern) for action in actions for kind, pattern in EVERY_KIND]


def _read(text: str, action: ListAction = BLOCK) -> list[tuple[ListAction, EntryKind, str]]:
    found = read_entries(text, action)
    assert not found.rejected
    return [(rule.action, rule.kind, rule.pattern) for rule in found.rules]


@pytest.mark.parametrize(
    ("line", "entries"),
    [
        ("ads.example", [(BLOCK, EntryKind.DOMAIN, ".ads.example")]),
        ("ads.example  # by Kim", [(BLOCK, EntryKind.DOMAIN, ".ads.example")]),
        ("0.0.0.0 a.example b.example", [(BLOCK, EntryKind.HOST, "a.example"), (BLOCK, EntryKind.HOST, "b.example")]),
        ("127.0.0.1\tlocalhost", []),
        ("::1 ip6-localhost a.example", [(BLOCK, EntryKind.HOST, "a.example")]),
        ("0.0.0.0 0.0.0.0", []),
        ("||ads.example^", [(BLOCK, EntryKind.DOMAIN, ".ads.example")]),
        ("@@||good.example^", [(ALLOW, EntryKind.DOMAIN, ".good.example")]),
        ("address=/ads.example/0.0.0.0", [(BLOCK, EntryKind.DOMAIN, ".ads.example")]),
        ("local=/ads.example/", [(BLOCK, EntryKind.DOMAIN, ".ads.example")]),
        ("server=/good.example/#", [(ALLOW, EntryKind.DOMAIN, ".good.example")]),
        ("# a comment", []),
        ("! another", []),
        ("[Adblock Plus 2.0]", []),
        ("[2001:db8::1]", [(BLOCK, EntryKind.HOST, "[2001:db8::1]")]),
        ("$TTL 300", []),
        ("@ IN SOA localhost. root.localhost. 1 2 3 4 5", []),
        ("@ NS localhost.", []),
        ("; a comment of a zone", []),
        ("ads.example CNAME .", [(BLOCK, EntryKind.HOST, "ads.example")]),
        ("*.ads.example 300 IN CNAME rpz-drop.", [(BLOCK, EntryKind.DOMAIN, ".ads.example")]),
        ("good.example CNAME rpz-passthru. ; why", [(ALLOW, EntryKind.HOST, "good.example")]),
        ("", []),
        ("\ufeffads.example", [(BLOCK, EntryKind.DOMAIN, ".ads.example")]),
    ],
)
def test_lines_of_other_programs_are_read(line: str, entries: list[tuple[ListAction, EntryKind, str]]) -> None:
    assert _read(line) == entries


def test_a_comment_stays_with_its_entry() -> None:
    assert read_entries("a.example # by Kim", BLOCK).rules[0].comment == "by Kim"


_TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=20).map(str.strip)


def _entry(
    *, what: tuple[EntryKind, str], action: ListAction, comment: str, group: str, expires_at: float | None, enabled: bool
) -> ManualRule:
    kind, pattern = what
    said = action if action is not SPLICE or kind in {EntryKind.DOMAIN, EntryKind.HOST} else BLOCK
    return ManualRule(0, said, kind, pattern, comment, group, expires_at, enabled)


_ENTRIES = st.builds(
    _entry,
    what=st.sampled_from(EVERY_KIND),
    action=st.sampled_from(ListAction),
    comment=_TEXTS,
    group=_TEXTS,
    expires_at=st.none() | st.floats(0, 4e9) | st.integers(0, 4_000_000_000).map(float),
    enabled=st.booleans(),
)


@pytest.mark.parametrize("file_format", COMPLETE_FORMATS)
@settings(deadline=None)
@given(rules=st.lists(_ENTRIES, max_size=8))
def test_what_json_and_csv_write_is_read_back_the_same(file_format: str, rules: list[ManualRule]) -> None:
    lines, left_out = write_entries(rules, file_format)
    assert left_out == 0
    for end in ("\n", "\r\n"):
        found = read_entries(end.join(lines), BLOCK)
        assert (found.rules, found.rejected) == (rules, [])


def test_csv_of_a_spreadsheet_is_read() -> None:
    text = '\ufeffpattern;kind;action;comment;expires_at\n.a.example;domain;block;"two; parts";2030-01-31T00:00:00+00:00\n'
    (rule,) = read_entries(text, ALLOW).rules
    assert rule == ManualRule(0, BLOCK, EntryKind.DOMAIN, ".a.example", "two; parts", "", 1896048000.0)


@pytest.mark.parametrize("file_format", ["hosts", "adblock", "dnsmasq", "rpz"])
def test_nobody_else_can_say_splice(file_format: str) -> None:
    lines, left_out = write_entries([ManualRule(0, SPLICE, EntryKind.DOMAIN, ".bank.example")], file_format)
    assert left_out == 1
    assert not any("bank.example" in line for line in lines)


def test_a_zone_says_hosts_both_ways() -> None:
    lines, left_out = write_entries(_rules(BLOCK, ALLOW), "rpz")
    said = {(EntryKind.DOMAIN, ".ads.example"), (EntryKind.HOST, "one.example")}
    assert set(_read("\n".join(lines))) == {(action, kind, pattern) for action in (BLOCK, ALLOW) for kind, pattern in said}
    assert left_out == 2 * (len(EVERY_KIND) - len(said))


def test_adblock_says_everything_both_ways() -> None:
    lines, left_out = write_entries(_rules(BLOCK, ALLOW), "adblock")
    assert left_out == 0
    assert set(_read("\n".join(lines))) == {
        (action, kind, pattern) for action in (BLOCK, ALLOW) for kind, pattern in EVERY_KIND if pattern != "b.example/*"
    } | {(action, EntryKind.HOST, "b.example") for action in (BLOCK, ALLOW)}


@pytest.mark.parametrize(
    ("file_format", "said"),
    [
        ("hosts", {(EntryKind.HOST, "ads.example"), (EntryKind.HOST, "one.example")}),
        ("domains", {(EntryKind.DOMAIN, ".ads.example"), (EntryKind.HOST, "192.0.2.7")}),
        ("dnsmasq", {(EntryKind.DOMAIN, ".ads.example")}),
        ("rpz", {(EntryKind.DOMAIN, ".ads.example"), (EntryKind.HOST, "one.example")}),
    ],
)
def test_other_formats_never_say_more_than_was_meant(file_format: str, said: set[tuple[EntryKind, str]]) -> None:
    lines, left_out = write_entries(_rules(BLOCK), file_format)
    assert {(kind, pattern) for _, kind, pattern in _read("\n".join(lines))} == said
    assert left_out == len(EVERY_KIND) - len(said)


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (EntryKind.URL, "a.example/x*y"),
        (EntryKind.WILDCARD, "ads*.example"),
        (EntryKind.WILDCARD, "*banner*.gif"),
        (EntryKind.WILDCARD, "*a.example/x^*"),
        (EntryKind.WILDCARD, "https://*.example/x"),
    ],
)
def test_adblock_leaves_out_what_it_would_read_differently(kind: EntryKind, pattern: str) -> None:
    assert write_entries([ManualRule(0, BLOCK, kind, pattern)], "adblock") == ([], 1)


@settings(max_examples=300)
@given(st.text("abc*./:?|^$@!#-", min_size=3, max_size=14).filter(lambda text: "*" in text and "**" not in text))
@example("*.tracker.*")
@example("*/x.js")
def test_a_wildcard_is_read_back_from_adblock_or_left_out(text: str) -> None:
    try:
        pattern = read_pattern(text, force=True)
    except (RuleError, UrlError):
        return
    if pattern.kind is EntryKind.WILDCARD:
        lines, left_out = write_entries([ManualRule(0, BLOCK, pattern.kind, pattern.text)], "adblock")
        found = read_entries("\n".join(lines), BLOCK, force=True)
        assert found.rejected == []
        assert {(rule.kind, rule.pattern) for rule in found.rules} == (set() if left_out else {(pattern.kind, pattern.text)})


def test_hosts_knows_no_allow() -> None:
    assert write_entries(_rules(ALLOW), "hosts") == ([], len(EVERY_KIND))


GOOD = '{"action": "block", "kind": "domain", "pattern": ".good.example"}'


@pytest.mark.parametrize(
    "text",
    [
        "good.example\nnot a host\n",
        "good.example\ncom\n",
        "good.example\n||a.example^$third-party\n",
        f'[{GOOD}, {{"kind": "domain"}}]',
        f'[{GOOD}, {{"action": "x", "kind": "url", "pattern": "a.b/"}}]',
        f'[{GOOD}, {{"action": "block", "kind": "url", "pattern": "A.b/"}}]',
        f'[{GOOD}, {{"action": "block", "kind": "regex", "pattern": "("}}]',
        f'[{GOOD}, {{"action": "block", "kind": "domain", "pattern": ".a.b", "expires_at": "soon"}}]',
        f"[{GOOD}, 7]",
    ],
)
def test_a_bad_item_is_counted_and_named_and_the_rest_stays(text: str) -> None:
    found = read_entries(text, BLOCK)
    assert [rule.pattern for rule in found.rules] == [".good.example"]
    ((line, _, why),) = found.rejected
    assert (line, bool(why)) == (2, True)


@pytest.mark.parametrize("text", ['[{"action"', "[{}] x"])
def test_broken_json_is_refused_as_a_whole(text: str) -> None:
    with pytest.raises(ListError):
        read_entries(text, BLOCK)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read_entries(text, BLOCK, force=True)
    except GatewayFilterError:
        return
    for file_format in FORMATS:
        lines, _ = write_entries(found.rules, file_format)
        if file_format == "json":
            assert isinstance(json.loads("\n".join(lines)), list)


@pytest.mark.parametrize(
    ("file_format", "lines", "left_out"),
    [("hosts", [], 1), ("dnsmasq", [], 1), ("adblock", [], 1), ("domains", ["bank.example"], 0)],
)
def test_hosts_that_are_spliced_are_never_written_as_blocked_or_allowed(
    file_format: str, lines: list[str], left_out: int
) -> None:
    rules = [ManualRule(0, ListAction.SPLICE, EntryKind.DOMAIN, ".bank.example")]
    assert write_entries(rules, file_format) == (lines, left_out)
    found = read_entries("\n".join(write_entries(rules, "json")[0]), BLOCK)
    assert [rule.action for rule in found.rules] == [ListAction.SPLICE]
