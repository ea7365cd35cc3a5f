"""Streaming decompression of files: gzip, bzip2, xz and zstd, recognised by their first bytes, each in bounded memory.

A stream that ends before its own end mark raises EOFError, so that half a download is never taken for a list.
"""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import IO, Protocol, cast

import zstandard

_MEMORY_LIMIT = 128 << 20
"""Bytes that a decompressor may allocate: the largest window that `xz -9` and `zstd --ultra` make is half of that."""

_XZ_FEED = 65_536
_ZSTD_FEED = 512
"""Bytes given to the decompressor at once: a zstd block of four bytes stands for up to 128 KiB, so at most 16 MiB come out."""

DAMAGE = (zlib.error, lzma.LZMAError, zstandard.ZstdError, EOFError, gzip.BadGzipFile)
"""What reading a damaged or cut stream raises; bzip2 raises a bare OSError, which `opened` turns into EOFError."""


class Readable(Protocol):
    """What lists are read from."""

    def read(self, size: int, /) -> bytes:
        """Returns some bytes, about `size`; none at the end."""
        ...


class _Bzip2:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = bz2.BZ2File(file)

    def read(self, size: int, /) -> bytes:
        try:
            return self._file.read(size)
        except (OSError, ValueError) as error:
            raise EOFError from error


class _Xz:
    """xz with a limit on its memory, which `lzma.LZMAFile` has not."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = _xz_decoder()

    def read(self, size: int, /) -> bytes:
        while True:
            if self._decoder.eof:
                rest = self._decoder.unused_data or self._file.read(_XZ_FEED)
                if not rest.strip(b"\0"):  # the padding that may follow a stream
                    return b""
                self._decoder = _xz_decoder()
            else:
                rest = self._file.read(_XZ_FEED) if self._decoder.needs_input else b""
                if not rest and self._decoder.needs_input:
                    raise EOFError
            if found := self._decoder.decompress(rest, size):
                return found


def _xz_decoder() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_LIMIT)


class _Zstd:
    """zstd that notices a cut stream, which `stream_reader` does not."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._context = zstandard.ZstdDecompressor(max_window_size=_MEMORY_LIMIT)
        self._frame = self._context.decompressobj()
        self._rest = b""
        self._between = True

    def read(self, _size: int, /) -> bytes:
        while True:
            fed = self._rest[:_ZSTD_FEED] or self._file.read(_ZSTD_FEED)
            self._rest = self._rest[len(fed) :] if self._rest else b""
            if not fed:
                if self._between:
                    return b""
                raise EOFError
            found = self._frame.decompress(fed)
            self._between = self._frame.eof
            if self._frame.eof:
                self._rest = self._frame.unused_data + self._rest
                self._frame = self._context.decompressobj()
            if found:
                return found


_READERS: Mapping[bytes, Callable[[IO[bytes]], Readable]] = {
    b"\x1f\x8b": lambda file: cast("Readable", gzip.GzipFile(fileobj=file)),
    b"BZh": _Bzip2,
    b"\xfd7zXZ\0": _Xz,
    b"\x28\xb5\x2f\xfd": _Zstd,
}


def decompressed(file: IO[bytes]) -> Readable | None:
    """Returns the plain content of a compressed file, `None` when it is not compressed; the file stands at its beginning.

    Reading raises one of `DAMAGE` where the stream is damaged or cut.
    """
    head = file.read(8)
    file.seek(0)
    for magic, reader in _READERS.items():
        if head.startswith(magic):
            return reader(file)
    return None
