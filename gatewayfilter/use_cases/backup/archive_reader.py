"""Reading of a backup. Nothing of the file is trusted: names, sizes and checksums are verified before anything is used."""

import hashlib
import json
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Self

from gatewayfilter.errors import BackupError
from gatewayfilter.store.backup import BACKED_UP
from gatewayfilter.store.backup.row_codec import MAX_LINE
from gatewayfilter.use_cases.backup.archive_writer import FORMAT, MANIFEST
from gatewayfilter.use_cases.backup.state_files import (
    MAX_SMALL_FILE,
    PROXY_USERS,
    SEALED_CA,
    SETTINGS,
    STATE,
    TABLES,
    is_copy_of_a_list,
    is_state_name,
)

_MAX_MEMBERS: Final = 20_000
_MAX_MANIFEST: Final = 16 * 1024 * 1024
_MAX_RATIO: Final = 300
"""Most bytes that a byte of the file may become: rows of the log, which repeat themselves, become some 20."""
_FREE_OF_RATIO: Final = 16 * 1024 * 1024
_BLOCK: Final = 1 << 20
_LONGEST_TEXT: Final = 100
"""Characters of a version in the manifest."""
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_FAULTS: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)
_TABLES: Final = frozenset(item.table.name for item in BACKED_UP)


