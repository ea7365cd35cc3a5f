"""Counters, status files, logging."""

import errno
import io
import json
import logging
import os
import threading
from pathlib import Path

import pytest

from gatewayfilter.telemetry import METRICS, Counters, DecisionTimes, StatusFile, set_up_logging


def test_only_declared_counters_exist() -> None:
    counters = Counters()
    counters.add("requests")
    counters.add("requests", 2)
    assert counters["requests"] == 3
    assert counters.as_dict() == {"requests": 3}
    with pytest.raises(KeyError):
        counters.add("requets")


def test_every_counter_is_described() -> None:
    assert all(METRICS.values())


def test_a_status_file_is_whole_and_ours_alone(tmp_path: Path) -> None:
    status = StatusFile(tmp_path / "run", "proxy-0")
    status.write(state="starting")
    status.write(state="serving", requests=1)
    path = tmp_path / "run" / "proxy-0.json"
    document = json.loads(path.read_text())
    assert (document["state"], document["requests"]) == ("serving", 1)
    assert path.stat().st_mode & 0o077 == 0
    assert [item.name for item in path.parent.iterdir()] == ["proxy-0.json"]
    status.remove()
    status.remove()
    assert not path.exists()


def test_a_status_that_cannot_be_written_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    status = StatusFile(tmp_path / "run", "proxy-0")
    (tmp_path / "run").rmdir()
    status.write(state="serving")
    assert status.failed
    assert "cannot write proxy-0.json" in caplog.text


def test_a_lasting_failure_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    status = StatusFile(tmp_path / "run", "proxy-0")
    (tmp_path / "run").rmdir()
    for _ in range(3):
        status.write(state="serving")
    assert caplog.text.count("cannot write") == 1
    (tmp_path / "run").mkdir()
    status.write(state="serving")
    assert not status.failed
    (tmp_path / "run" / "proxy-0.json").unlink()
    (tmp_path / "run").rmdir()
    status.write(state="serving")
    assert caplog.text.count("cannot write") == 2


def test_a_full_disk_leaves_the_status_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = StatusFile(tmp_path / "run", "proxy-0")
    status.write(state="serving", requests=1000)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("gatewayfilter.telemetry.tempfile.mkstemp", full)
    status.write(state="serving", requests=2)
    path = tmp_path / "run" / "proxy-0.json"
    assert json.loads(path.read_text())["requests"] == 2
    assert [item.name for item in path.parent.iterdir()] == ["proxy-0.json"]


def _logged(monkeypatch: pytest.MonkeyPatch, message: str, *, json_lines: bool) -> str:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        set_up_logging("info", "json" if json_lines else "text")
        logging.getLogger("a.b").info("%s", message)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    return stream.getvalue()


@pytest.mark.parametrize("steering", ["\x1b[2J", "\x9b2J", "\x7f", "\u202e", "\u2028", "\ud800", "\x85"])
def test_nothing_in_a_log_steers_a_terminal(monkeypatch: pytest.MonkeyPatch, steering: str) -> None:
    line = _logged(monkeypatch, f"före {steering} after", json_lines=True)
    assert json.loads(line)["message"] == f"före {steering} after"
    assert "före" in line
    assert steering[0] not in line
    plain = _logged(monkeypatch, f"före {steering} after", json_lines=False)
    assert "före" in plain
    assert steering[0] not in plain


def test_log_lines_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        set_up_logging("info")
        logging.getLogger("a.b").info("hello %s", "wörld")
        try:
            int("x")
        except ValueError:
            logging.getLogger("a.b").exception("failed")
        logging.getLogger("a.b").debug("not this")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["message"] for line in lines] == ["hello wörld", "failed"]
    assert "ValueError: invalid literal" in lines[1]["error"]


def test_decision_times_fall_into_buckets() -> None:
    times = DecisionTimes()
    assert sum(times.collect().values()) == 0
    for elapsed_us in (0, 5, 6, 10, 99, 100, 101, 100_000, 100_001, 10**9, -3):
        times.take(elapsed_us)
    found = times.collect()
    assert {bound: number for bound, number in found.items() if number and bound != "sum"} == {
        "5": 3, "10": 2, "100": 2, "150": 1, "100000": 1, "inf": 2,
    }  # fmt: skip
    assert found["sum"] == 0 + 5 + 6 + 10 + 99 + 100 + 101 + 100_000 + 100_001 + 10**9
    assert times.collect() == found


def test_decision_times_of_a_stalled_status_are_bounded() -> None:
    times = DecisionTimes()
    for _ in range(100_000):
        times.take(1)
    assert times.collect()["5"] == 65_536


def test_decision_times_are_collected_while_they_are_taken() -> None:
    times, ended = DecisionTimes(), threading.Event()

    def collect() -> None:
        while not ended.is_set():
            times.collect()

    thread = threading.Thread(target=collect)
    thread.start()
    for _ in range(50_000):
        times.take(7)
    ended.set()
    thread.join()
    assert times.collect()["10"] == 50_000
