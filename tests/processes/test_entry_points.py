"""The entries of child processes: each begins as a child and passes on what it was given. Nothing runs here."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter import processes
from gatewayfilter.config import Loaded, Settings
from gatewayfilter.errors import StartupError, StoreError
from gatewayfilter.processes import entry_points, learner, mitmdump, proxy_worker, web
from gatewayfilter.processes.integration import daemon
from gatewayfilter.processes.metrics import endpoint
from gatewayfilter.processes.mitmdump import LearnerCompanion
from gatewayfilter.processes.sharing import decisions, sync
from gatewayfilter.processes.supervision.run_lock import RunLock

SETTINGS = Settings()


def noted[T](log: list[Any], entry: object, result: T) -> T:
    """Takes note of something, and returns a result."""
    log.append(entry)
    return result


@pytest.mark.parametrize(
    ("entry", "module", "name", "given"),
    [
        (entry_points.proxy_worker, "proxy_worker", "run_proxy_worker", (1, SETTINGS, "line")),
        (entry_points.crawler, "crawler", "run_crawler", (2, SETTINGS)),
        (entry_points.metrics, "metrics.endpoint", "run_metrics", (SETTINGS,)),
        (entry_points.fleet, "fleet", "run_fleet", (SETTINGS,)),
        (entry_points.decisions, "sharing.decisions", "run_decisions", (SETTINGS,)),
        (entry_points.integration, "integration.daemon", "run_integration", (SETTINGS,)),
        (entry_points.sync, "sharing.sync", "run_sync", (SETTINGS,)),
        (entry_points.web, "web", "run_web", (Loaded(SETTINGS, {}),)),
        (entry_points.learner, "learner", "run_learner", (SETTINGS,)),
    ],
)
def test_what_is_given_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, entry: Callable[..., None], module: str, name: str, given: tuple[object, ...]
) -> None:
    ran = list[tuple[object, ...]]()
    monkeypatch.setattr(f"gatewayfilter.processes.{module}.{name}", lambda *found: ran.append(found))
    entry(*given)
    assert ran == [given]


def test_one_worker_a_core_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.processes.entry_points.os.sched_getaffinity", lambda _: {1, 5, 7})
    assert entry_points.worker_count(Settings()) == 3
    assert entry_points.worker_count(Settings.model_validate({"proxy": {"workers": 2}})) == 2


@pytest.mark.parametrize("module", [endpoint, decisions, sync, web, learner])
def test_errors_of_our_own_end_a_process_with_2(
    monkeypatch: pytest.MonkeyPatch, module: Any, caplog: pytest.LogCaptureFixture
) -> None:
    begun = list[object]()

    def fail(*_: object) -> None:
        raise StoreError("no database")

    monkeypatch.setattr(module, "begin_child", begun.append)
    part = {endpoint: "_run", decisions: "_Decisions", sync: "_Sync", web: "serve", learner: "_Learner"}[module]
    monkeypatch.setattr(module, part, fail)
    run = {endpoint: "run_metrics", decisions: "run_decisions", sync: "run_sync", web: "run_web", learner: "run_learner"}[module]
    with pytest.raises(SystemExit) as ended:
        getattr(module, run)(Loaded(SETTINGS, {}) if module is web else SETTINGS)
    assert (ended.value.code, begun) == (2, [SETTINGS])
    assert caplog.messages == ["no database"]


def test_the_process_for_other_programs_begins_as_a_child(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Settings) -> None:
        raise StartupError("no snapshot")

    monkeypatch.setattr(daemon, "begin_child", lambda _: None)
    monkeypatch.setattr(daemon, "_run", lambda settings, _: fail(settings))
    with pytest.raises(SystemExit):
        daemon.run_integration(SETTINGS)
    assert caplog.messages == ["no snapshot"]


def test_a_worker_is_tuned_and_inspects_where_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[Any]()
    for name in ("begin_child", "freeze_startup", "trim_regularly"):
        monkeypatch.setattr(proxy_worker, name, lambda *given, name=name: done.append((name, *given)))
    monkeypatch.setattr(proxy_worker, "InspectionPool", lambda settings: ("pool", settings))

    def components(*given: Any, standalone: bool) -> str:
        done.append((*given, standalone))
        return "components"

    monkeypatch.setattr(proxy_worker, "worker_components", components)
    assert proxy_worker.tuned_components(SETTINGS) == "components"  # type: ignore[comparison-overlap]
    inspecting = Settings.model_validate({"proxy": {"unknown": "inspect"}})
    proxy_worker.open_components(inspecting, standalone=True)
    assert done == [
        (SETTINGS, None, False), ("freeze_startup",), ("trim_regularly",), (inspecting, ("pool", inspecting), True),
    ]  # fmt: skip
    done.clear()
    monkeypatch.setattr(proxy_worker, "run_worker", lambda *given: done.append(given))
    monkeypatch.setattr(proxy_worker, "Heartbeat", lambda line: ("heartbeat", line))
    proxy_worker.run_proxy_worker(3, SETTINGS, cast("Any", "line"))
    assert done == [("begin_child", SETTINGS), (3, SETTINGS, proxy_worker.tuned_components, ("heartbeat", "line"))]


def test_the_fork_server_starts_before_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[Any]()
    loaded = Loaded(SETTINGS, {})

    def start() -> str:
        done.append("fork server")
        return "context"

    def supervise(*given: Any) -> int:
        done.append(given)
        return 5

    monkeypatch.setattr(processes, "start_fork_server", start)
    monkeypatch.setattr("gatewayfilter.processes.supervisor.supervise", supervise)
    monkeypatch.setattr("gatewayfilter.use_cases.settings_files.check_files", done.append)
    assert processes.run(loaded, print) == 5
    assert done == ["fork server", SETTINGS, (loaded, "context", print)]


def test_the_addons_of_a_stock_mitmproxy(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    done = list[Any]()
    loaded: Any = SimpleNamespace(settings=SETTINGS, warnings=("old",), warning="proxy.port is proxy.listen now")
    monkeypatch.setattr(mitmdump, "load", lambda: loaded)
    monkeypatch.setattr(mitmdump, "start_fork_server", lambda preload: noted(done, preload, "context"))
    for name in ("prepare_data_dir", "prepare_lists"):
        monkeypatch.setattr(mitmdump, name, lambda settings, name=name: done.append((name, settings)))
    monkeypatch.setattr(mitmdump, "open_components", lambda settings, standalone: SimpleNamespace(addon=(settings, standalone)))
    addon, companion = mitmdump.standalone_addons()
    assert addon == (SETTINGS, True)
    assert isinstance(companion, LearnerCompanion)
    assert done == [("prepare_data_dir", SETTINGS), mitmdump._PRELOAD, ("prepare_lists", SETTINGS)]
    assert caplog.messages == ["proxy.port is proxy.listen now"]
    caplog.clear()
    loaded.warnings = ()
    mitmdump.standalone_addons()
    assert caplog.messages == []


@pytest.mark.parametrize("hangs", [False, True])
def test_the_learner_beside_a_stock_mitmproxy(tmp_path: Path, *, hangs: bool) -> None:
    done = list[Any]()
    settings = Settings(data_dir=tmp_path)

    def process(**facts: Any) -> Any:
        done.append((facts["target"], facts["args"]))
        return SimpleNamespace(
            start=lambda: done.append("start"), terminate=lambda: done.append("terminate"),
            join=done.append, is_alive=lambda: hangs, kill=lambda: done.append("kill"),
        )  # fmt: skip

    companion = LearnerCompanion(settings, cast("Any", SimpleNamespace(Process=process)))
    companion.running()
    with pytest.raises(StartupError), RunLock(tmp_path):
        pass
    other = LearnerCompanion(settings, cast("Any", None))
    other.running()  # the first one learns
    other.done()
    assert done == [(learner.run_learner, (settings,)), "start"]
    companion.done()
    assert done[2:] == ["terminate", mitmdump._DRAIN_S, *["kill"] * hangs]
    with RunLock(tmp_path):
        pass
