"""The learner's repeated work goes on where the machine had nothing left for a moment."""

import asyncio
import errno
import logging
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import StoreError
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
        learner = _Learner(Settings(data_dir=tmp_path))

        async def work() -> None:
            nonlocal tries
            tries += 1
            if tries == 3:
                learner._stop.set()
            raise error

        await asyncio.wait_for(learner._every(0.001, work), 10)
        learner._store.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert tries == 3
    assert told in caplog.text


def test_a_fault_of_the_program_itself_is_not_hidden(tmp_path: Path) -> None:
    async def run() -> None:
        learner = _Learner(Settings(data_dir=tmp_path))

        async def work() -> None:
            raise KeyError("missing")

        try:
            await learner._every(0.001, work)
        finally:
            learner._store.close()

    with pytest.raises(KeyError):
        asyncio.run(run())
