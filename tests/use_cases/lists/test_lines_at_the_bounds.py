"""Lines of other programs, rules in JSON and CSV, and tests of rules: the forms that are rare, and the bounds."""

import json
from typing import Any

import pytest

from gatewayfilter.errors import ListError, RuleError
from gatewayfilter.model import EntryKind, ListAction, LogRecord
from gatewayfilter.store import Store
from gatewayfilter.use_cases.lists.list_readers import read_entries
from gatewayfilter.use_cases.lists.list_search import SearchResult
from gatewayfilter.use_cases.lists.patterns import read_pattern
from gatewayfilter.use_cases.lists.rule_tester import TestedKind, column_of, try_rules

BLOCK, ALLOW, SPLICE = ListAction.BLOCK, ListAction.ALLOW, ListAction.SPLICE
DOMAIN, HOST, URL, PREFIX, WILDCARD = EntryKind.DOMAIN, EntryKind.HOST, EntryKind.URL, EntryKind.PREFIX, EntryKind.WILDCARD


def read(text: str, action: ListAction = BLOCK, **options: Any) -> list[tuple[ListAction, EntryKind, str]]:
    found = read_entries(text, action, **options)
    assert found.rejected == []
    return [(rule.action, rule.kind, rule.pattern) for rule in found.rules]


@pytest.mark.parametrize(
    ("line", "kind", "pattern"),
    [
        ("|http://a.example^", HOST, "a.example"),
        ("|https://a.example/x^", PREFIX, "a.example/x/*"),
        ("|http://a.example/x|", URL, "a.example/x"),
        ("|http://a*.example/x|", WILDCARD, "a*.example/x"),
        ("|http://a.example/x", WILDCARD, "a.example/x*"),
        ("*banner/x|", WILDCARD, "*banner/x"),
        ("||a.example/x|", WILDCARD, "*.a.example/x"),
        ("||a.example/x*", WILDCARD, "*.a.example/x*"),
        ("||a.example/x", WILDCARD, "*.a.example/x*"),
        ("||tracker.", WILDCARD, "*.tracker.*"),
        ("a.example/x", URL, "a.example/x"),
    ],
)
def test_simple_adblock_rules(line: str, kind: EntryKind, pattern: str) -> None:
    assert [one[1:] for one in read(line, force=True)] == [(kind, pattern)]
    assert {one[0] for one in read(f"@@{line}", force=True)} == {ALLOW}


@pytest.mark.parametrize(
    ("line", "entries"),
    [
        ("server=/a.example/192.0.2.1", [(BLOCK, DOMAIN, ".a.example")]),
        ("local=/a.example/#", [(BLOCK, DOMAIN, ".a.example")]),
        ("0.0.0.0 0.1.example localhost broadcasthost", []),
        (":: a.example", [(BLOCK, HOST, "a.example")]),
        ("a.example. CNAME .", [(BLOCK, HOST, "a.example")]),
        ("a.example cname RPZ-PASSTHRU.", [(ALLOW, HOST, "a.example")]),
        ("*.a.example CNAME *.", [(BLOCK, DOMAIN, ".a.example")]),
        ("0.0.0.0 LOCALHOST a.example", [(BLOCK, HOST, "a.example")]),
    ],
)
def test_lines_of_resolvers(line: str, entries: list[tuple[ListAction, EntryKind, str]]) -> None:
    assert read(line) == entries


def test_a_zone_has_one_entry_for_a_host_and_those_below_it() -> None:
    zone = "a.example CNAME .\n*.a.example CNAME .\nb.example CNAME .\n*.b.example CNAME rpz-passthru.\n"
    assert read(zone) == [(BLOCK, DOMAIN, ".a.example"), (BLOCK, HOST, "b.example"), (ALLOW, DOMAIN, ".b.example")]
    assert read("0.0.0.0 a.example\n||a.example^") == [(BLOCK, HOST, "a.example"), (BLOCK, DOMAIN, ".a.example")]


def test_the_comment_of_a_line_is_not_part_of_it() -> None:
    (rule,) = read_entries("  a.example  #  by  Kim # twice ", BLOCK).rules
    assert (rule.pattern, rule.comment, rule.rule_id, rule.enabled, rule.expires_at) == (
        *(".a.example", "by  Kim # twice", 0, True, None),
    )


def test_the_number_of_entries_and_bad_lines_is_bounded() -> None:
    text = "a.example\n((\nb.example\n"
    assert len(read_entries(text, BLOCK, most=3).rules) == 2
    with pytest.raises(ListError, match="more than 2 lines"):
        read_entries(text, BLOCK, most=2)


def test_progress_is_told_now_and_then() -> None:
    told: list[int] = []
    read_entries("\n".join(f"h{number}.example" for number in range(2_500)), BLOCK, report=told.append)
    assert told == [1_000, 2_000]


