"""What `run`, `match`, `classify --lines`, `helper` and `stream worker` pass on: `gatewayfilter.cli.filter.run_command`,
`gatewayfilter.cli.filter.match_command`, `gatewayfilter.cli.filter.request_workers`,
`gatewayfilter.cli.helper.helper_commands`, `gatewayfilter.cli.stream.worker_command`,
`gatewayfilter.cli.learning.crawl_progress`, `gatewayfilter.cli.learning.classify_command`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.cli.bulk.bulk_run import BulkRun
from gatewayfilter.cli.filter.request_workers import RequestWorker
from gatewayfilter.cli.filter.run_command import run
from gatewayfilter.cli.learning.crawl_progress import showing_crawl
from gatewayfilter.config import Loaded
from gatewayfilter.crawl import CrawlProgress
from gatewayfilter.errors import StoreError
from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat
from tests.cli.test_command_doubles import SETTINGS, Doubled, called, texts

NONE = {"proxy__listen": None, "proxy__mode": None, "proxy__workers": None, "learn__enabled": None, "web__listen": None}


def test_the_filter_runs_as_the_options_say(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []

    def processes(loaded: Loaded) -> int:
        ran.append(loaded.settings)
        return 7

    monkeypatch.setattr("gatewayfilter.processes.run", processes)
    context = Doubled()
    assert (texts(context, "run"), ran, context.options) == ((7, "", ""), [SETTINGS], [NONE])
    context = Doubled()
    texts(context, "run", "--listen", "h:1", "--mode", "transparent", "--workers", "3", "--no-learn", "--no-web")
    given = {
        "proxy__listen": "h:1",
        "proxy__mode": "transparent",
        "proxy__workers": 3,
        "learn__enabled": False,
        "web__listen": "",
    }
    assert context.options == [given]


def test_an_interrupted_restore_is_completed_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    steps: list[Any] = []
    found: list[Any] = [True]
    settings = SETTINGS.model_copy(update={"data_dir": tmp_path})

    def finish(store: object, folder: Path) -> bool:
        steps.append(folder)
        if found[0] is None:
            raise StoreError("it is locked")
        return bool(found[0])

    store = SimpleNamespace(close=lambda: steps.append("closed"))
    monkeypatch.setattr("gatewayfilter.processes.run", lambda _loaded: steps.append("run") or 0)  # type: ignore[func-returns-value]
    monkeypatch.setattr("gatewayfilter.cli.ui.command_context.open_store", lambda _settings: store)
    monkeypatch.setattr("gatewayfilter.telemetry.set_up_logging", lambda *given: steps.append(given))
    monkeypatch.setattr("gatewayfilter.use_cases.backup.finish_interrupted", finish)
    context = Doubled(settings=settings)
    run.main([], standalone_mode=False, obj=context)
    assert (steps, len(context.options)) == (["run"], 1)
    (tmp_path / ".restore").touch()
    log = (settings.log.level, settings.log.format)
    for answer, told in ((True, "completed a restore that was interrupted"), (False, ""), (None, "it is locked")):
        found[0] = answer
        steps.clear()
        caplog.clear()
        context = Doubled(settings=settings)
        with caplog.at_level(logging.INFO):
            assert run.main([], standalone_mode=False, obj=context) == 0
        assert steps == [log, tmp_path, "closed", "run"]
        assert [record.getMessage() for record in caplog.records] == [told] * bool(told)
        assert context.options == [NONE, NONE], "the settings are those that were restored"


def test_a_warning_of_old_names_is_in_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    levels: list[Any] = []

    class Warned(Doubled):
        def loaded(self, warn: Any = None, /, **options: object) -> Loaded:
            loaded = Loaded(self.given, {}, ("old is new",))
            warn(loaded)
            return loaded

    monkeypatch.setattr("gatewayfilter.processes.run", lambda _loaded: 0)
    monkeypatch.setattr("gatewayfilter.telemetry.set_up_logging", lambda *given: levels.append(given))
    run.main([], standalone_mode=False, obj=Warned())
    assert ([record.getMessage() for record in caplog.records], levels) == (
        ["old is new"],
        [(SETTINGS.log.level, SETTINGS.log.format)],
    )


@pytest.fixture
def matched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A match of which each part is noted."""
    holder: dict[str, Any] = {"runs": [], "opened": []}

    def answer_all(self: BulkRun, stream: Any, lines: Any, opener: Any, started: float, files: Any) -> None:
        assert started >= 0
        with opener() as opened:
            holder["runs"].append((self, stream.name, lines, opened, files))

    @contextmanager
    def outputs(*given: object, **named: object) -> Iterator[Any]:
        holder["opened"].append((*given, named))
        yield SimpleNamespace(output="output")

    class Tables:
        def __init__(self, *given: object, apart: bool) -> None:
            holder["tables"] = (*given, apart)

        def answers(self, *given: Any) -> tuple[Any, ...]:
            return given

    def write_all(self: BulkRun, answers: Any, total: int, started: float, files: Any) -> None:
        holder["runs"].append((self, answers, total, files))

    module = "gatewayfilter.cli.filter.match_command"
    monkeypatch.setattr(BulkRun, "answer_all", answer_all)
    monkeypatch.setattr(BulkRun, "write_all", write_all)
    monkeypatch.setattr(f"{module}.open_outputs", outputs)
    monkeypatch.setattr(f"{module}.lines_of", lambda engine, form, *, apart: (engine, form, apart))
    monkeypatch.setattr(f"{module}.RequestWorker", lambda *given: given)
    monkeypatch.setattr("gatewayfilter.wiring.image_of", lambda engine, file: (engine, file.name))
    monkeypatch.setattr("gatewayfilter.wiring.engine_for_lists", lambda lists: lists)
    monkeypatch.setattr("gatewayfilter.wiring.open_engine", lambda settings, store: ("engine", settings == SETTINGS, store))
    tables = ModuleType("gatewayfilter.cli.filter.table_match")
    tables.__dict__["TableMatch"] = Tables
    monkeypatch.setitem(sys.modules, "gatewayfilter.cli.filter.table_match", tables)
    holder["file"] = tmp_path / "requests"
    holder["file"].touch()
    return holder


