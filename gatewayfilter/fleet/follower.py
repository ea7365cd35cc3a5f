"""The follower: polls its publisher and takes over what is signed, new and whole. A failure changes nothing that is in force.

One poll: fetch the manifest, verify its signature before anything else, refuse a lower sequence, an end that has passed and
another format; adopt rules and policies; fetch the blocks of the snapshot that are not at hand, verify all of it, put it in the
place of the last one, and have the lists published with it; report health.
"""

import hashlib
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from gatewayfilter.engine.snapshot.format import VERSION
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.errors import FleetError, GatewayFilterError, PolicyError, SnapshotError, StoreError
from gatewayfilter.fleet.adoption import Adopter
from gatewayfilter.fleet.blocks import file_digest
from gatewayfilter.fleet.bundle import Bundle, read_bundle
from gatewayfilter.fleet.deltas.catching_up import CaughtUp, catch_up, discard
from gatewayfilter.fleet.deltas.chain import links_from
from gatewayfilter.fleet.download import ContentError, DiskError, Download
from gatewayfilter.fleet.folder import FleetFolder
from gatewayfilter.fleet.follower_state import REFUSALS, Fault, FollowerState, StateFile
from gatewayfilter.fleet.health import REPORT_EVERY_S, Report, write_report
from gatewayfilter.fleet.manifest import LARGEST_MANIFEST, Manifest, open_manifest
from gatewayfilter.fleet.public_keys import write_public_key
from gatewayfilter.fleet.transport import Transport, TransportError
from gatewayfilter.private_files import replace_file
from gatewayfilter.settings import FleetSettings
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

LONGEST_WAIT_S: Final = 900.0
_MOST_DOUBLINGS: Final = 10
"""Of the time between polls: more of them are beyond that wait, or beyond any number."""
CLOCK_SLACK_S: Final = 7_200.0
"""How far the clocks of publisher and follower may differ before a manifest counts as expired."""
_NO_REPORTS_S: Final = 3_600.0
"""Pause after a server did not take a report: a web server that serves files alone."""

_LONGEST_SENTENCE: Final = 500
_FETCH_AGAIN: Final = frozenset({Fault.CONTENT, Fault.DISK, Fault.EXPIRED})
"""After these the next poll fetches the manifest although it did not change: a file here may be damaged."""


class LocalFilter(Protocol):
    """The filter on this machine, as the follower uses it."""

    def publish(self) -> None:
        """Publishes the publisher's lists with what is local. Raises GatewayFilterError."""
        ...

    def adopter(self) -> Adopter:
        """Returns what adopts rules and policies. Raises StoreError."""
        ...

    def is_published(self, name: str) -> bool:
        """Returns whether the snapshot in use was made from this one of the publisher."""
        ...

    def serving(self) -> tuple[int, int]:
        """Returns the number of list entries in the snapshot in use, and of proxy workers that serve."""
        ...


class RefusedError(FleetError):
    """Something of a publisher that is refused; `fault` is why."""

    def __init__(self, fault: Fault, sentence: str) -> None:
        super().__init__(sentence)
        self.fault = fault