class Archive:
    """A verified backup. Implements `store.backup.RowSource`, with the rows as they are in it.

    Attributes:
        schema: of its rows.
        created_at: Unix seconds.
        program: the version of the program that wrote it.
        counts: rows by table.
        with_lists: whether it holds the last copies of subscriptions.
        total_bytes: of all members, unpacked.

    Args:
        path: the file.

    Raises:
        BackupError: it cannot be read, is damaged, or was written by a newer version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _open_regular(path)
        try:
            self._archive = self._opened()
            self._names = self._checked_names()
            manifest = self._manifest()
            self.schema: str = manifest["schema"]
            self.created_at = float(manifest["created_at"])
            self.program: str = manifest["program"]
            self.with_lists: bool = manifest["lists"]
            self.counts: Mapping[str, int] = manifest["counts"]
            self.total_bytes = self._verify(manifest["members"])
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def tables(self) -> Sequence[str]:
        """Returns the names of the tables that it has."""
        return sorted(self.counts)

    def lines(self, table: str) -> Iterator[bytes]:
        """Yields the rows of a table.

        Raises:
            BackupError: a row is too long, or the file can no longer be read.
        """
        try:
            with self._archive.open(f"{TABLES}{table}.jsonl") as member:
                while line := member.readline(MAX_LINE + 1):
                    if len(line) > MAX_LINE:
                        raise BackupError(f"the backup cannot be used: a row of {table} is too long")
                    yield line
        except _FAULTS as error:
            raise self._damaged(error) from error

    def state_names(self) -> list[str]:
        """Returns the files of the state folder that it has, relative to it, sorted."""
        return sorted(name.removeprefix(STATE) for name in self._names if name.startswith(STATE))

    def has(self, name: str) -> bool:
        """Returns whether it has a member."""
        return name in self._names

    def content(self, name: str) -> bytes:
        """Returns a member, which is at most 64 MiB long.

        Raises:
            BackupError: the file can no longer be read.
        """
        return b"".join(self.blocks(name))

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yields a member in blocks.

        Raises:
            BackupError: the file can no longer be read.
        """
        try:
            with self._archive.open(name) as member:
                yield from iter(lambda: member.read(_BLOCK), b"")
        except _FAULTS as error:
            raise self._damaged(error) from error

    def _opened(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self._file)
        except _FAULTS as error:
            raise BackupError(f"{self._path} is no backup, or is truncated") from error

    def _checked_names(self) -> frozenset[str]:
        members = self._archive.infolist()
        names = frozenset(member.filename for member in members)
        if len(members) > _MAX_MEMBERS:
            raise self._refused("it has too many members")
        if len(names) != len(members):
            raise self._refused("a member stands in it twice")
        for member in members:
            mode = stat.S_IFMT(member.external_attr >> 16)
            if mode not in {0, stat.S_IFREG} or member.is_dir():
                raise self._refused("a member is no regular file")
            if member.flag_bits & 1 or member.compress_type not in _METHODS:
                raise self._refused("a member is packed in another way")
            if not _is_name(member.filename):
                raise self._refused("a member has a name that no backup has")
        if MANIFEST not in names:
            raise self._refused("it has no manifest")
        return names - {MANIFEST}

    def _manifest(self) -> dict[str, Any]:
        if self._archive.getinfo(MANIFEST).file_size > _MAX_MANIFEST:
            raise self._refused("its manifest is too long")
        try:
            with self._archive.open(MANIFEST) as member:
                manifest: Any = json.loads(member.read(_MAX_MANIFEST))
        except (*_FAULTS, RecursionError) as error:
            raise self._damaged(error) from error
        if isinstance(manifest, dict) and isinstance(manifest.get("format"), int) and manifest["format"] > FORMAT:
            raise BackupError(f"{self._path} was written by a newer version: update GatewayFilter first")
        if not _is_manifest(manifest) or manifest["members"].keys() != self._names:
            raise self._refused("its manifest does not fit its members")
        if {f"{TABLES}{table}.jsonl" for table in manifest["counts"]} != {
            name for name in self._names if name.startswith(TABLES)
        }:
            raise self._refused("its manifest does not fit its tables")
        checked: dict[str, Any] = manifest
        return checked

    def _verify(self, members: Mapping[str, Mapping[str, Any]]) -> int:
        total: int = sum(member["bytes"] for member in members.values())
        if total > _FREE_OF_RATIO + _MAX_RATIO * os.fstat(self._file.fileno()).st_size:
            raise self._refused("it would become far larger than a backup does")
        for name, facts in members.items():
            large = name.startswith(TABLES) or is_copy_of_a_list(name.removeprefix(STATE))
            if self._archive.getinfo(name).file_size != facts["bytes"] or (facts["bytes"] > MAX_SMALL_FILE and not large):
                raise self._refused(f"{name} has an impossible size")
            digest, size = hashlib.sha256(), 0
            for block in self.blocks(name):
                digest.update(block)
                size += len(block)
            if size != facts["bytes"] or digest.hexdigest() != facts["sha256"]:
                raise BackupError(f"{self._path} is damaged: {name} does not have its checksum")
        return total

    def _refused(self, reason: str) -> BackupError:
        return BackupError(f"{self._path} is no backup that can be used: {reason}")

    def _damaged(self, error: BaseException) -> BackupError:
        if isinstance(error, OSError) and error.strerror:
            return BackupError(f"cannot read {self._path}: {error.strerror}")
        return BackupError(f"{self._path} is damaged")


def _open_regular(path: Path) -> IO[bytes]:
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # a FIFO is not waited for
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise BackupError(f"{path} is no file")
    except (OSError, ValueError) as error:
        raise BackupError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    return file


def _is_name(name: str) -> bool:
    if name.startswith(STATE):
        return is_state_name(name.removeprefix(STATE))
    if name.startswith(TABLES):
        return name.endswith(".jsonl") and name.removeprefix(TABLES).removesuffix(".jsonl") in _TABLES
    return name in {MANIFEST, SETTINGS, PROXY_USERS, SEALED_CA}


def _is_manifest(manifest: object) -> bool:
    return (
        isinstance(manifest, dict)
        and type(manifest.get("format")) is int
        and manifest["format"] == FORMAT
        and all(_is_text(manifest.get(name)) for name in ("schema", "program"))
        and _is_moment(manifest.get("created_at"))
        and isinstance(manifest.get("lists"), bool)
        and isinstance(counts := manifest.get("counts"), dict)
        and isinstance(members := manifest.get("members"), dict)
        and all(map(_is_size, counts.values()))
        and all(map(_are_facts, members.values()))
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT


def _is_moment(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < 1e12


def _are_facts(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("sha256"), str) and _is_size(value.get("bytes"))


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**50
