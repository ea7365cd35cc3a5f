"""Content encodings taken off a body while it streams, in pieces of bounded size, so that no body can fill the memory."""

import contextlib
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import IO, Final, Protocol, cast

import brotli
import zstandard

from gatewayfilter.errors import GatewayFilterError

KNOWN: Final = frozenset({"", "identity", "gzip", "x-gzip", "deflate", "br", "zstd"})
"""Names in `Content-Encoding` that `StreamDecoder` takes."""
MAX_WINDOW: Final = 8_388_608
"""Largest zstd window that a client must accept (RFC 9659)."""
MAX_RATIO: Final = 250
"""A body that expands further is a bomb; what passes 100:1 on real sites are tables of zeros in the first `RATIO_FROM` bytes."""
RATIO_FROM: Final = 1_048_576
ACCEPTED: Final = "gzip, deflate, br, zstd"
"""What a client says in `Accept-Encoding` that reads with this decoder."""
_STEP: Final = 65_536
_PORTION: Final = 16_384
_LARGE: Final = 4_096
"""Bytes from which on a piece of a body is not copied before all of it is there."""
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_GZIP_HEAD: Final = 10
_GZIP_TRAILER: Final = 8
_LONGEST_HEAD: Final = 70_000
_AFTER_A_MEMBER: Final = b"\0"
"""Stands before what follows a member, which no head begins with."""
_HAS_CHECK, _HAS_EXTRA, _HAS_NAME, _HAS_COMMENT = 2, 4, 8, 16
_ZLIB_HEAD: Final = 2


_LONGEST_REMEMBERED: Final = 100
_MEDIA_TYPE: Final = re.compile(r"[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+/[!#$%&'*+\-.^_`|~0-9A-Za-z]+)")


def media_type(content_type: str) -> str:
    """Returns the media type that browsers read in a `Content-Type`, lower case, without parameters; `""` for none.

    Of several it is HTML where any of them is: browsers take the last one, or the first (Fetch standard §2.2.2), and none of
    them minds what follows a type without a semicolon. Sites say the same few: short ones are remembered.
    """
    return (_media_type if len(content_type) <= _LONGEST_REMEMBERED else _media_type.__wrapped__)(content_type)


@lru_cache(maxsize=512)
def _media_type(content_type: str) -> str:
    found = [match[1].lower() for part in content_type.split(",") if (match := _MEDIA_TYPE.match(part)) is not None]
    return "text/html" if "text/html" in found else found[-1] if found else ""


class EncodingError(GatewayFilterError):
    """A body is not in the encoding that it claims, in one that is not known, or expands without measure."""


class _Decoder(Protocol):
    def decode(self, data: bytes, room: int) -> Iterator[bytes]:
        """Yields pieces of at most `_STEP` bytes; what goes beyond `room` bytes in all need not be made."""


