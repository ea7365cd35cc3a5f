"""Input and result of a check of `doctor`."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from gatewayfilter.config import Settings


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of a check.

    Attributes:
        check: its name.
        level: `note` for what could not be checked or does not matter here.
        words: the finding, one sentence.
        mend: how to repair it, `""` when there is nothing to repair.
    """

    check: str
    level: Level
    words: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Patient:
    """The subject of the checks.

    Attributes:
        settings: in force.
        config_file: where they were read from, `None` for nowhere.
        now: Unix seconds by this machine's clock.
        proc: `/proc`.
        root: `/`.
        trusted: file with the authorities that this machine trusts, `None` for the system's.
    """

    settings: Settings
    config_file: Path | None
    now: float
    proc: Path = Path("/proc")
    root: Path = Path("/")
    trusted: str | None = None

    @property
    def transparent(self) -> bool:
        """Whether connections are redirected to the filter."""
        return self.settings.proxy.mode == "transparent"

    def status(self, name: str) -> dict[str, Any]:
        """Returns the status file of a process of the filter; empty when it does not run."""
        try:
            found = dict(json.loads((self.settings.data_dir / "run" / f"{name}.json").read_text(encoding="utf-8")))
            return found if self.alive(int(found["pid"])) else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def alive(self, pid: int) -> bool:
        """Returns whether there is a process with this number, zombies excluded."""
        try:
            return (self.proc / str(pid) / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[
                0
            ] != "Z"
        except (OSError, IndexError):
            return False

    @property
    def running(self) -> bool:
        """Whether `gatewayfilter run` is running on this state folder."""
        return bool(self.status("supervisor"))


type Check = Callable[[Patient], Finding]


def fine(check: str, words: str) -> Finding:
    """Returns a finding of something that is in order."""
    return Finding(check, Level.OK, words)


def note(check: str, words: str, mend: str = "") -> Finding:
    """Returns a finding of something that could not be checked, or is irrelevant here."""
    return Finding(check, Level.NOTE, words, mend)


def warning(check: str, words: str, mend: str) -> Finding:
    """Returns a finding of something that will fail later, or fails for some users."""
    return Finding(check, Level.WARNING, words, mend)


def error(check: str, words: str, mend: str) -> Finding:
    """Returns a finding of something that does not work."""
    return Finding(check, Level.ERROR, words, mend)


def mode_of(path: Path) -> int:
    """Returns a file's permission bits."""
    return os.stat(path).st_mode & 0o777  # noqa: PTH116  makes it explicit that links are followed
