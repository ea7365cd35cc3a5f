"""Request classes: what is computed once for all requests of one type from one page to one host."""

from gatewayfilter.engine.batches.request_classes import (
    ALLOWS,
    SCANS_BLOCKS,
    SCANS_EXCEPTIONS,
    TESTS,
    RequestClass,
    RequestClasses,
)
from gatewayfilter.engine.deciders import UNKNOWN
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import ListAction, Request, ResourceType, Source
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

PAGE = "http://page.test/"
MANY = [f"||many.test/{number}" for number in range(10)]


def _engine(rules: list[str], black: list[str] | None = None) -> FilterEngine:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), black or [])
    builder.add_keys(builder.add_source(Source("white", ListAction.ALLOW)), [".good.test"])
    builder.add_adblock_list(builder.add_source(Source("ads", category="ads")), rules)
    return FilterEngine(Snapshot.from_bytes(builder.build()), clock=lambda: 1000.0)


def _class(engine: FilterEngine, head: str, page: str = "", kind: ResourceType = ResourceType.SCRIPT) -> RequestClass:
    return RequestClasses(engine.state, engine.clock).of(head, page, kind.value)


LITERAL = _engine(
    ["/banner/*$image", "||shut.test^", "||path.test/x", "@@fine*shut", "||stub.test^$redirect=noopjs"], [".bad.test"]
)
NO_LITERAL = _engine(["||shut.test^", "||path.test/x", "@@||path.test/y"], [".bad.test", "part.test/p/*"])
IMAGE = ResourceType.IMAGE


@all_cases(
    ("engine", "head", "kind", "rule", "does"),
    [
        (LITERAL, "http://a.test", IMAGE, "", ALLOWS | SCANS_BLOCKS),
        (LITERAL, "http://a.test", ResourceType.SCRIPT, "", ALLOWS),
        (LITERAL, "http://good.test", IMAGE, ".good.test", ALLOWS | SCANS_BLOCKS),
        (LITERAL, "http://shut.test", ResourceType.SCRIPT, "||shut.test^", SCANS_EXCEPTIONS),
        (LITERAL, "http://path.test", ResourceType.SCRIPT, "", ALLOWS | TESTS),
        (LITERAL, "http://path.test", IMAGE, "", ALLOWS | SCANS_BLOCKS | TESTS),
        (LITERAL, "http://stub.test", ResourceType.SCRIPT, "", ALLOWS | TESTS),
        (LITERAL, "http://bad.test", ResourceType.SCRIPT, ".bad.test", 0),
        (NO_LITERAL, "http://a.test", ResourceType.SCRIPT, "", ALLOWS),
        (NO_LITERAL, "http://shut.test", ResourceType.SCRIPT, "||shut.test^", 0),
        (NO_LITERAL, "http://path.test", ResourceType.SCRIPT, "", ALLOWS | TESTS),
        (NO_LITERAL, "https://www.bad.test", ResourceType.SCRIPT, ".bad.test", 0),
    ],
)
def test_a_class_has_a_verdict_and_what_has_to_be_done_before_it_stands(
    engine: FilterEngine, head: str, kind: ResourceType, rule: str, does: int
) -> None:
    found = _class(engine, head, PAGE, kind)
    assert found.verdict is not None
    assert (found.verdict.rule, found.does) == (rule, does)
    assert (found.head, found.page, found.kind) == (head, parse_url(PAGE), kind)


def test_a_class_of_a_host_with_prefixes_is_decided_one_by_one() -> None:
    found = _class(NO_LITERAL, "http://part.test", PAGE)
    assert (found.verdict, found.pair, found.does, found.page) == (None, None, 0, parse_url(PAGE))


def test_a_page_that_another_one_links_is_decided_one_by_one() -> None:
    linked = _class(LITERAL, "http://a.test", PAGE, ResourceType.DOCUMENT)
    assert (linked.verdict, linked.pair, linked.does) == (None, None, 0)
    alone = _class(LITERAL, "http://a.test", "", ResourceType.DOCUMENT)
    assert (alone.verdict, alone.page, alone.does) == (UNKNOWN, None, ALLOWS)


def test_stubs_are_possible_where_a_rule_names_one() -> None:
    assert _class(LITERAL, "http://stub.test", PAGE).stubs
    assert not _class(LITERAL, "http://shut.test", PAGE).stubs


def test_what_stands_for_all_has_scheme_and_host() -> None:
    shared = _class(LITERAL, "https://path.test", PAGE).shared
    assert shared is not None
    assert (shared.url.scheme, shared.url.host, shared.url.netloc, shared.url.port) == ("https", "path.test", "path.test", "")
    assert (shared.source, shared.resource_type, shared.method) == (parse_url(PAGE), ResourceType.SCRIPT, "GET")
    assert not hasattr(shared.url, "path")
    assert _class(NO_LITERAL, "https://a.test", PAGE).shared is None


def test_a_class_is_made_once() -> None:
    classes = RequestClasses(LITERAL.state, LITERAL.clock)
    assert classes.of("http://a.test", PAGE, "image") is classes.of("http://a.test", PAGE, "image")
    assert classes.of("http://a.test", PAGE, "image") is not classes.of("http://a.test", PAGE, "script")
    assert classes.of("http://a.test", PAGE, "image") is not classes.of("http://a.test", "", "image")


def test_the_verdicts_of_the_first_rules_are_kept() -> None:
    engine = _engine(MANY)
    classes = RequestClasses(engine.state, engine.clock)
    of = classes.of("http://many.test", PAGE, "image")
    rules = {}
    for number in range(10):
        request = Request(parse_url(f"http://many.test/{number}"), parse_url(PAGE), IMAGE)
        assert of.pair is not None
        rule = engine.state.adblock.first_block(of.pair, request, request.url.text, None)
        for _ in range(2):
            verdict = classes.block_verdict(of, rule, request)
            assert verdict is not None
            assert verdict.rule == f"||many.test/{number}"
        rules[rule] = verdict
    assert len(rules) == 10
    assert of.blocks == dict(list(rules.items())[:8])


def test_a_stub_is_that_of_the_request() -> None:
    engine = _engine(["||stub.test^", "||stub.test/a$redirect-rule=noopjs"])
    classes = RequestClasses(engine.state, engine.clock)
    of = classes.of("http://stub.test", PAGE, "script")
    assert of.pair is not None
    for path, stub in (("/a", "noopjs"), ("/b", ""), ("/a", "noopjs")):
        request = Request(parse_url(f"http://stub.test{path}"), parse_url(PAGE), ResourceType.SCRIPT)
        rule = engine.state.adblock.first_block(of.pair, request, request.url.text, None)
        assert classes.block_verdict(of, rule, request) == engine.decide(request)
        verdict = classes.block_verdict(of, rule, request)
        assert verdict is not None
        assert verdict.stub == stub
    assert not of.blocks


def test_a_page_that_suspends_rules_leaves_the_block_to_the_engine() -> None:
    engine = _engine(["@@||calm.test^$genericblock", "||shut.test^"])
    classes = RequestClasses(engine.state, engine.clock)
    request = Request(parse_url("http://shut.test/"), parse_url("http://calm.test/"), IMAGE)
    of = classes.of("http://shut.test", "http://calm.test/", "image")
    assert of.pair is not None
    assert classes.block_verdict(of, of.pair.blocks.certain, request) is None
    assert of.verdict is not None
    assert not of.verdict.blocked
    assert of.does & TESTS
    other = classes.of("http://shut.test", "", "image")
    assert other.verdict == classes.block_verdict(other, of.pair.blocks.certain, request)
    assert other.does == 0
