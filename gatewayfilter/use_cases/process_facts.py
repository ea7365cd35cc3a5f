"""The status files of processes that run, `run/NAME.json` in the state folder."""

import json
from pathlib import Path
from typing import Any

from gatewayfilter.config import Settings


def process_facts(settings: Settings, name: str) -> dict[str, Any]:
    """Returns the status file of a process; empty when it does not run."""
    try:
        found = dict(json.loads((settings.data_dir / "run" / f"{name}.json").read_text(encoding="utf-8")))
        stat = Path(f"/proc/{int(found['pid'])}/stat").read_text(encoding="ascii", errors="replace")
        return {} if stat.rpartition(")")[2].split()[0] == "Z" else found
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return {}
