"""Counters, status files, logging."""

import errno
import io
import json
import logging
import os
import threading
from pathlib import Path

import pytest

from gatewayfilter import telemetry
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


def test_times_of_one_bucket_add_up_and_negative_ones_are_none() -> None:
    times = DecisionTimes()
    for elapsed_us in (7, 7, 7, -3, 5, 6, 100_000, 100_001):
        times.take(elapsed_us)
    found = times.collect()
    assert found.pop("sum") == 200_033
    assert {bound: number for bound, number in found.items() if number} == {"5": 2, "10": 4, "100000": 1, "inf": 1}


def test_the_folder_of_a_status_is_made_with_those_above_it(tmp_path: Path) -> None:
    for _ in range(2):
        StatusFile(tmp_path / "a" / "b", "proxy-0")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_status_tells_who_wrote_it_and_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.telemetry.time.time", lambda: 5.123_456)
    StatusFile(tmp_path, "proxy-0").write(state="serving")
    assert (tmp_path / "proxy-0.json").read_bytes() == b'{"pid": %d, "at": 5.123, "state": "serving"}' % os.getpid()


def _full_at(method: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, method, fails)


@pytest.mark.parametrize(("code", "name"), [(errno.ENOSPC, "long"), (errno.EDQUOT, "long"), (errno.EACCES, "kept")])
def test_what_a_failed_write_leaves(code: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = StatusFile(tmp_path, "proxy-0")
    status.write(state="kept", padding="x" * 50)
    _full_at("replace", code, monkeypatch)
    status.write(state="long")
    assert [one.name for one in tmp_path.iterdir()] == ["proxy-0.json"]
    assert json.loads((tmp_path / "proxy-0.json").read_text())["state"] == name
    assert status.failed is (name == "kept")


def test_a_status_of_the_same_length_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.telemetry.time.time", lambda: 5.0)
    status = StatusFile(tmp_path, "proxy-0")
    status.write(state="first")
    size = (tmp_path / "proxy-0.json").stat().st_size
    _full_at("replace", errno.ENOSPC, monkeypatch)
    status.write(state="other")
    assert not status.failed
    assert (tmp_path / "proxy-0.json").stat().st_size == size
    assert json.loads((tmp_path / "proxy-0.json").read_text())["state"] == "other"


def test_a_failure_is_told_as_it_came_when_the_unfinished_file_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def removed(unfinished: Path, _: Path) -> None:
        unfinished.unlink()
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "replace", removed)
    StatusFile(tmp_path, "proxy-0").write(state="serving")
    assert "cannot write proxy-0.json: Read-only file system" in caplog.text


class _Short(io.BytesIO):
    """A file that takes a part of what is written."""

    def fileno(self) -> int:
        return os.open(os.devnull, os.O_RDONLY)

    def write(self, data: object) -> int:
        del data
        return 5


def test_a_status_of_which_a_part_is_written_is_not_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    status = StatusFile(tmp_path, "proxy-0")
    _full_at("replace", errno.ENOSPC, monkeypatch)
    opened = list[object]()

    def opens(path: Path, mode: str, *, buffering: int) -> _Short:
        opened.append((path.name, mode, buffering))
        return _Short()

    monkeypatch.setattr(Path, "open", opens)
    status.write(state="serving")
    assert status.failed
    assert opened == [("proxy-0.json", "r+b", 0)]
    assert "No space left" in caplog.text


def _line_of(form: str, message: str, monkeypatch: pytest.MonkeyPatch, *, terminal: bool = False) -> str:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("sys.stderr", stream)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logging.getLogger("alembic").setLevel(logging.NOTSET)
    try:
        set_up_logging("info", form)
        logging.getLogger("gatewayfilter.test").info(message)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("form", "terminal", "is_json"),
    [("auto", True, False), ("auto", False, True), ("text", True, False), ("text", False, False), ("json", True, True)],
)
def test_the_form_of_the_log(form: str, monkeypatch: pytest.MonkeyPatch, *, terminal: bool, is_json: bool) -> None:
    assert _line_of(form, "ready", monkeypatch, terminal=terminal).startswith("{") is is_json
    assert logging.getLogger("alembic").level == logging.WARNING


@pytest.mark.parametrize(
    ("message", "plain", "escaped"),
    [
        ("ready", "ready", "ready"),
        ("läuft 好", "läuft 好", "läuft 好"),
        ("a\tb\nc", "a\tb\nc", "a\\tb\\nc"),
        ("a\x1bb", "a\\x1bb", "a\\u001bb"),
        ("a\x7fb", "a\\x7fb", "a\\u007fb"),
        ("é\x7f\u202eb", "é\\x7f\\u202eb", "é\\u007f\\u202eb"),
        ("\ud800", "\\ud800", "\\ud800"),
        ("\u2028", "\\u2028", "\\u2028"),
    ],
)
def test_what_stands_in_the_log(message: str, plain: str, escaped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _line_of("text", message, monkeypatch).endswith(f" INFO gatewayfilter.test: {plain}\n")
    line = _line_of("json", message, monkeypatch)
    assert f'"message": "{escaped}"' in line
    assert json.loads(line)["message"] == message


def test_a_line_of_json_has_its_time_and_its_error_if_any() -> None:
    formatter = telemetry._JsonLines()
    record = logging.LogRecord("a.b", logging.WARNING, "", 1, "%s is away", ("it",), None)
    record.created = 5.123_456
    assert json.loads(formatter.format(record)) == {
        "at": 5.123, "level": "warning", "logger": "a.b", "pid": os.getpid(), "message": "it is away",
    }  # fmt: skip
    record.exc_info = (ValueError, ValueError("a fault"), None)
    assert json.loads(formatter.format(record))["error"] == "ValueError: a fault"
    record.exc_info = (None, None, None)
    assert "error" not in json.loads(formatter.format(record))
