"""Content encodings as streams: whole, in pieces, cut off, broken, bombs."""

import gzip
import os
import zlib
from contextlib import suppress

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.content_encoding import MAX_RATIO, EncodingError, StreamDecoder, as_shown, decode_up_to
from gatewayfilter.interfaces import PassedResponse
from gatewayfilter.store.page_spool import page_of

ENCODERS = {
    "": lambda body: body,
    "identity": lambda body: body,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "GZIP ": gzip.compress,
}
TEXT = b"".join(b"%d and %d " % (number, number * 7) for number in range(40_000)) + os.urandom(70_000)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("step", [1_000_000, 1000])
def test_what_was_encoded_comes_out_in_small_pieces(name: str, step: int) -> None:
    body = ENCODERS[name](TEXT)
    decoder = StreamDecoder(name)
    pieces = [piece for at in range(0, len(body), step) for piece in decoder.feed(body[at : at + step])]
    assert b"".join(pieces) == TEXT
    assert all(len(piece) <= 140_000 for piece in pieces) or not decoder.encoded
    assert decode_up_to(body, name, len(TEXT)) == (TEXT, False)
    assert decode_up_to(body, name, 100) == (TEXT[:100], True)


def test_two_members_raw_deflate_and_what_follows_the_end() -> None:
    assert decode_up_to(gzip.compress(b"a") + gzip.compress(b"b") + b"rest", "gzip", 99) == (b"ab", False)
    raw = zlib.compressobj(wbits=-15)
    assert decode_up_to(raw.compress(b"a") + raw.flush(), "deflate", 99) == (b"a", False)
    assert decode_up_to(brotli.compress(b"a"), "br", 99) == (b"a", False)


@pytest.mark.parametrize("name", ["gzip", "deflate"])
@pytest.mark.parametrize("step", [1_000_000, 7])
def test_a_wrong_checksum_hides_no_page(name: str, step: int) -> None:
    body = bytearray(ENCODERS[name](b"shown by browsers" * 99))
    body[-6 if name == "gzip" else -1] ^= 1
    decoder = StreamDecoder(name)
    pieces = [piece for at in range(0, len(body), step) for piece in decoder.feed(bytes(body[at : at + step]))]
    assert b"".join(pieces) == b"shown by browsers" * 99


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_all_that_a_head_of_gzip_may_hold(step: int) -> None:
    raw = zlib.compressobj(wbits=-15)
    data = raw.compress(b"text") + raw.flush()
    head = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\x00abc" + b"a name\0" + b"a comment\0" + b"xx"
    body = (head + data + bytes(8)) * 2 + b"\x1f"
    decoder = StreamDecoder("gzip")
    assert b"".join(piece for at in range(0, len(body), step) for piece in decoder.feed(body[at : at + step])) == b"texttext"


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_body_that_is_cut_off_gives_what_is_there(name: str) -> None:
    body = ENCODERS[name](TEXT)
    found, _ = decode_up_to(body[: len(body) // 2], name, len(TEXT))
    assert TEXT.startswith(found)


@pytest.mark.parametrize("name", ["gzip, br", "compress", "dcb", "gzip,"])
def test_an_encoding_that_is_not_known_is_said(name: str) -> None:
    with pytest.raises(EncodingError, match="unknown encoding"):
        StreamDecoder(name)


@pytest.mark.parametrize(
    ("named", "read"),
    [
        ("utf-8", ""),
        ("none", ""),
        ("compress", ""),
        ("", ""),
        (" GZip", "gzip"),
        ("gzip, br", "gzip, br"),
        ("identity", "identity"),
        ("identity, GZip", "gzip"),
        ("br, none,", "br"),
        ("none, identity", ""),
    ],
)
def test_a_name_that_nobody_knows_hides_no_page(named: str, read: str) -> None:
    assert as_shown(named) == read
    if not read:
        page = page_of(PassedResponse("http://a.test/", 200, {"content-encoding": named}, b"<html>", public=True))
        assert page is not None
        assert page.body == b"<html>"


BOMBS = {
    "gzip": lambda body: gzip.compress(body, 9),
    "br": lambda body: brotli.compress(body, quality=4),
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_given_up_before_it_fills_the_memory(name: str) -> None:
    body = BOMBS[name](bytes(60_000_000))
    decoder = StreamDecoder(name)
    sizes: list[int] = []

    def drain() -> None:
        for at in range(0, len(body), 1000):
            sizes.extend(len(piece) for piece in decoder.feed(body[at : at + 1000]))

    with pytest.raises(EncodingError, match=f"more than {MAX_RATIO} times"):
        drain()
    assert sum(sizes) < 20_000_000


@given(st.sampled_from(["gzip", "deflate", "br", "zstd"]), st.binary(max_size=300))
def test_any_bytes_end_well_or_with_the_one_error(name: str, body: bytes) -> None:
    with suppress(EncodingError):
        found, _ = decode_up_to(body, name, 1000)
        assert len(found) <= 1000