def test_a_bad_line_is_told_with_its_number_and_shortened() -> None:
    (rejected,) = read_entries(f"\n\n({'x' * 300}\n", BLOCK).rejected
    assert (rejected[0], len(rejected[1])) == (3, 200)


def entry(**values: Any) -> str:
    return json.dumps([{"action": "block", "kind": "domain", "pattern": ".a.example", **values}])


@pytest.mark.parametrize(
    ("values", "expires_at"),
    [
        ({}, None),
        ({"expires_at": None}, None),
        ({"expires_at": ""}, None),
        ({"expires_at": 5}, 5.0),
        ({"expires_at": "5.5"}, 5.5),
        ({"expires_at": "1e3"}, 1_000.0),
        ({"expires_at": "1e-3"}, 0.001),
        ({"expires_at": "-7"}, -7.0),
        ({"expires_at": "1970-01-01T00:00:10+00:00"}, 10.0),
    ],
)
def test_when_an_entry_ends(values: dict[str, Any], expires_at: float | None) -> None:
    (rule,) = read_entries(entry(**values), BLOCK).rules
    assert rule.expires_at == expires_at


@pytest.mark.parametrize(
    "values",
    [
        {"expires_at": "soon"}, {"expires_at": []}, {"expires_at": float("nan")}, {"expires_at": "inf"}, {"expires_at": "-inf"},
        {"expires_at": "2030-99-99"}, {"scope": "everybody"}, {"action": "splice", "kind": "url", "pattern": "a.example/x"},
        {"kind": "host"}, {"pattern": "a.example"}, {"kind": "domain", "pattern": ".com"},
    ],
)  # fmt: skip
def test_objects_that_are_no_entry(values: dict[str, Any]) -> None:
    found = read_entries(entry(**values), BLOCK)
    assert (found.rules, [position for position, _, _ in found.rejected]) == ([], [1])


@pytest.mark.parametrize(
    ("given", "enabled"),
    [("yes", True), ("", True), (None, True), (True, True), ("no", False), (" OFF ", False), ("0", False), (False, False)],
)
def test_which_entries_are_on(given: object, *, enabled: bool) -> None:
    (rule,) = read_entries(entry(enabled=given), BLOCK).rules
    assert rule.enabled is enabled


@pytest.mark.parametrize("scope", ["client:kim", "group:kids", "", None])
def test_for_whom_an_entry_is(scope: str | None) -> None:
    (rule,) = read_entries(entry(scope=scope, comment=None, group="mine"), ALLOW).rules
    assert (rule.action, rule.scope, rule.comment, rule.group) == (BLOCK, scope or "", "", "mine")


def test_hosts_may_pass_unread_in_files() -> None:
    for kind, pattern in (("domain", ".a.example"), ("host", "a.example")):
        (rule,) = read_entries(entry(action="splice", kind=kind, pattern=pattern), BLOCK).rules
        assert rule.action is SPLICE


def test_csv_has_a_head_in_any_order() -> None:
    text = '"kind","pattern","action"\ndomain,.a.example,allow\nhost,x y,block\n'
    found = read_entries(text, BLOCK)
    assert [(rule.action, rule.pattern) for rule in found.rules] == [(ALLOW, ".a.example")]
    assert [line for line, _, _ in found.rejected] == [3]
    assert read_entries("kind,pattern\ndomain,.a.example\n", BLOCK).rules == [], "no head: lines"
    with pytest.raises(ListError, match="begins like CSV and is not: line 1"):
        read_entries(f"action,kind,pattern\n{'x' * 200_000}", BLOCK)


@pytest.mark.parametrize("text", ['[["a"]]', "[7]", "[null]", '["a.example", {}]'])
def test_arrays_hold_objects_or_texts(text: str) -> None:
    found = read_entries(text.replace("[7]", '["b.example", 7]').replace("[null]", '["b.example", null]'), BLOCK)
    assert found.rejected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a.example, b.example", "part several by spaces, not commas"),
        ("300.1.2.3", "is no valid IP address"),
        ("||a.example^$script", "an Adblock rule with options: write it to a file"),
        ("*ads*$important", "an Adblock rule with options: write it to a file"),
        ("https://a.example/ad.js$~image,domain=b.example", "an Adblock rule with options: write it to a file"),
    ],
)
def test_what_was_meant_is_told(text: str, sentence: str) -> None:
    with pytest.raises(RuleError, match=sentence):
        read_pattern(text)
    with pytest.raises(RuleError) as caught:
        read_pattern("((")
    assert sentence not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "error", "column"),
    [
        ("abcdef", "not supported: def", 4),
        ("abcabc", "not supported: abc", 4),
        ("abc", "abc", 0),
        ("(x", "missing ) at position 0", 1),
        ("/(/", "missing ) at position 0", 2),
        ("xy'z", "unknown 'z'", 4),
        ('a "b"', 'unknown "b"', 4),
        ("abc", "unknown 'abc', near 'b'", 2),
    ],
)
def test_where_in_a_line_an_error_is(text: str, error: str, column: int) -> None:
    assert column_of(text, error) == column


