"""`learn report`, and the second look in `check` and `review show`."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.interfaces import Page
from gatewayfilter.settings import Settings
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring import learning_sink

pytestmark = pytest.mark.slow

type Cli = Callable[..., Any]

HTML = """<html><head><title>Online casino with free spins {0}</title></head><body><p>Play slots, roulette and blackjack for real
money at our online casino. Deposit bonus, free spins, jackpot, sports betting: bet now! {1}</p></body></html>"""
HOSTS = ("one.example", "two.example", "three.example", "www.museum.gov.uk")


@pytest.fixture
def visited(state: Path) -> list[Any]:
    """The verdicts on pages of these hosts, which are nothing alike but for their words."""
    state.mkdir(parents=True, exist_ok=True)
    settings = Settings(data_dir=state)
    with closing(Store.open(settings.store_url)) as store:
        sink = learning_sink(settings, store, Counters())
        return [
            sink.page(Page(url, url, 200, {"content-type": "text/html"}, HTML.format(part * 9, part * 90).encode()))
            for host, part in zip(HOSTS, ("garden ", "yacht ", "mountain ", "library "), strict=True)
            for url in (f"http://{host}/",)
        ]


def test_a_report_counts_what_people_found(cli: Cli, visited: list[Any]) -> None:
    assert "No page was decided in the last 12 weeks" in cli("learn", "report").out
    assert [found.harmful for found in visited] == [True, True, True, False]
    cli("review", "approve", "1")
    cli("review", "reject", "2")
    answer = cli("learn", "report", "--json")
    assert answer.code == 0
    whole = answer.json["weeks"][-1]
    assert (whole["decided"], whole["false_blocks"], whole["rate"], whole["reviewed"]) == (2, 1, 0.5, 0)
    assert answer.json["lowered"] == []
    assert "50.0%" in cli("learn", "report").out


def test_words_of_rejected_pages_are_listed_until_that_is_undone(cli: Cli, visited: list[Any]) -> None:
    assert len(visited) == 4
    for task in ("1", "2", "3"):
        cli("review", "reject", task)
    lowered = cli("learn", "report", "--json").json["lowered"]
    assert lowered
    assert all(0.5 <= word["factor"] < 1 and word["rejected"] == 3 for word in lowered)
    assert "weigh less" in cli("learn", "report").out
    cli("review", "undo", "3")
    assert cli("learn", "report", "--json").json["lowered"] == []


def test_a_trusted_host_is_told_by_check(cli: Cli, visited: list[Any]) -> None:
    assert visited[3].doubt == "gambling"
    answer = cli("check", "http://www.museum.gov.uk/")
    assert answer.code == 0
    assert "www.museum.gov.uk is a public-service host (.gov.uk): not blocked by words alone" in answer.out