class Follower:
    """Follows one publisher.

    Args:
        folder: for its files.
        settings: address, key and limits.
        transport: to the publisher.
        local: the filter on this machine.
        counters: `fleet_polls`, `fleet_failures`, `fleet_rejected`, `fleet_bytes`, `fleet_swaps`.
        program: version of the program, for reports.
        clock: Unix seconds.
    """

    def __init__(
        self,
        folder: FleetFolder,
        settings: FleetSettings,
        transport: Transport,
        local: LocalFilter,
        counters: Counters,
        program: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._transport = transport
        self._local = local
        self._counters = counters
        self._program = program
        self._clock = clock
        self._file = StateFile(folder.state)
        self._told = Fault.OK
        self._reported_at = 0.0
        self.state = self._file.read(settings.key)

    def poll(self) -> FollowerState:
        """Polls once and returns the state afterwards. Raises nothing of the program's own: a failure is part of the state."""
        self._counters.add("fleet_polls")
        fault, sentence = Fault.OK, ""
        try:
            self._take_over()
        except GatewayFilterError as error:
            fault, sentence = _fault_of(error), _one_line(str(error))
            if fault in _FETCH_AGAIN:
                self.state = replace(self.state, etag="")
        finally:
            self._transport.close()
        self._note(fault, sentence)
        self._report()
        return self.state

    def wait_s(self) -> float:
        """Returns the seconds until the next poll: a quarter more or less than set, and more after failures."""
        base = self._settings.poll_s
        if self.state.failures and self.state.fault not in REFUSALS:
            base = max(base, min(base * 2.0 ** min(self.state.failures, _MOST_DOUBLINGS), LONGEST_WAIT_S))
        return base * random.uniform(0.75, 1.25)  # noqa: S311  spreads, hides nothing

    def _take_over(self) -> None:
        answer = self._transport.manifest(self.state.etag, LARGEST_MANIFEST)
        if answer.status == 304:
            self._refuse_expired(self.state.in_force, self.state.expires_at)
            self.state = replace(self.state, contact_at=self._clock())
            self._adopt_known()
            return
        manifest = self._checked(answer.body)
        trusted = tuple(map(write_public_key, manifest.keys))
        self.state = replace(self.state, sequence=manifest.sequence, trusted=trusted, contact_at=self._clock())
        self._save()
        bundle = self._bundle_of(manifest)
        self._adopt(bundle)
        self._take_snapshot(manifest)
        self.state = replace(
            self.state,
            in_force=manifest.sequence,
            made_at=manifest.created_at,
            expires_at=manifest.expires_at,
            etag=answer.etag,
        )

    def _checked(self, data: bytes) -> Manifest:
        try:
            manifest = open_manifest(data, self.state.keys())
        except FleetError as error:
            raise RefusedError(Fault.SIGNATURE, str(error)) from error
        if manifest.sequence < self.state.sequence:
            raise RefusedError(
                Fault.ROLLBACK, f"the manifest {manifest.sequence} is older than {self.state.sequence}, which was seen before"
            )
        self._refuse_expired(manifest.sequence, manifest.expires_at)
        if manifest.snapshot.format_version != VERSION:
            version = manifest.snapshot.format_version
            raise RefusedError(
                Fault.FORMAT, f"the snapshot is of format {version}, this program ({self._program}) reads {VERSION}"
            )
        if manifest.snapshot.size > self._settings.max_mb * 1_000_000:
            raise DiskError(f"the snapshot has {manifest.snapshot.size:,} bytes, more than fleet.max_mb allows")
        return manifest

    def _refuse_expired(self, sequence: int, expires_at: float | None) -> None:
        """Refuses an expired manifest, that in force included: a server could answer forever that nothing has changed."""
        if expires_at is not None and self._clock() > expires_at + CLOCK_SLACK_S:
            raise RefusedError(Fault.EXPIRED, f"the manifest {sequence} has expired, or this machine's clock is wrong")

    def _bundle_of(self, manifest: Manifest) -> Bundle:
        path = self._folder.bundle
        try:
            data = path.read_bytes()
        except OSError:
            data = b""
        if hashlib.sha256(data).hexdigest() != manifest.bundle:
            data = self._transport.blob(manifest.bundle, manifest.bundle_size)
            if hashlib.sha256(data).hexdigest() != manifest.bundle:
                raise ContentError("the publisher's rules are not as signed")
            bundle = _read(data)
            self._store(path, data)
            return bundle
        return _read(data)

    def _adopt_known(self) -> None:
        """Adopts the last rules again: what local people changed of locked ones is put back."""
        try:
            data = self._folder.bundle.read_bytes()
        except OSError:
            self.state = replace(self.state, etag="")  # the next poll fetches them
            return
        self._adopt(_read(data))
        self._publish_if_due()

    def _adopt(self, bundle: Bundle) -> None:
        done = self._local.adopter().adopt(bundle, self.state.adopted, self._clock())
        self.state = replace(self.state, adopted=done.items, exceptions=done.exceptions)
        if done.changed:
            _log.info("took over %d changes of rules and policies from the fleet's publisher", done.changed)
            self._save()

    def _take_snapshot(self, manifest: Manifest) -> None:
        part, base = manifest.snapshot, self._folder.base
        try:
            held = file_digest(base).hex()
        except OSError:
            held = ""
        if held != part.name:
            made = self._caught_up(manifest, held)
            present = (base,) if made.path is None else (made.path, base)
            try:
                found = Download(self._folder.incoming, part, present).fetch(self._transport)
            finally:
                with suppress(OSError):
                    discard(self._folder.incoming)
            fetched = made.fetched + found.fetched
            self._counters.add("fleet_bytes", fetched)
            self.state = replace(self.state, fetched=fetched)
            _try_out(found.path)
            try:
                found.path.rename(base)
            except OSError as error:
                raise DiskError(f"cannot store the publisher's snapshot: {error.strerror}") from error
            _log.info(
                "fetched snapshot %d of the fleet's publisher: %d bytes, %d were at hand",
                manifest.sequence,
                fetched,
                found.reused,
            )
        self._publish_if_due()

    def _caught_up(self, manifest: Manifest, held: str) -> CaughtUp:
        """Returns what deltas make of the snapshot at hand."""
        links = links_from(manifest.deltas, held)
        return catch_up(self._folder.incoming, self._folder.base, links, manifest.snapshot.size, self._transport.blob)

    def _publish_if_due(self) -> None:
        base = self._folder.base
        if not base.is_file():
            self.state = replace(self.state, etag="")
            return
        snapshot = Snapshot.open(base)
        mark = snapshot.mark.hex()
        snapshot.close()
        if not self._local.is_published(mark):
            self._local.publish()
            self._counters.add("fleet_swaps")

    def _note(self, fault: Fault, sentence: str) -> None:
        """Counts the outcome of a poll; one log line where it is another than before."""
        state = self.state
        if fault is Fault.OK:
            self.state = replace(state, fault=fault, sentence="", failures=0)
            if self._told is not Fault.OK:
                _log.info("the fleet's publisher can be followed again")
        else:
            self._counters.add("fleet_rejected" if fault in REFUSALS else "fleet_failures")
            refused = state.refused + (fault in REFUSALS)
            self.state = replace(state, fault=fault, sentence=sentence, failures=state.failures + 1, refused=refused)
            if fault is not self._told:
                _log.warning("%s; filtering goes on with the last good lists", sentence)
        self._told = fault
        self._save()

    def _save(self) -> None:
        try:
            self._file.write(self.state)
        except OSError as error:
            _log.debug("the state of the follower was not written: %s", error)

    def _store(self, path: Path, data: bytes) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, data)
        except OSError as error:
            raise DiskError(f"cannot write {path}: {error.strerror}") from error

    def _report(self) -> None:
        now = self._clock()
        if 0 <= now - self._reported_at < REPORT_EVERY_S:
            return
        state = self.state
        entries, workers = self._local.serving()
        age_s = int(now - state.made_at) if state.made_at else 0
        numbers = (state.in_force, age_s, entries, len(state.exceptions), state.refused, state.failures)
        self._reported_at = now
        try:
            status = self._transport.report(write_report(Report(self._program, *numbers, state.fault, workers)))
        except TransportError:
            return  # the poll has told of it
        finally:
            self._transport.close()
        if status in {404, 405, 501}:
            self._reported_at = now + _NO_REPORTS_S


