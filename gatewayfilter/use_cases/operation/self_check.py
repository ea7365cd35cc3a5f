"""The check of the installation, for the command and for a child process of the dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatewayfilter.gateway.doctor import CHECKS, Finding, Level, Patient, examine, examine_by, name_of

__all__ = ["Level", "check_names", "examined", "finding", "settings_file"]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.config import Loaded, Settings


def examined(loaded: Loaded, now: float) -> Iterator[Finding]:
    """Yields the findings as they are made.

    Args:
        loaded: the settings with their origins.
        now: Unix seconds.
    """
    return examine(Patient(loaded.settings, settings_file(loaded), now))


def check_names() -> list[str]:
    """Returns the names of all checks, in their order."""
    return [name_of(check) for check in CHECKS]


def finding(settings: Settings, file: Path | None, now: float, number: int) -> dict[str, Any]:
    """Returns the finding of one check as plain values: `level`, `check`, `words`, `mend`.

    Args:
        settings: to be checked.
        file: from which they are, `None` for none.
        now: Unix seconds.
        number: of the check, in the order of `check_names`.
    """
    one = examine_by(CHECKS[number], Patient(settings, file, now))
    return {"level": one.level.value, "check": one.check, "words": one.words, "mend": one.mend}


def settings_file(loaded: Loaded) -> Path | None:
    """Returns the file from which settings are, `None` where all are from elsewhere."""
    files = {origin.removeprefix("file ") for origin in loaded.origins.values() if origin.startswith("file ")}
    return Path(files.pop()) if files else None
