"""EasyList and EasyPrivacy on real requests, against the verdicts on which three other engines agree."""

import json
import os
from pathlib import Path

import pytest

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import Url, parse_url
from tests.engine.adblock.paper_scheme import PaperScheme

DATA = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (DATA / "requests" / "consensus.jsonl").is_file(),
        reason="real lists and requests are not here: set GATEWAYFILTER_TEST_DATA to their folder",
    ),
]


def page_of(text: str) -> Url | None:
    try:
        return parse_url(text)
    except UrlError:
        return None


@pytest.fixture(scope="module")
def blob() -> bytes:
    builder = AdblockBuilder()
    for source, name in enumerate(("easylist.txt", "easyprivacy.txt")):
        with (DATA / "lists" / name).open(encoding="utf-8") as lines:
            report = builder.add_list(source, lines)
        assert report.accepted > 45_000
        assert report.rejected == 0
    return builder.build()


@pytest.fixture(scope="module")
def cases() -> list[tuple[Request, bool]]:
    found = []
    with (DATA / "requests" / "consensus.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            request = Request(parse_url(case["url"]), page_of(case["source"]), ResourceType(case["type"]))
            found.append((request, case["expected"] == "block"))
    return found


def blocks(matcher: AdblockMatcher, request: Request) -> bool:
    match = matcher.match(request)
    return match is not None and not match.exception


def test_agreement_with_other_engines(blob: bytes, cases: list[tuple[Request, bool]]) -> None:
    matcher = AdblockMatcher(blob)
    different = [request.url.text for request, expected in cases if blocks(matcher, request) is not expected]
    assert len(different) <= len(cases) // 1_000, different[:20]


def test_the_paper_scheme_agrees_on_real_requests(cases: list[tuple[Request, bool]]) -> None:
    builder = AdblockBuilder()
    with (DATA / "lists" / "easyprivacy.txt").open(encoding="utf-8") as lines:
        builder.add_list(0, (line for number, line in enumerate(lines) if number % 4 == 0))
    with (DATA / "lists" / "easylist.txt").open(encoding="utf-8") as lines:
        builder.add_list(1, (line for line in lines if not line.startswith("||")))
    blob = builder.build()
    matcher = AdblockMatcher(blob)
    scheme = PaperScheme(blob)
    sample = [request for request, _ in cases[::7]]
    assert any(blocks(matcher, request) for request in sample)
    assert [request.url.text for request in sample if blocks(matcher, request) is not blocks(scheme, request)] == []


def test_match_all_holds_the_winner(blob: bytes, cases: list[tuple[Request, bool]]) -> None:
    matcher = AdblockMatcher(blob)
    for request, _ in cases[::13]:
        winner = matcher.match(request)
        found = matcher.match_all(request)
        if winner is not None:
            assert found
            assert winner in found
            assert found[0].exception is winner.exception


@pytest.mark.parametrize("path", sorted((DATA / "lists").rglob("*.txt")), ids=lambda path: path.name)
def test_real_lists_are_understood(path: Path) -> None:
    with path.open(encoding="utf-8", errors="replace") as lines:
        report = AdblockBuilder().add_list(0, lines)
    assert report.accepted + report.cosmetic > 0
    assert report.rejected <= 5