class StreamDecoder:
    """Decodes one body, piece by piece.

    Args:
        content_encoding: the header's value; one encoding, `""` for none.
        max_ratio: a body that expands further is a bomb.
        ratio_from: decoded bytes up to which it may expand as it likes.

    Raises:
        EncodingError: an encoding that is not known, or several of them.
    """

    def __init__(self, content_encoding: str, *, max_ratio: int = MAX_RATIO, ratio_from: int = RATIO_FROM) -> None:
        name = content_encoding.strip().lower()
        if name not in KNOWN:
            raise EncodingError(f"the body is in the unknown encoding {name[:40]!r}")
        self.encoded = name not in {"", "identity"}
        self._max_ratio = max_ratio
        self._ratio_from = ratio_from
        self._decoder = _DECODERS[name]() if self.encoded else None
        self._taken = 0
        self._given = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields what the next bytes from the wire decode to, in pieces of some 64 KB.

        Raises:
            EncodingError: they are not of that encoding, or a bomb.
        """
        if self._decoder is None:
            if data:
                yield data
            return
        self._taken += len(data)
        most = max(self._ratio_from, self._taken * self._max_ratio)
        try:
            for piece in self._decoder.decode(data, most - self._given):
                self._given += len(piece)
                if self._given > most:
                    raise EncodingError(f"the body expands to more than {self._max_ratio} times its size")
                if piece:
                    yield piece
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            raise EncodingError("the body is not in the encoding that it claims") from error


class BoundedBody:
    """Collects a body off the wire, decoded: never more than `limit` bytes of it, nor many more encoded ones.

    Attributes:
        truncated: there was more than `limit`; the body holds exactly `limit` bytes then.

    Raises:
        EncodingError: as `StreamDecoder`.
    """

    def __init__(self, content_encoding: str, limit: int, *, max_ratio: int = MAX_RATIO, ratio_from: int = RATIO_FROM) -> None:
        self._decoder = StreamDecoder(content_encoding, max_ratio=max_ratio, ratio_from=ratio_from)
        self._limit = limit
        self._wire_bytes = 0
        self._given = 0
        self._pieces: list[bytes] = []
        self._crumbs = bytearray()
        self.truncated = False

    @property
    def body(self) -> bytes:
        """What was decoded so far."""
        self._sweep_up()
        return b"".join(self._pieces)  # one piece is not copied

    def feed(self, data: bytes) -> bool:
        """Decodes the next bytes from the wire. Returns False when the limit is reached and no more are wanted.

        Raises:
            EncodingError: the bytes are not of that encoding, or a bomb.
        """
        self._wire_bytes += len(data)
        if self._decoder.encoded and self._wire_bytes > self._limit + _STEP:
            raise EncodingError("the body is longer encoded than it may be decoded")
        for some in self._portions(data):
            for piece in self._decoder.feed(some):
                room = self._limit - self._given
                if len(piece) > room:
                    self._keep(piece[:room])
                    self.truncated = True
                    return False
                self._keep(piece)
        return True

    def _portions(self, data: bytes) -> Iterable[bytes]:
        """Returns encoded bytes in small portions: what they may expand to is measured by those that were taken so far."""
        if not self._decoder.encoded or len(data) <= _PORTION:
            return (data,)
        return (data[at : at + _PORTION] for at in range(0, len(data), _PORTION))

    def _keep(self, piece: bytes) -> None:
        """Keeps large pieces as they came; of small ones each would take more than it holds."""
        self._given += len(piece)
        if len(piece) >= _LARGE:
            self._sweep_up()
            self._pieces.append(piece)
        else:
            self._crumbs += piece
            if len(self._crumbs) >= _STEP:
                self._sweep_up()

    def _sweep_up(self) -> None:
        if self._crumbs:
            self._pieces.append(bytes(self._crumbs))
            self._crumbs.clear()


def as_shown(content_encoding: str) -> str:
    """Returns by which encodings browsers read a body: they pass over `identity`, and some over unknown names beside others.

    Args:
        content_encoding: the header's value.
    """
    name = content_encoding.strip().lower()
    if "," not in name:
        return name if name in KNOWN else ""
    return ", ".join(one for part in name.split(",") if (one := part.strip()) in KNOWN and one not in {"", "identity"})


def decode_up_to(body: bytes, content_encoding: str, limit: int) -> tuple[bytes, bool]:
    """Decodes a whole body.

    Args:
        body: as it came over the wire, perhaps cut off.
        content_encoding: the header's value.
        limit: most bytes that are wanted.

    Returns:
        The decoded body, and whether it was cut at the limit.

    Raises:
        EncodingError: as `StreamDecoder`.
    """
    whole = bytearray()
    for piece in StreamDecoder(content_encoding).feed(body):
        whole += piece
        if len(whole) > limit:
            return bytes(whole[:limit]), True
    return bytes(whole), False


class _Gzip:
    """gzip of any number of members.

    Checksums are not asked for, as browsers show a page whose checksum is wrong: else it would be seen by everybody and judged
    by nobody. So the members' frames are read here (RFC 1952 §2.3), and zlib reads what is in them.
    """

    def __init__(self) -> None:
        self._head = b""
        self._inflate: _Inflate | None = None
        self._over = False

    def decode(self, data: bytes, room: int) -> Iterator[bytes]:  # noqa: ARG002  it stops between pieces
        while data and not self._over:
            if self._inflate is None:
                self._head += data
                start = _gzip_start(self._head)
                if start == 0 and len(self._head) > _LONGEST_HEAD:
                    raise zlib.error("a head without an end")
                if start <= 0:
                    self._over = start < 0  # browsers ignore what follows the last member
                    return
                data, self._head = self._head[start:], _AFTER_A_MEMBER
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            if data:
                yield self._inflate.decompress(data, _STEP)
            data = self._inflate.unconsumed_tail
            if self._inflate.eof:
                data, self._inflate = self._inflate.unused_data, None


class _Deflate:
    """zlib's format, whose checksum is not asked for either, or raw deflate, which some servers send under the same name."""

    def __init__(self) -> None:
        self._head = b""
        self._started = False
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)

    def decode(self, data: bytes, room: int) -> Iterator[bytes]:  # noqa: ARG002  it stops between pieces
        if not self._started:
            self._head += data
            if len(self._head) < _ZLIB_HEAD:
                return
            self._started = True
            data = self._head[_ZLIB_HEAD:] if self._head[0] & 0x0F == zlib.DEFLATED else self._head
        while data and not self._inflate.eof:
            yield self._inflate.decompress(data, _STEP)
            data = self._inflate.unconsumed_tail


