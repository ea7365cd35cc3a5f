"""Batches: what is decided of them without the engine, by which entry or rule, and what is left to the engine."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gatewayfilter.engine.batches.batch_decider import LONGEST, LONGEST_PAGE, UNDECIDED, BatchDecider, Column, RequestColumns
from gatewayfilter.engine.batches.plain_urls import read_plain
from gatewayfilter.engine.batches.request_classes import RequestClasses
from gatewayfilter.engine.batches.verdict_table import VerdictTable
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import (
    Change,
    ChangeKind,
    EntryKind,
    LearnedEntry,
    ListAction,
    ManualRule,
    Policy,
    PolicySet,
    Request,
    ResourceType,
    Source,
)
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

THIRD_PARTY = "||ads.test^$third-party"
RULES = (
    THIRD_PARTY, "/banner/*$image", "@@||ads.test/fine$script", "/post^$method=post", "||good.test/q^",
    "||stub.test^$redirect=noopjs", "||shut.test^", "@@fine*shut$script", "@@||calm.test^$genericblock", "||calm.test^",
    "||hide.test/secret", "||mixed.test^", "||mixed.test/a$redirect-rule=noopjs", "/sourced$domain=page.test",
)  # fmt: skip
LEFT = "left to the engine"
UNLISTED = "unknown"


@dataclass(frozen=True, slots=True)
class Row:
    url: str
    page: str = ""
    kind: ResourceType = ResourceType.SCRIPT
    method: str = "GET"

    def request(self) -> Request:
        return Request(parse_url(self.url), parse_url(self.page) if self.page else None, self.kind, self.method)


def _engine(
    black: Sequence[str] = (), white: Sequence[str] = (), rules: Sequence[str] = RULES, manual: Sequence[ManualRule] = (),
    policies: Sequence[Policy] = (), off: Sequence[str] = (),
) -> FilterEngine:  # fmt: skip
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), black)
    builder.add_keys(builder.add_source(Source("white", ListAction.ALLOW)), white)
    builder.add_adblock_list(builder.add_source(Source("ads", category="ads")), rules)
    builder.set_rules(manual)
    builder.set_policies(PolicySet.of(policies))
    return FilterEngine(Snapshot.from_bytes(builder.build()), off_categories=off, clock=lambda: 1000.0)


LISTED = _engine([".bad.test", "bad.test/z", "h1.test/p/*", "h2.test/x", "h3.test/dir"], [".good.test"])
RULES_ONLY = _engine()
PAGE = "http://page.test/"
IMAGE = ResourceType.IMAGE
DOCUMENT = ResourceType.DOCUMENT


def _columns(rows: Sequence[Row], *, hashed: bool) -> RequestColumns:
    texts = [row.url.encode() for row in rows]
    begins = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    pages, kinds, methods = (sorted({getattr(row, name) for row in rows}) for name in ("page", "kind", "method"))
    text = b"".join(texts)
    return RequestColumns(
        read_plain(text, begins, hashed=hashed),
        text,
        begins,
        Column(
            np.array([pages.index(row.page) for row in rows], np.int32), [parse_url(page) if page else None for page in pages]
        ),
        Column(np.array([kinds.index(row.kind) for row in rows], np.int32), kinds),
        Column(np.array([methods.index(row.method) for row in rows], np.int32), methods),
    )


def _decide(engine: FilterEngine, rows: Sequence[Row]) -> list[str]:
    """Returns the rule or the reason of the verdict on each request, or that it is left; what is decided is as `decide` does."""
    decider, verdicts = BatchDecider(engine), VerdictTable()
    batch = _columns(rows, hashed=decider.wants_digests)
    told = []
    for row, number in zip(rows, decider.decide(batch, verdicts).tolist(), strict=True):
        if number == UNDECIDED:
            told.append(LEFT)
            continue
        verdict = verdicts.verdicts[number]
        assert verdict == engine.decide(row.request()), row
        told.append(verdict.rule or verdict.reason.value)
    return told


# (case, URL and what caused it, decided with lists of URLs, decided by rules alone)
CASES: list[tuple[str, Row, str, str]] = [
    ("on no list", Row("http://a.test/"), UNLISTED, UNLISTED),
    ("a listed host", Row("http://www.bad.test/x"), ".bad.test", UNLISTED),
    ("a listed host, other spelling", Row("http://bad.test/x;y"), ".bad.test", UNLISTED),
    ("a listed host, listed under another spelling", Row("http://bad.test/z;y"), ".bad.test", UNLISTED),
    ("an allowed host", Row("http://good.test/x"), ".good.test", UNLISTED),
    ("an allowed host, a rule", Row("http://good.test/q"), "||good.test/q^", "||good.test/q^"),
    ("prefixes of the host", Row("http://h1.test/a"), LEFT, UNLISTED),
    ("a listed page", Row("http://h2.test/x"), LEFT, UNLISTED),
    ("beside it", Row("http://h2.test/xy"), UNLISTED, UNLISTED),
    ("a slash behind it", Row("http://h3.test/dir/"), LEFT, UNLISTED),
    ("slashes behind it", Row("http://h3.test/dir//"), LEFT, UNLISTED),
    ("a slash and a query behind it", Row("http://h3.test/dir/?a"), UNLISTED, UNLISTED),
    ("a slash behind another page", Row("http://h3.test/other/"), UNLISTED, UNLISTED),
    ("slashes alone", Row("http://h3.test//"), UNLISTED, UNLISTED),
    ("another spelling of it", Row("http://h2.test/x;y"), LEFT, UNLISTED),
    ("a spelling whose slash is too much", Row("http://h3.test/dir/;y"), LEFT, UNLISTED),
    ("an odd escape, which is not in the key", Row("http://h2.test/%78"), LEFT, UNLISTED),
    ("an odd escape elsewhere", Row("http://h2.test/%79%79"), UNLISTED, UNLISTED),
    ("an empty query, which is not in the key", Row("http://h2.test/x?"), LEFT, UNLISTED),
    ("an empty query elsewhere", Row("http://h2.test/y?"), UNLISTED, UNLISTED),
    ("another spelling of what a rule blocks", Row("http://hide.test/x//../secret"), LEFT, LEFT),
    ("a double slash before what a rule blocks", Row("http://hide.test//secret"), LEFT, LEFT),
    ("a double slash elsewhere", Row("http://hide.test//public"), UNLISTED, UNLISTED),
    ("a double slash behind it", Row("http://hide.test/secret//x"), "||hide.test/secret", "||hide.test/secret"),
    ("no URL", Row("http://"), LEFT, LEFT),
    ("a host in capitals", Row("http://A.test/"), LEFT, LEFT),
    ("no host name", Row("http://a..test/"), LEFT, LEFT),
    ("third party", Row("http://ads.test/x", PAGE), THIRD_PARTY, THIRD_PARTY),
    ("first party", Row("http://ads.test/x", "http://ads.test/"), UNLISTED, UNLISTED),
    ("an exception", Row("http://ads.test/fine", PAGE), LEFT, LEFT),
    ("an exception for another type", Row("http://ads.test/fine", PAGE, IMAGE), THIRD_PARTY, THIRD_PARTY),
    ("a literal", Row("http://a.test/banner/1", kind=IMAGE), "/banner/*$image", "/banner/*$image"),
    ("a literal at the end", Row("http://a.test/banner/", kind=IMAGE), "/banner/*$image", "/banner/*$image"),
    ("a literal and a page", Row("http://a.test/sourced", PAGE), "/sourced$domain=page.test", "/sourced$domain=page.test"),
    ("a literal and another page", Row("http://a.test/sourced", "http://b.test/"), UNLISTED, UNLISTED),
    ("a literal for another type", Row("http://a.test/banner/1"), UNLISTED, UNLISTED),
    ("a method", Row("http://a.test/post", method="POST"), "/post^$method=post", "/post^$method=post"),
    ("another method", Row("http://a.test/post"), UNLISTED, UNLISTED),
    ("a stub", Row("http://stub.test/x"), "||stub.test^$redirect=noopjs", "||stub.test^$redirect=noopjs"),
    ("all of a host", Row("http://shut.test/x"), "||shut.test^", "||shut.test^"),
    ("all of a host, other spelling", Row("http://shut.test/x;y"), "||shut.test^", "||shut.test^"),
    ("a host with a stub for a page", Row("http://mixed.test/a"), "||mixed.test^", "||mixed.test^"),
    ("a host with a stub for a page, elsewhere", Row("http://mixed.test/b"), "||mixed.test^", "||mixed.test^"),
    ("all of a host but for a literal", Row("http://shut.test/fine-shut"), LEFT, LEFT),
    ("a page that calms rules", Row("http://calm.test/banner/", "http://calm.test/", IMAGE), LEFT, LEFT),
    ("another page", Row("http://calm.test/x", PAGE, IMAGE), "||calm.test^", "||calm.test^"),
    ("a page with a link from another one", Row("http://shut.test/", PAGE, DOCUMENT), LEFT, LEFT),
    ("a page by itself", Row("http://a.test/", kind=DOCUMENT), UNLISTED, UNLISTED),
]  # fmt: skip


@all_cases(("case", "row", "with_lists", "by_rules"), CASES)
def test_what_is_decided_in_batches(case: str, row: Row, with_lists: str, by_rules: str) -> None:
    assert (_decide(LISTED, [row]), _decide(RULES_ONLY, [row])) == ([with_lists], [by_rules]), case


@all_cases(("engine", "column"), [(LISTED, 2), (RULES_ONLY, 3)])
def test_a_row_is_decided_as_it_is_alone(engine: FilterEngine, column: int) -> None:
    cases = [case for case in CASES for _ in range(2)]
    for some in (cases, cases[::-1]):
        assert _decide(engine, [case[1] for case in some]) == [case[column] for case in some]


@all_cases(
    ("row", "expected"),
    [
        (Row("http://a.test/" + "a" * (LONGEST - 14)), UNLISTED),
        (Row("http://a.test/" + "a" * (LONGEST - 13)), LEFT),
        (Row("http://a.test/%78" + "a" * LONGEST), LEFT),
        (Row("http://a.test/", "http://b.test/" + "a" * (LONGEST_PAGE - 14)), UNLISTED),
        (Row("http://a.test/", "http://b.test/" + "a" * (LONGEST_PAGE - 13)), LEFT),
    ],
)
def test_long_urls_and_pages_are_left(row: Row, expected: str) -> None:
    assert _decide(RULES_ONLY, [row]) == [expected]
    assert _decide(LISTED, [row]) == [expected]


def test_each_row_counts_where_urls_are_many_megabytes() -> None:
    """The first and the last row of each part of them, too."""
    tail = "a" * (LONGEST - 30)
    rows = [Row(f"http://a.test/{'banner/' if number % 8 else 'b'}{tail}", kind=IMAGE) for number in range(1_100)]
    expected = ["/banner/*$image" if number % 8 else UNLISTED for number in range(1_100)]
    assert _decide(RULES_ONLY, rows) == expected
    assert _decide(RULES_ONLY, rows[::-1]) == expected[::-1]


@all_cases(
    ("engine", "url", "expected"),
    [
        (_engine(["h2.test/x"], rules=()), "http://h2.test/x;y", LEFT),
        (_engine(["h2.test/x"], rules=()), "http://h2.test/z;y", UNLISTED),
        (_engine(rules=()), "http://h2.test/x;y", UNLISTED),
        (_engine(rules=["||one.test/x"]), "http://one.test/x", "||one.test/x"),
        (_engine(rules=["||one.test/x"]), "http://one.test//x", LEFT),
        (_engine(rules=["||one.test/x"]), "http://one.test//y", UNLISTED),
        (_engine(rules=["@@||one.test/x", "||one.test/x"]), "http://one.test/x", LEFT),
    ],
)
def test_few_rules_or_none(engine: FilterEngine, url: str, expected: str) -> None:
    assert _decide(engine, [Row(url)]) == [expected]


BLOCKED = [Row("http://shut.test/x"), Row("http://bad.test/")]
RULE = ManualRule(1, ListAction.ALLOW, EntryKind.DOMAIN, ".x.test")


@all_cases(
    ("case", "engine", "expected"),
    [
        ("lists", _engine([".bad.test"]), ["||shut.test^", ".bad.test"]),
        ("policies", _engine([".bad.test"], policies=[Policy("default", block_all=True)]), [LEFT, LEFT]),
        ("manual rules", _engine([".bad.test"], manual=[RULE]), [LEFT, LEFT]),
        ("other rules off", _engine([".bad.test"], off=["games"]), ["||shut.test^", ".bad.test"]),
    ],
)
def test_lists_that_anything_may_outrank_decide_no_batch(case: str, engine: FilterEngine, expected: list[str]) -> None:
    assert _decide(engine, BLOCKED) == expected, case


def test_entries_learned_since_the_snapshot_leave_all_to_the_engine() -> None:
    engine = _engine([".bad.test"])
    entry = LearnedEntry("h.test/a", ListAction.BLOCK, "gambling", "http://h.test/a", "", 0.0, 2000.0)
    engine.apply([Change(1, ChangeKind.LEARNED_ADDED, learned=entry)])
    assert _decide(engine, BLOCKED) == [LEFT, LEFT]


def test_digests_are_wanted_where_lists_have_entries() -> None:
    assert BatchDecider(_engine([".bad.test"])).wants_digests
    assert BatchDecider(_engine((), [".good.test"])).wants_digests
    assert not BatchDecider(RULES_ONLY).wants_digests, "hosts that rules name have markers in the tables"
    assert not BatchDecider(_engine((), (), ())).wants_digests


def test_no_requests_have_no_verdicts() -> None:
    assert _decide(RULES_ONLY, []) == _decide(LISTED, []) == []


def test_a_request_is_read_from_its_columns() -> None:
    rows = [Row("http://a.test/x?y"), Row("https://b.test/", PAGE, IMAGE, "POST")]
    for some in (rows, rows[1:]):
        batch = _columns(some, hashed=True)
        classes = RequestClasses(RULES_ONLY.state, lambda: 1000.0)
        for number, row in enumerate(some):
            head, _, _ = row.url.rpartition("/")
            assert batch.request(number, classes.of(head, row.page, row.kind.value)) == row.request()
