"""Bulk commands at their bounds: `gatewayfilter.cli.bulk.json_lines`, `gatewayfilter.cli.bulk.line_tally`,
`gatewayfilter.cli.bulk.bulk_run`, `gatewayfilter.cli.bulk.line_workers`, `gatewayfilter.cli.filter.match_files`.
"""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.cli.bulk import bulk_run
from gatewayfilter.cli.bulk.bulk_run import BulkRun, OutputFiles, open_lines
from gatewayfilter.cli.bulk.json_lines import (
    CHUNK,
    MAX_LINE,
    Answers,
    BadLineError,
    Batch,
    JsonLines,
    dead_letter,
    read_batches,
    shown_line,
)
from gatewayfilter.cli.bulk.line_tally import Tally
from gatewayfilter.cli.filter.match_files import open_outputs
from gatewayfilter.errors import GatewayFilterError, ListError


class Lines(JsonLines):
    """Answers with a number, refuses what is `bad`, and replaces the field `n`."""

    added = frozenset({"n", "error"})
    max_line = 60

    def answer(self, record: dict[str, Any]) -> tuple[tuple[str, str], str]:
        if "bad" in record:
            raise BadLineError("bad", record["bad"])
        return ("ok", "x"), '"n": 1}\n'


def test_each_kind_of_line_has_its_answer() -> None:
    lines = [
        b'{"a": 1}',
        b"",
        b"  ",
        b"[1]",
        b"{",
        b"\xff",
        b'{"bad": "no page", "n": 2}',
        b'{"bad": ""}',
        b"{}",
        b'"' + b"y" * 58 + b'"',
        b'"' + b"y" * 59 + b'"',
    ]
    found = Lines().decide(Batch(5, lines, 99))
    assert found.text.decode().splitlines() == [
        '{"a": 1, "n": 1}',
        '{"input": [1], "error": "not an object"}',
        '{"input": "{", "error": "not JSON"}',
        '{"input": "\\ufffd", "error": "not JSON"}',
        '{"bad": "no page", "error": "no page"}',
        '{"bad": "", "error": "bad"}',
        '{"n": 1}',
        json.dumps({"input": "y" * 58, "error": "not an object"}),
        json.dumps({"input": '"' + "y" * 59 + '"', "error": "line too long"}),
    ]
    assert found.counts == {
        ("ok", "x"): 2,
        ("error", "not an object"): 2,
        ("error", "not JSON"): 2,
        ("error", "bad"): 2,
        ("error", "line too long"): 1,
    }
    assert found.bad[:2] == [(8, "not an object"), (9, "not JSON")]
    assert (found.size, found.dead) == (99, b"")


def test_lines_without_an_answer_are_kept_apart() -> None:
    lines = Lines(apart=True)
    found = lines.decide(Batch(1, [b'{"bad": "no page"}', b"{}"], 9))
    assert (found.text, json.loads(found.dead)) == (b'{"n": 1}\n', {"line": 1, "error": "no page", "input": '{"bad": "no page"}'})
    again = lines.decide(Batch(3, [b"{}"], 9))
    assert (again.dead, again.bad, again.counts) == (b"", [], {("ok", "x"): 1}), "each batch begins anew"
    many = lines.decide(Batch(1, [b"["] * 21, 9))
    assert (len(many.bad), many.dead.count(b"\n")) == (20, 21)
    letter = json.loads(dead_letter(7, "why", b"\xff" * MAX_LINE + b"x"))
    assert (letter["line"], letter["error"], letter["input"][:8]) == (7, "why", "\\xff\\xff")
    assert "x" not in letter["input"].replace("\\xff", ""), "a long line is cut"
    assert shown_line(b"\xff" + b"x" * 2_000) == {"input": "\ufffd" + "x" * 1_999}


