from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store

type Cli = Callable[..., Any]

NOW = 1_800_000_000.0
RECORDS = [
    LogRecord(NOW, "192.0.2.7", "GET", "http://a.example/x", "document", "allow", "unknown", elapsed_us=10),
    LogRecord(
        NOW + 1, "192.0.2.7", "GET", "http://ads.example/\x1b[2J", "script", "block", "adblock", "easylist", "||ads^", "ads", 20
    ),
    LogRecord(NOW + 2, "192.0.2.8", "GET", "http://ads.example/y", "image", "block", "adblock", "easylist", "||ads^", "ads", 30),
]


@pytest.fixture
def logged(state: Path) -> None:
    state.mkdir(parents=True)
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    store.log.write(RECORDS)
    store.close()


@pytest.mark.usefixtures("logged")
def test_tail_shows_the_newest_oldest_first(cli: Cli) -> None:
    assert [line["url"] for line in cli("log", "tail", "-n", "2", "--json").lines] == [record.url for record in RECORDS[1:]]
    lines = cli("log", "tail").out.splitlines()
    assert len(lines) == 3
    assert "192.0.2.8 BLOCK GET http://ads.example/y image adblock [ads] (easylist: ||ads^) 30 µs" in lines[2]
    assert "\x1b" not in lines[1]
    assert cli("log", "tail", "-n", "0").out == ""


@pytest.mark.usefixtures("logged")
@pytest.mark.parametrize(
    ("arguments", "found"),
    [(["192.0.2.7"], 2), (["ADS.example"], 2), (["easylist", "--action", "block"], 2), (["a.example/x"], 1)],
)
def test_search_looks_at_client_url_list_and_rule(arguments: list[str], found: int, cli: Cli) -> None:
    answer = cli("log", "search", *arguments, "--json")
    assert (answer.code, len(answer.lines)) == (0, found)


@pytest.mark.usefixtures("logged")
def test_search_without_a_hit_is_a_negative_answer(cli: Cli) -> None:
    assert cli("log", "search", "nowhere").code == 1


@pytest.mark.usefixtures("logged")
def test_stats_count(cli: Cli) -> None:
    found = cli("log", "stats", "--json").json
    assert (found["decisions"], found["blocked"], found["median_us"], found["since"]) == (3, 2, 20.0, NOW)
    assert found["answers"] == [{"name": "block adblock", "count": 2}, {"name": "allow unknown", "count": 1}]
    assert found["blocked_sites"] == [{"name": "ads.example", "count": 2}]
    assert "3 decisions, 2 blocked" in cli("log", "stats").out


def test_stats_of_nothing(cli: Cli) -> None:
    assert cli("log", "stats", "--json").json["decisions"] == 0
    assert cli("log", "stats").out.startswith("0 decisions")


@pytest.mark.usefixtures("logged")
def test_purge_removes_what_is_older(cli: Cli) -> None:
    assert cli("log", "purge", "--before", "2027-01-15T08:00:01+00:00", "--json").json == {"removed": 1}
    assert cli("log", "purge", "--before", "9000-01-01", "--yes").out == "2 decisions removed.\n"
