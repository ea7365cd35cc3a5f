"""Decoding of bodies that cannot be made to fill the memory: what comes out is bounded before it is made.

Our own rather than the client library's: its bound depends on the version, and zstd on another package.
"""

import zlib
from typing import IO, Protocol, cast

import brotli
import zstandard

from gatewayfilter.crawl.fetch_errors import BadAnswerError

ACCEPTED = "gzip, deflate, br, zstd"
MAX_RATIO = 100
RATIO_FROM = 262_144
"""Small bodies of many equal bytes compress beyond 100:1 and harm nobody."""
MAX_WINDOW = 8_388_608
"""Largest zstd window that a client must accept (RFC 9659)."""
_STEP = 65_536


class BodyFullError(Exception):
    """The body reached its limit; nothing more is decoded."""


class BodyBuffer:
    """Collects a decoded body up to `limit` bytes.

    Attributes:
        body: what was collected.
        wire_bytes: how many encoded bytes it came from; the decoder counts them.
    """

    __slots__ = ("body", "encoded", "limit", "wire_bytes")

    def __init__(self, limit: int, *, encoded: bool) -> None:
        self.body = bytearray()
        self.limit = limit
        self.encoded = encoded
        self.wire_bytes = 0

    def write(self, data: bytes) -> int:
        """Adds decoded bytes.

        Raises:
            BodyFullError: at the limit; the body holds exactly `limit` bytes then.
            BadAnswerError: more than `MAX_RATIO` times what came over the wire.
        """
        room = self.limit - len(self.body)
        self.body += data[:room]
        if self.encoded and RATIO_FROM < len(self.body) > self.wire_bytes * MAX_RATIO:
            raise BadAnswerError(f"the body expands to more than {MAX_RATIO} times its size")
        if len(data) > room:
            raise BodyFullError
        return len(data)


class Decoder(Protocol):
    """One content encoding, as a stream into a `BodyBuffer`."""

    def feed(self, data: bytes) -> None:
        """Decodes the next bytes. Raises what the buffer raises, and the encoding's own errors."""
        ...


class BodyDecoder:
    """Takes a body off the wire and leaves it decoded in `body`.

    Raises:
        BadAnswerError: an encoding that is not known, or two of them.
    """

    def __init__(self, content_encoding: str, limit: int) -> None:
        name = content_encoding.strip().lower()
        self._buffer = BodyBuffer(limit, encoded=name not in {"", "identity"})
        self._decoder = _decoder(name, self._buffer)
        self.truncated = False

    @property
    def body(self) -> bytes:
        """What was decoded so far."""
        return bytes(self._buffer.body)

    def feed(self, data: bytes) -> bool:
        """Decodes the next bytes from the wire. Returns False when the limit is reached and no more are wanted.

        Raises:
            BadAnswerError: the bytes are not of that encoding, or a bomb.
        """
        self._buffer.wire_bytes += len(data)
        if self._buffer.wire_bytes > self._buffer.limit + _STEP and self._buffer.encoded:
            raise BadAnswerError("the body is longer encoded than it may be decoded")
        try:
            self._decoder.feed(data)
        except BodyFullError:
            self.truncated = True
            return False
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            raise BadAnswerError("the body is not in the encoding that it claims") from error
        return True


def _decoder(name: str, buffer: BodyBuffer) -> Decoder:
    if name in {"", "identity"}:
        return _Identity(buffer)
    if name in {"gzip", "x-gzip"}:
        return _Zlib(buffer, 16 + zlib.MAX_WBITS)
    if name == "deflate":
        return _Zlib(buffer, zlib.MAX_WBITS)
    if name == "br":
        return _Brotli(buffer)
    if name == "zstd":
        return _Zstd(buffer)
    raise BadAnswerError(f"the body is in the unknown encoding {name[:40]!r}")


class _Identity:
    def __init__(self, buffer: BodyBuffer) -> None:
        self._buffer = buffer

    def feed(self, data: bytes) -> None:
        self._buffer.write(data)


class _Zlib:
    """gzip of any number of members, and deflate with or without the zlib header that some servers leave out."""

    def __init__(self, buffer: BodyBuffer, wbits: int) -> None:
        self._buffer = buffer
        self._wbits = wbits
        self._started = False
        self._inflate = zlib.decompressobj(wbits)

    def feed(self, data: bytes) -> None:
        if not self._started and data:
            self._started = True
            if self._wbits == zlib.MAX_WBITS and data[0] & 0x0F != 8:
                self._wbits = -zlib.MAX_WBITS
                self._inflate = zlib.decompressobj(self._wbits)
        while data:
            if self._inflate.eof:
                if self._wbits < 16 or not data.startswith(b"\x1f"):
                    return  # browsers ignore what follows the last member
                self._inflate = zlib.decompressobj(self._wbits)
            self._buffer.write(self._inflate.decompress(data, _STEP))
            data = self._inflate.unconsumed_tail or self._inflate.unused_data


class _Brotli:
    def __init__(self, buffer: BodyBuffer) -> None:
        self._buffer = buffer
        self._brotli = brotli.Decompressor()

    def feed(self, data: bytes) -> None:
        if self._brotli.is_finished():
            return
        piece = self._brotli.process(data, output_buffer_limit=_STEP)
        while piece:  # `can_accept_more_data` is true while there is more to take out
            self._buffer.write(piece)
            piece = self._brotli.process(b"", output_buffer_limit=_STEP)


class _Zstd:
    def __init__(self, buffer: BodyBuffer) -> None:
        self._writer = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_writer(
            cast("IO[bytes]", buffer), write_size=_STEP, closefd=False
        )

    def feed(self, data: bytes) -> None:
        self._writer.write(data)
