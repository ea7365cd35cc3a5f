"""What must hold of the Adblock engine for any input; driven by hypothesis (test_adblock_fuzz.py) and atheris (fuzz.py).

Each check takes raw input and raises where the engine does: an exception that is not one of its own, an index that finds other
rules than trying every one, or the paper's scheme with another verdict.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from gatewayfilter.cli.bulk.json_lines import Batch
from gatewayfilter.cli.filter.jsonl_requests import RequestLines
from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.effects import AdblockEffects
from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule
from gatewayfilter.engine.adblock.index.literal_scan import available_scanners, make_scan
from gatewayfilter.engine.adblock.matcher import AdblockMatcher, request_bits
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import SnapshotError, UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.scaleout.stream.deciding import RecordDecider
from gatewayfilter.urls import Url, parse_url
from tests.engine.adblock.paper_scheme import PaperScheme

KINDS = tuple(ResourceType)

LINES = (
    "||ads.example^",
    "||ads.example.com/banner*.js$script,third-party",
    "/adserver/*$domain=a.net|~b.net",
    "@@||ads.example/fine^$~third-party",
    "-ad-300x600px.",
    "|https://track.",
    r"/\/ads?\d+\.(js|gif)/$match-case",
    "*$image,to=b.net",
    "&banner=|",
    "@@/good-*.js$important",
    "||cdn.*^pixel^$method=post",
    "0.0.0.0 casino.example",
    "||example.net^$removeparam=utm_source",
    "||example.net^$csp=script-src 'none'",
)
"""Rules of every kind, for requests of any shape."""

URLS = (
    "https://ads.example/banner.js",
    "http://www.ads.example.com/banner1.JS?ad=1#x",
    "https://a.net/adserver/x-ad-300x600px.gif",
    "https://track.b.net:8443/ads12.js?%61d=%2e&banner=",
    "wss://casino.example/good-x.js",
)
"""Requests of every kind, for lists of any shape."""


def _page(text: str) -> Url | None:
    try:
        return parse_url(text)
    except UrlError:
        return None


def _kind(data: str | bytes) -> ResourceType:
    return KINDS[len(data) % len(KINDS)]


@cache
def _requests() -> tuple[Request, ...]:
    return tuple(
        Request(parse_url(url), _page(source), kind)
        for url in URLS
        for source, kind in (("https://a.net/", ResourceType.SCRIPT), ("", ResourceType.IMAGE), (url, ResourceType.DOCUMENT))
    )


def _blocked_naively(lines: list[str], asked: Request) -> tuple[bool, bool]:
    """Tries every rule; returns whether one blocks and whether an exception matches."""
    bits, source = request_bits(asked)
    lowered = asked.url.text.lower()
    found = [
        rule.exception
        for line in lines
        for rule in parse_line(line).rules
        if not rule.modifier and not rule.badfilter and rule.mask & bits and CompiledRule(rule).matches(asked, lowered, source)
    ]
    return False in found, True in found


def _agree(matcher: AdblockMatcher, scheme: AdblockMatcher, lines: list[str], asked: Request) -> None:
    """Holds the default index and the paper's against trying every rule; case tables have `$important` and `$badfilter`."""
    match = matcher.match(asked)
    paper = scheme.match(asked)
    got = (match is not None, match is not None and match.exception)
    assert got == (paper is not None, paper is not None and paper.exception), (lines, asked.url.text, "paper")
    if any("important" in line or "badfilter" in line for line in lines):
        return
    blocks, excepts = _blocked_naively(lines, asked)
    assert got == (blocks, blocks and excepts), (lines, asked.url.text, "naive")


def check_list(text: str) -> None:
    """Any list: every line is counted once, compiles, and is found by every way of looking for it."""
    lines = text.encode(errors="replace").decode().split("\n")
    assert AdblockBuilder(judge=False).add_list(0, text.split("\n")) == AdblockBuilder(judge=False).add_list(0, lines)
    builder = AdblockBuilder(judge=False)
    builder.add_list(0, lines)
    blob = builder.build()
    matcher, scheme, effects = AdblockMatcher(blob), PaperScheme(blob, 4), AdblockEffects(blob)
    active = [] if any(line.startswith("!#") for line in lines) else lines
    for asked in _requests():
        if active:
            _agree(matcher, scheme, active, asked)
        matcher.match_all(asked)
        effects.change_request(asked, ["list"])
        effects.stub(asked)


@cache
def _fixed() -> tuple[AdblockMatcher, PaperScheme]:
    builder = AdblockBuilder(judge=False)
    builder.add_list(0, LINES)
    blob = builder.build()
    return AdblockMatcher(blob), PaperScheme(blob)


def check_url(text: str) -> None:
    """Any URL and source: read or refused, and judged alike by every way of looking."""
    target, _, source = text.partition("\n")
    try:
        url = parse_url(target)
    except UrlError:
        return
    matcher, scheme = _fixed()
    asked = Request(url, _page(source), _kind(text), "POST" if len(source) % 2 else "GET")
    bits, page = request_bits(asked)
    lowered = url.text.lower()
    for line in LINES:
        for rule in parse_line(line).rules:
            compiled = CompiledRule(rule)
            rest = compiled.between(url.host, page)
            settled = rest if isinstance(rest, bool) else rest(asked, lowered, page)
            assert settled == compiled.matches(asked, lowered, page), (line, text)
    assert bits
    match, paper = matcher.match(asked), scheme.match(asked)
    assert (match is None) == (paper is None), text
    assert match is None or paper is None or match.exception == paper.exception, text


def check_literals(data: bytes) -> None:
    """Any literals in any text: every scanner finds the same."""
    text, *found = data.split(b"\n")
    literals = sorted({one.decode(errors="replace").lower() for one in found[:50]} - {""})
    if not literals:
        return
    expected = {number for number, literal in enumerate(literals) if literal.encode() in text}
    for name in available_scanners():
        find, at, _ = make_scan(literals, name)
        assert {hit[at] for hit in find(text)} == expected, (name, data)


def check_blob(data: bytes) -> None:
    """Any bytes in a compiled form: opening takes or refuses it. What a damaged one decides is its checksum's affair."""
    good = bytearray(_good_blob())
    for place in range(0, len(data) - 2, 3):
        good[int.from_bytes(data[place : place + 2]) % len(good)] = data[place + 2]
    for opening in (AdblockMatcher, AdblockEffects):
        with suppress(SnapshotError):
            opening(bytes(good))


@cache
def _good_blob() -> bytes:
    builder = AdblockBuilder(judge=False)
    builder.add_list(0, LINES)
    return builder.build()


@cache
def _bulk() -> RequestLines:
    builder = SnapshotBuilder()
    return RequestLines(RecordDecider(FilterEngine(Snapshot.from_bytes(builder.build()))))


def check_json_lines(data: bytes) -> None:
    """Any bytes as bulk input: one answer, in valid JSON lines, for each line that is not blank."""
    lines = data.split(b"\n")
    answers = _bulk().decide(Batch(1, lines, len(data)))
    assert answers.counts.total() == sum(bool(line.strip()) for line in lines)
    assert answers.text.count(b"\n") == answers.counts.total()


CHECKS: dict[str, Callable[[Any], None]] = {
    "list": check_list,
    "url": check_url,
    "literals": check_literals,
    "blob": check_blob,
    "json-lines": check_json_lines,
}
"""Name → check; those that take text and those that take bytes."""
