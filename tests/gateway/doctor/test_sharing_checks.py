"""The checks of what is shared with other machines, made to fail and to pass."""

import json
import os
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.gateway.doctor.finding import Level, Patient
from gatewayfilter.gateway.doctor.sharing_checks import gateways, kafka

KAFKA = {"brokers": "kafka.test:9092", "decisions": "decisions"}


@pytest.mark.parametrize(
    ("log", "status", "level", "words"),
    [
        ("off", {}, Level.WARNING, "no decision log"),
        ("full", {"supervisor": {}}, Level.ERROR, "does not run"),
        ("full", {}, Level.NOTE, "does not run"),
        ("full", {"supervisor": {}, "decisions": {"fault": "timed out"}}, Level.WARNING, "timed out"),
        ("full", {"supervisor": {}, "decisions": {"fault": ""}}, Level.OK, "are sent"),
    ],
)
def test_the_state_of_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, status: dict[str, dict[str, str]], level: Level, words: str
) -> None:
    monkeypatch.setattr("gatewayfilter.gateway.doctor.sharing_checks.find_spec", lambda _: object())
    (tmp_path / "run").mkdir()
    for name, facts in status.items():
        (tmp_path / "run" / f"{name}.json").write_text(json.dumps({"pid": os.getpid(), **facts}), encoding="utf-8")
    settings = Settings.model_validate({"data_dir": tmp_path, "kafka": KAFKA, "log": {"privacy": log}})
    found = kafka(Patient(settings, None, 0.0))
    assert (found.level, words in found.words) == (level, True), found


@pytest.mark.parametrize(
    ("status", "level", "words"),
    [
        ({}, Level.NOTE, "does not run"),
        ({"supervisor": {}}, Level.ERROR, "does not run"),
        ({"supervisor": {}, "sync": {"fault": "timed out"}}, Level.WARNING, "timed out"),
        ({"supervisor": {}, "sync": {"fault": "", "gateways": ["a", "b"], "shared": 1200}}, Level.OK, "2 gateways share 1,200"),
        ({"supervisor": {}, "sync": {"gateways": ["a"]}}, Level.OK, "1 gateway shares 0 rules"),
    ],
)
def test_the_state_of_gateways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: dict[str, dict[str, object]], level: Level, words: str
) -> None:
    monkeypatch.setattr("gatewayfilter.gateway.doctor.sharing_checks.find_spec", lambda _: object())
    (tmp_path / "run").mkdir()
    for name, facts in status.items():
        (tmp_path / "run" / f"{name}.json").write_text(json.dumps({"pid": os.getpid(), **facts}), encoding="utf-8")
    settings = Settings.model_validate({"data_dir": tmp_path, "sync": {"url": "redis://redis.test"}})
    found = gateways(Patient(settings, None, 0.0))
    assert (found.level, words in found.words) == (level, True), found
    assert gateways(Patient(Settings(data_dir=tmp_path), None, 0.0)).level is Level.OK


def test_it_is_off_by_default_and_tells_a_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kafka(Patient(Settings(data_dir=tmp_path), None, 0.0)).level is Level.OK
    monkeypatch.setattr("gatewayfilter.gateway.doctor.sharing_checks.find_spec", lambda _: None)
    settings = Settings.model_validate({"data_dir": tmp_path, "kafka": KAFKA})
    assert kafka(Patient(settings, None, 0.0)).level is Level.ERROR


@pytest.mark.parametrize(
    "section",
    [
        {"decisions": "a"},
        {"brokers": "kafka", "decisions": "a"},
        {"brokers": "u:p@kafka:9092"},
        {"brokers": "kafka:9092,"},
        {"brokers": "kafka:0"},
        {"brokers": "kafka:9092", "decisions": "a b"},
        {"brokers": "kafka:9092", "decisions": ".."},
        {"brokers": "kafka:9092", "decisions": "x" * 250},
    ],
)
def test_wrong_settings_are_refused(section: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"must be|needs"):
        Settings.model_validate({"kafka": section})


def test_gateways_that_cannot_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.model_validate({"data_dir": tmp_path, "sync": {"url": "redis://redis.test"}})
    followed = settings.fleet.model_copy(update={"follow": "https://publisher.test/"})
    both = gateways(Patient(settings.model_copy(update={"fleet": followed}), None, 0.0))
    assert (both.level, both.words) == (Level.WARNING, "sync.url and fleet.follow are both set.")
    monkeypatch.setattr("gatewayfilter.gateway.doctor.sharing_checks.find_spec", lambda _: None)
    missing = gateways(Patient(settings, None, 0.0))
    assert (missing.level, missing.words) == (Level.ERROR, "sync.url needs the extra redis.")
