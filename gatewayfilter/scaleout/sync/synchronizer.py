"""The synchronizer of one gateway: a three-way merge of what it has, what all share, and what both had in common last.

The stream of the shared state tells which fields have changed; values are read from the state itself, so that a field that
changed twice is applied once, and an older value never after a newer one. What both had in common (the base) tells a local change
from one of others: nothing is sent back to where it came from, and after an outage both sides' changes are found. Where both
changed the same field, what reached the shared state first stands. No clock is read.

Values have versions that rise, inside of what is authenticated. A gateway remembers the newest that it has met of each field: an
older one, which somebody without the key has written back, is refused, and the newer one shared again above it, by gateways that
have it: one that could not take it over is silent.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from gatewayfilter.private_files import replace_file
from gatewayfilter.scaleout.sync.local_state import LocalState
from gatewayfilter.scaleout.sync.shared_values import GONE, Shared, SyncCodec, SyncError, digest_of_text, shared_of
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

_MOST_TOLD: Final = 3


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """A position in the stream.

    Attributes:
        epoch: of the shared state: another one after it was lost.
        number: of the newest change that was read.
    """

    epoch: str = ""
    number: int = 0


class SharedState(Protocol):
    """The state that gateways share, with a stream of the fields that changed."""

    def after(self, place: StreamPlace) -> tuple[StreamPlace, frozenset[str] | None]:
        """Returns the next place, and the fields that changed up to it; `None` where the stream does not reach back so far."""
        ...

    def values(self, fields: Iterable[str]) -> dict[str, bytes]:
        """Returns the values of fields that there are."""
        ...

    def all(self) -> dict[str, bytes]:
        """Returns all values."""
        ...

    def put(self, values: Mapping[str, bytes]) -> None:
        """Sets values, and appends those that differ to the stream, at once for each."""
        ...


@dataclass(slots=True)
class SyncState:
    """What a gateway remembers between two starts.

    Attributes:
        place: up to which the stream was read.
        base: digests of the texts that this gateway and the shared state have in common, by field.
        newest: version and digest of the newest value that this gateway has met, by field.
    """

    place: StreamPlace = StreamPlace()
    base: dict[str, str] = field(default_factory=dict)
    newest: dict[str, tuple[int, str]] = field(default_factory=dict)


class Synchronizer:
    """Keeps one gateway in step.

    Counts `sync_sent`, `sync_applied`, `sync_refused`, `sync_replayed` and `sync_resyncs`.

    Args:
        shared: the state of all gateways.
        local: this one's.
        codec: authenticates values.
        file: where the state between two starts is kept.
        counters: where it is counted.
    """

    def __init__(self, shared: SharedState, local: LocalState, codec: SyncCodec, file: Path, counters: Counters) -> None:
        self._shared = shared
        self._local = local
        self._codec = codec
        self._file = file
        self._counters = counters
        self._state = _read_state(file)
        self._begins = True
        self._told: frozenset[str] = frozenset()
        self._replayed: set[str] = set()

    @property
    def place(self) -> StreamPlace:
        """The place in the stream that was read last."""
        return self._state.place

    @property
    def size(self) -> int:
        """The number of fields in common."""
        return len(self._state.base)

    def step(self, *, whole: bool = False) -> int:
        """Takes over what others changed, and shares what was changed here. Returns the number of both.

        Args:
            whole: compares all fields, whatever the stream tells.

        Raises:
            GatewayFilterError: the shared state or the database is away; the next step makes it good.
        """
        place, fields = self._shared.after(self._state.place)
        whole = whole or fields is None or self._begins
        changed = self._local.has_changed()
        if not whole and not changed and not fields:
            self._state.place = place
            return 0
        texts = self._local.read()
        if self._begins and self._state.base and not any(name in texts for name in self._state.base):
            _log.warning("nothing of what was shared is in the database any more: it is taken over again")
            self._state.base = {}
        if whole:
            self._counters.add("sync_resyncs")
            remote, known = self._opened(self._shared.all()), True
        else:
            remote, known = self._opened(self._shared.values(fields or ())), False
        count = self._take(remote, texts)
        if count:
            texts = self._local.read()
        count += self._send(texts, remote if known else None)
        self._begins = False
        self._state.place = place
        self._save()
        return count

    def _opened(self, values: Mapping[str, bytes]) -> dict[str, str]:
        found, refused = {}, set()
        for name, value in values.items():
            try:
                text, version = self._codec.open(name, value)
                shared_of(name, text)
            except SyncError as error:
                refused.add(f"{error}")
                self._counters.add("sync_refused")
                continue
            met = (version, digest_of_text(text))
            if met < self._state.newest.get(name, met):
                self._counters.add("sync_replayed")
                self._replayed.add(name)
                refused.add(f"an older value of {name[:100]!r} was written back; the newer one is shared again")
                continue
            self._state.newest[name] = met
            found[name] = text
        self._tell(refused)
        return found

    def _take(self, remote: Mapping[str, str], texts: Mapping[str, str]) -> int:
        """Applies what others changed."""
        base = self._state.base
        changes: dict[str, Shared | None] = {}
        for name, text in remote.items():
            if base.get(name) == digest_of_text(text):
                continue
            if texts.get(name, GONE) == text:
                base[name] = digest_of_text(text)
            else:
                changes[name] = shared_of(name, text)
        if not changes:
            return 0
        refused = self._local.apply(changes)
        for name in changes:
            base[name] = digest_of_text(remote[name])
        if refused:
            self._counters.add("sync_refused", len(refused))
            self._tell(set(refused.values()))
            for name in refused:  # stays as it is here, and is not sent either
                base[name] = digest_of_text(texts.get(name, GONE))
        self._counters.add("sync_applied", len(changes) - len(refused))
        return len(changes) - len(refused)

    def _send(self, texts: Mapping[str, str], remote: Mapping[str, str] | None) -> int:
        """Shares what was changed here; with the whole shared state at hand, also what it has lost, removals included."""
        base, newest = self._state.base, self._state.newest
        gone = digest_of_text(GONE)
        again = {name: texts.get(name, GONE) for name in self._replayed}
        again = {name: text for name, text in again.items() if newest[name][1] == digest_of_text(text)}
        if remote is not None:
            kept = {name: GONE for name, digest in base.items() if digest == gone} | dict(texts)
            again |= {name: text for name, text in kept.items() if name not in remote and name not in self._replayed}
        changed = {name: text for name, text in texts.items() if base.get(name) != digest_of_text(text)}
        changed |= {name: GONE for name, digest in base.items() if name not in texts and digest != gone}
        wanted = again | changed
        if wanted:
            versions = {name: newest.get(name, (0, ""))[0] + 1 for name in wanted}
            self._shared.put({name: self._codec.seal(name, text, versions[name]) for name, text in wanted.items()})
            digests = {name: digest_of_text(text) for name, text in wanted.items()}
            base.update(digests)
            newest.update({name: (versions[name], digest) for name, digest in digests.items()})
            self._counters.add("sync_sent", len(wanted))
        self._replayed.clear()
        return len(wanted)

    def _tell(self, reasons: set[str]) -> None:
        new = frozenset(reasons) - self._told
        for reason in sorted(new)[:_MOST_TOLD]:
            _log.warning("a change of another gateway is not taken over: %s", reason[:300])
        self._told |= new if len(self._told) < 1_000 else frozenset()

    def _save(self) -> None:
        state = self._state
        place = {"epoch": state.place.epoch, "number": state.place.number}
        document = {**place, "base": state.base, "newest": state.newest}
        replace_file(self._file, json.dumps(document, separators=(",", ":")).encode())


def _read_state(file: Path) -> SyncState:
    """Returns what was kept; a file that is damaged or missing is as if nothing were: all is compared."""
    try:
        document = json.loads(file.read_bytes())
        base = {str(name): str(digest) for name, digest in document["base"].items()}
        newest = {str(name): (int(version), str(digest)) for name, (version, digest) in document.get("newest", {}).items()}
        return SyncState(StreamPlace(str(document["epoch"]), int(document["number"])), base, newest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return SyncState()
