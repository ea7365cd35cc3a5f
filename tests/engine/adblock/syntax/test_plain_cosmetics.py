"""Cosmetic rules with plain selectors are taken as the strict parser would give them; plain lists of hosts as each host alone."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.syntax.cosmetic_rule import CosmeticRule, read_any_cosmetic, read_cosmetic
from gatewayfilter.engine.adblock.syntax.options import read_host, read_hosts, read_options
from gatewayfilter.engine.adblock.syntax.rule import NO_HOSTS, HostSet
from gatewayfilter.errors import RuleError
from tests.case_tables import all_cases


def _result(read: object, line: str) -> CosmeticRule | str:
    assert callable(read)
    try:
        found = read(line)
    except RuleError as error:
        return f"{type(error).__name__}: {error}"
    assert isinstance(found, CosmeticRule)
    return found


_PIECES = st.sampled_from(
    [
        *("##", "#@#", "#?#", "a.test", ",", "~", "*", "b.*", ".ad", "#ad", "-x", "_y", "1", "--", "div", "[href]", "[a=b]", "."),
        *(
            '[a="b c"]',
            '[a^="x > y"]',
            '[a$="(x)"]',
            '[a*="<"]',
            '[a="\\a"]',
            "[a='b']",
            '[a="é"]',
            '[a="b" i]',
            "[a~=",
            '"',
            "]",
        ),
        *(" ", "  ", ">", " > ", "+", "~", ":hover", ":has(a)", ":if(a)", "::after", "{}", "\\", "^", "(", ")", "é", "\t", "\n"),
    ]
)


@settings(max_examples=30)
@given(st.lists(_PIECES, max_size=10).map("".join) | st.lists(_PIECES, max_size=8).map(lambda found: f"a.test##{''.join(found)}"))
@example("##.ad > .b")
@example('a.test,~b.a.test###a.b[c][d=e][f^="g > h"] + *~ i.j k')
@example("a.test##*")
@example('##a[b=":if(c)"]')
@example("##.a.b .")
@example("A.test##.ad")
@example("a.test,,b.test##.ad")
def test_plain_selectors_are_read_as_any(line: str) -> None:
    assert _result(read_cosmetic, line) == _result(read_any_cosmetic, line)


@all_cases(
    ("line", "text"),
    [
        ("##.ad", ".ad"),
        ("a.test###a > b  ~ c", "#a>b~c"),
        ("a.test##a + b", "a+b"),
        ('##div[id^="x > y"] > a', 'div[id^="x > y"]>a'),
    ],
)
def test_blanks_of_selectors(line: str, text: str) -> None:
    assert read_cosmetic(line).text == text


def test_long_lines_take_linear_time() -> None:
    for body in (".a" * 40_000, "[a]" * 20_000, ".a > " * 20_000, ".a-" * 20_000 + "!", 'a[b="' + "x" * 60_000):
        with pytest.raises(RuleError):
            read_cosmetic(f"##{body}")
    with pytest.raises(RuleError):
        read_cosmetic(f"{'a-.' * 20_000}##.ad")


_HOSTS = st.lists(st.sampled_from(["a.test", "b.a.test", "c.*", "a-b", "_x.test", "x--y.1", "test"]), min_size=1, max_size=5)


@given(_HOSTS, st.lists(st.booleans(), min_size=5, max_size=5))
def test_plain_hosts_are_read_as_each_alone(hosts: list[str], negated: list[bool]) -> None:
    marked = [f"{'~' * no}{host}" for host, no in zip(hosts, negated, strict=False)]
    wanted = frozenset(read_host(host) for host, no in zip(hosts, negated, strict=False) if not no)
    unwanted = frozenset(read_host(host) for host, no in zip(hosts, negated, strict=False) if no)
    expected = tuple(HostSet(found) if found else NO_HOSTS for found in (wanted, unwanted))
    assert read_hosts("|".join(marked)) == expected
    assert read_hosts(f" {'|'.join(marked)} ") == expected
    rule = read_cosmetic(f"{','.join(marked)}##.ad")
    assert (rule.hosts, rule.not_hosts) == expected


@all_cases("text", ["third-party", "~script,3p", "domain=a.test|~b.a.test,important", f"domain={'a' * 80}.test"])
def test_options_read_again_are_the_same(text: str) -> None:
    assert read_options(text) == read_options(text)
    assert read_options(f"{text},image") != read_options(text)
