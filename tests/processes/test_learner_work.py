"""The learner's repeated work by a store of the test: what it asks, when, and what its jobs do in their own process."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import GatewayFilterError, StartupError
from gatewayfilter.processes import learner as learners
from gatewayfilter.processes.learner import _Learner
from gatewayfilter.sources import UpdateStatus

NOW = 1_800_000_000.0


def noted[T](log: list[Any], entry: object, result: T) -> T:
    """Takes note of something, and returns a result."""
    log.append(entry)
    return result


class Bare(_Learner):
    """A learner with parts of the test."""

    def __init__(self, folder: Path, **chosen: Any) -> None:
        self._settings = Settings.model_validate({"data_dir": folder, **chosen})
        self._stop = asyncio.Event()
        self.asked = list[Any]()

    def asks(self, name: str) -> Callable[..., None]:
        """Returns a function that takes note of its arguments."""
        return lambda *arguments: self.asked.append((name, *arguments))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bare]:
    monkeypatch.setattr(learners, "time", SimpleNamespace(time=lambda: NOW, monotonic=time.monotonic))
    return lambda **chosen: Bare(tmp_path, **chosen)


def test_the_log_is_kept_within_its_days_and_megabytes(made: Callable[..., Bare]) -> None:
    learner = made(log={"retention_days": 3, "retention_mb": 20})
    learner._store = cast(
        "Any", SimpleNamespace(log=SimpleNamespace(purge=learner.asks("purge"), shrink=learner.asks("shrink")),
                               tidy=learner.asks("tidy"), flush=learner.asks("flush"),
                               fingerprints=SimpleNamespace(sweep=learner.asks("sweep")))
    )  # fmt: skip
    for work in (learner._purge_log, learner._shrink_log, learner._flush, learner._sweep_fingerprints):
        asyncio.run(work())
    assert learner.asked == [("purge", NOW - 3 * 86_400), ("shrink", 20_000_000), ("tidy",), ("flush",), ("sweep", NOW)]


def test_devices_are_seen_and_told_of_where_that_is_wanted(made: Callable[..., Bare], monkeypatch: pytest.MonkeyPatch) -> None:
    fails = [False]

    def neighbours() -> str:
        if fails[0]:
            raise OSError(93, "Protocol not supported")
        return "neighbours"

    monkeypatch.setattr(learners, "read_neighbours", neighbours)
    for events, told in ((["device"], 1), ([], 0)):
        learner = made(notify={"events": events})
        monkeypatch.setattr(learners, "report_devices", learner.asks("report"))
        learner._store = cast(
            "Any", SimpleNamespace(devices=SimpleNamespace(seen=learner.asks("seen")), notifications="events",
                                   policies=SimpleNamespace(read=lambda: "policies"))
        )  # fmt: skip
        for failing in (False, True):
            fails[0] = failing
            asyncio.run(learner._watch_devices())
            asyncio.run(learner._report_devices())
        assert learner.asked == [("seen", "neighbours", NOW), ("report", "neighbours", "policies", "events", NOW)][: 1 + told]


def test_lists_are_updated_when_they_are_due_unless_a_publisher_has_them(
    made: Callable[..., Bare], monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = made()
    due = [True, False, True]
    published: list[object] = [None, None, "snapshot"]
    subscribed = SimpleNamespace(due=lambda now: now == NOW and due.pop(0), all=lambda: "all")
    monkeypatch.setattr(learners, "publisher_snapshot", lambda _: published.pop(0))
    monkeypatch.setattr(learners, "subscriptions", lambda _: subscribed)
    monkeypatch.setattr(learners, "report_sources", learner.asks("report"))
    learner._store = cast("Any", SimpleNamespace(notifications="events"))

    async def work_off(job: object) -> None:
        learner.asked.append(job)

    monkeypatch.setattr(learner, "_work_off", work_off)
    for _ in range(3):
        asyncio.run(learner._update_sources())
        assert len(learner.asked) == 1
    assert due == [True], "a follower does not even look"
    asyncio.run(learner._report_sources())
    assert learner.asked == [learners._update_job, ("report", "all", "events", NOW)]


def test_pages_are_judged_again_once_when_the_words_changed(
    made: Callable[..., Bare], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    learner = made()
    words = ["one"]
    monkeypatch.setattr(learners, "words_in_use", lambda _: words[0])
    monkeypatch.setattr(learners, "rejudge_offers", lambda _, most: ("offers", most))

    def add(offers: object, now: float) -> int:
        learner.asked.append((offers, now))
        return 12

    learner._store = cast("Any", SimpleNamespace(lists="lists", frontier=SimpleNamespace(add=add)))
    mark = tmp_path / "words.version"
    with caplog.at_level("INFO"):
        asyncio.run(learner._rejudge())
        assert (learner.asked, mark.read_text(), mark.stat().st_mode & 0o777) == ([], "one", 0o600), "at first nothing changed"
        written = mark.stat().st_mtime_ns
        asyncio.run(learner._rejudge())
        assert (learner.asked, mark.stat().st_mtime_ns) == ([], written)
        words[0] = "two"
        for _ in range(2):
            asyncio.run(learner._rejudge())
    assert (learner.asked, mark.read_text()) == ([(("offers", learners.REJUDGE_MOST), NOW)], "two")
    assert [record.getMessage() for record in caplog.records] == [
        "the words or the judge have changed: 12 blocked pages are judged again"
    ]


def test_blocks_that_expired_are_checked_again_in_batches(
    made: Callable[..., Bare], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    learner = made()
    surplus, expired = [3, 0, 0, 0], [["a"], ["a"], []]
    monkeypatch.setattr(learners, "recheck_offers", lambda lists, now: ("offers", lists.name, now))
    monkeypatch.setattr(learners, "forget_surplus", lambda _: surplus.pop(0))
    lists = SimpleNamespace(name="lists", expired_learned=lambda now, most: (now, most) == (NOW, 1) and expired.pop(0))
    taken = list[object]()

    def add(offers: object, now: float) -> int:
        taken.append((offers, now))
        return 5

    learner._store = cast("Any", SimpleNamespace(lists=lists, frontier=SimpleNamespace(add=add)))
    with caplog.at_level("INFO"):
        asyncio.run(learner._recheck())
    assert taken == [(("offers", "lists", NOW), NOW)] * 4
    assert [record.getMessage() for record in caplog.records] == ["20 learned blocks expired and are checked again"]
    surplus[:] = [1] * 100
    asyncio.run(learner._recheck())
    assert len(taken) == 4 + learners.RECHECK_BATCHES, "no more at a time"


def test_counting_the_log_leaves_half_of_the_time_to_others(made: Callable[..., Bare], monkeypatch: pytest.MonkeyPatch) -> None:
    learner = made()
    now, pauses, left = [10.0], list[float](), [3, 2, 0, 1]

    def step() -> int:
        now[0] += 0.4
        return left.pop(0)

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)

    learner._store = cast("Any", SimpleNamespace(log_counter=SimpleNamespace(step=step), log_indexer=SimpleNamespace(step=step)))
    monkeypatch.setattr(learners, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(learners, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    asyncio.run(learner._count_log())
    assert pauses == pytest.approx([0.4, 0.4])
    assert left == [1]
    learner._stop.set()
    asyncio.run(learner._index_log())
    assert left == [1], "it ends"


@pytest.mark.parametrize(("retrain", "due", "trained"), [(True, True, 1), (True, False, 0), (False, True, 0)])
def test_the_model_is_trained_again_when_it_is_due(
    made: Callable[..., Bare], monkeypatch: pytest.MonkeyPatch, *, retrain: bool, due: bool, trained: int
) -> None:
    learner = made(learn={"retrain": retrain})
    model = SimpleNamespace(is_due=lambda counts, now: (counts, now) == ("counts", NOW) and due)
    monkeypatch.setattr(learners, "OwnModel", lambda _: model)
    monkeypatch.setattr(learners, "decided_counts", lambda _: "counts")
    learner._store = cast("Any", SimpleNamespace(reviews="reviews"))

    async def run(job: object) -> bool:
        learner.asked.append(job)
        return True

    learner._training = cast("Any", SimpleNamespace(run=run))
    asyncio.run(learner._retrain())
    assert learner.asked == [learners._retrain_job] * trained


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a job of its own process did; its signals and priority are left alone."""
    done = list[Any]()
    monkeypatch.setattr(learners, "begin_child", lambda settings: done.append(("begin", settings)))
    monkeypatch.setattr(learners, "low_priority", lambda: noted(done, "low priority", nullcontext()))
    monkeypatch.setattr(learners, "signal", SimpleNamespace(
        SIGTERM=signal.SIGTERM, SIG_DFL=signal.SIG_DFL, signal=lambda *asked: done.append(asked)
    ))  # fmt: skip
    store = SimpleNamespace(reviews="reviews", close=lambda: done.append("close"))
    monkeypatch.setattr(learners, "open_store", lambda _: store)
    monkeypatch.setattr(learners, "publish_now", lambda settings, found, **how: done.append((settings, found is store, how)))
    return done


