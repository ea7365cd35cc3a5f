"""The process that works for the dashboard: its limits, its answers, and its end. It runs in the test's process."""

import json
import signal
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import ConfigError
from gatewayfilter.web import child_main


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What it asked of the system, which is left alone."""
    asked = list[Any]()
    monkeypatch.setattr(child_main, "signal", SimpleNamespace(
        SIGINT=2, SIGALRM=14, SIG_IGN=signal.SIG_IGN, SIG_DFL=signal.SIG_DFL, ITIMER_REAL="real",
        signal=lambda *given: asked.append(given), setitimer=lambda *given: asked.append(given),
    ))  # fmt: skip
    monkeypatch.setattr(child_main, "resource", SimpleNamespace(
        RLIMIT_AS="as", RLIMIT_CORE="core", setrlimit=lambda *given: asked.append(given)
    ))  # fmt: skip
    monkeypatch.setattr(child_main, "os", SimpleNamespace(nice=lambda by: asked.append(("nice", by))))
    return asked


def fail(error: str = "") -> None:
    """A job that fails, with a sentence of the program's own where there is one."""
    if error:
        raise ConfigError(error)
    raise KeyError("a secret")


def test_work_is_answered_until_the_other_end_closes(done: list[Any]) -> None:
    ours, theirs = Pipe()
    here = __name__
    jobs: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
        ("json:loads", ("[1]",), {}),
        ("json:dumps", ({"b": 1, "a": 2},), {"sort_keys": True}),
    )
    for job in jobs:
        ours.send(job)
    ours.send((f"{here}:fail", (), {"error": "why"}))
    ours.send((f"{here}:fail", (), {}))
    with ours:
        closing = SimpleNamespace(recv=theirs.recv, send=theirs.send)
        answers: list[Any] = []

        def send(answer: Any) -> None:
            answers.append(answer)
            if len(answers) == 4:
                ours.close()

        closing.send = send
        child_main.serve(closing, 2.5, 1 << 30)  # type: ignore[arg-type]
    theirs.close()
    assert answers[:2] == [(True, [1]), (True, json.dumps({"a": 2, "b": 1}))]
    assert (answers[2][0], type(answers[2][1]), str(answers[2][1])) == (False, ConfigError, "why")
    assert answers[3] == (False, "this cannot be done: KeyError")
    assert done == [
        (2, signal.SIG_IGN), (14, signal.SIG_DFL), ("as", (1 << 30, 1 << 30)), ("core", (0, 0)), ("nice", 5),
        *[("real", 2.5), ("real", 0)] * 4,
    ]  # fmt: skip


def test_a_parent_that_ended_meanwhile_gets_no_answer(done: list[Any]) -> None:
    def refuse(_: object) -> None:
        raise BrokenPipeError

    channel: Any = SimpleNamespace(recv=lambda: ("json:loads", ("1",), {}), send=refuse)
    child_main.serve(channel, 1.0, 1)
    assert done[-1] == ("real", 0)
