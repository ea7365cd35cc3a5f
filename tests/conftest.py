"""What holds for all tests: none asserts a time, hypothesis neither; ^C reaches the programs that they start.

A test that takes more than `BUDGET_S` of CPU time belongs to `make check`, marked `slow`; the summary names those that are not
marked. It does not fail for them: how fast a CPU is says nothing of a change.
"""

import gc
import logging
import os
import signal
import sys
from collections.abc import Generator
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import patient_log, quick_databases, quick_passwords, quiet_workers
from tests.marked_files import files_of
from tests.quick_passwords import full_cost

__all__ = ["full_cost"]

settings.register_profile("untimed", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("untimed")

# A shell that runs the tests in the background has them ignore ^C, and what they start would ignore it as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

BUDGET_S = 2.0
"""CPU time of a test and the processes that it waited for, fixtures left out; the load of the machine does not count."""
SLOW = ("slow", "real", "services")
SLOW_LIMIT_S = 600
"""Of each such test without a limit of its own: on a machine that is busy with other things it takes many times as long."""
_PROPERTY = "cpu_s"
_LONG = frozenset({"e2e", "netns", "security", "fleet", "scaleout", "processes"})
"""Rooms whose tests start the filter or servers."""
_THRESHOLDS = 20_000, 10, 10
_NEW_DATABASES = quick_databases.install()
quick_passwords.install()
patient_log.install()


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_configure(config: pytest.Config) -> None:
    quiet_workers.install(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None]:
    """Collects without Python's garbage collector: twenty thousand tests live to the end, and it would visit all of them again.

    It goes through what comes after them, and less often: its part of the CPU time was a sixteenth.
    """
    gc.disable()
    try:
        _import_by_turns(session.config)
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)


def _import_by_turns(config: pytest.Config) -> None:
    """Imports the test files of a run by several processes, in each from another file on.

    On a fresh checkout the assertions of each file are rewritten, and kept beside it. In the same order all processes rewrite the
    same file at the same time; so each finds most of them done by the others.
    """
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None:
        return
    given = [Path(argument.partition("::")[0]) for argument in config.args]
    found = {file for path in given for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
    files = sorted(file for file in found if files_of(config.option.markexpr).may_select_of(file.absolute()))
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[first:] + files[:first]:
        specs = (finder.find_spec(file.stem, [str(file.parent)]) for finder in sys.meta_path)
        spec = next(filter(None, specs), None)
        if spec is None or spec.loader is None or file.stem in sys.modules:
            continue
        module = sys.modules[file.stem] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except (Exception, pytest.skip.Exception):  # noqa: BLE001  the collection meets it again, and says so
            del sys.modules[file.stem]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Passes over files none of whose tests is selected; not over one that was named."""
    if not collection_path.match("test_*.py") or str(collection_path) in {str(Path(arg).absolute()) for arg in config.args}:
        return None
    return None if files_of(config.option.markexpr).may_select_of(collection_path) else True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the files first that start the filter or servers: a long one at the end would leave the other processes without work.

    Those with a limit of their own are the longest. `--no-loadscope-reorder` has several processes keep this order.
    Then slow ones without a limit get one.
    """
    limits: dict[Path, float] = {}
    for item in items:
        mark = item.get_closest_marker("timeout")
        limits[item.path] = max(limits.get(item.path, 0.0), float(mark.args[0]) if mark is not None and mark.args else 0.0)
    items.sort(key=lambda item: (_LONG.isdisjoint(item.path.parts), -limits[item.path]))
    for item in items:
        if item.get_closest_marker("timeout") is None and _is_slow(item):
            item.add_marker(pytest.mark.timeout(SLOW_LIMIT_S))


def _is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in SLOW)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    before = _cpu_s()
    try:
        return (yield)
    finally:
        if not _is_slow(item):
            item.user_properties.append((_PROPERTY, _cpu_s() - before))  # a property reaches the report from any process


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    spent = {report.nodeid: dict(report.user_properties).get(_PROPERTY, 0.0) for report in reports if report.when == "call"}
    above = sorted(((cpu_s, test) for test, cpu_s in spent.items() if cpu_s > BUDGET_S), reverse=True)
    if above:
        terminalreporter.section(f"more than {BUDGET_S:g} s of CPU time: cheapen them or mark them slow")
        for cpu_s, test in above:
            terminalreporter.write_line(f"{cpu_s:5.1f} s {test}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Takes back what workers and commands that an earlier test ran in this process have set: levels and filters of the log.

    Tests outside of tests/store create their databases quickly. A fixture would take longer than this.
    """
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    root.filters.clear()
    logging.getLogger("mitmproxy").setLevel(logging.NOTSET)
    _NEW_DATABASES.be(quick="store" not in item.path.parts)
