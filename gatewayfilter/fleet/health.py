"""Health reports: what a follower tells its publisher once a minute, and the board where the publisher keeps the newest of each.

A report has numbers and codes alone. Nothing in it is about what people do.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.follower_state import Fault
from gatewayfilter.private_files import replace_file

LARGEST_REPORT: Final = 2_048
REPORT_EVERY_S: Final = 60.0
_SLACK_S: Final = 10.0
"""A report that is early by less is accepted: timers and networks jitter."""
_MOST: Final = 2**53
_MOST_VERSION: Final = 40


@dataclass(frozen=True, slots=True)
class Report:
    """The state of a follower.

    Attributes:
        program: version of the program.
        sequence: of the manifest in force, 0 for none.
        age_s: seconds since the publisher made it, by the follower's clock.
        entries: list entries in the snapshot in use.
        exceptions: policy items that local people have changed.
        refused: manifests and files refused since the start of the process.
        failures: failed polls in a row.
        fault: why the newest poll failed, `ok` if it did not.
        workers: proxy workers that serve.
    """

    program: str
    sequence: int
    age_s: int
    entries: int
    exceptions: int
    refused: int
    failures: int
    fault: Fault
    workers: int


def write_report(report: Report) -> bytes:
    """Returns a report as JSON."""
    return json.dumps(asdict(report), separators=(",", ":")).encode()


def read_report(data: bytes) -> Report:
    """Returns the report of a follower, whose every byte may be hostile.

    Raises:
        FleetError: it is none.
    """
    try:
        document = json.loads(data[: LARGEST_REPORT + 1])
        names = ("sequence", "age_s", "entries", "exceptions", "refused", "failures", "workers")
        numbers = {name: _whole(document[name]) for name in names}
        return Report(program=_version(document["program"]), fault=Fault(document["fault"]), **numbers)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise FleetError("this is no report of a follower") from error


def _version(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MOST_VERSION or not value.isascii() or not value.isprintable():
        raise ValueError
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -_MOST < value < _MOST:
        raise ValueError
    return value


class HealthBoard:
    """The newest report of each follower, in a file.

    Args:
        path: of the file; written at most once a second.
        clock: Unix seconds.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._reports: dict[str, tuple[float, Report]] = read_board(path)
        self._changed = False

    def take(self, name: str, report: Report) -> bool:
        """Takes a report in. Returns False when the last one of this follower is not a minute old."""
        now = self._clock()
        last = self._reports.get(name)
        if last is not None and 0 <= now - last[0] < REPORT_EVERY_S - _SLACK_S:
            return False
        self._reports[name] = now, report
        self._changed = True
        return True

    def write(self, names: set[str]) -> None:
        """Writes what has changed; followers that were removed are left out.

        Raises:
            OSError: it cannot be written.
        """
        gone = self._reports.keys() - names
        if not self._changed and not gone:
            return
        for name in gone:
            del self._reports[name]
        rows = {name: [at, asdict(report)] for name, (at, report) in self._reports.items()}
        replace_file(self._path, json.dumps(rows).encode())
        self._changed = False


def read_board(path: Path) -> dict[str, tuple[float, Report]]:
    """Returns time (Unix seconds) and report of each follower; empty where there is no file that can be read."""
    try:
        rows: Mapping[str, Any] = json.loads(path.read_bytes())
        return {name: (float(at), read_report(json.dumps(report).encode())) for name, (at, report) in rows.items()}
    except (OSError, ValueError, TypeError, AttributeError, FleetError):
        return {}
