"""Lines that block one whole host: which are, what the parser makes of all lines, and that the compiled twin agrees."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.compiled import load
from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.syntax.parser import find_plain_host
from tests.case_tables import all_cases

LABEL = "a" * 63
CASES = {
    "||a.test^": "a.test",
    "||a.test^\n": "a.test",
    "||a.test^\r\n": "a.test",
    "||a-b.c_d.1.test^": "a-b.c_d.1.test",
    "||xn--a.test^": "xn--a.test",
    f"||{'a' * 300}.test^": f"{'a' * 300}.test",
    "0.0.0.0 a.test": "a.test",
    "127.0.0.1 _a.b-c.test\n": "_a.b-c.test",
    f"0.0.0.0 {LABEL}.test": f"{LABEL}.test",
    f"0.0.0.0 {'a.' * 120}test": f"{'a.' * 120}test",
    f"0.0.0.0 {'a.' * 119}ab.test": "",  # of 253 characters, so it goes the long way
    "||test^": "",
    "||a.test": "",
    "||a.test^^": "",
    "||a.test^$script": "",
    "||a.test/x": "",
    "||a..test^": "",
    "||.test^": "",
    "||a.test.^": "",
    "||-a.test^": "",
    "||a-.test^": "",
    "||_a.test^": "",
    "||A.test^": "",
    "||a.tést^": "",
    "||a.test^\n\n": "",
    "||a.test^\0": "",
    "|| a.test^": "",
    "@@||a.test^": "",
    "|a.test^": "",
    "||": "",
    "||^": "",
    "": "",
    "0": "",
    "0.0.0.0 test": "",
    "0.0.0.0  a.test": "",
    "0.0.0.0\ta.test": "",
    "0.0.0.0 a.test # x": "",
    "0.0.0.0 a.test b.test": "",
    "0.0.0.0 a.test1": "",
    "0.0.0.0 a.1": "",
    "0.0.0.0 xn--a.test": "",
    "0.0.0.0 a.xn--a": "",
    "0.0.0.0 a.xn--b.test": "",
    "0.0.0.0 -a.test": "",
    "0.0.0.0 a-.test": "",
    f"0.0.0.0 {LABEL}a.test": "",
    f"0.0.0.0 a.{'t' * 22}": "",
    f"0.0.0.0 {'a.' * 130}test": "",
    "0.0.0.0 localhost.localdomain": "",
    "0.0.0.1 a.test": "",
    "127.0.0.1a.test": "",
    "::1 a.test": "",
}


def _ways() -> list[object]:
    compiled = load("gatewayfilter.engine.adblock.syntax._plain_lines")
    return [find_plain_host] if compiled is None else [find_plain_host, compiled.plain_host]


@all_cases("way", _ways())
@all_cases(("line", "host"), CASES.items())
def test_hosts_of_plain_lines(way: object, line: str, host: str) -> None:
    assert callable(way)
    assert way(line) == host


def test_the_longest_line() -> None:
    for extra, host in ((0, True), (1, False)):
        line = f"||{'a' * (65_536 - 5 + extra)}.b^"
        assert len(line) == 65_536 + extra
        for way in _ways():
            assert callable(way)
            assert bool(way(line)) is host


_PIECES = st.sampled_from(
    [
        "||",
        "|",
        "^",
        ".",
        "-",
        "_",
        "a",
        "z9",
        "xn--",
        "0.0.0.0 ",
        "127.0.0.1 ",
        "\r",
        "\n",
        "A",
        "é",
        "\0",
        "/",
        " ",
        "a" * 62,
        "a" * 22,
    ]
)


@settings(max_examples=30)
@given(st.lists(_PIECES, max_size=12).map("".join) | st.text(max_size=40))
def test_the_compiled_twin_finds_the_same(line: str) -> None:
    compiled = load("gatewayfilter.engine.adblock.syntax._plain_lines")
    if compiled is None:
        pytest.skip("the module is not built")
    assert compiled.plain_host(line) == find_plain_host(line)


@all_cases("line", [line for line, host in CASES.items() if host])
def test_plain_rules_are_compiled_as_those_that_are_parsed(line: str) -> None:
    """A blank before the line makes the parser read it, with the same rule."""
    plain, parsed = AdblockBuilder(), AdblockBuilder()
    lines = ["||b.test^$badfilter", line, line, "||co.uk^", "||b.test^", "!#if false", line, "!#endif"]
    reports = [plain.add_list(3, lines), parsed.add_list(3, [each if each.startswith("!") else f" {each}" for each in lines])]
    assert reports[0] == reports[1]
    assert (reports[0].accepted, reports[0].duplicates, reports[0].refused, reports[0].comments) == (3, 1, 1, 3)
    assert plain.build() == parsed.build()
    assert plain.named_sites() == parsed.named_sites() == {}


def test_plain_rules_of_registry_suffixes_are_judged() -> None:
    report = AdblockBuilder().add_list(0, ["||co.uk^", "0.0.0.0 com.cn", "||a.co.uk^"])
    assert (report.accepted, report.refused) == (1, 2)
    assert AdblockBuilder(judge=False).add_list(0, ["||co.uk^"]).accepted == 1


def test_badfilters_cancel_plain_rules() -> None:
    builder = AdblockBuilder()
    builder.add_list(0, ["||a.test^", "0.0.0.0 a.test", "||b.test^"])
    builder.add_list(1, ["||a.test^$all,badfilter", "||c.test^"])
    parsed = AdblockBuilder()
    parsed.add_list(0, [" ||a.test^", " 0.0.0.0 a.test", " ||b.test^"])
    parsed.add_list(1, ["||a.test^$all,badfilter", " ||c.test^"])
    assert builder.build() == parsed.build()
    assert AdblockMatcher(builder.build()).rule_count == 4
