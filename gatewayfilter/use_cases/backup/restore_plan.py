"""What a restore does to the files of an installation: which are written, changed and removed."""

import json
import tempfile
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gatewayfilter.config import load
from gatewayfilter.errors import BackupError, ConfigError, StartupError
from gatewayfilter.use_cases.backup.archive_reader import Archive
from gatewayfilter.use_cases.backup.sealing import unseal
from gatewayfilter.use_cases.backup.settings_text import values_of, with_values
from gatewayfilter.use_cases.backup.state_files import (
    PROXY_USERS,
    SEALED_CA,
    SETTINGS,
    STATE,
    Places,
    is_copy_of_a_list,
    is_replaced_as_a_whole,
    kind_of,
    state_files,
    unit_of,
)

CERTIFICATE_AUTHORITY = "certificate authority"
SETTINGS_KIND = "settings"


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that a restore writes or removes.

    Attributes:
        target: where it belongs.
        kind: what it is, for people.
        unit: what is counted as one.
        member: of the backup, that is its content.
        content: its content where that is no member.
    """

    target: Path
    kind: str
    unit: str
    member: str = ""
    content: bytes | None = None

    @property
    def removes(self) -> bool:
        """Whether the file is removed."""
        return not self.member and self.content is None

    def blocks(self, archive: Archive) -> Iterable[bytes]:
        """Returns the content that is written."""
        return archive.blocks(self.member) if self.member else [self.content or b""]


@dataclass(slots=True)
class KindChanges:
    """How much of a kind a restore adds, changes and removes.

    Attributes:
        kind: what it is, for people.
    """

    kind: str
    added: int = 0
    changed: int = 0
    removed: int = 0


def plan_files(archive: Archive, places: Places, passphrase: str | None) -> list[FileChange]:
    """Returns the files that differ.

    Args:
        archive: the backup.
        places: of the files.
        passphrase: of the certificate authority; `None` leaves it as it is.

    Raises:
        BackupError: the settings or the certificate authority of the backup cannot be used, or a file not be read.
    """
    try:
        changes = [*_state_changes(archive, places), *_settings_changes(archive, places)]
        if passphrase is not None:
            changes += _authority_changes(archive, places, passphrase)
        return [change for change in changes if change.removes or not _is_same(change, archive)]
    except OSError as error:
        raise BackupError(f"cannot read {error.filename}: {error.strerror}") from error


def count_files(changes: Iterable[FileChange]) -> list[KindChanges]:
    """Returns the changes by kind. A unit with several files counts as changed unless all of them come or all go."""
    units: dict[tuple[str, str], set[str]] = {}
    for change in changes:
        what = "removed" if change.removes else "changed" if change.target.exists() else "added"
        units.setdefault((change.kind, change.unit), set()).add(what)
    kinds: dict[str, KindChanges] = {}
    for (kind, _), done in units.items():
        counts = kinds.setdefault(kind, KindChanges(kind))
        if done == {"added"}:
            counts.added += 1
        elif done == {"removed"}:
            counts.removed += 1
        else:
            counts.changed += 1
    return list(kinds.values())


def _state_changes(archive: Archive, places: Places) -> Iterator[FileChange]:
    names = archive.state_names()
    wanted = set(names)
    for name in names:
        yield FileChange(places.data_dir / name, kind_of(name), unit_of(name), STATE + name)
    for name in state_files(places.data_dir):
        if name in wanted or not is_replaced_as_a_whole(name):
            continue
        if not archive.with_lists and is_copy_of_a_list(name) and _has_same_definition(archive, places, unit_of(name)):
            continue
        yield FileChange(places.data_dir / name, kind_of(name), unit_of(name))


def _has_same_definition(archive: Archive, places: Places, unit: str) -> bool:
    name = f"{unit}/source.json"
    path = places.data_dir / name
    return archive.has(STATE + name) and path.is_file() and archive.content(STATE + name) == path.read_bytes()


def _settings_changes(archive: Archive, places: Places) -> Iterator[FileChange]:
    if archive.has(PROXY_USERS):
        yield FileChange(places.proxy_users, "proxy users", PROXY_USERS, PROXY_USERS)
    if not archive.has(SETTINGS):
        return
    text = _decoded(archive.content(SETTINGS))
    kept = values_of(_decoded(places.settings_file.read_bytes())) if places.settings_file.is_file() else {}
    if archive.has(PROXY_USERS) and "proxy.auth_file" in values_of(text):
        kept["proxy.auth_file"] = str(places.proxy_users)
    content = with_values(text, kept).encode()
    _check_settings(content)
    yield FileChange(places.settings_file, SETTINGS_KIND, SETTINGS, content=content)


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BackupError("the settings are not text in UTF-8") from error


def _check_settings(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "settings.toml"
        file.write_bytes(content)
        try:
            load(file=file, environ={})
        except ConfigError as error:
            raise BackupError(f"the settings of the backup cannot be used: {error}") from error


def _authority_changes(archive: Archive, places: Places, passphrase: str) -> Iterator[FileChange]:
    if not archive.has(SEALED_CA):
        raise BackupError("the backup does not hold the certificate authority: restore without --with-ca")
    files = _unpacked(unseal(archive.content(SEALED_CA), passphrase))
    for name, content in files.items():
        yield FileChange(places.ca / name, CERTIFICATE_AUTHORITY, "ca", content=content)
    for path in places.ca.iterdir() if places.ca.is_dir() else ():
        if path.name not in files and path.is_file():
            yield FileChange(path, CERTIFICATE_AUTHORITY, "ca")


def _unpacked(document: bytes) -> dict[str, bytes]:
    try:
        files = {str(name): b64decode(content, validate=True) for name, content in json.loads(document).items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BackupError("the certificate authority of the backup is damaged") from error
    from gatewayfilter.certificates.authority import CA_FILE, load_ca  # noqa: PLC0415  8 MB, for encryption alone

    if not all(name and Path(name).name == name and not name.startswith(".") and "\0" not in name for name in files):
        raise BackupError("the certificate authority of the backup is damaged")
    if CA_FILE not in files:
        raise BackupError("the certificate authority of the backup is damaged")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / CA_FILE).write_bytes(files[CA_FILE])
        try:
            load_ca(Path(folder))
        except StartupError as error:
            raise BackupError("the certificate authority of the backup is damaged") from error
    return files


def _is_same(change: FileChange, archive: Archive) -> bool:
    return change.target.is_file() and _holds(change.target, change.blocks(archive))


def _holds(path: Path, blocks: Iterable[bytes]) -> bool:
    with path.open("rb") as file:
        return all(file.read(len(block)) == block for block in blocks) and not file.peek()
