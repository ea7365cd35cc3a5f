import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.content_encoding import BoundedBody, EncodingError
from tests.case_tables import all_cases


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "identity": ("", bytes),
    "gzip": ("gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "raw": ("deflate", raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress),
}


@pytest.mark.parametrize("name", ENCODERS)
@settings(max_examples=30)
@given(data=st.binary(max_size=2000), step=st.integers(1, 100))
def test_any_split_decodes_to_the_same(name: str, data: bytes, step: int) -> None:
    encoding, encode = ENCODERS[name]
    wire = encode(data)
    decoder = BoundedBody(encoding, 100_000)
    assert all(decoder.feed(wire[at : at + step]) for at in range(0, len(wire), step))
    assert decoder.body == data
    assert not decoder.truncated


@all_cases("name", ENCODERS)
@all_cases("limit", [1, 999, 1000])
def test_the_limit_is_exact(name: str, limit: int) -> None:
    encoding, encode = ENCODERS[name]
    data = bytes(range(250)) * 5
    decoder = BoundedBody(encoding, limit)
    assert not decoder.feed(encode(data))
    assert decoder.body == data[:limit]
    assert decoder.truncated


@all_cases("size", [4, 5_000])
def test_the_limit_counts_all_pieces(size: int) -> None:
    decoder = BoundedBody("", 2 * size)
    assert decoder.feed(b"a" * size)
    assert decoder.feed(b"b" * (size - 1))
    assert decoder.feed(b"c")
    assert not decoder.truncated
    assert not decoder.feed(b"d")
    assert decoder.body == b"a" * size + b"b" * (size - 1) + b"c"
    assert decoder.truncated


@all_cases("name", ENCODERS)
def test_a_body_of_exactly_the_limit_is_whole(name: str) -> None:
    encoding, encode = ENCODERS[name]
    decoder = BoundedBody(encoding, 1000)
    assert decoder.feed(encode(b"x" * 1000))
    assert not decoder.truncated


@pytest.mark.parametrize("name", ["gzip", "zlib", "raw", "br", "zstd"])
@settings(max_examples=30)
@given(data=st.binary(min_size=1, max_size=300))
def test_garbage_is_an_error_or_bounded(name: str, data: bytes) -> None:
    decoder = BoundedBody(ENCODERS[name][0], 10_000)
    try:
        decoder.feed(data)
    except EncodingError:
        return
    assert len(decoder.body) <= 10_000


def test_no_layer_of_a_body_may_expand_without_measure() -> None:
    bomb = gzip.compress(gzip.compress(bytes(200_000_000)), 9)
    body = BoundedBody("gzip, gzip", 50_000_000)
    assert not body.feed(bomb)
    assert body.truncated
    assert len(body.body) <= 1_048_576
    hidden = gzip.compress(zstandard.ZstdCompressor().compress(b"") * 3_000_000)
    body = BoundedBody("zstd, gzip", 50_000_000)
    with pytest.raises(EncodingError, match="expands"):
        body.feed(hidden)


@all_cases("encoding", ["compress", "gzip, compress", "gzip,", "x" * 1000])
def test_unknown_encodings(encoding: str) -> None:
    with pytest.raises(EncodingError, match="unknown encoding"):
        BoundedBody(encoding, 1000)


def test_a_small_body_may_compress_well() -> None:
    decoder = BoundedBody("gzip", 1_000_000)
    decoder.feed(gzip.compress(bytes(200_000)))
    assert len(decoder.body) == 200_000


@pytest.mark.parametrize("name", ENCODERS)
def test_a_long_body_that_compresses_well_comes_out_whole(name: str) -> None:
    body = b"".join(b"%d%d" % (number, number) for number in range(60_000))
    encoding, encode = ENCODERS[name]
    decoder = BoundedBody(encoding, len(body))
    assert decoder.feed(encode(body))
    assert decoder.body == body


@pytest.mark.parametrize("name", ["gzip", "zlib", "raw", "br", "zstd"])
def test_bombs_are_told_by_their_ratio(name: str) -> None:
    encoding, encode = ENCODERS[name]
    body = BoundedBody(encoding, 50_000_000, max_ratio=100, ratio_from=262_144)
    assert not body.feed(encode(bytes(20_000_000)))
    assert body.truncated
    assert len(body.body) <= 2_000_000


def test_more_bytes_on_the_wire_than_may_be_decoded() -> None:
    body = BoundedBody("gzip", 1000)
    with pytest.raises(EncodingError, match="longer encoded"):
        body.feed(gzip.compress(b"") * 10_000)


def test_as_many_bytes_on_the_wire_as_the_limit_and_a_step() -> None:
    head = b"\x1f\x8b\x08\x08" + bytes(6)
    body = BoundedBody("gzip", 1_000)
    assert body.feed(head + b"n" * 66_000)
    assert body.feed(b"n" * (1_000 + 65_536 - 66_010))
    with pytest.raises(EncodingError, match="longer encoded"):
        body.feed(b"n")
    plain = BoundedBody("", 1_000)
    assert not plain.feed(bytes(100_000))
    assert plain.truncated


def test_pieces_of_all_sizes_stand_in_their_order() -> None:
    chance = random.Random(5)
    pieces = [chance.randbytes(size) for size in (1, 70_000, 2, 4_095, 4_096, 1, 65_536, 3)] + [b"x"] * 70_000
    body = BoundedBody("", 1_000_000)
    assert all(body.feed(piece) for piece in pieces)
    assert body.body == b"".join(pieces)
    assert body.body == b"".join(pieces), "asked twice"


@all_cases("size", [4_096, 100_000])
def test_a_body_in_one_piece_is_not_copied(size: int) -> None:
    whole = bytes(size)
    body = BoundedBody("", 1_000_000)
    assert body.feed(whole)
    assert body.body is whole


def test_small_pieces_take_no_more_than_they_hold() -> None:
    tracemalloc.start()
    try:
        body = BoundedBody("", 1_000_000)
        for number in range(100_000):
            body.feed(number.to_bytes(3))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert body.body == b"".join(number.to_bytes(3) for number in range(100_000))
    assert held < 500_000


@pytest.mark.parametrize("step", [1_000, 1_000_000])
def test_a_bomb_is_one_in_whatever_pieces_it_comes(step: int) -> None:
    bomb = gzip.compress(bytes(20_000_000))
    body = BoundedBody("gzip", 2_000_000, max_ratio=100, ratio_from=262_144)
    assert not all(body.feed(bomb[at : at + step]) for at in range(0, len(bomb), step))
    assert len(body.body) < 2_000_000
    assert body.truncated


def test_nothing_but_a_bomb_is_an_error() -> None:
    body = BoundedBody("gzip", 2_000_000, max_ratio=1, ratio_from=10)
    with pytest.raises(EncodingError, match="more than 1 times"):
        body.feed(gzip.compress(bytes(60_000)))


@all_cases("name", ["gzip", "zlib", "raw", "br"])
def test_what_stands_before_damage_is_kept(name: str) -> None:
    encoding, encode = ENCODERS[name]
    data = random.Random(3).randbytes(200_000)
    wire = encode(data)[:80_000] + b"\xff" * 150_000
    body = BoundedBody(encoding, 300_000)
    assert body.feed(wire[:50_000])
    assert not body.feed(wire[50_000:])
    assert body.truncated
    assert body.body[:79_000] == data[:79_000]
