"""Content encodings as streams: whole, in pieces, cut off, broken, bombs."""

import gzip
import os
import random
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.content_encoding import (
    MAX_RATIO,
    EncodingError,
    StreamDecoder,
    as_shown,
    decode_up_to,
    decoders,
    headers,
    media_type,
)
from gatewayfilter.interfaces import PassedResponse
from gatewayfilter.store.page_spool import page_of
from tests.case_tables import all_cases

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda body: body,
    "identity": lambda body: body,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": partial(brotli.compress, quality=5),  # at the highest it takes a second, and differs for the decoder in nothing
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
    for name in ("gzip", "deflate", "br"):
        assert decode_up_to(ENCODERS[name](b"a") + b"what begins no further member", name, 99) == (b"a", False)


@all_cases("name", ["gzip", "deflate"])
@all_cases("step", [1_000_000, 7])
def test_a_wrong_checksum_hides_no_page(name: str, step: int) -> None:
    body = bytearray(ENCODERS[name](b"shown by browsers" * 99))
    body[-6 if name == "gzip" else -1] ^= 1
    decoder = StreamDecoder(name)
    pieces = [piece for at in range(0, len(body), step) for piece in decoder.feed(bytes(body[at : at + step]))]
    assert b"".join(pieces) == b"shown by browsers" * 99


@all_cases("step", [1, 3, 1000])
def test_all_that_a_head_of_gzip_may_hold(step: int) -> None:
    raw = zlib.compressobj(wbits=-15)
    data = raw.compress(b"text") + raw.flush()
    head = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\x00abc" + b"a name\0" + b"a comment\0" + b"xx"
    body = (head + data + bytes(8)) * 2 + b"\x1f"
    decoder = StreamDecoder("gzip")
    assert b"".join(piece for at in range(0, len(body), step) for piece in decoder.feed(body[at : at + step])) == b"texttext"


@all_cases(
    ("flags", "further"),
    [(0, b""), (1, b""), (2, b"xx"), (4, b"\x03\x00abc"), (4, b"\x00\x01" + bytes(256)), (8, b"a name\0"), (16, b"a comment\0")],
)
@all_cases("step", [1, 1000])
def test_each_part_of_a_head_of_gzip_ends_where_it_says(flags: int, further: bytes, step: int) -> None:
    data = gzip.compress(b"text")[10:-8]
    body = (b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + further + data + bytes(8)) * 3
    decoder = StreamDecoder("gzip")
    assert b"".join(piece for at in range(0, len(body), step) for piece in decoder.feed(body[at : at + step])) == b"text" * 3


def test_a_head_of_gzip_has_an_end() -> None:
    head = b"\x1f\x8b\x08\x08" + bytes(6)
    decoder = StreamDecoder("gzip")
    assert list(decoder.feed(head.ljust(70_000, b"n"))) == []
    with pytest.raises(EncodingError, match="not in the encoding"):
        list(decoder.feed(b"n"))
    long = StreamDecoder("gzip")
    assert list(long.feed(head.ljust(70_100, b"n") + b"\0" + gzip.compress(b"text")[10:])) == [b"text"]
    in_two = StreamDecoder("gzip")
    assert [piece for part in (head.ljust(70_100, b"n") + b"\0", gzip.compress(b"text")[10:]) for piece in in_two.feed(part)] == [
        b"text"
    ]


@all_cases("name", ["gzip", "deflate", "br"])
def test_what_follows_the_end_is_passed_over_whenever_it_comes(name: str) -> None:
    decoder = StreamDecoder(name)
    body = ENCODERS[name](b"text")
    pieces = [piece for part in (body, b"rest", b"", body) for piece in decoder.feed(part)]
    assert pieces == [b"text"]


