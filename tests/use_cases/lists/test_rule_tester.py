import pytest

from gatewayfilter.errors import RuleError, UrlError
from gatewayfilter.model import ListAction
from gatewayfilter.store import Store
from gatewayfilter.use_cases.lists.rule_tester import TestedKind, column_of, try_rules

BLOCK, ALLOW = ListAction.BLOCK, ListAction.ALLOW


@pytest.mark.parametrize(
    ("line", "kind", "action"),
    [
        ("ads.example", TestedKind.RULE, BLOCK),
        ("@@||ads.example^", TestedKind.RULE, ALLOW),
        ("/ads?[0-9]+/", TestedKind.RULE, BLOCK),
        ("*.cdn.*/banner*", TestedKind.RULE, BLOCK),
        ("||ads.example^$script,third-party", TestedKind.ADBLOCK, BLOCK),
        ("@@||ads.example^$image", TestedKind.ADBLOCK, ALLOW),
        ("example.com##.ad", TestedKind.HIDING, None),
        ("! a comment", TestedKind.COMMENT, None),
        ("", TestedKind.COMMENT, None),
        ("a,b", TestedKind.WRONG, None),
        ("||ads.example^$nonsense", TestedKind.WRONG, None),
        ("/(/", TestedKind.WRONG, None),
        ("<script>alert(1)</script>", TestedKind.WRONG, None),
        ("\u202egnp.exe", TestedKind.WRONG, None),
    ],
)
def test_what_a_line_is(line: str, kind: TestedKind, action: ListAction | None) -> None:
    (found,) = try_rules(line or " ", "", BLOCK).lines
    assert (found.kind, found.action) == (kind, action)
    assert bool(found.error) == (kind is TestedKind.WRONG)


def test_each_line_is_tried_on_each_address_and_allow_wins() -> None:
    found = try_rules(
        "shop.example\n@@||shop.example/fine^\n||ads.example^$script",
        "shop.example/x\nshop.example/fine\nads.example/a.js",
        BLOCK,
    )
    assert [[tried.applies for tried in line.tried] for line in found.lines] == [
        [True, True, False],
        [False, True, False],
        [False, False, True],
    ]
    assert [outcome.action for outcome in found.urls] == [BLOCK, ALLOW, BLOCK]


@pytest.mark.parametrize(
    ("line", "applies"),
    [
        ("a.example", [True, True, False]),
        ("|a.example", [True, False]),
        ("a.example/path/*", [True, True, False]),
        ("a.example/page", [True, True, False]),
        ("192.0.2.1", [True, True]),
        ("a.example:8443", [True, True, False]),
    ],
)
def test_examples_show_where_a_pattern_ends(line: str, applies: list[bool]) -> None:
    (found,) = try_rules(line, "", BLOCK).lines
    assert [tried.applies for tried in found.tried] == applies, found.tried


def test_a_broad_line_is_marked() -> None:
    assert [line.broad for line in try_rules("com\na.example\n*", "", BLOCK).lines] == [True, False, True]


@pytest.mark.parametrize(
    ("text", "error", "column"),
    [
        ("||a.example^$nonsense", "unknown option 'nonsense'", 14),
        ("/a(/", "missing ), unterminated subpattern at position 1", 3),
        ("abc", "no place at all", 0),
        ("/a/", "at position 99", 3),
    ],
)
def test_an_error_has_its_place(text: str, error: str, column: int) -> None:
    assert column_of(text, error) == column


def test_a_test_is_bounded(store: Store) -> None:
    with pytest.raises(RuleError, match="at most 50 lines"):
        try_rules("a.example\n" * 51, "", BLOCK, store)
    with pytest.raises(RuleError, match="at most 50 lines"):
        try_rules("a" * 20_001, "", BLOCK, store)
    with pytest.raises(RuleError, match="at most 50 addresses"):
        try_rules("a.example", "a.example\n" * 51, BLOCK, store)
    with pytest.raises(UrlError):
        try_rules("a.example", "no address", BLOCK, store)
    assert try_rules("", "", BLOCK, store).lines == ()
