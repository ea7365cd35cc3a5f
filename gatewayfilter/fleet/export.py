"""The export of a publisher: a folder with the signed manifest, and the files that it names, as any web server can serve it.

`manifest` is replaced by a rename once everything that it names is there; what the manifest before it named stays for followers
in the middle of a transfer. A snapshot is exported without what does not travel: rules and policies go into the bundle, and
learned entries are removed unless they are shared, from the gate too.
"""

import hashlib
import json
import mmap
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

from gatewayfilter import __version__
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.format import VERSION
from gatewayfilter.engine.snapshot.image import SnapshotImage, as_json
from gatewayfilter.engine.snapshot.patch import patch_snapshot
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.engine.tables.kept_gate import KeptGate
from gatewayfilter.errors import FleetError, SnapshotError
from gatewayfilter.fleet.blocks import BLOCK_BYTES, block_digest, cut_segments, file_digest, spans
from gatewayfilter.fleet.bundle import Bundle, write_bundle
from gatewayfilter.fleet.deltas.canonical_form import canonical
from gatewayfilter.fleet.deltas.chain import DeltaLink, extended
from gatewayfilter.fleet.deltas.making import make_delta
from gatewayfilter.fleet.keys import SigningKeys
from gatewayfilter.fleet.manifest import LARGEST_BUNDLE, Manifest, SnapshotPart, is_blob_name, sign_manifest
from gatewayfilter.model import PolicySet
from gatewayfilter.private_files import private, replace_file
from gatewayfilter.settings import FleetSettings, Shared
from gatewayfilter.urls import digest_of

MANIFEST: Final = "manifest"
BLOBS: Final = "blobs"
_STATE: Final = "state.json"
_ASIDE: Final = ".exporting"
_COPY_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class _State:
    """What an exporter remembers: the newest manifest's sequence, time, input and files, and the files of the one before."""

    sequence: int = 0
    created_at: float = 0.0
    inputs: str = ""
    names: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    source: str = ""
    part: dict[str, Any] | None = None
    deltas: tuple[tuple[str, str, int], ...] = ()

    def links(self) -> tuple[DeltaLink, ...]:
        """Returns the deltas of the newest manifest."""
        return tuple(DeltaLink(*link) for link in self.deltas)