@all_cases("name", ["br", "zstd"])
@all_cases("size", [1, 4_095, 4_096, 4_097, 9_000, 150_000])
@all_cases("step", [1_000, 4_096, 1_000_000])
def test_all_before_the_end_is_given_whatever_follows(name: str, size: int, step: int) -> None:
    """Also where the library refuses a piece as a whole."""
    text = random.Random(size).randbytes(size)
    wire = ENCODERS[name](text) + b"behind the end" * 500
    decoder, found = StreamDecoder(name), bytearray()
    with nullcontext() if name == "br" else pytest.raises(EncodingError):
        for at in range(0, len(wire), step):
            for piece in decoder.feed(wire[at : at + step]):
                found += piece
    assert found == text


def test_nothing_is_given_twice_where_brotli_is_read_again() -> None:
    text = b"shown " * 100_000  # several pieces of one slice
    assert decode_up_to(brotli.compress(text, quality=5) + b"x", "br", 1_000_000) == (text, False)


def test_of_a_long_body_of_brotli_no_more_is_kept_to_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = brotli.compress(random.Random(1).randbytes(30_000), quality=1) + b"x"
    for most, whole in ((20_000, False), (40_000, True)):
        monkeypatch.setattr(decoders, "_MOST_READ_AGAIN", most)
        found, cut = decode_up_to(wire, "br", 40_000)
        assert (len(found) == 30_000, cut) == (whole, not whole)


@all_cases("name", ["gzip", "deflate", "br"])
@all_cases("step", [100, 1_000_000])
def test_what_stands_before_damage_is_given_first(name: str, step: int) -> None:
    text = random.Random(2).randbytes(10_000)
    wire = bytearray(ENCODERS[name](text))
    wire[9_000:9_300] = b"\xff" * 300
    wire += b"\xff" * 70_000  # damage at the latest
    decoder, found = StreamDecoder(name), bytearray()
    with suppress(EncodingError):
        for at in range(0, len(wire), step):
            for piece in decoder.feed(bytes(wire[at : at + step])):
                found += piece
    assert found[:8_900] == text[:8_900]


@all_cases("name", ["gzip", "deflate", "br", "zstd"])
def test_nothing_but_damage_is_an_error(name: str) -> None:
    with pytest.raises(EncodingError):
        decode_up_to(b"\xff" * 100, name, 1_000)


def test_two_bytes_tell_how_deflate_is_meant() -> None:
    packer = zlib.compressobj(wbits=-15)
    raw = packer.compress(b"a") + packer.flush()
    decoder = StreamDecoder("deflate")
    assert [list(decoder.feed(part)) for part in (raw[:1], raw[1:2])] == [[], [b"a"]]


def test_what_follows_the_last_member_is_not_kept() -> None:
    decoder = StreamDecoder("gzip")
    assert list(decoder.feed(gzip.compress(b"text") + b"rest")) == [b"text"]
    tracemalloc.start()
    try:
        assert [piece for _ in range(20) for piece in decoder.feed(bytes(100_000))] == []
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 500_000


def padded(size: int, wire: int) -> bytes:
    """So many zeros as gzip of so many bytes."""
    packed = gzip.compress(bytes(size), mtime=0)
    return packed[:3] + b"\x08" + packed[4:10] + b"n" * (wire - len(packed) - 1) + b"\0" + packed[10:]


def test_what_a_body_may_expand_to_is_exact() -> None:
    decoder, wire = StreamDecoder("gzip", max_ratio=100, ratio_from=0), padded(6_000, 60)
    assert len(b"".join(piece for part in (wire[:20], wire[20:]) for piece in decoder.feed(part))) == 6_000
    with pytest.raises(EncodingError, match="more than 100 times"):
        list(StreamDecoder("gzip", max_ratio=100, ratio_from=0).feed(padded(6_001, 60)))
    assert len(b"".join(StreamDecoder("gzip", max_ratio=1, ratio_from=6_001).feed(padded(6_001, 60)))) == 6_001
    with pytest.raises(EncodingError, match="more than 1 times"):
        list(StreamDecoder("gzip", max_ratio=1, ratio_from=6_000).feed(padded(6_001, 60)))


@all_cases("name", ["", "gzip", "br", "zstd", "deflate"])
def test_no_piece_is_empty(name: str) -> None:
    decoder = StreamDecoder(name)
    assert list(decoder.feed(b"")) == []
    body = ENCODERS[name](b"text")
    assert [piece for at in range(len(body)) for piece in decoder.feed(body[at : at + 1]) if not piece] == []
    assert list(StreamDecoder(name).feed(ENCODERS[name](b""))) == []


