"""Which downloads are decoded before their first bytes are judged, and what is looked at."""

import gzip
import zlib
from typing import Any, cast

import pytest

from gatewayfilter.proxy.response import download_check


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("place", "later"),
    [
        ("", False),
        ("bytes 0-99/200", False),
        ("bytes 100-199/200", True),
        ("Bytes  100-199/200", True),
        ("Bytes100-199/200", False),  # what cannot be read is no place
        (" bytes  0 - 9 / 10", False),
        ("bytes 01-9/10", True),
        ("bytes */10", False),
    ],
)
def test_later_parts(place: str, *, later: bool) -> None:
    assert download_check._is_later_part(cast("Any", {"content-range": place})) is later
