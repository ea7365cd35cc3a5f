"""A plug-in of pytest that collects tests once and runs some of them again and again, each time in a fork, at will with a fault.

`mutants.py` starts it (`-p scripts.mutant_server`), with a socket whose descriptor `MUTANT_SERVER_FD` names: it is told once what
was collected, then answers each `Job` with an `Outcome`. A fault is put into the code objects of the functions that exist. Where
that is not the same as to import the faulty module, nothing runs and the outcome says so (`cold`). A process that runs its tests
once, as any other, tells of them over the pipe whose descriptor `MUTANT_REPORT_FD` names (`followed`).
"""

import gc
import marshal
import os
import resource
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final

import pytest

from scripts.called_functions import CalledFunctions, Place

DESCRIPTOR: Final = "MUTANT_SERVER_FD"
REPORT: Final = "MUTANT_REPORT_FD"
TEST_LIMIT_S: Final = 60
"""Time limit of a test (pytest-timeout)."""
_MOST_MEMORY: Final = 4 << 30
"""Bytes of data: a fault may make a program ask for all there is."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What is there.

    Attributes:
        tests: all of them.
        failed: files that cannot be collected.
        called: functions that are called while that is imported.
    """

    tests: list[str]
    failed: list[str]
    called: set[Place]


@dataclass(frozen=True, slots=True)
class Job:
    """Tests to run.

    Attributes:
        tests: in their order.
        most_s: time limit.
        codes: a module without and with a fault, marshalled; none for no fault.
        module: the path of that module below the checkout.
        all: whether to go on after the first failure, and to note calls.
    """

    tests: Sequence[str]
    most_s: float
    codes: tuple[bytes, bytes] | None = None
    module: str = ""
    all: bool = False


@dataclass(slots=True)
class Outcome:
    """What came of it.

    Attributes:
        failed: tests, in their order.
        begun: how many tests began.
        last: the test that began last.
        hung: whether the last one neither ended nor met its own time limit, or ended the process.
        late: whether the time limit of the job ended it, between tests or in one that had only begun.
        cold: whether the fault could not be put into the running program; a process of its own read it.
        calls: of each test, as `CalledFunctions.by_test`.
    """

    failed: list[str] = field(default_factory=list)
    begun: int = 0
    last: str = ""
    hung: bool = False
    late: bool = False
    cold: bool = False
    calls: dict[str, tuple[float, list[Place]]] = field(default_factory=dict)


def pairs(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType | None]]:
    """Yields the functions of a module that a fault changes, and those around them; `None` for one that may be lost."""
    if before == after:
        return
    yield before, after
    inner, changed = ([const for const in code.co_consts if isinstance(const, CodeType)] for code in (before, after))
    if [code.co_qualname for code in inner] == [code.co_qualname for code in changed]:
        for one, other in zip(inner, changed, strict=True):
            yield from pairs(one, other)
    else:
        for one in inner:
            yield from _lost(one)


def _lost(code: CodeType) -> Iterator[tuple[CodeType, None]]:
    yield code, None
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _lost(const)


