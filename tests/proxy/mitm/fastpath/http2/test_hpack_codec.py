"""The compiled header coding: what hpack reads and refuses, it reads and refuses, and hpack reads what it writes."""

from typing import Any

import hpack
import pytest
from h2.connection import H2Connection
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.compiled import load
from gatewayfilter.proxy.mitm.fastpath.http2 import hpack_codec
from gatewayfilter.proxy.mitm.fastpath.http2.hpack_codec import PlainDecoder, decoder_of, speed_up_encoder
from gatewayfilter.proxy.mitm.http.header_table import bound_table

COMPILED = load("gatewayfilter.proxy.mitm.fastpath.http2._hpack")
needs_it = pytest.mark.skipif(COMPILED is None, reason="the module is not built")

type Fields = list[tuple[bytes, bytes]]

NAMES = st.one_of(
    st.sampled_from([b":path", b":method", b":status", b"cookie", b"accept", b"x-a", b"user-agent", b"etag", b"age", b""]),
    st.binary(max_size=40),
)
VALUES = st.one_of(
    st.sampled_from([b"GET", b"/", b"200", b"", b"\0", b"\xff" * 20, b"gzip, deflate"]),
    st.binary(max_size=60),
    st.text().map(str.encode),
)
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=12)
SIZES = st.sampled_from([0, 40, 100, 400, 4096, 5000])


def ended(decoder: Any, block: bytes) -> object:
    """Returns the fields of a block, or the kind of the error that reading it ends with."""
    try:
        return [tuple(field) for field in decoder.decode(block, raw=True)]
    except hpack.HPACKError as error:
        return type(error)


@needs_it
@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(FIELDS, st.none() | SIZES), max_size=6))
def test_what_it_writes_hpack_reads(heads: list[tuple[Fields, int | None]]) -> None:
    assert COMPILED is not None
    encoder, decoder, own = COMPILED.Encoder(), hpack.Decoder(), COMPILED.Decoder()
    decoder.max_allowed_table_size = own.max_allowed_table_size = 5000
    for fields, size in heads:
        if size is not None:
            encoder.header_table_size = size
        block = encoder.encode(fields)
        assert ended(decoder, block) == fields == ended(own, block)


@needs_it
@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(FIELDS, st.booleans(), st.none() | SIZES), max_size=6))
def test_it_reads_what_hpack_writes(heads: list[tuple[Fields, bool, int | None]]) -> None:
    assert COMPILED is not None
    encoder, decoder = hpack.Encoder(), COMPILED.Decoder()
    decoder.max_allowed_table_size = 5000
    for fields, huffman, size in heads:
        if size is not None:
            encoder.header_table_size = size
        assert ended(decoder, encoder.encode(fields, huffman=huffman)) == fields


BLOCKS = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda fields, at, octet: _changed(hpack.Encoder().encode(fields), at, octet),
        FIELDS,
        st.integers(0, 200),
        st.binary(max_size=2),
    ),
)


def _changed(block: bytes, at: int, octets: bytes) -> bytes:
    at %= len(block) + 1
    return block[:at] + octets + block[at + len(octets) :]


@pytest.mark.slow
@needs_it
@settings(max_examples=400, deadline=None)
@given(st.lists(BLOCKS, min_size=1, max_size=4), st.sampled_from([200, 65_536]), SIZES)
def test_both_end_alike_on_any_octets(blocks: list[bytes], most: int, table: int) -> None:
    assert COMPILED is not None
    theirs, ours = hpack.Decoder(most), COMPILED.Decoder(most)
    theirs.max_allowed_table_size = ours.max_allowed_table_size = table
    for block in blocks:
        found = ended(theirs, block)
        assert ended(ours, block) == found, block.hex()
        if isinstance(found, type):
            return  # the connection ends


@needs_it
@pytest.mark.parametrize(
    "block",
    [
        b"\xff\xff\xff\xff\xff\xff\x01", b"\xff\x80\x80\x80\x80\x00", b"\x80", b"\xbe", b"\x7f\xff", b"\x40\x05ab",
        b"\x00\x81\x01\x00", b"\x00\x84\xff\xff\xff\xff\x00", b"\x82\x3f\x00", b"\x3f\xff\xff\xff\x7f", b"\x3f", b"\x40",
        b"\x40\x01a", b"\x40\x01a\x7f\xff\xff\xff\xff\xff\x0f",
    ],
)  # fmt: skip
def test_hostile_blocks(block: bytes) -> None:
    assert COMPILED is not None
    found = ended(COMPILED.Decoder(), block)
    assert found == ended(hpack.Decoder(), block)
    assert isinstance(found, type)


@needs_it
def test_a_small_block_may_not_become_a_large_head() -> None:
    assert COMPILED is not None
    block = hpack.Encoder().encode([(b"x-a", b"a" * 3000)]) + b"\xbe" * 100
    assert ended(COMPILED.Decoder(), block) is hpack.OversizedHeaderListError is ended(hpack.Decoder(), block)


@needs_it
def test_a_table_that_may_be_huge_stays_small() -> None:
    assert COMPILED is not None
    encoder, decoder = COMPILED.Encoder(), hpack.Decoder()
    decoder.max_allowed_table_size = encoder.header_table_size = 2**31 - 1
    assert encoder.header_table_size == 65_536
    for number in range(300):
        fields = [(b"x-%d" % number, b"a" * 1_000)]
        assert decoder.decode(encoder.encode(fields), raw=True) == fields
    assert decoder.header_table_size == 65_536


