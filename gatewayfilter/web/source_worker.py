"""Work on lists in the background: one piece at a time, in a child process, with its outcome for whoever looks."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from gatewayfilter.config import Settings
from gatewayfilter.errors import ConflictError, GatewayFilterError
from gatewayfilter.web.child_process import ChildProcess

_log = logging.getLogger(__name__)
_JOBS: Final = "gatewayfilter.use_cases.lists.source_jobs"
_TIMEOUT_S: Final = 1_800.0
_MEMORY: Final = 8 << 30
"""Bytes of address space: millions of entries are published in the child."""
_IDLE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class JobState:
    """A piece of work.

    Attributes:
        number: counts the pieces since the start; 0 for none.
        kind: name of its function in `use_cases.lists.source_jobs`.
        subject: the lists that it is about.
        started_at, ended_at: Unix seconds; 0 before it ends.
        results: of each list.
        error: one sentence when it failed as a whole, else `""`.
    """

    number: int = 0
    kind: str = ""
    subject: str = ""
    started_at: float = 0.0
    ended_at: float = 0.0
    results: tuple[dict[str, Any], ...] = ()
    error: str = ""

    @property
    def running(self) -> bool:
        """Whether it is being done."""
        return self.started_at > self.ended_at


class SourceWorker:
    """Does work on lists. Thread-safe.

    Args:
        settings: the settings.
        clock: Unix seconds.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._child = ChildProcess(_TIMEOUT_S, _MEMORY, _IDLE_S)
        self._lock = threading.Lock()
        self._state = JobState()

    @property
    def state(self) -> JobState:
        """The piece of work that is being done, or was done last."""
        return self._state

    def start(self, kind: str, subject: str, *values: Any, **named: Any) -> JobState:
        """Begins a piece of work. Returns at once.

        Raises:
            ConflictError: another one is being done.
        """
        with self._lock:
            if self._state.running:
                raise ConflictError("the lists are being worked on; try again when that is done")
            self._state = JobState(self._state.number + 1, kind, subject, self._clock())
            threading.Thread(target=self._work, args=(kind, values, named), name="lists", daemon=True).start()
            return self._state

    def _work(self, kind: str, values: tuple[Any, ...], named: dict[str, Any]) -> None:
        error, results = "", ()
        try:
            results = tuple(self._child.run(f"{_JOBS}:{kind}", self._settings, *values, **named))
        except GatewayFilterError as caught:
            error = str(caught)
        except Exception:  # noqa: BLE001  the outermost boundary of the thread
            _log.exception("work on lists failed: %s", kind)
            error = "a fault of the program; the log has it"
        with self._lock:
            ended = max(self._clock(), self._state.started_at)
            self._state = replace(self._state, ended_at=ended, results=results, error=error)

    def close(self) -> None:
        """Ends the child."""
        self._child.close()
