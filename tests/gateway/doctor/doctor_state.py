"""A state folder as the doctor sees it."""

import json
import os
import time
from pathlib import Path
from typing import Any

from gatewayfilter.config import Settings
from gatewayfilter.gateway.doctor import Patient


def patient(state: Path, *, config: Path | None = None, now: float | None = None, **sections: Any) -> Patient:
    settings = Settings.model_validate({"data_dir": state, **sections})
    return Patient(settings, config, time.time() if now is None else now)


def says(folder: Path, name: str, **facts: object) -> None:
    """Writes a status file as a process of the filter does."""
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run" / f"{name}.json").write_text(json.dumps({"pid": os.getpid(), "at": time.time(), **facts}))


def running(state: Path, listen: str = "127.0.0.1:1") -> None:
    says(state, "supervisor", listen=listen, children={"proxy-0": {"pid": os.getpid(), "restarts": 0}})