def test_no_more_of_a_bomb_is_made_than_there_is_room_for() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(30_000_000))
    for room in (100_000, 1_000_000):
        made = decoders._Zstd().decode(bomb, room)
        assert room < sum(len(piece) for piece in made) <= room + 131_072


def test_what_was_made_before_leaves_a_bomb_less_room() -> None:
    packer = zstandard.ZstdCompressor().compressobj()
    first = packer.compress(bytes(4_000_000)) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    bomb = packer.compress(bytes(30_000_000)) + packer.flush()
    decoder = StreamDecoder("zstd", max_ratio=1, ratio_from=4_000_000)
    assert 3_900_000 < sum(len(piece) for piece in decoder.feed(first)) <= 4_000_000
    tracemalloc.start()
    try:
        with pytest.raises(EncodingError, match="more than 1 times"):
            list(decoder.feed(bomb))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_up_to_is_exact() -> None:
    assert decode_up_to(b"abc", "", 3) == (b"abc", False)
    assert decode_up_to(b"abc", "", 2) == (b"ab", True)


@all_cases(
    ("named", "type_"),
    [
        ("text/html; charset=utf-8", "text/html"),
        ("Text/HTML", "text/html"),
        (" \ttext/html", "text/html"),
        ("text/html charset=utf-8", "text/html"),
        ("image/png, text/plain", "text/plain"),
        ("text/html, image/png", "text/html"),
        ("image/png;x=text/html", "image/png"),
        ("text/plain, nothing", "text/plain"),
        ("nothing", ""),
        ("/html", ""),
        ("", ""),
        (",text/css,", "text/css"),
    ],
)
def test_the_media_type_is_what_browsers_read(named: str, type_: str) -> None:
    assert media_type(named) == type_
    assert media_type(f"{named};{'x' * 200}") == type_


def test_short_media_types_alone_are_remembered() -> None:
    remembered = headers._media_type.cache_info
    for size, more in ((100, 1), (101, 0)):
        headers._media_type.cache_clear()
        assert media_type("text/css;" + "x" * (size - 9)) == "text/css"
        assert (remembered().currsize, remembered().misses) == (more, more)


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_body_that_is_cut_off_gives_what_is_there(name: str) -> None:
    body = ENCODERS[name](TEXT)
    found, _ = decode_up_to(body[: len(body) // 2], name, len(TEXT))
    assert TEXT.startswith(found)


@all_cases("names", [["gzip", "br"], ["br", "gzip"], ["zstd", "deflate", "br"], ["gzip"] * 10])
@all_cases("step", [1, 1_000_000])
def test_encodings_are_taken_off_in_the_order_in_which_they_were_put_on(names: list[str], step: int) -> None:
    wire = b"shown" * 100
    for name in names:
        wire = ENCODERS[name](wire)
    decoder = StreamDecoder(", ".join(names))
    assert decoder.encoded
    pieces = [piece for at in range(0, len(wire), step) for piece in decoder.feed(wire[at : at + step])]
    assert b"".join(pieces) == b"shown" * 100


def test_more_encodings_than_browsers_take_off_are_an_error() -> None:
    with pytest.raises(EncodingError, match="11 times"):
        StreamDecoder(", ".join(["gzip"] * 11))


@all_cases("name", ["", " ", "identity", "Identity "])
def test_no_encoding_leaves_a_body_as_it_is(name: str) -> None:
    decoder = StreamDecoder(name)
    assert not decoder.encoded
    assert list(decoder.feed(b"x" * 300_000)) == [b"x" * 300_000]


@all_cases("name", ["gzip, compress", "compress", "dcb", "gzip,", "identity, gzip"])
def test_an_encoding_that_is_not_known_is_said(name: str) -> None:
    with pytest.raises(EncodingError, match="unknown encoding"):
        StreamDecoder(name)


@all_cases(
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