def _read(data: bytes) -> Bundle:
    try:
        return read_bundle(data)
    except FleetError as error:
        raise ContentError(str(error)) from error


def _one_line(text: str) -> str:
    return "".join(mark if mark.isprintable() else " " for mark in text[:_LONGEST_SENTENCE])


def _try_out(path: Path) -> None:
    """Opens all of a snapshot, as a worker does later.

    Raises:
        ContentError: it cannot be used, although it is as signed.
    """
    try:
        snapshot = Snapshot.open(path, verify=True)
        try:
            _ = snapshot.adblock, snapshot.effects
        finally:
            snapshot.close()
    except SnapshotError as error:
        path.unlink(missing_ok=True)
        raise ContentError(f"the publisher's snapshot is as signed, but cannot be used: {error}") from error


def _fault_of(error: GatewayFilterError) -> Fault:
    match error:
        case RefusedError():
            return error.fault
        case ContentError():
            return Fault.CONTENT
        case DiskError() | SnapshotError():
            return Fault.DISK
        case TransportError():
            return Fault.REFUSED_TOKEN if error.status in {401, 403} else Fault.UNREACHABLE
        case PolicyError():
            return Fault.POLICIES
        case StoreError():
            return Fault.STORE
        case _:
            return Fault.UNREACHABLE
