"""The loop that keeps gateways in step, over stand-ins for Redis and the database: order, pauses, what is told of failures."""

import json
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import GatewayFilterError, StartupError, StoreError
from gatewayfilter.processes.sharing import sync
from gatewayfilter.processes.sharing.sync import AGAIN_S, BEAT_S, DEAD_AFTER_S, POLL_S, WHOLE_EVERY_S, _Sync


class Others:
    """Stands in for what is shared, and for the clock: each pause moves it on."""

    def __init__(self, stop: threading.Event) -> None:
        self.now = 1_000.0
        self.log = list[tuple[Any, ...]]()
        self.stop = stop
        self.ends_after = 1
        self.place, self.size = SimpleNamespace(number=7), 3
        self.fails = list[Exception | None]()
        self.opening = list[Exception | None]()
        self.told = list[tuple[float, str]]()
        self.is_away: Callable[[], str] = lambda: ""

    def open(self, settings: Settings) -> Any:
        if self.opening and (error := self.opening.pop(0)) is not None:
            raise error
        self.log.append(("open", settings.data_dir.name))
        return SimpleNamespace(close=lambda: self.log.append(("close",)))

    def beat(self, name: str, now: float) -> None:
        self.log.append(("beat", name.rpartition("/")[2], round(time.time() - now) == 0))

    def alive(self, since: float) -> list[str]:
        self.log.append(("alive", round(time.time() - since)))
        return ["north", "south"]

    def leave(self, name: str) -> None:
        self.log.append(("leave", name.rpartition("/")[2]))
        raise GatewayFilterError("Redis is away")  # which ends nothing

    def step(self, *, whole: bool) -> None:
        self.log.append(("step", whole))
        if self.fails and (error := self.fails.pop(0)) is not None:
            raise error

    def wait(self, pause_s: float) -> bool:
        self.told.append((pause_s, self.is_away()))
        self.now += pause_s
        self.ends_after -= 1
        if self.ends_after <= 0:
            self.stop.set()
        return self.stop.is_set()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[_Sync, Others]:
    made = _Sync(Settings(data_dir=tmp_path / "state"))
    stop = threading.Event()
    others = Others(stop)
    others.is_away = lambda: made._fault
    monkeypatch.setattr(made, "_stop", SimpleNamespace(is_set=stop.is_set, wait=others.wait, set=stop.set))
    monkeypatch.setattr(sync, "open_store", others.open)
    monkeypatch.setattr(sync, "gateway_sync", lambda *_: (others, others))
    monkeypatch.setattr(sync, "time", SimpleNamespace(monotonic=lambda: others.now, time=time.time))
    monkeypatch.setattr("gatewayfilter.processes.sharing.sync.signal.signal", lambda *_: None)
    return made, others


def test_heartbeats_and_comparisons_have_their_own_time(made: tuple[_Sync, Others]) -> None:
    process, others = made
    others.ends_after = round(WHOLE_EVERY_S / POLL_S) + 2
    process._follow()
    beat = ("beat", "state", True)
    assert others.log[:4] == [("open", "state"), beat, ("alive", DEAD_AFTER_S), ("step", True)]
    assert others.log[-2:] == [("leave", "state"), ("close",)]
    steps = [whole for name, *(whole, *_) in others.log[1:-1] if name == "step"]
    assert [at for at, whole in enumerate(steps) if whole] in ([0, 1500], [0, 1501])
    beats = sum(entry[0] == "beat" for entry in others.log)
    assert WHOLE_EVERY_S / BEAT_S * 0.9 <= beats <= WHOLE_EVERY_S / BEAT_S + 1
    assert {pause_s for pause_s, _ in others.told} == {POLL_S}
    assert (process._gateways, process._place, process._size, process._fault) == (["north", "south"], 7, 3, "")


def test_a_comparison_that_failed_is_made_again_after_a_pause(
    made: tuple[_Sync, Others], caplog: pytest.LogCaptureFixture
) -> None:
    process, others = made
    others.fails = [GatewayFilterError("Redis is away"), StoreError("the disk is full"), None, StoreError("locked"), None]
    others.ends_after = 5
    process._follow()
    assert [whole for name, *(whole, *_) in others.log[1:-1] if name == "step"] == [True, True, True, False, False]
    assert others.told == [
        (AGAIN_S, "Redis is away"), (AGAIN_S, "the disk is full"), (POLL_S, ""), (AGAIN_S, "locked"), (POLL_S, ""),
    ]  # fmt: skip
    assert process._counters.as_dict()["sync_away"] == 3
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["not in step with other gateways (locked); filtering goes on with what is here"], (
        "what is here, at its begin"
    )


def test_what_is_written_of_it(made: tuple[_Sync, Others], tmp_path: Path) -> None:
    process, others = made
    process._gateways, process._place, process._size = ["north"], 9, 4
    for fault, state in (("", "in step"), ("Redis is away", "away")):
        process._fault = fault
        others.stop.clear()
        process._tell()
        facts = json.loads((tmp_path / "state" / "run" / "sync.json").read_text())
        assert (facts["state"], facts["fault"]) == (state, fault)
        assert (facts["gateways"], facts["place"], facts["shared"], facts["counters"]) == (["north"], 9, 4, {})
    assert [pause_s for pause_s, _ in others.told] == [sync.TICK_S] * 2


def test_it_goes_on_until_it_is_ended_or_cannot_start(
    made: tuple[_Sync, Others], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process, others = made
    monkeypatch.setattr(process, "_tell", lambda: None)
    process._status.write(state="in step")
    others.opening = [StoreError("no database"), GatewayFilterError("Redis is away")]
    others.ends_after = 5
    process.run()
    assert others.told[:2] == [(AGAIN_S, "no database"), (AGAIN_S, "Redis is away")]
    assert others.told[2:] == [(POLL_S, "")] * 3 + [(AGAIN_S, "")]
    assert "no database" in caplog.text
    assert not (tmp_path / "state" / "run" / "sync.json").exists()
    others.stop.clear()
    others.opening = [StartupError("no key")]
    with pytest.raises(StartupError, match="no key"):
        process.run()
    assert others.stop.is_set(), "the thread that writes of it ends, too"


def test_what_is_written_of_it_has_time_to_end(made: tuple[_Sync, Others], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file would come back after it was removed."""
    process, others = made
    others.stop.set()
    joined: list[float] = []
    thread = SimpleNamespace(start=lambda: None, join=joined.append)
    monkeypatch.setattr(sync, "threading", SimpleNamespace(Thread=lambda **_: thread))
    process.run()
    assert joined == [sync.TICK_S + 1]


def test_sigterm_ends_it(made: tuple[_Sync, Others], monkeypatch: pytest.MonkeyPatch) -> None:
    process, others = made
    handlers: dict[int, Callable[..., None]] = {}
    monkeypatch.setattr("gatewayfilter.processes.sharing.sync.signal.signal", handlers.__setitem__)

    def follow() -> None:
        assert not others.stop.is_set()
        handlers[signal.SIGTERM](signal.SIGTERM, None)
        assert others.stop.is_set()

    monkeypatch.setattr(process, "_follow", follow)
    monkeypatch.setattr(process, "_tell", lambda: None)
    process.run()
    assert list(handlers) == [signal.SIGTERM]