def test_a_line_is_tried_on_what_was_requested_lately(store: Store) -> None:
    def visit(url: str, kind: str = "script") -> LogRecord:
        return LogRecord(1.0, "10.0.0.1", "GET", url, kind, "allow", "unknown")

    hosts = [f"h{number}.ads.example" for number in range(7) for _ in range(7 - number)]
    store.log.write([visit(f"http://{host}/a.js") for host in hosts])
    store.log.write([visit("http://ads.example/a.png", "image"), visit("http://[", "image"), visit("http://x.example/", "odd")])
    own, adblock, comment = try_rules("ads.example\n||ads.example^$script\n# no rule", "", BLOCK, store).lines
    assert (own.logged, own.hosts) == (29, tuple(f"h{number}.ads.example" for number in range(5)))
    assert (adblock.logged, adblock.tried, comment.kind) == (28, (), TestedKind.COMMENT)
    assert try_rules("ads.example", "", BLOCK, store).looked_at == 30
    assert try_rules("ads.example", "", BLOCK).looked_at == 0


def test_lines_are_numbered_and_tried_up_to_the_bound() -> None:
    found = try_rules("a.example\n" * 50, "a.example\n" * 50, BLOCK)
    assert ([line.line for line in found.lines], len(found.urls)) == (list(range(1, 51)), 50)
    assert try_rules("#".ljust(20_000), "", BLOCK).lines
    with pytest.raises(RuleError):
        try_rules("#".ljust(20_001), "", BLOCK)


@pytest.mark.parametrize(
    ("lines", "action", "outcome"),
    [
        ("a.example", BLOCK, BLOCK),
        ("a.example", SPLICE, SPLICE),
        ("a.example\n@@a.example", SPLICE, ALLOW),
        ("b.example", BLOCK, None),
        ("||a.example^$third-party", BLOCK, BLOCK),
        ("@@||a.example^$image\na.example", BLOCK, ALLOW),
    ],
)
def test_what_all_lines_do_together(lines: str, action: ListAction, outcome: ListAction | None) -> None:
    (url,) = try_rules(lines, "a.example", action).urls
    assert (url.url, url.action) == ("http://a.example/", outcome)


@pytest.mark.parametrize(
    ("line", "tried"),
    [
        ("a.example/x?y", ["https://a.example/x?y", "http://a.example/x?y&q=1", "https://a.example/x?y/below"]),
        ("a.example/x/", ["https://a.example/x/", "http://a.example/x/?q=1", "https://a.example/x/below"]),
        ("[2001:db8::1]", ["https://[2001:db8::1]/", "https://[2001:db8::1]/page"]),
        ("a.example:8443/*", ["https://a.example:8443/", "https://a.example:8443/page?q=1", "https://a.example/"]),
        ("*banner*", []),
    ],
)
def test_examples_of_patterns(line: str, tried: list[str]) -> None:
    (found,) = try_rules(line, "", BLOCK).lines
    assert [one.url for one in found.tried] == tried


@pytest.mark.parametrize(
    ("line", "error", "column"),
    [
        ("/a{1000}{1000}/$image", "the regular expression has nothing to repeat", 0),
        ("||a.example^$domain=/(/", "the regular expression has an unmatched '('", 22),
        ("/x(?P<n>a)(?P=n)/$script", "the regular expression has a group that is not supported", 0),
        ("||com^$script", "it would block most of the web", 0),
        ("@@||*^$script", "it would switch off blocking on most of the web", 0),
    ],
)
def test_adblock_rules_that_no_list_could_hold(line: str, error: str, column: int) -> None:
    (found,) = try_rules(line, "", BLOCK).lines
    assert (found.kind, found.error, found.column, found.action) == (TestedKind.WRONG, error, column, None)


def test_a_line_that_ends_like_an_adblock_rule_is_a_wildcard_by_force() -> None:
    line = "*.a.example/ad*$third-party"
    (refused,) = read_entries(line, BLOCK).rejected
    assert refused == (1, line, "an Adblock rule with options: add the file as a source instead")
    assert (
        [rule.pattern for rule in read_entries(line, BLOCK, force=True).rules] == [read_pattern(line, force=True).text] == [line]
    )
    (tested,) = try_rules(line, "", BLOCK).lines
    assert tested.kind is TestedKind.ADBLOCK
    for text in ("*cash$money*", "/x$domain=/", "https://a.example/?$5", "*.a.example/$scripts*"):
        assert read_pattern(text).text, text


@pytest.mark.parametrize(
    ("found", "anything"),
    [((), False), (("own",), True), (("learned",), True), (("lists",), True), (("unreadable",), False)],
)
def test_whether_anything_was_found(found: tuple[str, ...], *, anything: bool) -> None:
    nothing: dict[str, Any] = dict.fromkeys(("own", "learned", "lists", "unreadable"), ())
    assert bool(SearchResult(**nothing | dict.fromkeys(found, ("something",)))) is anything
