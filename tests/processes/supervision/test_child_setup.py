"""How child processes end."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ConfigError, StoreError
from gatewayfilter.processes import crawler
from gatewayfilter.processes.supervision import child_setup
from gatewayfilter.processes.supervision.child_setup import ending_with_a_sentence


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("why"),
        ExceptionGroup("tasks", [ConfigError("why")]),
        ExceptionGroup("tasks", [ExceptionGroup("more", [StoreError("why")])]),
    ],
)
def test_errors_of_our_own_are_one_sentence_each(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended, ending_with_a_sentence():
        raise error
    assert ended.value.code == 2
    assert [record.getMessage() for record in caplog.records] == ["why"]


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_memory_that_has_run_out_is_one_sentence(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended, ending_with_a_sentence():
        raise error
    assert ended.value.code == 2
    (message,) = caplog.messages
    assert "run out" in message


@pytest.mark.parametrize(
    "error", [KeyError("bug"), RuntimeError("bug"), ExceptionGroup("tasks", [ConfigError("why"), KeyError("bug")])]
)
def test_bugs_go_on_as_they_came(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, ending_with_a_sentence():
        raise error
    assert raised.value is error


def test_a_crawler_that_cannot_begin_says_why(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def run(*_: object) -> None:
        async with asyncio.TaskGroup():
            raise ConfigError("learn.image_classifier cannot be used")

    monkeypatch.setattr(crawler, "_run", run)
    monkeypatch.setattr(crawler, "begin_child", lambda _: None)
    with caplog.at_level(logging.ERROR), pytest.raises(SystemExit, match="2"):
        crawler.run_crawler(1, Settings())
    assert caplog.messages == ["learn.image_classifier cannot be used"]


def test_a_crash_leaves_the_functions_in_the_log(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom gatewayfilter.config import Settings\n"
        "from gatewayfilter.processes.supervision.child_setup import begin_child\n"
        "def crash(secret):\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
        "begin_child(Settings(data_dir=Path(sys.argv[1])))\ncrash('a secret of a user')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGSEGV
    assert "in crash" in ended.stderr
    assert "a secret" not in ended.stderr


def test_a_child_follows_its_parent_and_leaves_interrupts_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[Any]()
    parent: Any = SimpleNamespace(sentinel=7)
    monkeypatch.setattr(child_setup, "set_up_logging", lambda *given: done.append(given))
    monkeypatch.setattr("gatewayfilter.processes.supervision.child_setup.faulthandler.enable", done.append)
    monkeypatch.setattr("gatewayfilter.processes.supervision.child_setup.signal.signal", lambda *given: done.append(given))
    monkeypatch.setattr("gatewayfilter.processes.supervision.child_setup.multiprocessing.parent_process", lambda: parent)
    monkeypatch.setattr(child_setup, "wait", done.append)
    monkeypatch.setattr("gatewayfilter.processes.supervision.child_setup.os.kill", lambda *given: done.append(given))

    def thread(**facts: Any) -> Any:
        assert facts["daemon"] is True, "it ends with the process"
        return SimpleNamespace(start=lambda: facts["target"](*facts["args"]))

    monkeypatch.setattr("gatewayfilter.processes.supervision.child_setup.threading.Thread", thread)
    settings = Settings()
    begun = [(settings.log.level, settings.log.format), 2, (signal.SIGINT, signal.SIG_IGN)]
    child_setup.begin_child(settings)
    assert done == [*begun, [7], (os.getpid(), signal.SIGTERM)], "at the end of its parent it ends itself"
    done.clear()
    parent = None
    child_setup.begin_child(settings)
    assert done == begun


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "memory has run out"),
        (RuntimeError("can't start new thread"), "no further thread can be started: memory or processes have run out"),
        (RuntimeError("a bug"), ""),
        (ExceptionGroup("tasks", [ConfigError("why"), KeyError("a bug")]), ""),
    ],
)
def test_what_ends_a_process_without_a_traceback(error: Exception, told: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SystemExit if told else type(error)) as ended, ending_with_a_sentence():
        raise error
    assert caplog.messages == ([told] if told else [])
    assert not told or cast("SystemExit", ended.value).code == 2
