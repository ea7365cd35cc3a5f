"""`gatewayfilter run` as a process, and commands beside it, for the benchmarks."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil


class Filter:
    """The filter on a state folder.

    Args:
        state: the state folder.
        arguments: further arguments of `run`.
        settings: further environment variables.
        checkout: another checkout to run; it has a `.venv` of its own, or runs with this Python.

    Attributes:
        host, port: where it listens, once started.
    """

    def __init__(
        self, state: Path, *arguments: str, settings: Mapping[str, str] | None = None, checkout: Path | None = None
    ) -> None:
        self._command = _command_of(checkout)
        self._environment = {
            **os.environ,
            "GATEWAYFILTER_DATA_DIR": str(state),
            # A release before the dashboard refuses a setting that it does not know.
            **(
                {"GATEWAYFILTER_WEB__LISTEN": os.environ.get("GATEWAYFILTER_WEB__LISTEN", "")} if _has_dashboard(checkout) else {}
            ),
            "GATEWAYFILTER_LOG__LEVEL": os.environ.get("GATEWAYFILTER_LOG__LEVEL", "warning"),
            **({"PYTHONPATH": str(checkout)} if checkout is not None else {}),
            **(settings or {}),
        }
        self._arguments = ["run", "--listen", "127.0.0.1:0", *arguments]
        self._state = state
        self.host, self.port = "", 0

    def command(self, *arguments: str, feed: str | None = None) -> str:
        """Runs a command and returns what it printed."""
        done = subprocess.run(
            [*self._command, *arguments], env=self._environment, input=feed, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    def start(self) -> None:
        """Starts it and waits until it serves."""
        self._process = subprocess.Popen(
            [*self._command, *self._arguments], env=self._environment, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        found = re.search(r"filtering on (\S+):(\d+)", self._process.stdout.readline())
        if not found:
            raise SystemExit("the filter did not start")
        self.host, self.port = found[1], int(found[2])

    def workers(self) -> list[psutil.Process]:
        """Returns the proxy workers' processes."""
        paths = sorted((self._state / "run").glob("proxy-*.json"))
        return [psutil.Process(json.loads(path.read_text())["pid"]) for path in paths]

    def stop(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait(20)


def _command_of(checkout: Path | None) -> list[str]:
    """Returns the command that runs the filter of a checkout, and no other one's: `-P` keeps the current folder out."""
    if checkout is None:
        return [str(Path(sys.executable).with_name("gatewayfilter"))]
    own = checkout / ".venv" / "bin" / "python"
    python = [str(own if own.exists() else sys.executable), "-P"]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    asked = [*python, "-c", "import gatewayfilter; print(gatewayfilter.__file__)"]
    found = subprocess.run(asked, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    if not Path(found).is_relative_to(checkout):
        raise SystemExit(f"{checkout} is no checkout: gatewayfilter is imported from {found.strip()}")
    return [*python, "-m", "gatewayfilter.cli"]


def _has_dashboard(checkout: Path | None) -> bool:
    return checkout is None or (checkout / "gatewayfilter" / "web").is_dir()
