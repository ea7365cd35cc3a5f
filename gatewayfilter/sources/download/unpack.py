"""The conversion of a download or a path into one plain UTF-8 list file: compressed files, archives, UT1 folders."""

import codecs
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gatewayfilter.errors import ListError, SourceError
from gatewayfilter.private_files import private
from gatewayfilter.sources.download.archives import PARTS, choose, opened_archive
from gatewayfilter.sources.download.compression import DAMAGE, Readable, decompressed

_LAYERS = 2
"""A compressed archive may be compressed once more for the way."""

_CHUNK = 262_144

_MOST_PACKED = 200
"""How many times its packed size a list may have: names take a tenth of theirs, and the same line over and over a thousandth."""

_ALWAYS_UNPACKED = 8 << 20
"""Bytes that are unpacked whatever their packed size is."""

_WIDE = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""Byte order marks of the encodings that are turned into UTF-8; the longer ones first, of which a shorter one is a part."""


def unpack(origin: Path, target: Path, folders: Collection[str], max_bytes: int) -> bool:
    """Writes the plain list to `target`.

    A UT1 category (a folder, or an archive of one or more) becomes its domains followed by its path prefixes. Of another archive
    its only list is taken. UTF-16 and UTF-32 with a byte order mark become UTF-8.

    Args:
        origin: a file, compressed or not, or a folder.
        target: written again.
        folders: which category to take of an archive with several, by any of these names.
        max_bytes: the largest plain list taken, and the largest that any step on the way to it may become. A packed one has also
            to be more than a two hundredth of it: a list of one line over and over fills memory when it is read.

    Returns:
        Whether it is a UT1 category.

    Raises:
        ListError: damaged, or an archive without a list in it.
        SourceError: larger than `max_bytes`, or than its packed size allows.
    """
    if origin.is_dir():
        parts = [origin / part for part in PARTS if (origin / part).is_file()]
        if not parts:
            raise ListError("the folder holds neither `domains` nor `urls`")
        with open(target, "wb", opener=private) as out:
            writer = _Writer(out, max_bytes, max_bytes)
            for part in parts:
                with part.open("rb") as file:
                    writer.append(file)
        return True
    with _damage_is_a_list_error():
        return _unpack_file(origin, target, folders, max_bytes)


@contextmanager
def _damage_is_a_list_error() -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, *DAMAGE) as error:
        raise ListError("its compressed data is damaged or cut off") from error


def _unpack_file(origin: Path, target: Path, folders: Collection[str], max_bytes: int) -> bool:
    most = min(max_bytes, max(_ALWAYS_UNPACKED, _MOST_PACKED * origin.stat().st_size))
    with (
        _decompressed(origin, target, most, max_bytes) as plain,
        opened_archive(plain) as archive,
        open(target, "wb", opener=private) as out,
    ):
        writer = _Writer(out, max_bytes if plain == origin and archive is None else most, max_bytes)
        if archive is None:
            with plain.open("rb") as file:
                writer.append(file)
            return False
        members, is_ut1 = choose(archive.members, folders)
        for member in members:
            with archive.read(member) as file:
                writer.append(file)
        return is_ut1


@contextmanager
def _decompressed(origin: Path, target: Path, most: int, max_bytes: int) -> Iterator[Path]:
    plain = origin
    made: list[Path] = []
    try:
        for layer in range(_LAYERS):
            with plain.open("rb") as file:
                stream = decompressed(file)
                if stream is None:
                    break
                made.append(target.with_name(f"{target.name}.{layer}"))
                with open(made[-1], "wb", opener=private) as out:
                    _copy(stream, out, most, max_bytes)
            plain = made[-1]
        yield plain
    finally:
        for path in made:
            path.unlink(missing_ok=True)


def _copy(stream: Readable, out: IO[bytes], most: int, max_bytes: int) -> None:
    room = most
    while chunk := stream.read(_CHUNK):
        room -= len(chunk)
        _refuse_below_zero(room, most, max_bytes)
        out.write(chunk)


def _refuse_below_zero(room: int, most: int, max_bytes: int) -> None:
    if room < 0 and most < max_bytes:
        raise SourceError(f"it unpacks to more than {_MOST_PACKED} times its size, as no list does")
    if room < 0:
        raise SourceError(f"it is larger than {max_bytes:,} bytes (sources.max_bytes)")


class _Writer:
    """Writes files one after the other, each to a line's end, in UTF-8, up to a number of bytes together."""

    def __init__(self, out: IO[bytes], most: int, max_bytes: int) -> None:
        self._out = out
        self._most = most
        self._max_bytes = max_bytes
        self._room = most

    def append(self, file: Readable) -> None:
        """Copies a file to its end."""
        last = b"\n"
        decoder: codecs.IncrementalDecoder | None = None
        chunk = file.read(_CHUNK)
        for mark, encoding in _WIDE.items():
            if chunk.startswith(mark):
                decoder, chunk = codecs.getincrementaldecoder(encoding)("replace"), chunk[len(mark) :]
                break
        while chunk:
            plain = decoder.decode(chunk).encode(errors="replace") if decoder else chunk
            self._room -= len(plain)
            _refuse_below_zero(self._room, self._most, self._max_bytes)
            self._out.write(plain)
            last = plain[-1:] or last
            chunk = file.read(_CHUNK)
        if last != b"\n":
            self._out.write(b"\n")
