"""The loop that sends decisions, over stand-ins for the log and Kafka: pauses, what ends it, what is told of failures."""

import json
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ConfigError, GatewayFilterError, StoreError
from gatewayfilter.processes.sharing import decisions
from gatewayfilter.processes.sharing.decisions import FIRST_PAUSE_S, LONGEST_PAUSE_S, POLL_S, TICK_S, _Decisions


class Sending:
    """A process whose pauses and steps are the test's."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, privacy: str = "full") -> None:
        self.process = _Decisions(Settings.model_validate({"data_dir": folder, "log": {"privacy": privacy}}))
        self.steps = list[int | Exception]()
        self.opening = list[Exception]()
        self.waited = list[float]()
        self.closed = 0
        self.ends_in_a_wait = False
        self.now = 100.0
        self.stop = threading.Event()
        monkeypatch.setattr(self.process, "_stop", SimpleNamespace(is_set=self.stop.is_set, wait=self.wait, set=self.stop.set))
        monkeypatch.setattr(decisions, "open_store", self.open)
        monkeypatch.setattr(decisions, "low_priority", nullcontext)
        monkeypatch.setattr(decisions, "decision_feed", lambda *_: SimpleNamespace(step=self.step))
        monkeypatch.setattr(decisions, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr("gatewayfilter.processes.sharing.decisions.signal.signal", lambda *_: None)

    def open(self, _: Settings) -> Any:
        if self.opening:
            raise self.opening.pop(0)
        return SimpleNamespace(close=self.close)

    def close(self) -> None:
        self.closed += 1

    def step(self) -> int:
        found = self.steps.pop(0)
        if not self.steps:
            self.stop.set()
        if isinstance(found, Exception):
            raise found
        return found

    def wait(self, pause_s: float) -> bool:
        self.waited.append(pause_s)
        self.now += pause_s
        if self.ends_in_a_wait:
            self.stop.set()
        return self.stop.is_set()


@pytest.fixture
def sending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sending:
    return Sending(tmp_path, monkeypatch)


def test_pauses_grow_while_kafka_is_away(sending: Sending, caplog: pytest.LogCaptureFixture) -> None:
    away = [GatewayFilterError(f"no broker {number}") for number in range(7)]
    sending.steps = [5, 0, *away, 3, GatewayFilterError("again"), 0]
    sending.process._follow()
    assert sending.waited == [POLL_S, 1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S, FIRST_PAUSE_S, POLL_S]
    assert sending.closed == 1
    assert [record.getMessage() for record in caplog.records] == [
        "decisions are not sent to Kafka (no broker 0); they wait in the log, and it is tried again",
        "decisions are sent to Kafka again after 91.0 s",
        "decisions are not sent to Kafka (again); they wait in the log, and it is tried again",
        "decisions are sent to Kafka again after 1.0 s",
    ]
    assert sending.process._counters.as_dict() == {"decisions_away": 8}
    assert sending.process._fault == ""


def test_wrong_settings_end_it_and_an_outage_of_the_database_does_not(
    sending: Sending, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sending.process, "_tell", lambda: None)
    sending.process._status.write(state="sending")
    sending.opening = [StoreError("no database")]
    sending.steps = [1, ConfigError("no such topic")]
    with pytest.raises(ConfigError, match="no such topic"):
        sending.process.run()
    assert sending.waited == [FIRST_PAUSE_S]
    assert sending.closed == 1
    assert sending.stop.is_set()
    assert not (tmp_path / "run" / "decisions.json").exists()
    assert "no database" in caplog.text
    sending.stop.clear()
    sending.opening = [ConfigError("no brokers")]
    with pytest.raises(ConfigError, match="no brokers"):
        sending.process.run()


@pytest.mark.parametrize("privacy", ["off", "full"])
def test_a_filter_without_a_log_is_told_that_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, privacy: str
) -> None:
    sending = Sending(tmp_path, monkeypatch, privacy)
    sending.stop.set()
    sending.process.run()
    assert ("log.privacy = off" in caplog.text) is (privacy == "off")


def test_what_is_written_of_it(sending: Sending, tmp_path: Path) -> None:
    for fault, state in (("", "sending"), ("no broker", "away")):
        sending.process._fault = fault
        sending.stop.clear()
        sending.ends_in_a_wait = True
        sending.process._tell()
        facts = json.loads((tmp_path / "run" / "decisions.json").read_text())
        assert (facts["state"], facts["fault"], facts["counters"]) == (state, fault, {})
    assert sending.waited == [TICK_S] * 2
