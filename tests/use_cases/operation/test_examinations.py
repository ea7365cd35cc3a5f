"""The check of the installation in the background: nobody waits for it, and it is not done more often than it is asked for."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import load
from gatewayfilter.errors import ClassifyError
from gatewayfilter.gateway.doctor import CHECKS
from gatewayfilter.use_cases.operation import self_check
from gatewayfilter.use_cases.operation.examinations import RENEW_S, ChildChecks, Examination, Examinations, Finding

OK = {"level": "ok", "words": "", "mend": ""}


class Steps:
    """Three checks; each ends when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, float]] = []
        self.may_go_on = threading.Semaphore(0)
        self.came = threading.Semaphore(0)

    def names(self) -> Sequence[str]:
        return ["disk", "database", "port"]

    def find(self, number: int, now: float) -> Finding:
        self.asked.append((number, now))
        self.came.release()
        assert self.may_go_on.acquire(timeout=20)
        if number == 1:
            raise ClassifyError("this took too long")
        return {**OK, "check": self.names()[number]}

    def let(self, count: int) -> None:
        for _ in range(count):
            self.may_go_on.release()


class Time:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def completed(examinations: Examinations) -> Examination:
    for _ in range(2_000):
        if (found := examinations.newest()).complete:
            return found
        threading.Event().wait(0.005)
    raise AssertionError("it did not end")


def test_questions_are_answered_with_what_there_is() -> None:
    steps, clock = Steps(), Time()
    examinations = Examinations(steps, clock, patience_s=0.0)
    first = examinations.newest()
    assert (first.began_at, first.complete, first.findings) == (100.0, False, [])
    steps.let(1)
    assert all(steps.came.acquire(timeout=20) for _ in range(2))  # the second check began: the first one's finding is there
    partial = examinations.newest()
    assert ([one["check"] for one in partial.findings], partial.complete) == (["disk"], False)
    assert first.findings == []
    steps.let(2)
    patient = Examinations(steps, clock, patience_s=20.0)
    steps.let(3)
    whole = patient.newest()
    assert [(one["check"], one["level"]) for one in whole.findings] == [("disk", "ok"), ("database", "error"), ("port", "ok")]
    assert whole.complete
    assert "this took too long" in whole.findings[1]["words"]


def test_another_examination_begins_when_the_last_is_old_and_its_end_alone_replaces_it() -> None:
    steps, clock = Steps(), Time()
    examinations = Examinations(steps, clock, patience_s=0.0)
    steps.let(3)
    first = completed(examinations)
    assert examinations.newest() is first
    assert len(steps.asked) == 3
    clock.now += RENEW_S
    old = [examinations.newest()]
    assert all(steps.came.acquire(timeout=20) for _ in range(4))
    old.append(examinations.newest())
    assert [(one.began_at, one.findings, one.complete) for one in old] == [(100.0, first.findings, False)] * 2
    steps.let(3)
    found = completed(examinations)
    assert (found.complete, found.began_at) == (True, 100.0 + RENEW_S)
    assert steps.asked == [(number, at) for at in (100.0, 100.0 + RENEW_S) for number in range(3)]


def test_who_asks_once_a_day_is_not_answered_with_yesterday() -> None:
    steps, clock = Steps(), Time()
    examinations = Examinations(steps, clock, patience_s=20.0)
    steps.let(6)
    assert examinations.newest().began_at == 100.0
    clock.now += 86_400.0
    found = examinations.newest()
    assert (found.began_at, found.complete) == (86_500.0, True)


def test_an_examination_that_takes_minutes_is_not_old_when_it_ends() -> None:
    class Slow(Steps):
        def find(self, number: int, now: float) -> Finding:
            clock.now += RENEW_S
            return super().find(number, now)

    steps, clock = Slow(), Time()
    examinations = Examinations(steps, clock, patience_s=20.0)
    steps.let(3)
    assert examinations.newest().complete
    assert (examinations.newest().began_at, len(steps.asked)) == (100.0, 3)


def test_a_system_without_threads_prevents_no_later_examination(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    steps = Steps()
    examinations = Examinations(steps, Time(), patience_s=20.0)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        found = examinations.newest()
    assert (found.findings, found.complete) == ([], False)
    assert "can't start new thread" in caplog.text
    steps.let(3)
    assert examinations.newest().complete


def test_where_nothing_can_be_checked_the_next_question_tries_again(caplog: pytest.LogCaptureFixture) -> None:
    class Impossible(Steps):
        def names(self) -> Sequence[str]:
            self.asked.append((-1, 0.0))
            raise ClassifyError("no child")

    steps = Impossible()
    examinations = Examinations(steps, Time(), patience_s=20.0)
    assert [examinations.newest().complete for _ in range(2)] == [False, False]
    assert len(steps.asked) == 2
    assert "the installation was not checked: no child" in caplog.text


def test_the_checks_of_the_child() -> None:
    settings = load(environ={}, options={"data_dir": "nowhere"}).settings
    called: list[str] = []

    def run(job: str, *values: object) -> object:
        module, _, name = job.partition(":")
        called.append(name)
        assert module == self_check.__name__
        return getattr(self_check, name)(*values)

    checks = ChildChecks(run, settings, None)
    names = checks.names()
    assert len(names) == len(CHECKS)
    number = names.index("state folder")
    assert checks.find(number, 0.0) == {
        "level": "note",
        "check": "state folder",
        "words": "There is no nowhere yet.",
        "mend": "gatewayfilter run makes it; or set data_dir (--data-dir)",
    }
    assert called == ["check_names", "finding"]


def test_the_checks_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patients: list[Any] = []
    made: list[Any] = ["finding"]

    def examine(patient: object) -> list[Any]:
        patients.append(patient)
        return made

    monkeypatch.setattr(self_check, "examine", examine)
    file = tmp_path / "config.toml"
    for text, found in (("", None), ("[learn]\nenabled = false\n", file)):
        file.write_text(text)
        loaded = load(file=file, environ={}, options={"data_dir": tmp_path})
        assert list(self_check.examined(loaded, 7.0)) == made
        patient = patients.pop()
        assert (patient.settings, patient.config_file, patient.now) == (loaded.settings, found, 7.0)
