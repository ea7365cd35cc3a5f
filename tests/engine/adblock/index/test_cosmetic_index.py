"""Which cosmetic rules work on a host, and the CSS of sites and of pages: `…adblock.index.cosmetic_index`."""

import pytest

from gatewayfilter.engine.adblock.index import cosmetic_index
from gatewayfilter.engine.adblock.index.cosmetic_index import CosmeticIndex, CosmeticRecord, pack_cosmetics, works_on
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_sections
from gatewayfilter.engine.adblock.syntax.cosmetic_rule import read_cosmetic
from gatewayfilter.safe_regex.cost_guard import guard_regex

ALL_ON: frozenset[int] = frozenset()


def index_of(*lines: str, sources: tuple[int, ...] = ()) -> CosmeticIndex:
    records = [
        CosmeticRecord(read_cosmetic(line), line, sources[number] if sources else 0, number) for number, line in enumerate(lines)
    ]
    return CosmeticIndex(SectionReader(memoryview(pack_sections(pack_cosmetics(records)))))


def hide(*selectors: str) -> str:
    return f"{','.join(selectors)}{{display:none!important}}"


def test_the_longest_name_decides() -> None:
    for hosts, host, works in (
        ("a.test", "a.test", True), ("a.test", "b.a.test", True), ("a.test", "ba.test", False), ("", "a.test", True),
        ("a.test,~b.a.test", "a.test", True), ("a.test,~b.a.test", "b.a.test", False), ("a.test,~b.a.test", "c.b.a.test", False),
        ("~a.test,b.a.test", "b.a.test", True), ("~a.test,b.a.test", "a.test", False), ("~a.test", "a.test", False),
        ("~a.test", "b.a.test", False), ("~a.test", "b.test", True), ("/^b/", "b.a.test", True), ("/^b/", "c.test", False),
        ("/^b/,~a.test", "b.a.test", True), ("a.test,~/^b/", "b.a.test", False), ("a.test,~/^b/", "c.a.test", True),
        ("b.a.test,~/^b/", "b.a.test", False), ("a.*", "a.test", True), ("a.*,~a.test", "a.test", False),
        ("a.test,~a.*", "a.test", True), ("/x/,/^b/", "b.test", True), ("~/x/,~/^b/", "b.test", False),
    ):  # fmt: skip
        line = f"{hosts}##.x"
        assert works_on(read_cosmetic(line), host) is works, (hosts, host)
        index = index_of(line)
        looks = index.looks(host, ALL_ON)
        assert looks.css + "".join(index.generic_css(looks.own_chunks, ALL_ON)) == (hide(".x") if works else ""), (hosts, host)


def test_an_expression_is_not_tried_on_a_host_that_is_too_long_for_it() -> None:
    rule = read_cosmetic("/x$/##.x")
    longest = guard_regex("x$").max_length
    assert works_on(rule, "x" * longest) is True
    assert works_on(rule, "x" * (longest + 1)) is False


def test_hidden_ones_stand_before_styles_and_alone_where_they_must() -> None:
    index = index_of("a.test##.s:style(top: 0)", "a.test##.h", "a.test##.n:has(.b)", "a.test##.i", "b.test##.h", "a.test##^.r")
    looks = index.looks("a.test", ALL_ON)
    assert looks.css == f"{hide('.h', '.i')}{hide('.n:has(.b)')}.s{{top:0!important}}"
    assert looks.remove == (".r",)
    assert [(source, line) for source, line, _, _ in looks.rules] == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 5)]
    assert len(index) == 6
    assert index.looks("c.test", ALL_ON).css == ""


def test_a_rule_of_two_lists_is_in_effect_once_while_either_is_on() -> None:
    index = index_of("a.test##.h", "a.test##.h", "a.test#@#.h", sources=(0, 1, 2))
    for off, css, sources in (
        ((), "", []), ((2,), hide(".h"), [0]), ((0, 2), hide(".h"), [1]),
        ((1, 2), hide(".h"), [0]), ((0, 1, 2), "", []), ((0,), "", []),
    ):  # fmt: skip
        looks = index.looks("a.test", frozenset(off))
        assert (looks.css, [source for source, _, _, _ in looks.rules]) == (css, sources), off


def test_an_exception_of_a_site_takes_one_selector_out_of_the_css_of_all_pages() -> None:
    lines = ("##.a", "##.b", "##.c", "a.test#@#.b", "#@#.c", "b.test#@#.c", "c.test#@#.b", "c.test#@#.a", "~d.test##.d")
    index = index_of(*lines)
    for host, selectors in (
        ("x.test", (".a", ".b", ".d")), ("a.test", (".a", ".d")), ("b.test", (".a", ".b", ".d")), ("c.test", (".d",)),
        ("w.a.test", (".a", ".d")), ("d.test", (".a", ".b")),
    ):  # fmt: skip
        assert index.generic_css(index.looks(host, ALL_ON).own_chunks, ALL_ON) == (hide(*selectors), ""), host
    index = index_of("##.a", "a.test#@#.a", "~b.test#@#.a")
    for host, css in (("a.test", ""), ("b.test", hide(".a")), ("c.test", "")):
        assert index.generic_css(index.looks(host, ALL_ON).own_chunks, ALL_ON)[0] == css, host


def test_selectors_and_hosts_of_one_checksum_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosmetic_index, "checksum", len)
    index = index_of("##.a", "##.b", "##.c", "#@#.b", "a.test##.x", "b.test##.y", "c.test#@#.c")
    assert index.generic_css((), ALL_ON)[0] == hide(".a", ".c")
    assert index.looks("a.test", ALL_ON).css == hide(".x")
    assert index.looks("b.test", ALL_ON).css == hide(".y")
    looks = index.looks("c.test", ALL_ON)
    assert (looks.css, index.generic_css(looks.own_chunks, ALL_ON)[0]) == ("", hide(".a"))