class Chunks:
    """A stream that has these chunks."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks)

    def read(self, size: int) -> bytes:
        assert size == CHUNK
        return self._chunks.pop(0) if self._chunks else b""


def test_batches_are_cut_at_line_ends_and_long_lines_dropped() -> None:
    stream: Any = Chunks(b"a\nb", b"c\n", b"d", b"e\nf\ng", b"h")
    assert list(read_batches(stream)) == [
        Batch(1, [b"a"], 3),
        Batch(2, [b"bc"], 2),
        Batch(3, [b"de", b"f"], 6),
        Batch(5, [b"gh"], 1),
    ]
    stream = Chunks(b"x" * 5, b"y" * 5, b"z" * 5, b"w\nv")
    assert list(read_batches(stream, 10)) == [Batch(1, [b"x" * 5 + b"y" * 5 + b"z" * 5 + b"w"], 18), Batch(2, [b"v"], 0)]
    stream = Chunks(b"x" * 5, b"y" * 6, b"z" * 5, b"w\n")
    assert next(iter(read_batches(stream, 10))).lines == [b"x" * 5 + b"y" * 6 + b"w"], "what is beyond the bound is dropped"
    assert list(read_batches(Chunks(b"a\n"))) == [Batch(1, [b"a"], 2)]  # type: ignore[arg-type]


def answers(text: bytes = b"t", *, bad: int = 0, good: int = 0, size: int = 1_000_000, dead: bytes = b"") -> Answers:
    counts = Counter({("ok", ""): good, ("error", "why"): bad})
    return Answers(text, +counts, [(number, "why" * 100) for number in range(1, min(bad, 20) + 1)], size, 0.5, dead)


def test_the_tally_counts_and_names_the_first_bad_lines(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally("request")
    tally.say_bad_lines()
    assert capsys.readouterr() == ("", "")
    tally.add(answers(bad=1, good=2_000))
    tally.say_bad_lines()
    assert capsys.readouterr().err == f"line 1: {('why' * 100)[:200]}\ngatewayfilter: 1 line held no request\n"
    assert (tally.total, tally.size, tally.cpu_s) == (2_001, 1_000_000, 0.5)
    tally.add(answers(bad=15))
    tally.add(answers(bad=15))
    tally.say_bad_lines()
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), lines[-2:]) == (22, ["…", "gatewayfilter: 31 lines held no request"])
    tally.say_all(2.0, 0.25)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "       2,000  ok",
        "          31  error why",
        "       2,031  in all: 1,016 requests/s, 1,354 requests/CPU-s, 0.25 s CPU to load",
    ]
    exact = Tally("page")
    exact.add(answers(bad=20))
    exact.say_bad_lines()
    assert "…" not in capsys.readouterr().err


class Source:
    """Lines of a bulk run, one batch each, and what became of them."""

    def __init__(self, *firsts: int) -> None:
        self.firsts = firsts

    def batches(self, stream: object) -> Iterator[Batch]:
        del stream
        return iter([Batch(first, [b"x"], 1) for first in self.firsts])

    def decide(self, batch: Batch) -> Answers:
        return answers(b"own%d " % batch.first, good=1)


def run(monkeypatch: pytest.MonkeyPatch, jobs: int, *firsts: int, cores: int = 2, stats: bool = False) -> tuple[str, list[Any]]:
    """Returns what is written, and the calls of workers."""
    calls: list[Any] = []

    def on_all_cores(opened: object, batches: Iterator[Batch], jobs: int, command: str) -> Iterator[Answers]:
        calls.append((opened, jobs, command))
        return iter([answers(b"worker%d " % batch.first, good=1) for batch in batches])

    @contextmanager
    def opener() -> Iterator[Any]:
        yield "opened"
        calls.append("closed")

    monkeypatch.setattr("gatewayfilter.cli.bulk.line_workers.answer_on_all_cores", on_all_cores)
    monkeypatch.setattr(bulk_run, "_cores", lambda: cores)
    output = io.BytesIO()
    source: Any = Source(*firsts)
    stream: Any = SimpleNamespace(fileno=lambda: 0)
    monkeypatch.setattr("os.fstat", lambda _number: SimpleNamespace(st_size=7, st_mode=0))
    BulkRun("match", "request", "decided", 10, jobs, stats).answer_all(stream, source, opener, 0.0, OutputFiles(output))
    return output.getvalue().decode(), calls


def test_workers_start_when_the_input_is_long(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, 0, 1, 10) == ("own1 own10 ", [])
    assert run(monkeypatch, 0, 1, 11, 12) == ("own1 own11 worker12 ", [("opened", 2, "match"), "closed"])
    assert run(monkeypatch, 3, 1, 11, 12)[1][0] == ("opened", 3, "match")
    assert run(monkeypatch, 1, 1, 11, 12) == ("own1 own11 own12 ", [])
    assert run(monkeypatch, 0, 1, 11, 12, cores=1) == ("own1 own11 own12 ", [])
    assert capsys.readouterr().err == ""
    cpu, clock = iter([3.0, 5.0]), iter([10.0, 11.0])
    times = SimpleNamespace(process_time=lambda: next(cpu), monotonic=lambda: next(clock))
    monkeypatch.setattr(bulk_run, "time", times)
    run(monkeypatch, 1, 1, 11, stats=True)
    told = "           2  in all: 2 requests/s, 1 requests/CPU-s, 3.00 s CPU to load\n"
    assert capsys.readouterr().err.endswith(told)


def test_progress_is_shown_where_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Any] = []

    @contextmanager
    def showing(*, quiet: bool) -> Iterator[Any]:
        reports.append(quiet)
        yield lambda *given: reports.append(given)

    monkeypatch.setattr("gatewayfilter.cli.ui.progress.showing", showing)
    for err, out, quiet in ((True, False, False), (True, True, True), (False, False, True)):
        reports.clear()
        monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda err=err: err, write=len, flush=lambda: None))
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda out=out: out, buffer=io.BytesIO()))
        many = iter([answers(good=1_000), answers(good=500, size=1_500_000)])
        BulkRun("match", "request", "decided", 10).write_all(many, 9_999_999, 0.0)
        assert reports == [quiet, ("1,000 requests decided, MB of input", 1, 9), ("1,500 requests decided, MB of input", 2, 9)]


def test_bad_lines_are_told_of_when_a_run_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> Iterator[Answers]:
        yield answers(bad=1)
        raise GatewayFilterError("a worker ended")

    with pytest.raises(GatewayFilterError):
        BulkRun("match", "request", "decided", 10).write_all(failing(), 0, 0.0, OutputFiles(io.BytesIO()))
    assert "gatewayfilter: 1 line held no request" in capsys.readouterr().err


def test_the_input_is_a_file_or_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_bytes(b"12345")
    with open_lines(file) as stream:
        assert stream.read(2) == b"12"
    with pytest.raises(ListError, match=r"cannot read .*: No such file"):
        open_lines(tmp_path / "none")


def test_the_size_of_a_file_is_known_beforehand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reports: list[Any] = []

    @contextmanager
    def showing(**_: object) -> Iterator[Any]:
        yield lambda *given: reports.append(given)

    monkeypatch.setattr("gatewayfilter.cli.ui.progress.showing", showing)
    file = tmp_path / "in"
    with file.open("wb") as long:
        long.truncate(2_000_000)
    source: Any = Source(1)
    opener: Any = None
    for path in (file, Path("/dev/null")):
        with open_lines(path) as stream:
            BulkRun("match", "request", "decided", 10).answer_all(stream, source, opener, 0.0, OutputFiles(io.BytesIO()))
    assert [total for _, _, total in reports] == [2, 0]


def test_outputs_are_the_owners_and_whole_ones_appear_at_the_end(tmp_path: Path) -> None:
    source, output, dead = tmp_path / "in", tmp_path / "out", tmp_path / "dead"
    with open_outputs(source, output, dead) as files:
        files.write(answers(b"t", dead=b"d"))
        assert output.read_bytes() == b"t"
    assert (dead.read_bytes(), output.stat().st_mode & 0o777) == (b"d", 0o600)
    with open_outputs(source, output, None, whole=True) as files:
        files.write(answers(b"new", dead=b"d"))
        assert (output.read_bytes(), (tmp_path / "out.part").exists(), files.dead) == (b"t", True, None)
    assert (output.read_bytes(), (tmp_path / "out.part").exists()) == (b"new", False)
    with pytest.raises(ValueError, match="no"), open_outputs(source, output, None, whole=True):
        raise ValueError("no")
    assert (output.read_bytes(), sorted(path.name for path in tmp_path.iterdir())) == (b"new", ["dead", "out"])
    with pytest.raises(ValueError, match="no"), open_outputs(source, output, None):
        raise ValueError("no")
    assert output.exists()
    source.touch()
    (tmp_path / "link").symlink_to(source)
    for given, why in (
        ((source, source, None), "it is also the input"),
        ((source, tmp_path / "link", None), "it is also the input"),
        ((source, None, source), "it is also the input"),
        ((source, output, output), "it is also the file of dead lines"),
    ):
        with pytest.raises(ListError, match=why), open_outputs(*given):
            pass
    with pytest.raises(ListError, match="cannot write"), open_outputs(source, tmp_path / "no" / "x", None):
        pass