def test_requests_are_matched_by_lists_or_the_state_folder(matched: dict[str, Any]) -> None:
    file = matched["file"]
    requests = ("match", "--requests", file)
    assert texts(Doubled("store"), *requests) == (0, "", "")
    engine = ("engine", True, "store")
    ran, name, lines, opened, files = matched["runs"].pop()
    assert ran == BulkRun("match", "request", "decided", 20_000, 0, False)
    assert (name, lines, opened) == (
        str(file),
        (engine, TrafficFormat.JSON, False),
        ((engine, "snapshot"), TrafficFormat.JSON, False),
    )
    assert matched["opened"].pop() == (file, None, None, {"whole": False})
    assert files.output == "output"
    options = (
        "--list",
        "a",
        "--list",
        "b",
        "--format",
        "squid",
        "--dead",
        "/d",
        "--jobs",
        "3",
        "--stats",
        "--output",
        "/o.jsonl",
    )
    texts(Doubled(), *requests, *options)
    ran, _, lines, opened, _ = matched["runs"].pop()
    lists = (Path("a"), Path("b"))
    assert (ran.jobs, ran.stats, lines) == (3, True, (lists, TrafficFormat.SQUID, True))
    assert opened == ((lists, "snapshot"), TrafficFormat.SQUID, True)
    assert matched["opened"].pop() == (file, Path("/o.jsonl"), Path("/d"), {"whole": False})


