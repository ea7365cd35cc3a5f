"""Adblock rules on responses: which have a page to change, and which block is cancelled by an exception."""

from collections.abc import Sequence

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import Request, ResourceType, ResponseChange, Source
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

HTML = {"content-type": "text/html"}
VIA = "||x.test^$header=via"


def changed(
    *rules: str,
    status: int = 200,
    kind: ResourceType = ResourceType.DOCUMENT,
    headers: dict[str, str] | None = None,
    off: Sequence[str] = (),
    other: Sequence[str] = (),
) -> ResponseChange | None:
    """Returns what is changed in a response of http://x.test/."""
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_adblock_list(builder.add_source(Source("ads", category="ads")), rules)
    builder.add_adblock_list(builder.add_source(Source("other", category="other")), other)
    engine = FilterEngine(Snapshot.from_bytes(builder.build()), off_categories=off)
    page = None if kind is ResourceType.DOCUMENT else parse_url("http://page.test/")
    return engine.change_response(Request(parse_url("http://x.test/"), page, kind), status, HTML if headers is None else headers)


@all_cases("status", [200, 206, 299, 400, 404, 503])
def test_a_page_is_changed(status: int) -> None:
    assert changed("x.test##.ad", status=status) == changed("x.test##.ad")
    assert changed("x.test##.ad", status=status) is not None


@all_cases("status", [101, 204, 205, 300, 302, 304, 399])
def test_what_has_no_page_is_not_changed(status: int) -> None:
    assert changed("x.test##.ad", status=status) is None
    by_header = changed(VIA, status=status, headers={**HTML, "via": "1"})
    assert by_header is not None
    assert by_header.verdict is not None


@all_cases("kind", [ResourceType.SCRIPT, ResourceType.IMAGE])
def test_only_pages_and_frames_are_changed_where_no_rule_asks_for_responses(kind: ResourceType) -> None:
    assert changed("x.test##.ad", kind=kind) is None
    assert changed("x.test##.ad", kind=ResourceType.SUBDOCUMENT) is not None


@all_cases(
    ("rules", "other", "off", "blocks"),
    [
        ([VIA], [], [], VIA),
        (["||y.test^$header=via"], [], [], ""),
        ([VIA], ["@@||x.test^"], [], ""),
        ([VIA], ["@@||x.test^"], ["other"], VIA),
        ([VIA], ["@@||y.test^"], [], VIA),
        ([VIA], ["||x.test/z"], [], VIA),
        ([f"{VIA},important"], ["@@||x.test^"], [], f"{VIA},important"),
        ([VIA], [], ["ads"], ""),
    ],
)
def test_a_block_by_headers_is_cancelled_by_an_exception(rules: list[str], other: list[str], off: list[str], blocks: str) -> None:
    found = changed(*rules, other=other, off=off, kind=ResourceType.SCRIPT, headers={"via": "1"})
    assert (found.verdict.rule if found is not None and found.verdict is not None else "") == blocks
    assert changed(*rules, other=other, off=off, kind=ResourceType.SCRIPT, headers={}) is None


def test_what_else_is_changed_stays_where_a_block_is_cancelled() -> None:
    found = changed(VIA, "x.test##.ad", "@@||x.test^", headers={**HTML, "via": "1"})
    assert found == changed("! nothing", "x.test##.ad", headers={**HTML, "via": "1"})
    assert found is not None
