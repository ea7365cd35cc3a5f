"""What is looked at of a body that a policy may block by its content, and how it is decoded before."""

import gzip
import zlib

import pytest

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
    ("encoding", "count"),
    [
        ("", 0),
        ("identity", 0),
        (" GZIP ,, identity", 1),
        ("gzip, deflate", 2),
        ("gzip, gzip, gzip", 3),
        ("gzip, unheard-of", 0),
        ("compress", 0),
    ],
)
def test_the_encodings_of_a_body(encoding: str, count: int) -> None:
    most = download_check._MOST_ENCODINGS
    assert len(download_check._decoders_of({"content-encoding": encoding})) == (count if count <= most else 0)


@pytest.mark.parametrize("more", [0, 1])
def test_the_most_encodings(more: int) -> None:
    most = download_check._MOST_ENCODINGS
    headers = {"content-encoding": ", ".join(["gzip"] * (most + more))}
    assert len(download_check._decoders_of(headers)) == (0 if more else most)


def test_the_last_encoding_is_taken_off_first() -> None:
    body = gzip.compress(zlib.compress(b"MZ and more"))
    decoders = download_check._decoders_of({"content-encoding": "deflate, gzip"})
    assert b"".join(download_check._decoded(decoders, body)) == b"MZ and more"
    assert [*download_check._decoded([], b"plain")] == [b"plain"]
