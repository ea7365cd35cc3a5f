"""The status files of all processes, and totals of their counters that do not go back when a process starts again."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gatewayfilter.telemetry import DECISION_BOUNDS_US, METRICS

_MAX_BYTES: Final = 1 << 20
_MAX_FILES: Final = 1024
_SUPERVISOR: Final = "supervisor"
TIMES: Final = {bound: f"decision_us {bound}" for bound in (*map(str, DECISION_BOUNDS_US), "inf", "sum")}
"""Name of the counter for each bucket of the times of decisions, and for their sum; no counter of `METRICS` has a space."""


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One process.

    Attributes:
        name: `proxy-0`, `learner`.
        pid: its process id.
        age_s: seconds since it wrote its file.
        counters: all counters, and those of `TIMES`; a process starts at zero.
        facts: the other numbers of the file, `snapshot` flattened.
    """

    name: str
    pid: int
    age_s: float
    counters: Mapping[str, int]
    facts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Child:
    """What the supervisor has counted of a process: restarts, and ends because it hung."""

    name: str
    restarts: int
    stalls: int
    is_up: bool


def read_processes(run_folder: Path, now: float) -> list[ProcessStatus]:
    """Returns the processes that have a status file, the supervisor left out; damaged files are passed over."""
    paths = sorted(run_folder.glob("*.json"))[:_MAX_FILES]
    found = ((path.stem, _read(path)) for path in paths if path.stem != _SUPERVISOR)
    return [_status(name, document, now) for name, document in found if document]


def read_children(run_folder: Path) -> list[Child]:
    """Returns the processes that the supervisor started."""
    children = _read(run_folder / f"{_SUPERVISOR}.json").get("children")
    if not isinstance(children, dict):
        return []
    return [
        Child(name, _whole(facts.get("restarts")), _whole(facts.get("stalls")), facts.get("pid") is not None)
        for name, facts in sorted(children.items())
        if isinstance(facts, dict)
    ]


@dataclass(slots=True)
class _Totals:
    pid: int = 0
    before: Counter[str] = field(default_factory=Counter)
    last: Mapping[str, int] = field(default_factory=dict)


class MonotoneCounters:
    """Adds up the counters of each process over its restarts. What a process counted after its last status file is lost."""

    def __init__(self) -> None:
        self._processes: dict[str, _Totals] = {}

    def take(self, processes: list[ProcessStatus]) -> None:
        """Takes in what was read now."""
        for process in processes:
            totals = self._processes.setdefault(process.name, _Totals(process.pid))
            if totals.pid != process.pid or any(process.counters.get(name, 0) < value for name, value in totals.last.items()):
                totals.before.update(totals.last)
                totals.pid = process.pid
            totals.last = process.counters

    def totals(self) -> dict[str, Mapping[str, int]]:
        """Returns the totals by process, of those too that do not run now."""
        return {name: totals.before + Counter(totals.last) for name, totals in sorted(self._processes.items())}


def _read(path: Path) -> dict[str, Any]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            document = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _status(name: str, document: dict[str, Any], now: float) -> ProcessStatus:
    counters = document.get("counters")
    counted = counters if isinstance(counters, dict) else {}
    times = document.get("decision_us")
    timed = times if isinstance(times, dict) else {}
    snapshot = document.get("snapshot")
    flat = document | {f"snapshot_{key}": value for key, value in (snapshot if isinstance(snapshot, dict) else {}).items()}
    return ProcessStatus(
        name,
        _whole(document.get("pid")),
        max(0.0, now - at) if isinstance(at := document.get("at", now), int | float) else 0.0,
        {metric: _whole(counted.get(metric)) for metric in METRICS}
        | {name: _whole(timed.get(key)) for key, name in TIMES.items()},
        {key: float(value) for key, value in flat.items() if isinstance(value, int | float) and not isinstance(value, bool)},
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
