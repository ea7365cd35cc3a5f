"""The learner's repeated work goes on where the machine had nothing left for a moment."""

import asyncio
import errno
import logging
from pathlib import Path

import pytest

from gatewayfilter.config import CrawlSettings, Settings
from gatewayfilter.errors import StoreError
from gatewayfilter.processes import learner
from gatewayfilter.processes.learner import _Learner


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreError("the disk is full"), "the disk is full"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_work_that_fails_is_tried_again(error: Exception, told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tries = 0

    async def run() -> None:
        made = _Learner(Settings(data_dir=tmp_path))

        async def work() -> None:
            nonlocal tries
            tries += 1
            if tries == 3:
                made._stop.set()
            raise error

        await asyncio.wait_for(made._every(0.001, work), 10)
        made._store.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert tries == 3
    assert told in caplog.text


def test_a_fault_of_the_program_itself_is_not_hidden(tmp_path: Path) -> None:
    async def run() -> None:
        made = _Learner(Settings(data_dir=tmp_path))

        async def work() -> None:
            raise KeyError("missing")

        try:
            await made._every(0.001, work)
        finally:
            made._store.close()

    with pytest.raises(KeyError):
        asyncio.run(run())


def test_pages_that_passed_are_read_again_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries, closed = 0, list[bool]()

    class Reader:
        async def run(self, stop: asyncio.Event) -> None:
            nonlocal tries
            tries += 1
            if tries == 3:
                stop.set()
            raise OSError(errno.EROFS, "Read-only file system")

    async def nothing() -> None:
        pass

    monkeypatch.setattr(learner, "SPOOL_AGAIN_S", 0.001)
    monkeypatch.setattr(learner, "spool_reader", lambda *_: Reader())

    async def run() -> None:
        running = _Learner(Settings(data_dir=tmp_path, crawl=CrawlSettings(workers=0)))
        close = running._store.close

        def closing() -> None:
            closed.append(True)
            close()

        monkeypatch.setattr(running._store, "close", closing)
        for upkeep in ("_publish_when_due", "_republish", "_update_sources", "_rejudge"):
            monkeypatch.setattr(running, upkeep, nothing)
        await asyncio.wait_for(running._run(), 60)

    asyncio.run(run())
    assert (tries, closed) == (3, [True])
    assert not (tmp_path / "run" / "learner.json").exists()
    assert "Read-only file system; trying again" in caplog.text
