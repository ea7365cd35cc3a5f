"""Turns what was downloaded or given as a path into one plain list file: gzip, UT1 archives and UT1 folders."""

import gzip
import tarfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, cast

from gatewayfilter.errors import ListError, SourceError

_GZIP = b"\x1f\x8b"
_LAYERS = 2
"""A compressed archive may be compressed once more for the way."""

_CHUNK = 262_144
_PARTS = ("domains", "urls")


def unpack(origin: Path, target: Path, folders: Collection[str], max_bytes: int) -> bool:
    """Writes the plain list to `target`.

    A UT1 category (a folder, or a tar archive of one or more) becomes its domains followed by its path prefixes.

    Args:
        origin: a file, compressed or not, or a folder.
        target: written anew.
        folders: which category to take of an archive with several, by any of these names.
        max_bytes: the largest plain list taken.

    Returns:
        Whether it is a UT1 category.

    Raises:
        ListError: damaged, or an archive without a category in it.
        SourceError: larger than `max_bytes`.
    """
    if origin.is_dir():
        parts = [origin / part for part in _PARTS if (origin / part).is_file()]
        if not parts:
            raise ListError("the folder holds neither `domains` nor `urls`")
        with target.open("wb") as out:
            room = max_bytes
            for part in parts:
                with part.open("rb") as file:
                    room = _append(file, out, room, max_bytes)
        return True
    with _damage_is_a_list_error():
        return _unpack_file(origin, target, folders, max_bytes)


@contextmanager
def _damage_is_a_list_error() -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise ListError("its compressed data is damaged") from error


def _unpack_file(origin: Path, target: Path, folders: Collection[str], max_bytes: int) -> bool:
    with _unzipped(origin, target, max_bytes) as plain:
        if tarfile.is_tarfile(plain):
            with tarfile.open(plain, "r:") as archive:
                _unpack_category(archive, target, folders, max_bytes)
            return True
        with plain.open("rb") as file, target.open("wb") as out:
            _append(file, out, max_bytes, max_bytes)
        return False


@contextmanager
def _unzipped(origin: Path, target: Path, max_bytes: int) -> Iterator[Path]:
    plain = origin
    made: list[Path] = []
    try:
        for layer in range(_LAYERS):
            with plain.open("rb") as file:
                if file.read(2) != _GZIP:
                    break
            made.append(target.with_name(f"{target.name}.{layer}"))
            with plain.open("rb") as file, made[-1].open("wb") as out:
                _append(cast("IO[bytes]", gzip.GzipFile(fileobj=file)), out, max_bytes, max_bytes)
            plain = made[-1]
        yield plain
    finally:
        for path in made:
            path.unlink(missing_ok=True)


def _unpack_category(archive: tarfile.TarFile, target: Path, folders: Collection[str], max_bytes: int) -> None:
    members: dict[str, dict[str, tarfile.TarInfo]] = {}
    for member in archive:
        path = PurePosixPath(member.name)
        if member.isfile() and path.name in _PARTS:
            members.setdefault(path.parent.name, {})[path.name] = member
    if not members:
        raise ListError("the archive holds neither `domains` nor `urls`")
    wanted = [name for name in members if name in folders] or list(members)
    if len(wanted) > 1:
        raise ListError(f"the archive holds several categories; name one of {', '.join(sorted(members))}")
    chosen = members[wanted[0]]
    room = max_bytes
    with target.open("wb") as out:
        for part in _PARTS:
            if part in chosen and (file := archive.extractfile(chosen[part])):
                room = _append(file, out, room, max_bytes)


def _append(file: IO[bytes], out: IO[bytes], room: int, max_bytes: int) -> int:
    """Copies a file to its end and sees that it ends with a line's end. Returns the room that is left, in bytes."""
    last = b"\n"
    while chunk := file.read(_CHUNK):
        room -= len(chunk)
        if room < 0:
            raise SourceError(f"it is larger than {max_bytes:,} bytes (sources.max_bytes)")
        out.write(chunk)
        last = chunk[-1:]
    if last != b"\n":
        out.write(b"\n")
    return room
