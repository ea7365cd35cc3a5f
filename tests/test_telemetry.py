"""Counters, status files, logging."""

import io
import json
import logging
from pathlib import Path

import pytest

from gatewayfilter.telemetry import METRICS, Counters, StatusFile, set_up_logging


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
    assert "cannot write proxy-0.json" in caplog.text


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
