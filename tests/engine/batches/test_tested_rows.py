"""The first rules of many requests: both implementations find what the index finds for each."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.compiled import load
from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.index import compiled_rule, rule_table
from gatewayfilter.engine.adblock.index.compiled_rule import tail_test
from gatewayfilter.engine.adblock.index.pattern import compile_tail, tail_begin
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.engine.batches import tested_rows
from gatewayfilter.engine.batches.request_classes import HeadUrl
from gatewayfilter.engine.batches.tested_rows import TestedRows, first_of_each
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import Url, parse_url

COMPILED = load("gatewayfilter.engine.adblock._rule_tests")
LINES = [
    "||a.test/x", "||a.test/x/*end|", "||a.test/é", "||a.test/y^", "||a.test:*/z", "||b.a.test/x$method=post", "/banner/*q",
    "/CaSe/$match-case", "||c.test^", "@@||a.test/xy", "-ad-$script,domain=p.test", "||a.test/w|",
]  # fmt: skip
HOSTS = ["a.test", "b.a.test", "c.test", "d.test"]
paths = st.lists(st.sampled_from([*"/xyzwq?.-", "/x/", "end", "/banner/", "/CaSe/", "-ad-", "%c3%a9"]), max_size=6).map("".join)


def _matcher() -> AdblockMatcher:
    builder = AdblockBuilder()
    builder.add_list(0, LINES)
    return AdblockMatcher(builder.build())


MATCHER = _matcher()


def _rows(urls: list[Url], kinds: list[ResourceType], hits: list[dict[int, list[tuple[int, ...]]]]) -> TestedRows:
    text, begins, ends = b"", [], []
    for url in urls:
        begins.append(len(text))
        text += url.text.lower().encode()
        ends.append(len(text))
        text += b"\n"
    page = parse_url("https://p.test/")
    return TestedRows(
        text,
        begins,
        ends,
        list(range(len(urls))),
        ["p.test"] * len(urls),
        [len(url.scheme) + 3 + len(url.host) for url in urls],
        [
            Request(HeadUrl(url.scheme, url.host), page, kind) if number % 2 else None
            for number, (url, kind) in enumerate(zip(urls, kinds, strict=True))
        ],
        lambda number: Request(urls[number], page, kinds[number], "POST" if number % 3 else "GET"),
        [found.get(0, []) for found in hits],
    )


@given(st.lists(st.tuples(st.sampled_from(HOSTS), paths, st.sampled_from([ResourceType.SCRIPT, ResourceType.IMAGE])), max_size=8))
@settings(max_examples=30)
def test_each_row_gets_the_first_rule_of_the_index(cases: list[tuple[str, str, ResourceType]]) -> None:
    urls = [parse_url(f"https://{host}/{path}") for host, path, _ in cases]
    kinds = [kind for _, _, kind in cases]
    pairs = [MATCHER.pair(url.host, "p.test", kind) for url, kind in zip(urls, kinds, strict=True)]
    for index, name in ((MATCHER.blocks, "blocks"), (MATCHER.exceptions, "exceptions")):
        between = [getattr(pair, name) for pair in pairs]
        rows = _rows(urls, kinds, [])
        rows.hits = [list(index.literals.find(url.text.lower().encode())) for url in urls]
        expected = []
        for number, url in enumerate(urls):
            request = rows.requests[number] or rows.whole(number)
            try:
                expected.append(index.first_of(between[number], request, url.text.lower(), "p.test"))
            except AttributeError:
                expected.append(index.first_of(between[number], rows.whole(number), url.text.lower(), "p.test"))
        assert tested_rows._first_of_each(index, between, rows) == expected
        assert first_of_each(index, between, rows) == expected


@given(st.sampled_from([line for line in LINES if line.startswith("||")]), st.sampled_from(HOSTS), paths)
@settings(max_examples=30)
def test_the_compiled_test_behind_a_host_holds_where_pythons_does(line: str, host: str, path: str) -> None:
    if COMPILED is None:
        pytest.skip("the module is not built")
    (rule,) = parse_line(line).rules
    tail = compile_tail(rule)
    if tail is None:
        assert compiled_rule._tail_test(rule) is None
        return
    compiled = COMPILED.HostTail(tail_begin(rule), None if isinstance(tail, str) else tail)
    for text in (f"https://{host}/{path}", f"https://{host}/{path}é"):  # the second is in no canonical URL
        request = Request(Url("https", host, "", f"/{path}", ""), None, ResourceType.SCRIPT)
        assert compiled(request, text.lower(), "") == tail_test(tail)(request, text.lower(), "")


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@pytest.mark.parametrize("wrong", [{"begins": [-1]}, {"ends": [99]}, {"members": [3]}, {"text": None}, {"hits": []}])
def test_rows_that_do_not_fit_together_are_refused(wrong: dict[str, object]) -> None:
    url = parse_url("https://a.test/x")
    pair = MATCHER.pair("a.test", "p.test", ResourceType.SCRIPT)
    assert pair is not None
    rows = _rows([url], [ResourceType.SCRIPT], [{}])
    for name, value in wrong.items():
        setattr(rows, name, value)
    with pytest.raises((IndexError, ValueError)):
        first_of_each(MATCHER.blocks, [pair.blocks], rows)


def test_the_compiled_module_has_the_flags_of_the_table() -> None:
    source = (Path(compiled_rule.__file__).parents[1] / "_rule_tests.pyx").read_text(encoding="utf-8")
    assert f"NEEDS_TEST = {rule_table.NEEDS_TEST} " in source
    assert f"CANCELLED = {rule_table.CANCELLED}\n" in source
