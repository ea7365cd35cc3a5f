"""Decoders of one body, which give it in pieces of bounded size."""

import contextlib
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Final, Protocol, cast

import brotli
import zstandard

MAX_WINDOW: Final = 8_388_608
"""Largest zstd window that a client must accept (RFC 9659)."""
STEP: Final = 65_536
"""Decoded bytes of one piece."""
_SLICE: Final = 4_096
"""Encoded bytes that brotli takes at once: those in which it ends, or is damaged, are read again one by one."""
_MOST_READ_AGAIN: Final = 1_048_576
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_GZIP_HEAD: Final = 10
_GZIP_TRAILER: Final = 8
_LONGEST_HEAD: Final = 70_000
_AFTER_A_MEMBER: Final = b"\0"
"""Stands before what follows a member, which no head begins with."""
_HAS_CHECK, _HAS_EXTRA, _HAS_NAME, _HAS_COMMENT = 2, 4, 8, 16
_ZLIB_HEAD: Final = 2
DAMAGE: Final = (zlib.error, brotli.error, zstandard.ZstdError)
"""What the decoders raise."""


class Decoder(Protocol):
    """Decodes one body."""

    def decode(self, data: bytes, room: int) -> Iterator[bytes]:
        """Yields pieces of at most `STEP` bytes; what goes beyond `room` bytes in all need not be made."""


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
                if start is None:
                    self._over = True  # browsers ignore what follows the last member
                    return
                if not start:
                    if len(self._head) > _LONGEST_HEAD:
                        raise zlib.error("a head without an end")
                    return
                data, self._head = self._head[start:], _AFTER_A_MEMBER
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            if data:
                yield from _inflated(self._inflate, data)
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
            yield from _inflated(self._inflate, data)
            data = self._inflate.unconsumed_tail


class _Inflate(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...
    def copy(self) -> "_Inflate": ...


def _inflated(inflate: _Inflate, data: bytes) -> Iterator[bytes]:
    """Yields a piece; of data that are damaged what they hold before that, and then raises."""
    before = inflate.copy()
    try:
        yield inflate.decompress(data, STEP)
    except zlib.error:
        yield from _before_the_damage((before.decompress(data[at : at + 1]) for at in range(len(data))), zlib.error)
        raise


def _before_the_damage(pieces: Iterable[bytes], damage: type[Exception]) -> Iterator[bytes]:
    whole = bytearray()
    with contextlib.suppress(damage):
        for piece in pieces:
            whole += piece
    yield bytes(whole)


def _gzip_start(head: bytes) -> int | None:
    """Returns where a gzip member's data begins, 0 where more has to come first, `None` where no further member follows.

    Args:
        head: what is there of the member's head, behind `_AFTER_A_MEMBER` and the trailer of the one before.

    Raises:
        zlib.error: the first member has no head of gzip's.
    """
    at = 0
    if head.startswith(_AFTER_A_MEMBER):
        at = len(_AFTER_A_MEMBER) + _GZIP_TRAILER
        if head[at : at + 1] not in {b"", b"\x1f"}:
            return None
    elif not _GZIP_MAGIC.startswith(head[: len(_GZIP_MAGIC)]):
        raise zlib.error("no gzip")
    flags = int.from_bytes(head[at + 3 : at + 4])
    at += _GZIP_HEAD
    if flags & _HAS_EXTRA:
        at += 2 + int.from_bytes(head[at : at + 2], "little")
    for flag in (_HAS_NAME, _HAS_COMMENT):
        if flags & flag:
            at = head.find(b"\0", at) + 1
            if not at:
                return 0
    at += 2 if flags & _HAS_CHECK else 0
    return at if len(head) >= at else 0


class _Brotli:
    """brotli, of which browsers pass over what follows the end.

    The library refuses bytes behind the end together with those before it, and takes no more afterwards. Then all is read again,
    the last slice byte by byte.
    """

    def __init__(self) -> None:
        self._brotli = brotli.Decompressor()
        self._taken = bytearray()
        self._given = 0

    def decode(self, data: bytes, room: int) -> Iterator[bytes]:  # noqa: ARG002  it stops between pieces
        for at in range(0, len(data), _SLICE):
            if self._brotli.is_finished():
                return
            some = data[at : at + _SLICE]
            try:
                for piece in self._pieces(some):
                    self._given += len(piece)
                    yield piece
            except brotli.error:
                if len(self._taken) > _MOST_READ_AGAIN:
                    raise
                yield from self._read_again(some)
                if not self._brotli.is_finished():
                    raise
            if len(self._taken) <= _MOST_READ_AGAIN:
                self._taken += some

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        piece = self._brotli.process(data, output_buffer_limit=STEP)
        while piece:  # `can_accept_more_data` is true while there is more to take out
            yield piece
            piece = self._brotli.process(b"", output_buffer_limit=STEP)

    def _read_again(self, last: bytes) -> Iterator[bytes]:
        """Yields what was not yielded before the end or the damage in the last slice."""
        self._brotli = brotli.Decompressor()
        known = self._given
        for at in range(0, len(self._taken), _SLICE):
            known -= sum(map(len, self._pieces(bytes(self._taken[at : at + _SLICE]))))
        whole = bytearray()
        with contextlib.suppress(brotli.error):
            for at in range(len(last)):
                if self._brotli.is_finished():
                    break
                for piece in self._pieces(last[at : at + 1]):
                    whole += piece
        yield bytes(whole[known:])


class _FullError(Exception):
    """There is no room for more."""


class _Pieces:
    """What zstandard writes to. It writes at most `STEP` bytes at a time but does not stop between them."""

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
            cast("IO[bytes]", self._out), write_size=STEP, closefd=False
        )

    def decode(self, data: bytes, room: int) -> Iterator[bytes]:
        self._out.room = room
        try:
            self._writer.write(data)
        except _FullError:  # the last piece tells
            pass
        except zstandard.ZstdError:
            yield from self._out.pieces
            raise
        pieces, self._out.pieces = self._out.pieces, []
        yield from pieces


DECODERS: Final[dict[str, type[Decoder]]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
"""By the encoding's name."""