class _Inflate(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _gzip_start(head: bytes) -> int:
    """Returns where a gzip member's data begins, 0 where more has to come first, -1 where no further member follows.

    Args:
        head: what is there of the member's head, behind `_AFTER_A_MEMBER` and the trailer of the one before.

    Raises:
        zlib.error: the first member has no head of gzip's.
    """
    at = 0
    if head.startswith(_AFTER_A_MEMBER):
        at = len(_AFTER_A_MEMBER) + _GZIP_TRAILER
        if head[at : at + 1] not in {b"", b"\x1f"}:
            return -1
    elif not _GZIP_MAGIC.startswith(head[: len(_GZIP_MAGIC)]):
        raise zlib.error("no gzip")
    if len(head) < at + _GZIP_HEAD:
        return 0
    flags = head[at + 3]
    at += _GZIP_HEAD
    if flags & _HAS_EXTRA:
        at += 2 + int.from_bytes(head[at : at + 2], "little")
    for flag in (_HAS_NAME, _HAS_COMMENT):
        if flags & flag:
            end = head.find(b"\0", at)
            if end < 0:
                return 0
            at = end + 1
    at += 2 if flags & _HAS_CHECK else 0
    return at if len(head) >= at else 0


class _Brotli:
    def __init__(self) -> None:
        self._brotli = brotli.Decompressor()

    def decode(self, data: bytes, room: int) -> Iterator[bytes]:  # noqa: ARG002  it stops between pieces
        if self._brotli.is_finished():
            return
        piece = self._brotli.process(data, output_buffer_limit=_STEP)
        while piece:  # `can_accept_more_data` is true while there is more to take out
            yield piece
            piece = self._brotli.process(b"", output_buffer_limit=_STEP)


class _FullError(Exception):
    """There is no room for more."""


class _Pieces:
    """What zstandard writes to. It writes at most `_STEP` bytes at a time but does not stop between them."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.room = 0

    def write(self, data: bytes) -> int:
        self.pieces.append(bytes(data))
        self.room -= len(data)
        if self.room < 0:
            raise _FullError
        return len(data)


class _Zstd:
    def __init__(self) -> None:
        self._out = _Pieces()
        self._writer = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_writer(
            cast("IO[bytes]", self._out), write_size=_STEP, closefd=False
        )

    def decode(self, data: bytes, room: int) -> Iterator[bytes]:
        self._out.room = room
        with contextlib.suppress(_FullError):  # the last piece tells
            self._writer.write(data)
        pieces, self._out.pieces = self._out.pieces, []
        yield from pieces


_DECODERS: Final[dict[str, type[_Decoder]]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
