"""The thread of an engine follower: how long it waits, what it calls, and which snapshots it closes and verifies again."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.proxy.sync import engine_follower
from gatewayfilter.proxy.sync.engine_follower import EngineFollower
from tests.proxy.sync.test_engine_follower import World, build


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "snapshots")


def test_it_polls_and_waits_longer_after_a_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    begun: list[Callable[[], None]] = []
    works = iter([True, True, False, True, False])

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) == 7  # it is stopped meanwhile

    def beside() -> None:
        if not next(works):
            raise RuntimeError("a fault")

    def thread(target: Callable[[], None], **_: object) -> object:
        begun.append(target)
        return SimpleNamespace(start=lambda: None, is_alive=lambda: False)

    threading = SimpleNamespace(Event=lambda: SimpleNamespace(wait=wait), Thread=thread)
    monkeypatch.setattr(engine_follower, "threading", threading)
    EngineFollower(world.engine, world.folder, None, world.counters, 0.125, world.clock, beside=[beside]).start()
    begun[0]()
    assert waited == [0.125, 0.125, 1.0, 0.125, 0.125, 1.0, 0.125]
    assert next(works, None) is None


def test_a_snapshot_that_is_in_use_already_is_closed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Snapshot] = []
    close = Snapshot.close

    def note(snapshot: Snapshot) -> None:
        closed.append(snapshot)
        close(snapshot)

    monkeypatch.setattr(Snapshot, "close", note)
    world.follower.follow_once()
    assert [snapshot is world.engine.snapshot for snapshot in closed] == [False]


def test_a_snapshot_that_was_just_taken_is_not_verified_again_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[float] = []
    world.folder.publish(build("two.example"))
    monkeypatch.setattr(Snapshot, "verify", lambda _: verified.append(world.clock.now))
    for now in (30.0, 30.5, 60.0, 89.5, 90.0, 90.5):
        world.clock.now = now
        world.follower.follow_once()
    assert verified == [30.0, 90.0]
