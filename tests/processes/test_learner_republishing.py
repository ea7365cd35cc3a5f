"""How often the learner makes a snapshot anew that no process can use."""

import asyncio
import itertools
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.processes import learner as learner_module
from gatewayfilter.processes.learner import _Learner
from gatewayfilter.wiring.storage import snapshot_folder

_FOR_S = 600
_LOOKS_GOOD_S = 2


def _published_at(settings: Settings, monkeypatch: pytest.MonkeyPatch, refused: range) -> list[int]:
    """Returns when the learner published, in seconds; each snapshot looks good for two, then it is refused."""
    folder = settings.data_dir / "snapshots"
    folder.mkdir(mode=0o700, parents=True)
    (folder / "snapshot-00000001.gfs").touch()
    (folder / "current").symlink_to("snapshot-00000001.gfs")
    now, published = [1_000.0], list[int]()

    async def publish(*_: object) -> None:
        published.append(int(now[0]) - 1_000)
        (folder / ".refused").unlink()

    async def run() -> None:
        learner = _Learner(settings)
        monkeypatch.setattr(learner_module, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
        monkeypatch.setattr(learner, "_work_off", publish)
        for second in range(_FOR_S):
            now[0] = 1_000.0 + second
            await learner._republish()
            if second in refused and (not published or second > published[-1] + _LOOKS_GOOD_S):
                snapshot_folder(settings).refuse()

    asyncio.run(run())
    return published


def test_a_snapshot_that_is_refused_again_and_again_is_made_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = _published_at(Settings(data_dir=tmp_path), monkeypatch, range(_FOR_S))
    assert times == [1, 31, 91, 211, 451]


def test_damage_that_comes_later_is_mended_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = _published_at(Settings(data_dir=tmp_path), monkeypatch, range(0, _FOR_S, 100))
    assert times == [1, 101, 201, 301, 401, 501]


def test_damage_soon_after_a_snapshot_that_was_good_is_mended_at_once_for_some_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = _published_at(Settings(data_dir=tmp_path), monkeypatch, range(0, _FOR_S, 15))
    assert times[:8] == [1, 16, 31, 46, 61, 76, 91, 121]
    assert [later - earlier for earlier, later in itertools.pairwise(times[7:])] == [60, 120, 240]


@pytest.mark.parametrize(("method", "first"), [("_republish", 1), ("_publish_when_due", 0)])
def test_a_failure_is_tried_again_within_two_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, first: int
) -> None:
    settings = Settings(data_dir=tmp_path)
    now, tried = [1_000.0], list[int]()

    async def fail(*_: object) -> bool:
        tried.append(int(now[0]) - 1_000)
        return False

    async def run() -> None:
        learner = _Learner(settings)
        monkeypatch.setattr(learner_module, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
        monkeypatch.setattr(learner._jobs, "run", fail)
        learner._outdated = True
        for second in range(first, 800):
            now[0] = 1_000.0 + second
            await getattr(learner, method)()

    asyncio.run(run())
    assert [later - earlier for earlier, later in itertools.pairwise(tried)] == [30, 60, 120, 120, 120, 120, 120]
