"""The thread that keeps the zone in step with the lists, and its file where one is wanted."""

import logging
import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from gatewayfilter.errors import StoreError
from gatewayfilter.integration.rpz.own_rules import OwnRules
from gatewayfilter.integration.rpz.zone import BaseNames, OwnNames, Record, Zone, ZoneHistory
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

POLL_S: Final = 0.2
_AGAIN_S: Final = 5.0
_RELOAD_S: Final = 30.0


class ZoneFile:
    """A zone file for resolvers that read one.

    Args:
        path: of the file.
        command: run without a shell when it was written; empty for none.
        every_s: shortest time between two writes.
        counters: `rpz_files`, `rpz_file_failures`.
    """

    def __init__(self, path: Path, command: Sequence[str], every_s: float, counters: Counters) -> None:
        self._path = path
        self._command = list(command)
        self._every_s = every_s
        self._counters = counters
        self._serial = -1
        self._due = 0.0

    def keep(self, zone: Zone) -> None:
        """Writes the zone where it has changed, and it is time. Failures are logged, and tried again."""
        began = time.monotonic()
        if zone.serial == self._serial or began < self._due:
            return
        try:
            self._write(zone)
            self._counters.add("rpz_files")
            self._serial = zone.serial
            if self._command:
                subprocess.run(self._command, check=True, timeout=_RELOAD_S, stdin=subprocess.DEVNULL, capture_output=True)  # noqa: S603
        except (OSError, subprocess.SubprocessError) as error:
            self._counters.add("rpz_file_failures")
            _log.warning("the zone file %s: %s", self._path, error)
            self._serial = -1
        took = time.monotonic() - began
        self._due = began + max(self._every_s, 5 * took, _AGAIN_S if self._serial < 0 else 0.0)

    def _write(self, zone: Zone) -> None:
        aside = self._path.with_name(f".{self._path.name}.new")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with os.fdopen(descriptor, "w", encoding="ascii") as out:
            out.write(f"$TTL 60\n@ SOA localhost. hostmaster.localhost. {zone.serial} 60 30 604800 5\n@ NS localhost.\n")
            out.writelines(line_of(record) for record in zone.records())
        aside.replace(self._path)


def line_of(record: Record) -> str:
    """Returns the line of a record in a zone file."""
    name = ".".join(reversed(record.name.split(".")))
    return f"{'*.' if record.below else ''}{name} CNAME {record.target.value}\n"


class ZoneKeeper:
    """Keeps a zone up to date from a thread of its own.

    Args:
        rules: manual rules and learned entries.
        base: file of the names of subscribed lists.
        build: writes that file again; called in this thread, and to be done in another process.
        lists_mark: a value that changes whenever the lists may have.
        history: the zone.
        counters: `rpz_changes`.
        file: the zone's file, `None` for none.
        on_change: called in this thread when the zone has changed.
    """

    def __init__(
        self,
        rules: OwnRules,
        base: Path,
        build: Callable[[], None],
        lists_mark: Callable[[], object],
        history: ZoneHistory,
        counters: Counters,
        file: ZoneFile | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._rules = rules
        self._base = base
        self._build = build
        self._lists_mark = lists_mark
        self._history = history
        self._counters = counters
        self._file = file
        self.on_change = on_change
        self._mark: object = None
        self._read = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rpz-keeper", daemon=True)

    def start(self) -> None:
        """Reads the rules, and the names of the last run where there are any; starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def follow_once(self) -> bool:
        """Takes in what is new. Returns whether the zone has changed. Raises OSError, StoreError."""
        mark = self._lists_mark()
        changed = False
        if not self._read:
            self._rules.read()
            self._read = True
            if self._base.exists():
                self._take_base(BaseNames.open(self._base))
                changed = True
        now = time.time()
        if self._rules.follow() or self._rules.is_due(now):
            changed |= self._history.change(self._own(now), now)
        if mark != self._mark:
            before = self._base.stat().st_mtime_ns if self._base.exists() else 0
            self._build()
            self._rules.read()  # the feed may have forgotten what the new snapshot has
            if self._base.stat().st_mtime_ns != before:
                self._take_base(BaseNames.open(self._base))
                changed = True
            self._mark = mark
        if changed:
            self._counters.add("rpz_changes")
        if self._file is not None:
            self._file.keep(self._history.zone)
        return changed

    def _take_base(self, base: BaseNames) -> None:
        now = time.time()
        self._history.replace_base(base, self._own(now), now)

    def _own(self, now: float) -> OwnNames:
        return self._rules.names(now)

    def _run(self) -> None:
        wait_s = 0.0
        while not self._stop.wait(wait_s):
            wait_s = POLL_S
            try:
                if self.follow_once():
                    self.on_change()
            except (StoreError, OSError) as error:
                _log.warning("%s; the zone stays as it is, and is tried again", error)
                wait_s = _AGAIN_S
            except Exception:  # noqa: BLE001  this thread's outermost loop
                _log.exception("following the lists for the zone failed; trying again")
                wait_s = _AGAIN_S
