"""When the learner publishes, what it holds of a publication, and how often each of its tasks is done."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.processes import learner as learners
from gatewayfilter.processes.learner import _Learner
from gatewayfilter.telemetry import Counters

NOW = 5_000.0


class Publishing(_Learner):
    """A learner whose snapshot, change feed, clock and jobs are the test's."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._settings = Settings.model_validate({"data_dir": folder, "learn": {"publish_after": 10, "publish_interval_s": 60}})
        self.now, self.waiting, self.is_other = NOW, 0, False
        self.goes_well, self.newer = True, True
        self.done = list[tuple[str, float]]()
        self._store = cast("Any", SimpleNamespace(feed=SimpleNamespace(last_seq=lambda: 100 + self.waiting)))
        self._published = cast(
            "Any",
            SimpleNamespace(feed_seq=100, created_at=1.0, refresh=self._refresh, is_of_another_database=lambda _: self.is_other),
        )
        self._jobs = cast("Any", SimpleNamespace(run=self._job))
        self._counters = Counters()
        self._tried_at, self._outdated, self._has_failed = NOW, False, False
        self._retry_at, self._retry_after_s = 0.0, learners.REPUBLISH_AFTER_S
        self._stop = asyncio.Event()
        monkeypatch.setattr(learners, "time", SimpleNamespace(monotonic=lambda: self.now, time=time.time))

    async def _job(self, job: Any) -> bool:
        self.done.append((job.__name__, self.now - NOW))
        return self.goes_well

    def _refresh(self) -> None:
        self._published.created_at += self.newer

    def looks(self, waiting: int, after_s: float = 0.0) -> int:
        """Looks whether to publish. Returns how often it did."""
        self.waiting, self.now = waiting, NOW + after_s
        before = len(self.done)
        asyncio.run(self._publish_when_due())
        return len(self.done) - before


@pytest.fixture
def learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publishing:
    return Publishing(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("waiting", "after_s", "publishes"),
    [(0, 0.0, 0), (9, 0.0, 0), (10, 0.0, 1), (11, 0.0, 1), (1, 59.9, 0), (1, 60.0, 1), (0, 60.0, 0), (0, 9_999.0, 0)],
)
def test_many_changes_are_published_at_once_and_few_after_a_while(
    learner: Publishing, waiting: int, after_s: float, publishes: int
) -> None:
    assert learner.looks(waiting, after_s) == publishes
    assert learner.done == [("_publish_job", after_s)] * publishes
    assert learner._counters["publishes"] == publishes


def test_a_database_that_is_another_one_is_published_once(learner: Publishing, caplog: pytest.LogCaptureFixture) -> None:
    learner.is_other = True
    learner.goes_well = False
    assert learner.looks(0) == 1
    learner.is_other = False
    learner.goes_well = True
    assert learner.looks(0, learners.REPUBLISH_AFTER_S) == 1, "the failure is made good"
    assert learner.looks(0, learners.REPUBLISH_AFTER_S) == 0
    assert len(caplog.messages) == 1


def test_a_failure_is_tried_again_later_and_later(learner: Publishing) -> None:
    learner.goes_well = False
    first_s, most_s = learners.REPUBLISH_AFTER_S, learners.RETRY_AFTER_MOST_S
    assert learner.looks(10) == 1
    at_s = 0.0
    for pause_s in (first_s, 2 * first_s, 4 * first_s, 8 * first_s):
        assert learner.looks(10, at_s + min(pause_s, most_s) - 1) == 0
        at_s += min(pause_s, most_s)
        assert learner.looks(10, at_s) == 1
    assert most_s < 8 * first_s
    learner.goes_well = True
    assert learner.looks(10, at_s + most_s - 1) == 0
    assert learner.looks(10, at_s + most_s) == 1
    learner.goes_well = False
    assert learner.looks(10, at_s + most_s) == 1, "after a success there is no pause"
    assert learner.looks(10, at_s + most_s + first_s - 1) == 0
    assert learner.looks(10, at_s + most_s + first_s) == 1, "and pauses begin again"


