"""Tasks about pages in doubt, and the certainty of judgements, as the commands show them."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.model import Classification, Evidence, ReviewKind, ReviewTask
from gatewayfilter.store import Store
from gatewayfilter.wiring import prepare_data_dir

type Cli = Callable[..., Any]

URL = "http://bets.example/"
DOUBT = Classification(
    "", 12.0, 20.0, {"gambling": 12.0}, (Evidence("bet", "gambling", 4.0, "main", 5),), "Bets", certainty=0.62, doubt="gambling"
)
HARMFUL = replace(DOUBT, category="gambling", score=42.0, certainty=0.995, doubt="")
TASK = ReviewTask(
    0, ReviewKind.PAGE, URL, "bets.example/", "gambling", DOUBT, blocked=False, created_at=100.0, doubtful=True, text="a bet"
)


@pytest.fixture
def tasks(state: Path) -> None:
    """Three tasks: the oldest is in doubt, one is blocked, one waits for a person by the mode `review`."""
    settings = Settings(data_dir=state)
    prepare_data_dir(settings)
    with closing(Store.open(settings.store_url)) as store:
        store.reviews.add(TASK)
        blocked = replace(TASK, url="http://a.example/", key="a.example/", classification=HARMFUL, blocked=True, doubtful=False)
        store.reviews.add(blocked)
        store.reviews.add(replace(blocked, url="http://b.example/", key="b.example/", blocked=False))
        store.verdicts.record(URL, DOUBT, 100.0)


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [([], [2, 3, 1]), (["--doubtful"], [1]), (["--blocked"], [2]), (["-n", "2"], [2, 3]), (["--category", "fraud"], [])],
)
def test_pages_in_doubt_come_last(cli: Cli, arguments: list[str], numbers: list[int]) -> None:
    assert [row["task"] for row in cli("review", "list", "--json", *arguments).json] == numbers


@pytest.mark.usefixtures("tasks")
def test_list_and_task_state_the_certainty(cli: Cli) -> None:
    row = cli("review", "list", "--doubtful", "--json").json[0]
    assert (row["doubtful"], row["certainty"], row["blocked"]) == (True, 0.62, False)
    assert row["evidence"] == "score 12.0 (limit 20.0), doubtful (62 %): bet"
    lines = cli("review", "list").out.splitlines()
    assert ["certain (99 %)" in line for line in lines] == [False, True, True, False]
    assert "doubtful (62 %)" in lines[3]
    assert "certainty that it is harmful: doubtful (62 %), so it was allowed" in cli("review", "show", "1").out
    shown = cli("review", "show", "2").out
    assert "certainty that it is harmful: certain (99 %)\n" in shown


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize("strictness", ["relaxed", "standard", "strict"])
def test_check_states_certainty_and_strictness(cli: Cli, strictness: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYFILTER_CLASSIFY__STRICTNESS", strictness)
    out = cli("check", URL).out
    assert "IN DOUBT, allowed: gambling, score 12.0 (limit 20.0), doubtful (62 %): bet" in out
    assert f"strictness: {strictness}: " in out
    judged = cli("check", URL, "--json").json["classification"]["classification"]
    assert (judged["certainty"], judged["doubt"]) == (0.62, "gambling")


@pytest.mark.usefixtures("tasks")
def test_decisions_and_the_export_of_examples(cli: Cli) -> None:
    assert cli("review", "approve", "1", "--by", "ada").code == 0
    assert cli("check", URL).code == 1
    assert cli("check", URL, "--json").json["verdict"]["detail"] == (
        "score 12.0 (limit 20.0), doubtful (62 %): bet; confirmed by a person"
    )
    assert cli("review", "list", "--doubtful", "--state", "approved", "--json").json[0]["task"] == 1
    cli("review", "undo", "1", "--by", "ada")
    assert cli("check", URL).code == 0
    cli("review", "reject", "1", "--by", "ada")
    assert [row["state"] for row in cli("review", "export").lines] == ["rejected", "open", "open"]
    assert cli("review", "export", "--examples").lines == [{"text": "a bet", "label": "", "url": URL}]