def test_parquet_in_or_out_is_matched_in_one_process(matched: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    file = matched["file"]
    requests = ("match", "--requests", file, "--list", "a")
    texts(Doubled(), *requests, "--output", "/o.parquet")
    ran, answers, total, _ = matched["runs"].pop()
    assert (ran.command, answers[0], answers[2], total) == ("match", file, TrafficFormat.JSON, 0)
    assert matched["tables"] == ((Path("a"),), "output", False)
    assert matched["opened"].pop() == (file, Path("/o.parquet"), None, {"whole": True})
    texts(Doubled(), *requests, "--format", "parquet", "--dead", "/d")
    assert matched["runs"].pop()[1][2] is None
    assert (matched["tables"], matched["opened"].pop()[3]) == (((Path("a"),), None, True), {"whole": False})
    monkeypatch.setitem(sys.modules, "gatewayfilter.cli.filter.table_match", None)
    assert "install the extra gatewayfilter[parquet]" in called(Doubled(), *requests, "--format", "parquet").complains()


def test_a_worker_decides_by_the_mapped_image(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    image: Any = SimpleNamespace(open=lambda: "mapped")
    monkeypatch.setattr("gatewayfilter.cli.filter.request_workers.RecordDecider.over", lambda engine: ("decider", engine))
    for name in ("RequestLines", "TrafficLines"):

        def make(*given: object, name: str = name, **named: object) -> str:
            asked.append((name, *given, named))
            return name

        monkeypatch.setattr(f"gatewayfilter.cli.filter.request_workers.{name}", make)
    assert str(RequestWorker(image).open()) == "RequestLines"
    assert str(RequestWorker(image, TrafficFormat.ZEEK, apart=True).open()) == "TrafficLines"
    decider = ("decider", "mapped")
    assert asked == [("RequestLines", decider, {"apart": False}), ("TrafficLines", decider, TrafficFormat.ZEEK, {"apart": True})]


def test_pages_of_lines_are_judged_by_a_worker_of_the_settings(matched: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class Worker:
        def __init__(self, settings: object) -> None:
            assert settings == SETTINGS

        def open(self) -> str:
            return "lines"

    def answer_all(self: BulkRun, stream: Any, lines: Any, opener: Any, started: float) -> None:
        assert started >= 0
        with opener() as opened:
            matched["runs"].append((self, stream.name, lines, type(opened)))

    monkeypatch.setattr("gatewayfilter.cli.learning.page_lines.PageWorker", Worker)
    monkeypatch.setattr(BulkRun, "answer_all", answer_all)
    lines = ("classify", "--lines", matched["file"])
    assert texts(Doubled(), *lines) == (0, "", "")
    usual = BulkRun("classify", "page", "judged", 200, 0, False)
    assert matched["runs"] == [(usual, str(matched["file"]), "lines", Worker)]
    texts(Doubled(), *lines, "--jobs", "3", "--stats")
    assert (matched["runs"][1][0].jobs, matched["runs"][1][0].stats) == (3, True)


def test_helpers_are_the_small_process(monkeypatch: pytest.MonkeyPatch) -> None:
    executed: list[Any] = []
    monkeypatch.setattr(os, "execv", lambda *given: executed.append(given))
    monkeypatch.setattr("gatewayfilter.integration.squid.helper.helper_command", lambda *given: ["program", *given])
    monkeypatch.setattr("gatewayfilter.processes.integration.daemon.usable_socket", lambda _settings: Path("/own"))
    assert texts(Doubled(), "helper", "squid", "--socket", "/s") == (0, "", "")
    assert executed.pop() == ("program", ["program", Path("/s"), "acl", "allow", "", 2_000])
    more = ("--protocol", "rewrite", "--on-error", "block", "--block-url", "http://b/")
    texts(Doubled(), "helper", "squid", "--socket", "/s", *more)
    assert executed.pop()[1][1:] == [Path("/s"), "rewrite", "block", "http://b/", 2_000]
    helper = SETTINGS.helper.model_copy(update={"block_url": "http://own/", "timeout_ms": 77})
    settings = SETTINGS.model_copy(update={"helper": helper})
    texts(Doubled(settings=settings), "helper", "squid")
    assert executed.pop()[1][1:] == [Path("/own"), "acl", SETTINGS.proxy.on_error.value, "http://own/", 77]
    texts(Doubled(settings=settings), "helper", "squid", "--block-url", "", "--on-error", "block")
    assert executed.pop()[1][3:5] == ["block", ""]


def test_the_daemon_needs_something_to_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    serves = [True]
    monkeypatch.setattr("gatewayfilter.processes.entry_points.serves_others", lambda _settings: serves[0])
    monkeypatch.setattr("gatewayfilter.processes.integration.daemon.usable_socket", lambda _settings: steps.append("socket"))
    monkeypatch.setattr("gatewayfilter.processes.integration.daemon.run_daemon", lambda _settings: steps.append("run"))
    texts(Doubled(), "helper", "daemon")
    serves[0] = False
    texts(Doubled(), "helper", "daemon")
    assert steps == ["run", "socket", "run"]


def test_a_worker_of_streams_gets_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    served: list[Any] = []
    service = ModuleType("gatewayfilter.scaleout.stream.worker.service")
    service.__dict__.update(ServiceOptions=lambda **options: options, serve=lambda *given: served.append(given))
    monkeypatch.setitem(sys.modules, "gatewayfilter.scaleout.stream.worker.service", service)
    worker = ("stream", "worker", "--brokers", "k:9092", "--topic", "a", "--topic", "b")
    assert texts(Doubled(), *worker) == (0, "", "")
    options, off = served.pop()
    assert (options["rules"], options["properties"], options["topics"], off) == (
        SETTINGS.data_dir / "snapshots",
        {},
        ("a", "b"),
        (),
    )
    assert (options["window_s"], options["together"], options["batch"], options["form"]) == (60, 1, 20_000, "jsonl")
    file = tmp_path / "kafka"
    file.write_text("a=b\n")
    settings = SETTINGS.model_copy(update={"filter": SETTINGS.filter.model_copy(update={"disabled_categories": ["ads"]})})
    texts(Doubled(settings=settings), *worker, "--rules", tmp_path, "--kafka-config", file)
    options, off = served.pop()
    assert (options["rules"], options["properties"], off) == (tmp_path, {"a": "b"}, ("ads",))
    monkeypatch.setitem(sys.modules, "gatewayfilter.scaleout.stream.worker.service", None)
    assert "install the extra gatewayfilter[stream]" in called(Doubled(), *worker).complains()


def test_a_crawl_on_a_terminal_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[Any] = []
    now = [1.0]

    class Bars:
        def __init__(self, *columns: object, transient: bool, redirect_stdout: bool, **_: object) -> None:
            updates.append((len(columns), transient, redirect_stdout))

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None: ...

        def add_task(self, _name: str, *, total: None) -> int:
            assert total is None
            return 7

        def update(self, task: int, **how: Any) -> None:
            updates.append((task, how["completed"], how["total"], how["refresh"]))

    monkeypatch.setattr("rich.progress.Progress", Bars)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("gatewayfilter.cli.learning.crawl_progress.time", SimpleNamespace(monotonic=lambda: now[0]))

    def at(done: int, running: int, waiting: int) -> CrawlProgress:
        found: Any = SimpleNamespace(done=done, running=running, waiting=waiting, harmful=0, failed=0, rate=1.0, elapsed_s=now[0])
        return found  # type: ignore[no-any-return]

    with showing_crawl() as report:
        report(at(1, 2, 3))
        now[0] = 1.05
        report(at(2, 1, 3))
        now[0] = 1.125
        report(at(3, 1, 2))
        report(at(4, 0, 1))
        report(at(5, 0, 0))
    assert updates == [(3, True, False), (7, 1, 6, True), (7, 3, 6, True), (7, 5, 5, True)]
    with showing_crawl(quiet=True) as report:
        report(at(1, 1, 1))
    assert len(updates) == 4
