"""Pinned apps: names for which a device's apps accept no certificate of ours. Learned from failures, kept for days, revocable.

A client that could bring a bypass about at will would do so, which is why much is required for one: several broken-off
connections to the same name, spread over time, from a device that demonstrably accepts the filter's certificate elsewhere, for a
bounded number of names. Whether a block concerns the name or a page of it is not decided here but for each connection
(`HostPolicy`): such a name is never passed through.

What was learned is in one small file, which all workers and the command line read and rewrite under a lock.
"""

import fcntl
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from gatewayfilter.config import Settings
from gatewayfilter.settings import UnknownRule
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

FILE_NAME: Final = "pinned-apps.json"
_FORMER_NAME: Final = "pass-through.json"
"""Of earlier releases."""
_MOST_ENTRIES: Final = 2_000
_MOST_WATCHED: Final = 4_096
_WITHIN_S: Final = 600.0
_AT_ONCE_S: Final = 2.0
"""Failures closer together than this are one: an app that opens four connections at once has failed once."""
_TRUST_FOR_S: Final = 86_400.0
_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class PinnedApp:
    """A name that passes through for one client.

    Attributes:
        learned_at, expires_at: Unix seconds.
        failures: how many connections had failed.
    """

    client: str
    host: str
    learned_at: float
    expires_at: float
    failures: int