@pytest.mark.parametrize("compiled", [None, COMPILED])
def test_what_a_peer_allows_before_the_first_head_is_bounded_too(monkeypatch: pytest.MonkeyPatch, compiled: Any) -> None:
    monkeypatch.setattr(hpack_codec, "_compiled", compiled)
    connection, decoder = H2Connection(), hpack.Decoder()
    bound_table(connection)
    decoder.max_allowed_table_size = connection.encoder.header_table_size = 2**32 - 1
    speed_up_encoder(connection)
    for number in range(300):
        fields = [(b"x-%d" % number, b"a" * 1_000)]
        assert decoder.decode(connection.encoder.encode(fields), raw=True) == fields
    assert decoder.header_table_size == connection.encoder.header_table_size == 65_536


@pytest.mark.parametrize("compiled", [None, COMPILED])
def test_a_size_that_is_said_twice_is_told(monkeypatch: pytest.MonkeyPatch, compiled: Any) -> None:
    monkeypatch.setattr(hpack_codec, "_compiled", compiled)
    connection, decoder = H2Connection(), hpack.Decoder()
    bound_table(connection)
    decoder.max_allowed_table_size = 50_000
    for _ in range(2):
        connection.encoder.header_table_size = 50_000
    speed_up_encoder(connection)
    for _ in range(2):
        for number in range(60):
            fields = [(b"x-%d" % number, b"a" * 100)]
            assert decoder.decode(connection.encoder.encode(fields), raw=True) == fields


@pytest.mark.parametrize("compiled", [None, COMPILED])
def test_of_many_sizes_the_smallest_and_the_last_are_told(monkeypatch: pytest.MonkeyPatch, compiled: Any) -> None:
    monkeypatch.setattr(hpack_codec, "_compiled", compiled)
    connection, decoder = H2Connection(), hpack.Decoder()
    bound_table(connection)
    for _ in range(2):
        for number in range(500):
            connection.encoder.header_table_size = 100 if number % 2 else 4_000
        speed_up_encoder(connection)
        block = connection.encoder.encode([(b"x-a", b"b")])
        assert len(block) < 16
        assert decoder.decode(block, raw=True) == [(b"x-a", b"b")]
        connection.encoder.header_table_size = 3_000
        assert decoder.decode(connection.encoder.encode([(b"x-a", b"b")]), raw=True) == [(b"x-a", b"b")]
        assert decoder.header_table_size == 3_000


@pytest.mark.parametrize("compiled", [None, COMPILED])
def test_what_must_not_be_put_into_a_table_stays_marked(monkeypatch: pytest.MonkeyPatch, compiled: Any) -> None:
    monkeypatch.setattr(hpack_codec, "_compiled", compiled)
    connection, peer, reader = H2Connection(), hpack.Encoder(), hpack.Decoder()
    bound_table(connection)
    speed_up_encoder(connection)
    said = [(b"x-a", b"b"), hpack.NeverIndexedHeaderTuple(b"authorization", b"Basic YWJjZGVm")]
    for _ in range(2):
        read = list(decoder_of(connection).decode(peer.encode(said), raw=True))
        passed = list(reader.decode(connection.encoder.encode(read), raw=True))
        assert (passed, passed[1].indexable) == (said, False)


@needs_it
def test_secrets_stay_out_of_tables() -> None:
    assert COMPILED is not None
    encoder = COMPILED.Encoder()
    secret = hpack.NeverIndexedHeaderTuple(b"authorization", b"Basic YWJjZGVm")
    first = encoder.encode([secret, (b"x-a", b"b", True)])
    assert first == encoder.encode([secret, (b"x-a", b"b", True)])
    assert hpack.Decoder().decode(first, raw=True) == [secret, (b"x-a", b"b")]
    assert not any(field.indexable for field in hpack.Decoder().decode(first, raw=True))


def test_a_connection_keeps_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for compiled in {None, COMPILED}:
        monkeypatch.setattr(hpack_codec, "_compiled", compiled)
        connection, peer = H2Connection(), hpack.Encoder()
        bound_table(connection)
        reader = hpack.Decoder()
        fields = [(b"x-first", b"1"), (b"x-second", b"2")]
        connection.decoder.decode(peer.encode(fields), raw=True)
        connection.encoder.header_table_size = 300
        reader.decode(connection.encoder.encode(fields), raw=True)
        connection.encoder.header_table_size = 200
        decoder = decoder_of(connection)
        speed_up_encoder(connection)
        assert [tuple(field) for field in decoder.decode(peer.encode(fields[::-1]), raw=True)] == fields[::-1]
        block = connection.encoder.encode(fields)
        assert reader.decode(block, raw=True) == fields
        assert len(block) <= 6  # a size, and two places in a table
        assert decoder_of(connection) is decoder


@pytest.mark.parametrize(
    "made",
    [PlainDecoder(), *([] if COMPILED is None else [COMPILED.Decoder()])],
    ids=["plain", "compiled"][: 1 + (COMPILED is not None)],
)
def test_what_was_read_can_be_given_back(made: Any) -> None:
    made.again = [(b"a", b"b")]
    assert made.decode(b"\x82", raw=True) == [(b"a", b"b")]
    assert [tuple(one) for one in made.decode(b"\x82", raw=True)] == [(b":method", b"GET")]
    made.again = hpack.HPACKDecodingError("again")
    with pytest.raises(hpack.HPACKDecodingError, match="again"):
        made.decode(b"\x82", raw=True)
    assert made.again is None
