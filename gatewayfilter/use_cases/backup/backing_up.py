"""`gatewayfilter backup`: everything into one file, while the filter runs."""

import json
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gatewayfilter import __version__
from gatewayfilter.errors import BackupError
from gatewayfilter.store import Store
from gatewayfilter.store.backup import BACKED_UP, Part
from gatewayfilter.use_cases.backup.archive_writer import ArchiveWriter, writing
from gatewayfilter.use_cases.backup.sealing import check_passphrase, seal
from gatewayfilter.use_cases.backup.state_files import (
    PROXY_USERS,
    SEALED_CA,
    SETTINGS,
    STATE,
    TABLES,
    Places,
    is_copy_of_a_list,
    kind_of,
    state_files,
    unit_of,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a backup holds beside the state.

    Attributes:
        parts: of the database.
        lists: whether the last copies of subscriptions are in it, and not their definitions alone.
        passphrase: encrypts the certificate authority; `None` leaves it out.
    """

    parts: frozenset[Part] = frozenset({Part.STATE})
    lists: bool = True
    passphrase: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What was backed up.

    Attributes:
        counts: what it is, for people → how many.
        size_bytes: of the file.
        with_ca: whether the certificate authority is in it.
    """

    path: Path
    counts: dict[str, int]
    size_bytes: int
    with_ca: bool


def back_up(store: Store, places: Places, path: Path, wanted: Wanted, *, overwrite: bool = False) -> BackupReport:
    """Writes a backup.

    Args:
        store: the database, read in one state.
        places: of the files.
        path: of the backup.
        wanted: what it holds.
        overwrite: whether a file of this name is replaced.

    Raises:
        BackupError, StoreError: something cannot be read, or the file not be written; there is no half backup.
    """
    if wanted.passphrase is not None:
        check_passphrase(wanted.passphrase)
    titles = {item.table.name: item.title for item in BACKED_UP}
    with writing(path, overwrite=overwrite) as archive:
        with store.backup.snapshot(wanted.parts) as rows:
            counts = {name: _add_table(archive, name, rows.lines(name)) for name in rows.tables()}
        shown = {titles[name]: count for name, count in counts.items()} | _add_files(archive, places, lists=wanted.lists)
        if wanted.passphrase is not None:
            archive.add(SEALED_CA, [seal(_packed(places.ca), wanted.passphrase)])
        archive.finish(
            {
                "program": __version__,
                "schema": store.backup.schema,
                "created_at": round(time.time(), 3),
                "lists": wanted.lists,
                "counts": counts,
            }
        )
    return BackupReport(path, shown, path.stat().st_size, wanted.passphrase is not None)


def _add_table(archive: ArchiveWriter, name: str, lines: Iterable[bytes]) -> int:
    counted = _Counted(lines)
    archive.add(f"{TABLES}{name}.jsonl", counted)
    return counted.count


class _Counted:
    """Passes lines on in blocks, and counts them."""

    _LINES = 200

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        held: list[bytes] = []
        for line in self._lines:
            self.count += 1
            held.append(line)
            if len(held) == self._LINES:
                yield b"".join(held)
                held.clear()
        yield b"".join(held)


def _add_files(archive: ArchiveWriter, places: Places, *, lists: bool) -> dict[str, int]:
    units: dict[str, set[str]] = {}
    for name in state_files(places.data_dir):
        if lists or not is_copy_of_a_list(name):
            archive.add_file(STATE + name, places.data_dir / name)
            units.setdefault(kind_of(name), set()).add(unit_of(name))
    counts = {kind: len(names) for kind, names in units.items()}
    for name, path, kind in ((SETTINGS, places.settings_file, "settings"), (PROXY_USERS, places.proxy_users, "proxy users")):
        if path.is_file():
            archive.add_file(name, path)
            counts[kind] = 1
    return counts


def _packed(ca: Path) -> bytes:
    """Returns the files of the certificate authority as JSON."""
    try:
        files = {path.name: b64encode(path.read_bytes()).decode() for path in sorted(ca.iterdir()) if path.is_file()}
    except OSError as error:
        raise BackupError(f"cannot read the certificate authority {ca}: {error.strerror}") from error
    return json.dumps(files).encode()