class Exporter:
    """Keeps the export of a publisher up to date.

    Args:
        folder: of the export.
        snapshots: the publisher's own.
        settings: what is shared, and for how long a manifest is valid.
        clock: Unix seconds.
    """

    def __init__(
        self, folder: Path, snapshots: SnapshotFolder, settings: FleetSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._snapshots = snapshots
        self._settings = settings
        self._clock = clock

    def export(self, bundle: Bundle, keys: SigningKeys) -> bool:
        """Exports what is in force now. Returns False when the export was up to date.

        Raises:
            FleetError: the snapshot cannot be exported, or the folder cannot be written; the earlier export stays.
        """
        try:
            return self._export(bundle, keys)
        except OSError as error:
            raise FleetError(f"cannot export to {self._folder}: {error.strerror or error}") from error
        except SnapshotError as error:
            raise FleetError(f"cannot export the snapshot in use: {error}") from error

    def _export(self, bundle: Bundle, keys: SigningKeys) -> bool:
        path = self._snapshots.current()
        if path is None:
            raise FleetError("there is no snapshot to export yet")
        rules = write_bundle(bundle)
        if len(rules) > LARGEST_BUNDLE:
            raise FleetError(f"rules and policies take {len(rules):,} bytes, more than the {LARGEST_BUNDLE:,} of a bundle")
        bundle_name = hashlib.sha256(rules).hexdigest()
        state, now = self._read_state(), self._clock()
        source = f"{path.name} {path.stat().st_mtime_ns} {Shared.LEARNED in self._settings.share}"
        inputs = json.dumps([source, bundle_name, [key.hex() for key in keys.public], self._settings.valid_h, __version__])
        if inputs == state.inputs and not self._is_due(state, now) and (self._folder / MANIFEST).exists():
            return False
        blobs = self._folder / BLOBS
        blobs.mkdir(mode=0o700, parents=True, exist_ok=True)
        part, links = self._known_part(state, source), state.links()
        if part is None:
            part = self._write_snapshot(path)
            links = self._linked(state, part)
        replace_file(blobs / bundle_name, rules)
        sequence = max(state.sequence + 1, int(now))  # rises even where the state was lost
        expires_at = now + self._settings.valid_h * 3600 if self._settings.valid_h else None
        manifest = Manifest(sequence, now, expires_at, __version__, keys.public, part, bundle_name, len(rules), links)
        names = (part.name, bundle_name)
        before = state.names if state.names != names else state.before
        facts = {name: getattr(part, name) for name in SnapshotPart.__dataclass_fields__}
        deltas = tuple((link.older, link.name, link.size) for link in links)
        new = _State(sequence, now, inputs, names, before, source, {**facts, "blocks": part.blocks.hex()}, deltas)
        replace_file(self._folder / MANIFEST, sign_manifest(manifest, keys))
        replace_file(
            self._folder / _STATE, json.dumps({name: getattr(new, name) for name in _State.__dataclass_fields__}).encode()
        )
        _prune(blobs, {*names, *before, *(link.name for link in links)})
        return True

    def _is_due(self, state: _State, now: float) -> bool:
        return bool(self._settings.valid_h) and not 0 <= now - state.created_at < self._settings.valid_h * 1800

    def _known_part(self, state: _State, source: str) -> SnapshotPart | None:
        """Returns the snapshot of the last export where it is still the one in use."""
        if state.source != source or state.part is None or not (self._folder / BLOBS / state.names[0]).is_file():
            return None
        facts = {**state.part, "segments": tuple(state.part["segments"]), "blocks": bytes.fromhex(state.part["blocks"])}
        return SnapshotPart(**facts)

    def _linked(self, state: _State, part: SnapshotPart) -> tuple[DeltaLink, ...]:
        """Returns the deltas that lead to a new snapshot, with that from the last exported one, which is written."""
        blobs = self._folder / BLOBS
        older = state.names[0] if state.names else ""
        if older == part.name:
            return state.links()
        delta = make_delta(blobs / older, blobs / part.name) if older else None
        if delta is None:
            return ()
        name = hashlib.sha256(delta).hexdigest()
        replace_file(blobs / name, delta)
        return extended(state.links(), DeltaLink(older, name, len(delta)), part.size)

    def _write_snapshot(self, path: Path) -> SnapshotPart:
        old = Snapshot.open(path, verify=True)
        try:
            image = self._travelling(old, path)
            aside = self._folder / _ASIDE
            digest = hashlib.sha256()
            with open(aside, "wb", opener=private) as file:
                for piece in image.parts():
                    file.write(piece)
                    digest.update(piece)
                file.flush()
                os.fsync(file.fileno())  # the next delta is made from it
            made_at = old.info.created_at
        finally:
            old.close()
        Snapshot.open(aside, verify=True).close()
        part = part_of(aside, digest.hexdigest(), made_at)
        aside.rename(self._folder / BLOBS / part.name)
        return part

    def _travelling(self, old: Snapshot, path: Path) -> SnapshotImage:
        keys = () if Shared.LEARNED in self._settings.share else tuple(old.records.keys())
        changes = dict.fromkeys(map(digest_of, keys))
        gate = self._snapshots.counters_of(path, old.mark) if changes else KeptGate.of(old.bloom)
        made_at = old.info.created_at
        notes = {"inputs": "", "feed_mark": "", "reports": []}
        image = patch_snapshot(old, gate, changes, (), policies=PolicySet(), feed_seq=0, created_at=made_at, notes=notes)
        sections = dict(image.sections)
        sections["meta"] = as_json({**json.loads(bytes(sections["meta"])), "patches": 0})
        checksums = image.checksums
        if changes or old.meta["patches"]:
            sections, checksums = canonical(sections), {}
        return replace(image, sections=tuple(sections.items()), checksums=checksums)

    def _read_state(self) -> _State:
        try:
            document = dict(json.loads((self._folder / _STATE).read_bytes()))
            state = _State(**document)
            deltas = tuple((str(older), str(name), int(size)) for older, name, size in state.deltas)
            names, before = tuple(state.names), tuple(state.before)
            return replace(state, names=names, before=before, sequence=int(state.sequence), deltas=deltas)
        except (OSError, ValueError, TypeError):
            return _State()


def part_of(path: Path, name: str, made_at: float) -> SnapshotPart:
    """Returns the description of a snapshot file.

    Args:
        path: the file.
        name: its SHA-256 in hexadecimal digits.
        made_at: when it was published (Unix seconds).

    Raises:
        OSError, SnapshotError: it cannot be read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        segments = tuple(cut_segments(data))
        with memoryview(data) as view:
            blocks = b"".join(block_digest(view[offset : offset + length]) for offset, length in spans(segments))
        return SnapshotPart(name, len(data), VERSION, made_at, BLOCK_BYTES, segments, blocks)


def copy_export(folder: Path, target: Path) -> int:
    """Copies an export to a folder of a web server; the manifest last. Returns the bytes that were written.

    Files there that are not as signed are written again. Of other files and of links nothing is written or removed.

    Raises:
        FleetError: the folder cannot be written, or its folder of files is a link.
    """
    written = 0
    try:
        if (target / BLOBS).is_symlink():
            raise FleetError(f"cannot export to {target}: {BLOBS} there is a symbolic link")
        manifest = (folder / MANIFEST).read_bytes()  # before the files: the publisher may export a newer one meanwhile
        (target / BLOBS).mkdir(parents=True, exist_ok=True)
        names = sorted(path.name for path in (folder / BLOBS).iterdir())
        for name in names:
            place = target / BLOBS / name
            if place.is_symlink() or not place.is_file() or file_digest(place).hex() != name:
                with (folder / BLOBS / name).open("rb") as file:
                    written += _copy(file, place)
        written += _copy(BytesIO(manifest), target / MANIFEST)
        _prune(target / BLOBS, set(names))
    except OSError as error:
        raise FleetError(f"cannot export to {target}: {error.strerror or error}") from error
    return written


def _copy(source: BinaryIO, place: Path) -> int:
    """Writes a file that all may read and puts it in its place; a link there is replaced, never followed."""
    aside = place.with_name(f".{place.name}.part")
    aside.unlink(missing_ok=True)
    with aside.open("xb") as file:
        shutil.copyfileobj(source, file, _COPY_BYTES)
        written = file.tell()
        os.fchmod(file.fileno(), 0o644)
    aside.rename(place)
    return written


def _prune(blobs: Path, kept: set[str]) -> None:
    """Removes the files of exports before; other files in the folder stay."""
    for path in blobs.iterdir():
        if path.name not in kept and is_blob_name(path.name) and path.is_file():
            path.unlink(missing_ok=True)
