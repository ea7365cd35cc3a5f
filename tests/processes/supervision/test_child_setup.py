"""How child processes end."""

import asyncio
import logging
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ConfigError, StoreError
from gatewayfilter.processes import crawler
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