def test_a_job_that_changed_nothing_is_no_publication(learner: Publishing) -> None:
    learner.newer = False
    asyncio.run(learner._work_off(learners._update_job))
    assert (learner._counters["publishes"], learner._has_failed) == (0, False)
    learner.newer, learner.goes_well = True, False
    asyncio.run(learner._work_off(learners._update_job))
    assert (learner._counters["publishes"], learner._has_failed, learner._published.created_at) == (0, True, 1.0)


@pytest.mark.parametrize(("enabled", "state"), [(True, "learning"), (False, "keeping up")])
def test_what_is_written_of_it(learner: Publishing, state: str, *, enabled: bool) -> None:
    learner._settings = Settings.model_validate({"data_dir": learner._settings.data_dir, "learn": {"enabled": enabled}})
    learner.waiting = 7
    learner._counters.add("publishes")
    written = list[dict[str, Any]]()
    learner._status = cast("Any", SimpleNamespace(write=lambda **facts: written.append(facts)))
    asyncio.run(learner._tell())
    assert written == [{"state": state, "feed_seq": 107, "published_seq": 100, "counters": {"publishes": 1}}]


INTERVALS = {
    "_tell": learners.TICK_S, "_publish_when_due": learners.TICK_S, "_republish": learners.TICK_S,
    "_recheck": learners.RECHECK_EVERY_S, "_rejudge": learners.RECHECK_EVERY_S, "_flush": learners.FLUSH_EVERY_S,
    "_purge_log": learners.PURGE_EVERY_S, "_watch_devices": learners.DEVICES_EVERY_S, "_shrink_log": learners.SHRINK_EVERY_S,
    "_count_log": learners.FOLLOW_LOG_EVERY_S, "_index_log": learners.FOLLOW_LOG_EVERY_S,
    "_sweep_fingerprints": learners.PURGE_EVERY_S, "_update_sources": learners.SOURCES_EVERY_S,
    "_report_sources": learners.PURGE_EVERY_S, "_report_devices": learners.DEVICES_EVERY_S, "_retrain": learners.RETRAIN_EVERY_S,
}  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "reads_spool", "crawls"),
    [
        ({}, True, True),
        ({"learn": {"enabled": False}}, False, False),
        ({"learn": {"passive": False}}, False, True),
        ({"crawl": {"workers": 0}}, True, False),
    ],
)
def test_each_task_is_done_at_its_own_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: dict[str, Any], *, reads_spool: bool, crawls: bool
) -> None:
    log = list[str]()
    every = dict[str, float]()

    async def crawl_worker(*arguments: Any) -> None:
        log.append(f"crawl {arguments[3]}")
        await arguments[4].wait()

    async def note(interval_s: float, work: Any) -> None:
        every[work.__name__] = interval_s
        await asyncio.Event().wait()

    async def run() -> None:
        learner = Publishing(tmp_path, monkeypatch)
        learner._settings = Settings.model_validate({"data_dir": tmp_path, **chosen})
        learner._notifier = cast(
            "Any", SimpleNamespace(start=lambda: log.append("notify"), stop=lambda: log.append("notify no more"))
        )
        learner._status = cast("Any", SimpleNamespace(remove=lambda: log.append("remove")))
        learner._store = cast("Any", SimpleNamespace(close=lambda: log.append("close")))
        monkeypatch.setattr(learner, "_every", note)
        monkeypatch.setattr(learners, "run_crawl_worker", crawl_worker)
        running = asyncio.create_task(learner._run())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not running.done()
        learner._stop.set()
        await asyncio.wait_for(running, 10)

    asyncio.run(run())
    spool = {"_read_spool": learners.SPOOL_AGAIN_S} if reads_spool else {}
    assert every == INTERVALS | spool
    assert log == ["notify", *(["crawl 0"] if crawls else []), "notify no more", "close", "remove"]
