"""The check of the installation in the background: it reads the whole database, so answers have the newest findings there are."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from gatewayfilter.config import Settings
from gatewayfilter.errors import GatewayFilterError

_log = logging.getLogger(__name__)

RENEW_S: Final = 60.0
"""Seconds from the end of an examination until it is old: then the next question begins another one."""
PATIENCE_S: Final = 0.2
"""How long a question waits for an examination to end where there is none, or an old one."""

_JOBS: Final = "gatewayfilter.use_cases.operation.self_check"

type Finding = dict[str, Any]
"""`level`, `check`, `words`, `mend`."""


class Checks(Protocol):
    """The checks, done one at a time in another process."""

    def names(self) -> Sequence[str]:
        """Returns the names of all checks, in their order."""
        ...

    def find(self, number: int, now: float) -> Finding:
        """Returns the finding of a check, by its number in that order, at a time in Unix seconds."""
        ...


@dataclass(slots=True)
class Examination:
    """What was found.

    Attributes:
        began_at: Unix seconds.
        findings: in the order of the checks.
        complete: whether every check was done, a short time ago.
    """

    began_at: float
    findings: list[Finding] = field(default_factory=list)
    complete: bool = False


class Examinations:
    """Examines in the background, once a minute at most and only while somebody asks. Thread-safe.

    Args:
        checks: the checks.
        clock: Unix seconds.
        patience_s: how long a question waits for an examination to end where there is none, or an old one.
    """

    def __init__(self, checks: Checks, clock: Callable[[], float], patience_s: float = PATIENCE_S) -> None:
        self._checks = checks
        self._clock = clock
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._newest: Examination | None = None
        self._running: Examination | None = None
        self._old_at = 0.0

    def newest(self) -> Examination:
        """Returns the newest complete examination; begins another one where it is old, and waits for that a little.

        Where that goes on: what the old one found, and before the first is complete, what it found so far; not `complete`.
        """
        with self._changed:
            if self._is_due():
                self._begin()
                self._changed.wait_for(lambda: self._running is None, self._patience_s)
            if self._newest is not None and not self._is_due():
                return self._newest
            found = self._newest or self._running or Examination(self._clock())
            return Examination(found.began_at, list(found.findings))

    def _is_due(self) -> bool:
        return self._newest is None or self._clock() >= self._old_at

    def _begin(self) -> None:
        if self._running is not None:
            return
        self._running = Examination(self._clock())
        thread = threading.Thread(target=self._examine, args=(self._running,), name="examination", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system allows no further thread
            self._running = None
            _log.warning("the installation was not checked: %s", error)

    def _examine(self, running: Examination) -> None:
        try:
            for number, name in enumerate(self._checks.names()):
                finding = self._find(number, name)
                with self._changed:
                    running.findings.append(finding)
            running.complete = True
        except GatewayFilterError as error:
            _log.warning("the installation was not checked: %s", error)
        finally:
            with self._changed:
                self._running = None
                if running.complete:
                    self._newest, self._old_at = running, self._clock() + RENEW_S
                self._changed.notify_all()

    def _find(self, number: int, name: str) -> Finding:
        try:
            return self._checks.find(number, self._clock())
        except GatewayFilterError as error:
            return {"level": "error", "check": name, "words": f"The check itself failed: {error}.", "mend": "please report this"}


class ChildChecks:
    """The checks in a child process.

    Args:
        run: calls a function of the child.
        settings: to be checked.
        file: from which they are, `None` for none.
    """

    def __init__(self, run: Callable[..., Any], settings: Settings, file: Path | None) -> None:
        self._run = run
        self._settings = settings
        self._file = file

    def names(self) -> list[str]:
        """Returns the names of all checks."""
        found: list[str] = self._run(f"{_JOBS}:check_names")
        return found

    def find(self, number: int, now: float) -> dict[str, Any]:
        """Returns the finding of a check."""
        found: dict[str, Any] = self._run(f"{_JOBS}:finding", self._settings, self._file, now, number)
        return found
