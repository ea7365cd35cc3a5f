"""match_batch gives the verdicts of decide, record by record."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import UrlError
from gatewayfilter.model import EntryKind, ListAction, ManualRule, Request, Source
from gatewayfilter.model.values.resource_types import TYPES_BY_NAME
from gatewayfilter.scaleout.stream.batch import RECORD, VERDICT, decide_batch, match_batch
from gatewayfilter.scaleout.stream.rule_set import RuleSet
from gatewayfilter.urls import parse_url


def _engine(rules: list[ManualRule], black: list[str], white: list[str]) -> FilterEngine:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), black)
    builder.add_keys(builder.add_source(Source("white", ListAction.ALLOW)), white)
    ads = builder.add_source(Source("ads", category="ads"))
    builder.add_adblock_list(
        ads,
        [
            "||ads.test^$third-party", "/banner/*$image", "@@||ads.test/fine$script", "/post^$method=post", "||good.test/q^",
            "||stub.test^$redirect=noopjs", "||shut.test^", "@@fine*shut$script", "@@||calm.test^$genericblock", "||calm.test^",
            "/CaSe/$match-case", "||h2.test/p/q^", "@@/noB/$match-case", "/nob/",
        ],
    )  # fmt: skip
    builder.set_rules(rules)
    return FilterEngine(Snapshot.from_bytes(builder.build()), clock=lambda: 1000.0)


BLACK = [".bad.test", "h1.test/p/*", "h2.test/x"]
PLAIN = _engine([], BLACK, [".good.test"])
MANUAL = _engine([ManualRule(1, ListAction.ALLOW, EntryKind.DOMAIN, ".bad.test", expires_at=2000.0)], BLACK, [".good.test"])
RULES = _engine([], [], [])
PAGE = _engine([], ["h2.test/p/q"], [])
ALLOWED = _engine([], [], ["h2.test/x"])

hosts = st.sampled_from(
    [
        "bad.test",
        "stub.test",
        "shut.test",
        "calm.test",
        "a.bad.test",
        "h1.test",
        "h2.test",
        "good.test",
        "ads.test",
        "例.test",
        "[::1]",
        "-",
        "",
    ]
)
paths = st.sampled_from(
    [
        "",
        "/",
        "/x",
        "/p/q",
        "/p/./q",
        "/banner/1",
        "/fine",
        "/post",
        "/%78",
        "/p//q;v=1",
        "/x#f",
        "/x/",
        "/fine-shut",
        "/q",
        "/q?a=%41",
        "/x?b=%2d",
        "/x?",
        "/CaSe/",
        "/case/",
        "/noB/1",
        "/nob/1",
    ]
)
urls = st.one_of(st.builds("{}://{}{}".format, st.sampled_from(["http", "https", "ftp"]), hosts, paths), st.text(max_size=9))
records = st.lists(
    st.fixed_dictionaries(
        {
            "url": st.none() | urls,
            "source": st.none() | urls,
            "type": st.none() | st.sampled_from(["script", "IMAGE", "xhr", "document", "?"]),
            "method": st.none() | st.sampled_from(["GET", "POST"]),
            "client": st.none() | st.just("192.0.2.1"),
        }
    ),
    max_size=12,
)


def _page(text: str | None) -> Any:
    try:
        return parse_url(text) if text else None
    except UrlError:
        return None


def _one_by_one(engine: FilterEngine, record: dict[str, Any]) -> tuple[Any, ...]:
    if record["url"] is None:
        return (None, None, None, None, None, "no url")
    try:
        url = parse_url(record["url"])
    except UrlError as error:
        return (None, None, None, None, None, str(error)[:300])
    kind = TYPES_BY_NAME.get((record["type"] or "").lower(), TYPES_BY_NAME["other"])
    verdict = engine.decide(Request(url, _page(record["source"]), kind, record["method"] or "GET", record["client"] or ""))
    return (verdict.action, verdict.reason, verdict.rule, verdict.source_list, verdict.category, None)


@pytest.mark.parametrize("engine", [PLAIN, MANUAL, RULES, PAGE, ALLOWED])
@given(rows=records)
@settings(max_examples=30)
def test_verdicts_are_those_of_decide(engine: FilterEngine, rows: list[dict[str, Any]]) -> None:
    batch = pa.RecordBatch.from_pylist(
        rows, schema=pa.schema([RECORD.field(name) for name in ("url", "source", "type", "method", "client")])
    )
    rules = RuleSet.of_engine(engine, "v1")
    for _ in range(2):  # the second time from the memory
        decided = match_batch(batch, rules).to_pylist()
        names = [name for name in VERDICT.names if name != "rules_version"]
        assert [tuple(row[name] for name in names) for row in decided] == [_one_by_one(engine, row) for row in rows]
        assert {row["rules_version"] for row in decided} <= {"v1"}


def test_other_columns_stay_and_old_verdicts_are_replaced() -> None:
    batch = pa.RecordBatch.from_pydict({"id": [7, 8], "url": ["http://bad.test/", "http://x.test/"], "action": ["?", "?"]})
    found = match_batch(batch, RuleSet.of_engine(PLAIN, "v")).to_pydict()
    assert found["id"] == [7, 8]
    assert found["action"] == ["block", "allow"]
    assert found["category"] == ["gambling", ""]


def test_only_what_decides_is_copied_for_the_rows_that_are_left() -> None:
    """Arrow takes no rows of some types of columns, which a batch may have all the same."""
    other = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([5]))
    urls = pa.array(["http://bad.test/%78", "no URL"])
    batch = pa.RecordBatch.from_arrays([urls, other, other], names=["url", "run", "run"])
    found = match_batch(batch, RuleSet.of_engine(PLAIN, "v"))
    assert (found["action"].to_pylist(), found.column(1).to_pylist()) == (["block", None], [5, 5])


@pytest.mark.parametrize(("columns", "why"), [({"uri": ["x"]}, "no column url"), ({"url": [1]}, "int64, not text")])
def test_records_without_urls_are_refused(columns: dict[str, list[Any]], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        match_batch(pa.RecordBatch.from_pydict(columns), RuleSet.of_engine(PLAIN, "v"))


def test_time_changes_what_time_decides() -> None:
    """A manual rule that expires is not remembered."""
    now = [1000.0]
    engine = FilterEngine(MANUAL.snapshot, clock=lambda: now[0])
    batch, rules = pa.RecordBatch.from_pydict({"url": ["http://bad.test/"]}), RuleSet.of_engine(engine, "v")
    assert match_batch(batch, rules)["reason"].to_pylist() == ["manual-allow"]
    now[0] = 3000.0
    assert match_batch(batch, rules)["reason"].to_pylist() == ["blacklist"]


def test_dictionaries_of_verdicts_have_each_text_once() -> None:
    """Another dictionary would be written to Parquet as plain text."""
    urls = ["http://bad.test/1", "http://a.test/", "http://b.test/", "no url", "ftp://x/"]
    rules = RuleSet.of_engine(PLAIN)
    decided = decide_batch(pa.RecordBatch.from_pylist([{"url": url} for url in urls]), rules)
    columns = dict(zip(VERDICT.names, decided.dictionaries("v1"), strict=True))
    for column in columns.values():
        column.validate(full=True)
        texts = column.dictionary.to_pylist()
        assert len(set(texts)) == len(texts)
    assert [column.to_pylist() for column in columns.values()] == [column.to_pylist() for column in decided.columns("v1")]
    assert columns["action"].to_pylist()[3:] == [None, None]
    assert columns["error"].to_pylist()[:3] == [None] * 3