class _Noticed:
    """A plug-in that notes what fails, and tells each test that begins."""

    def __init__(self, outcome: Outcome, told: Connection) -> None:
        self._outcome, self._told = outcome, told

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._told.send(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self._outcome.failed:
            self._outcome.failed.append(report.nodeid)


class Server:
    """Runs jobs.

    Args:
        session: with all tests.
    """

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._items = {item.nodeid: item for item in session.items}
        self._functions: dict[str, list[FunctionType]] = {}
        gc.unfreeze()
        package = f"{Path.cwd() / 'gatewayfilter'}{os.sep}"
        for found in gc.get_objects():
            if type(found) is FunctionType and found.__code__.co_filename.startswith(package):
                path = str(Path(found.__code__.co_filename).relative_to(Path.cwd()))
                self._functions.setdefault(path, []).append(found)
        gc.freeze()  # a fork copies nothing of it

    def run(self, job: Job) -> Outcome:
        """Runs a job in a fork."""
        told, tells = Pipe(duplex=False)
        if not (child := os.fork()):
            os.setsid()
            told.close()
            try:
                tells.send(self._run_here(job, tells))
            finally:
                os._exit(0)
        tells.close()
        try:
            return followed(told, job.most_s)
        finally:
            told.close()
            try:
                os.killpg(child, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def _run_here(self, job: Job, tells: Connection) -> Outcome:
        outcome = Outcome()
        if job.codes is not None and not self._put(job.module, *job.codes):
            outcome.cold = True
            return outcome
        _bound_memory()
        plugins = self._session.config.pluginmanager
        plugins.register(_Noticed(outcome, tells))
        if job.all:
            calls = CalledFunctions(Path.cwd())
            calls.start()
            plugins.register(calls)
        items = [self._items[test] for test in job.tests if test in self._items]
        following: list[pytest.Item | None] = [*items[1:], None]
        for item, after in zip(items, following, strict=False):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if outcome.failed and not job.all:
                self._session._setupstate.teardown_exact(None)  # noqa: SLF001  as at the end of a session
                break
        if job.all:
            outcome.calls = calls.by_test
        return outcome

    def _put(self, module: str, before: bytes, after: bytes) -> bool:
        """Puts a fault into the functions that exist. Returns whether that was all that the fault changes."""
        if not (functions := self._functions.get(module)):
            return True  # not yet imported: it will be read with the fault
        try:
            changed = dict(pairs(marshal.loads(before), marshal.loads(after)))
            found = [function for function in functions if function.__code__ in changed]
            for function in found:
                if (code := changed[function.__code__]) is None:
                    return False
                function.__code__ = code
        except ValueError:  # other variables of the function around
            return False
        return bool(found)


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def followed(told: Connection, most_s: float) -> Outcome:
    """Returns what came of tests that tell of themselves, or what is known of them after a time."""
    begun, last, since = 0, "", time.monotonic()
    end = since + most_s
    while told.poll(max(end - time.monotonic(), 0)):
        try:
            message = told.recv()
        except EOFError:
            return Outcome(begun=begun, last=last, hung=True)
        if isinstance(message, Outcome):
            message.begun, message.last = begun, last
            return message
        begun, last, since = begun + 1, message, time.monotonic()
    return Outcome(begun=begun, last=last, hung=time.monotonic() > since + 2 * TEST_LIMIT_S, late=True)


class _Reporting(_Noticed):
    """The plug-in of a process that runs its tests once, within the memory that a fork has, and tells of them likewise."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        super().__init__(Outcome(), Connection(descriptor, readable=False))
        _bound_memory()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and report.nodeid:
            self._outcome.failed.append(report.nodeid)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if self._outcome.failed or exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            self._told.send(self._outcome)  # otherwise it ends without having run its tests


class _Serving:
    """The plug-in where a socket is named."""

    def __init__(self, descriptor: int) -> None:
        self._asked = Connection(descriptor)
        self._failed: list[str] = []
        self._calls = CalledFunctions(Path.cwd())
        self._calls.start()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        called = self._calls.stop()
        server = Server(session)
        self._asked.send(Collected([item.nodeid for item in session.items], self._failed, called))
        while True:
            try:
                job = self._asked.recv()
            except EOFError:
                return True
            self._asked.send(server.run(job))


_REPORTING: Final = _Reporting(int(os.environ[REPORT])) if REPORT in os.environ else None
_SERVING: Final = _Serving(int(os.environ[DESCRIPTOR])) if DESCRIPTOR in os.environ else None


def pytest_configure(config: pytest.Config) -> None:
    """Takes part where a socket is named."""
    for name, plugin in ((DESCRIPTOR, _SERVING), (REPORT, _REPORTING)):
        if plugin is not None:
            os.environ.pop(name, None)
            config.pluginmanager.register(plugin)
