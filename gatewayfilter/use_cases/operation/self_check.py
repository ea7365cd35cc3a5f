"""The check of the installation, for the command and for a child process of the dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatewayfilter.gateway.doctor import Finding, Level, Patient, examine

__all__ = ["Level", "examined", "findings", "settings_file"]

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


def findings(settings: Settings, file: Path | None, now: float) -> list[dict[str, Any]]:
    """Returns all findings as plain values: `level`, `check`, `words`, `mend`.

    Args:
        settings: to be checked.
        file: from which they are, `None` for none.
        now: Unix seconds.
    """
    return [
        {"level": one.level.value, "check": one.check, "words": one.words, "mend": one.mend}
        for one in examine(Patient(settings, file, now))
    ]


def settings_file(loaded: Loaded) -> Path | None:
    """Returns the file from which settings are, `None` where all are from elsewhere."""
    files = {origin.removeprefix("file ") for origin in loaded.origins.values() if origin.startswith("file ")}
    return Path(files.pop()) if files else None
