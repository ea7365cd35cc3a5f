"""The operator's own model and the report of false blocks; test messages; the file of settings."""

from pathlib import Path

import pytest

from gatewayfilter.classify.models.training import Example
from gatewayfilter.config import Settings, load
from gatewayfilter.errors import ClassifyError, NotifyError
from gatewayfilter.learn import LoweredWord
from gatewayfilter.learn.review.false_blocks import FalseBlockRow
from gatewayfilter.notify.command_channel import CommandChannel
from gatewayfilter.store import Store
from gatewayfilter.use_cases.operation import second_opinion
from gatewayfilter.use_cases.operation.notifications import channel_states, send_test
from gatewayfilter.use_cases.operation.second_opinion import (
    false_block_document,
    false_block_report,
    status,
    summary,
    train,
    trained,
)
from gatewayfilter.use_cases.operation.self_check import settings_file

NOW = 1_800_000_000.0
OFFERS, CALM = ("free spins and a jackpot", "bet on slots"), ("beans need water", "a walk along the river")


def examples(*, told_apart: bool = True) -> list[Example]:
    return [
        Example(f"{pool[index % 2]} {index}", harmful=harmful if told_apart else index % 2 == 0)
        for index in range(22)
        for pool, harmful in ((OFFERS, True), (CALM, False))
    ]


def test_a_model_from_files_is_used_where_it_is_useful(settings: Settings, store: Store) -> None:
    assert status(settings) == {"used": False}
    model, used = trained(settings, store, examples(), NOW)
    assert used
    found = status(settings)
    assert found == summary(model, used=True)
    assert (found["examples"], found["harmful"], found["trained_at"], found["used"]) == (44, 22, NOW, True)
    assert 0.9 < found["auc"] <= 1.0
    assert summary(model, used=False)["used"] is False
    record = second_opinion.own_model(settings).record()
    assert record is not None
    assert (record.origin, record.decided) == ("files", 0)
    assert second_opinion.remove(settings)
    assert not second_opinion.remove(settings)
    assert status(settings) == {"used": False}


def test_nothing_is_trained_on_too_few_decisions(settings: Settings, store: Store) -> None:
    assert store
    with pytest.raises(ClassifyError, match="at least 20 harmful"):
        train(settings, NOW)
    assert status(settings) == {"used": False}


def test_false_blocks_are_told_as_plain_values(settings: Settings, store: Store) -> None:
    assert store
    assert false_block_report(settings, 0.0) == {"weeks": [], "lowered": []}
    rows = [FalseBlockRow("2026-W47", "ads", 3, 1, 2), FalseBlockRow("", "", 0, 0, 1)]
    lowered = LoweredWord("gambling", "casino", 0.5, 3, 1)
    found = false_block_document(rows, [lowered])
    whole = {"week": "2026-W47", "category": "ads", "decided": 3, "false_blocks": 1, "rate": 0.3333, "reviewed": 2}
    assert found["weeks"][0] == whole
    assert found["weeks"][1]["rate"] is None
    assert found["lowered"][0]["word"] == "casino"


def test_a_test_message_goes_to_every_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    options = {"data_dir": tmp_path / "state", "notify.command": ["/bin/true"], "notify.ntfy_url": "http://127.0.0.1:9/topic"}
    settings = load(environ={}, options=options).settings
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    sent: list[object] = []
    monkeypatch.setattr(CommandChannel, "send", lambda _, message: sent.append(message))
    results = send_test(settings, NOW)
    assert set(results) == set(channel_states(settings, store)) == {"command", "ntfy"}
    assert (results["command"], len(sent)) == ("", 1)
    assert results["ntfy"]

    def refuse(*_: object) -> None:
        raise NotifyError("it ended with 1")

    monkeypatch.setattr(CommandChannel, "send", refuse)
    assert send_test(settings, NOW)["command"] == "it ended with 1"
    assert channel_states(settings, store) == {"command": None, "ntfy": None}


def test_the_file_that_settings_are_from(tmp_path: Path) -> None:
    assert settings_file(load(environ={}, options={"data_dir": tmp_path})) is None
    (tmp_path / "a.toml").write_text("[proxy]\nhold_ms = 7\n")
    assert settings_file(load(file=tmp_path / "a.toml", environ={}, options={"data_dir": tmp_path})) == tmp_path / "a.toml"