class PinnedAppsFile:
    """The entries on disk.

    Args:
        path: the file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def in_folder(cls, data_dir: Path) -> Self:
        """Returns the file of a state folder; that of an earlier release is renamed. Several processes may do so at once."""
        path = data_dir / FILE_NAME
        if not path.exists():
            try:
                # A link does not replace what another process has made meanwhile: that holds what was in the old file.
                os.link(data_dir / _FORMER_NAME, path)
                (data_dir / _FORMER_NAME).unlink()
                (data_dir / f".{_FORMER_NAME}.lock").unlink()
            except (FileNotFoundError, FileExistsError):
                pass
            except OSError as error:
                _log.warning("cannot take over %s: %s", _FORMER_NAME, error.strerror)
        return cls(path)

    def version(self) -> tuple[int, int]:
        """Returns what changes whenever the file does."""
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino

    def read(self) -> list[PinnedApp]:
        """Returns the entries, expired ones included; a file that cannot be read has none."""
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
            return [PinnedApp(**entry) for entry in document]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            _log.warning("cannot read %s: %s; nothing passes through because of it", self._path.name, error)
            return []

    def add(self, entry: PinnedApp) -> None:
        """Adds an entry, or replaces the one of its client and host; forgets what has expired.

        Of too many the oldest one of the client goes that has the most: no client takes them from the others.

        Raises:
            OSError: the file cannot be written.
        """
        with self._locked():
            kept = [old for old in self.read() if (old.client, old.host) != (entry.client, entry.host)]
            kept = [*(old for old in kept if old.expires_at > entry.learned_at), entry]
            while len(kept) > _MOST_ENTRIES:
                (client, _), *_ = Counter(old.client for old in kept).most_common(1)
                del kept[next(place for place, old in enumerate(kept) if old.client == client)]
            self._write(kept)

    def remove(self, host: str, client: str = "") -> int:
        """Removes the entries of a host, of one client or of all. Returns how many there were.

        Raises:
            OSError: the file cannot be written.
        """
        if not self._path.exists():
            return 0
        with self._locked():
            entries = self.read()
            kept = [old for old in entries if old.host != host or (client and old.client != client)]
            if len(kept) != len(entries):
                self._write(kept)
            return len(entries) - len(kept)

    def _write(self, entries: Iterable[PinnedApp]) -> None:
        aside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump([asdict(entry) for entry in entries], file, indent=1)
        aside.replace(self._path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._path.with_name(f".{self._path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class PinnedApps:
    """What a worker has noticed and learned. Its methods do no I/O but `refresh` and `save`.

    Args:
        file: where entries are kept.
        after: failures after which a name is learned.
        days: how long it then passes through.
        names: for how many names a device can have that at once.
        counters: `pinned_apps_refused`.
        clock: Unix seconds.
    """

    def __init__(
        self,
        file: PinnedAppsFile,
        *,
        after: int = 3,
        days: float = 7.0,
        names: int = 100,
        counters: Counters | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._names = names
        self._counters = counters or Counters()
        self._after = after
        self._lasts_s = days * _DAY_S
        self._clock = clock
        self._entries: dict[tuple[str, str], float] = {}
        self._version: tuple[int, int] | None = None
        self._failures: dict[tuple[str, str], list[float]] = {}
        self._trusting: dict[str, float] = {}
        self._failing: dict[str, float] = {}
        self._unsaved: list[PinnedApp] = []

    def covers(self, client: str, host: str) -> bool:
        """Returns whether connections of this client to this host pass through."""
        return self._clock() < self._entries.get((client, host), 0.0)

    def distrusts(self, client: str, host: str) -> bool:
        """Returns whether a page of ours would only be a certificate warning: it failed here lately, or never worked at all."""
        now = self._clock()
        if any(now - at < _WITHIN_S for at in self._failures.get((client, host), ())):
            return True
        return now - self._failing.get(client, 0.0) < _WITHIN_S and not self._trusts(client, now)

    def succeeded(self, client: str, host: str) -> None:
        """Notes that a client sent a request over a connection with our certificate."""
        self._failures.pop((client, host), None)
        _put(self._trusting, client, self._clock())

    def failed(self, client: str, host: str, *, may_learn: bool = True) -> bool:
        """Notes that a client broke a connection with our certificate off. Returns whether the name is learned by that.

        Args:
            client: the client's address.
            host: canonical.
            may_learn: no block concerns the name.
        """
        now = self._clock()
        _put(self._failing, client, now)
        times = [at for at in self._failures.get((client, host), ()) if now - at < _WITHIN_S]
        if not times or now - times[-1] >= _AT_ONCE_S:
            times.append(now)
        _put(self._failures, (client, host), times)
        if not may_learn or len(times) < self._after or not self._trusts(client, now):
            return False
        del self._failures[client, host]
        if sum(holder == client and now < until for (holder, _), until in self._entries.items()) >= self._names:
            self._counters.add("pinned_apps_refused")
            return False
        entry = PinnedApp(client, host, now, now + self._lasts_s, len(times))
        _put(self._entries, (client, host), entry.expires_at)
        self._unsaved.append(entry)
        return True

    def save(self) -> None:
        """Writes what was learned since, and takes in what others learned or removed. Does I/O."""
        while self._unsaved:
            try:
                self._file.add(self._unsaved[0])
            except OSError as error:
                _log.warning("cannot keep what passes through: %s", error.strerror)
                return
            del self._unsaved[0]
        self.refresh()

    def refresh(self) -> None:
        """Takes in what others learned or removed. Does I/O, one `stat` when nothing changed."""
        version = self._file.version()
        if version != self._version:
            self._entries = {(entry.client, entry.host): entry.expires_at for entry in self._file.read()}
            self._version = version

    def _trusts(self, client: str, now: float) -> bool:
        return now - self._trusting.get(client, -_TRUST_FOR_S) < _TRUST_FOR_S


def open_pinned_apps(settings: Settings, counters: Counters, clock: Callable[[], float] = time.time) -> PinnedApps | None:
    """Returns what was learned about devices, `None` where nothing may be.

    Nothing is learned where unknown URLs are not simply allowed: an unread connection would go past that rule.

    Args:
        settings: `tls.pinned_apps`, `proxy.unknown` and the state folder.
        counters: as in `PinnedApps`.
        clock: Unix seconds.
    """
    if not settings.tls.pinned_apps or settings.proxy.unknown is not UnknownRule.ALLOW:
        return None
    found = PinnedApps(
        PinnedAppsFile.in_folder(settings.data_dir),
        after=settings.tls.pinned_apps_after,
        days=settings.tls.pinned_apps_days,
        names=settings.tls.pinned_apps_per_client,
        counters=counters,
        clock=clock,
    )
    found.refresh()
    return found


def _put[K, V](table: dict[K, V], key: K, value: V) -> None:
    """Sets a value as the newest one; the oldest goes when there are too many: clients choose the keys."""
    table.pop(key, None)
    if len(table) >= _MOST_WATCHED:
        del table[next(iter(table))]
    table[key] = value