def test_jobs_publish_and_can_be_ended(job: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()
    begun = [("begin", settings), (signal.SIGTERM, signal.SIG_DFL), "low priority"]
    learners._publish_job(settings)
    learners._republish_job(settings)
    assert job == [*begun, (settings, True, {}), *begun, (settings, True, {"full": True})]


def test_a_job_that_fails_ends_with_a_sentence(job: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise GatewayFilterError("the disk is full")

    with pytest.raises(SystemExit) as ended:
        learners._run_job(fail)
    assert ended.value.code == 2
    assert [record.getMessage() for record in caplog.records] == ["the disk is full"]


def test_lists_that_changed_are_published(
    job: list[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    results = [
        SimpleNamespace(name="a", status=UpdateStatus.UPDATED, error=""),
        SimpleNamespace(name="b", status=UpdateStatus.FAILED, error="404"),
    ]
    monkeypatch.setattr(learners, "subscriptions", lambda _: SimpleNamespace(update=lambda: results))
    settings = Settings()
    learners._update_job(settings)
    assert job[-1] == (settings, True, {})
    assert [record.getMessage() for record in caplog.records] == ["the source b was not updated: 404"]
    job.clear()
    del results[0]
    learners._update_job(settings)
    assert job[-1] == "low priority"


@pytest.mark.parametrize("model", [None, SimpleNamespace(examples=44, auc=0.91)])
def test_training_closes_the_database(
    job: list[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, model: object
) -> None:
    monkeypatch.setattr(learners, "retrain", lambda _, reviews: model if reviews == "reviews" else job)
    with caplog.at_level("INFO"):
        learners._retrain_job(Settings())
    assert job[-1] == "close"
    assert ("on 44 decided pages (auc 0.910)" in caplog.text) is (model is not None)
    assert ("stays as it was" in caplog.text) is (model is None)


class JobProcess:
    """A process that ends when it is waited for; one that `hangs` does so when it is ended."""

    log: list[str]
    started: threading.Event
    ended: threading.Event
    running = 0

    def __init__(self, target: Callable[..., None], args: tuple[object, ...], name: str) -> None:
        assert (target.__name__, args) == (name, ("settings",))
        self.name, self.alive, self.exitcode = name, False, -15

    def start(self) -> None:
        JobProcess.running += 1
        self.alive = True
        self.log.append(f"{self.name}, {self.running} at once")

    def join(self) -> None:
        if self.name == "hangs":
            self.started.set()
            self.ended.wait(10)
        JobProcess.running -= 1
        self.alive, self.exitcode = False, 2 if self.name == "fails" else 0

    def is_alive(self) -> bool:
        return self.alive

    def terminate(self) -> None:
        self.log.append(f"terminate {self.name}")
        self.ended.set()


def _named(name: str) -> Any:
    def job(_: Settings) -> None: ...

    job.__name__ = name
    return job


def test_heavy_work_runs_one_at_a_time_and_ends_with_its_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, found in (("log", []), ("started", threading.Event()), ("ended", threading.Event()), ("running", 0)):
        monkeypatch.setattr(JobProcess, name, found, raising=False)
    jobs = learners._Jobs(cast("Any", "settings"))
    monkeypatch.setattr(jobs, "_context", SimpleNamespace(Process=JobProcess))

    async def run() -> list[bool]:
        found = await asyncio.gather(*(jobs.run(_named(name)) for name in ("goes well", "fails")))
        task = asyncio.create_task(jobs.run(_named("hangs")))
        await asyncio.to_thread(JobProcess.started.wait, 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return found

    assert asyncio.run(run()) == [True, False]
    assert JobProcess.log == ["goes well, 1 at once", "fails, 1 at once", "hangs, 1 at once", "terminate hangs"]


def test_the_newest_list_is_that_of_the_newest_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [SimpleNamespace(path=tmp_path / name) for name in ("a", "b")]
    for number, file in enumerate(files):
        file.path.touch()
        os.utime(file.path, (0, 100 + number))
    monkeypatch.setattr(learners, "subscriptions", lambda _: SimpleNamespace(files=lambda: files))
    assert learners._newest_list(Settings()) == 101.0
    files.clear()
    assert learners._newest_list(Settings()) == 0.0


def test_nothing_is_learned_on_a_read_only_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "on_read_only_disk", lambda _: True)
    with pytest.raises(StartupError, match="read-only"):
        _Learner(Settings(data_dir=tmp_path))


def test_it_runs_in_its_loop_and_ends_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[object]()
    settings = Settings(data_dir=tmp_path)
    monkeypatch.setattr(learners, "begin_child", begun.append)
    monkeypatch.setattr(learners, "on_read_only_disk", lambda _: True)
    with pytest.raises(SystemExit) as ended:
        learners.run_learner(settings)
    assert (ended.value.code, begun) == (2, [settings])
