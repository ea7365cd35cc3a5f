"""When the supervisor looks for workers that hang, and when it forgives them."""

import multiprocessing
import time
from pathlib import Path
from typing import cast

import pytest

from gatewayfilter.certificates.authority import KeptCa, ensure_ca
from gatewayfilter.config import ProxySettings, Settings
from gatewayfilter.processes.fork_server import WatchedForkServer
from gatewayfilter.processes.supervision.child import Child
from gatewayfilter.processes.supervisor import _Supervisor

CONTEXT = multiprocessing.get_context("forkserver")


class Worker:
    """Stands in for a child: takes note of what it is asked."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def end_if_stalled(self, after_s: float) -> bool:
        self.asked.append(after_s)
        return False

    def forgive_silence(self) -> None:
        self.asked.append("forgive_silence")


@pytest.mark.parametrize(
    ("stall_s", "away_s", "asked"),
    [
        (20.0, 5.0, [20.0]),
        (20.0, 10.0, [20.0]),
        (20.0, 11.0, ["forgive_silence", 20.0]),  # Ctrl-Z and fg, or the machine stood still: the children did too
        (3.0, 0.75, [3.0]),
        (0.0, 5.0, []),
    ],
)
def test_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stall_s: float, away_s: float, asked: list[object]) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    worker = Worker()
    ensure_ca(tmp_path / "ca")
    settings = Settings(data_dir=tmp_path, proxy=ProxySettings(stall_s=stall_s))
    supervisor = _Supervisor(
        settings, [cast("Child", worker)], [], [], WatchedForkServer(CONTEXT), KeptCa(tmp_path / "ca"), print
    )
    clock[0] += away_s
    supervisor._end_stalled()
    assert worker.asked == asked


@pytest.mark.parametrize("value", [0.5, 2.9, -1, 4000])
def test_a_time_below_some_beats_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="stall_s"):
        ProxySettings(stall_s=value)
