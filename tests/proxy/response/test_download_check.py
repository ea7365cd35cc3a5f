"""What is looked at of a body that a policy may block by its content, and how it is decoded before."""

import gzip
from collections.abc import Iterator

import pytest

from gatewayfilter.content_encoding import EncodingError, StreamDecoder
from gatewayfilter.engine.policies.download_rules import DownloadRules
from gatewayfilter.model import Verdict
from gatewayfilter.proxy.response import download_check
from gatewayfilter.proxy.response.download_check import CheckedDownload
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

EXE = b"MZ\x90\x00" + bytes(600)
RULES = DownloadRules("kids", types=frozenset({"exe"}), named=frozenset({"exe"}))


@all_cases(
    ("place", "cut"),
    [
        ("", True),
        ("bytes 0-603/604", True),
        ("bytes 00-603/604", True),
        ("bytes 5000-5603/9000", False),  # a download that is resumed
        ("Bytes  5000-5603/*", False),
        ("bytes 01-9/10", False),
        ("Bytes5000-5603/9000", True),
        (" bytes  0 - 9 / 10", True),
        ("octets 5000-5603/9000", True),  # what is no place is passed over by programs, which have a whole file then
        ("bytes=5000-5603/9000", True),
        ("bytes 5000-5603", True),
        ("bytes */9000", True),
        ("x", True),
    ],
)
def test_only_a_place_that_can_be_read_makes_a_later_part(place: str, *, cut: bool) -> None:
    blocks: list[Verdict] = []
    headers = {":status": "206", "content-type": "image/jpeg"} | ({"content-range": place} if place else {})
    check = CheckedDownload(RULES, parse_url("http://files.example/a"), headers, None, blocks.append)
    assert (check(EXE) == [], len(blocks)) == (cut, cut)


@all_cases(
    ("encoding", "decoded"),
    [
        ("", False),
        ("identity", False),
        (" GZIP ,, identity", True),
        ("gzip, gzip, gzip", True),
        (", ".join(["gzip"] * 10), True),
        (", ".join(["gzip"] * 11), False),
        ("gzip, unheard-of", False),
        ("compress", False),
    ],
)
def test_the_encodings_of_a_body(encoding: str, *, decoded: bool) -> None:
    body = EXE
    for _ in range(encoding.lower().count("gzip")):
        body = gzip.compress(body)
    blocks: list[Verdict] = []
    headers = {":status": "200", "content-type": "image/jpeg", "content-encoding": encoding}
    check = CheckedDownload(RULES, parse_url("http://files.example/a"), headers, None, blocks.append)
    check(body)
    assert (len(blocks) == 1) is (decoded or "gzip" not in encoding.lower())


def test_a_body_is_decoded_and_judged_up_to_its_first_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What expands without end is not decoded any further, and what follows is passed over."""
    pieces = [b"a" * 500, b"b" * 12, b"c" * 100]
    taken: list[bytes] = []
    begins: list[bytes] = []

    class Rules:
        judges_content = True
        most_bytes = 0

        def judge_begin(self, _url: object, _headers: object, begin: bytes) -> None:
            begins.append(begin)

    class Decoder(StreamDecoder):
        def feed(self, data: bytes) -> Iterator[bytes]:
            for piece in pieces:
                taken.append(piece)
                yield piece

    monkeypatch.setattr(download_check, "StreamDecoder", Decoder)
    check = CheckedDownload(Rules(), parse_url("http://files.example/a"), {}, None, pytest.fail)  # type: ignore[arg-type]
    assert check(b"data") == [b"data"]
    assert (taken, begins) == (pieces[:2], [b"a" * 500 + b"b" * 12])
    assert check(b"more") == [b"more"]
    assert (len(taken), len(begins), check(b"")) == (2, 1, [])


@pytest.mark.parametrize("decodes", [True, False])
def test_no_more_than_its_first_bytes_are_judged_however_it_comes(monkeypatch: pytest.MonkeyPatch, *, decodes: bool) -> None:
    begins: list[bytes] = []

    class Rules:
        judges_content = True
        most_bytes = 0

        def judge_begin(self, _url: object, _headers: object, begin: bytes) -> None:
            begins.append(begin)

    class Decoder(StreamDecoder):
        def feed(self, data: bytes) -> Iterator[bytes]:
            if not decodes and begins:
                raise EncodingError("it is not in that encoding")
            yield data.upper()

    monkeypatch.setattr(download_check, "StreamDecoder", Decoder)
    check = CheckedDownload(Rules(), parse_url("http://files.example/a"), {}, None, pytest.fail)  # type: ignore[arg-type]
    assert [check(b"a" * 300), check(b"b" * 600), check(b"c")] == [[b"a" * 300], [b"b" * 600], [b"c"]]
    sent = b"a" * 300 + b"b" * 212
    assert begins == [b"A" * 300, sent.upper() if decodes else sent]


def test_a_body_that_cannot_be_decoded_is_judged_as_it_was_sent() -> None:
    blocks: list[Verdict] = []
    headers = {":status": "200", "content-type": "image/jpeg", "content-encoding": "gzip"}
    check = CheckedDownload(RULES, parse_url("http://files.example/a"), headers, None, blocks.append)
    assert [check(EXE[:1]), check(EXE[1:300]), check(EXE[300:])] == [[EXE[:1]], [], []]
    assert len(blocks) == 1


@pytest.mark.parametrize(("size", "passes"), [(10, True), (11, False)])
def test_a_body_passes_up_to_its_most_bytes(size: int, *, passes: bool) -> None:
    blocks: list[Verdict] = []
    seen: list[bytes] = []

    def then(data: bytes) -> list[bytes]:
        seen.append(data)
        return [data.upper()]

    rules = DownloadRules("kids", most_bytes=10)
    check = CheckedDownload(rules, parse_url("http://files.example/a"), {":status": "200"}, then, blocks.append)
    assert check(b"12345a") == [b"12345A"]
    assert check(b"x" * (size - 6)) == ([b"X" * 4] if passes else [])
    assert (len(blocks), len(seen)) == ((0, 2) if passes else (1, 1))
    assert check(b"") == ([b""] if passes else [])
    assert len(blocks) == (not passes)
