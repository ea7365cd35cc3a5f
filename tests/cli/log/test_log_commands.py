import csv
import importlib
import importlib.util
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store
from gatewayfilter.use_cases.traffic.log_files import COLUMNS

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
    assert "192.0.2.8 BLOCK GET http://ads.example/y image adblock [ads] (easylist: ||ads^)" in lines[2]
    assert "\x1b" not in lines[1]
    assert cli("log", "tail", "-n", "0").out == ""


@pytest.mark.usefixtures("logged")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["blocked"], 2),
        (["allowed"], 1),
        (["blocked", "ads", "for", "192.0.2.7"], 1),
        (["blocked", "by", "easylist", "on", "example"], 2),
        (["on", "a.example"], 1),
        (["because", "adblock", "containing", "example/y"], 1),
        (["since", "9000-01-01"], 0),
        (["for", "192.0.2.9"], 0),
        (["blocked", "--client", "192.0.2.8"], 1),
        (["--action", "allow", "--category", "ads"], 0),
    ],
)
def test_tail_reads_a_sentence(words: list[str], found: int, cli: Cli) -> None:
    answer = cli("log", "tail", *words, "--json")
    assert (answer.code, len(answer.lines) if answer.out else 0) == (0, found)


@pytest.mark.usefixtures("logged")
@pytest.mark.parametrize(
    "arguments",
    [
        ["tail", "blocked", "for"],
        ["tail", "blocked", "allowed"],
        ["tail", "for", "nobody-of-that-name"],
        ["tail", "blocked", "--action", "allow"],
        ["tail", "since", "tomorrow-ish"],
        ["tail", "%&"],
        ["search", "--reason", "nonsense"],
        ["search", "--host", "a b"],
        ["search", "--group", "nogroup"],
        ["search", "--since", "soon"],
        ["purge", "--yes"],
        ["export", "--format", "parquet"],
        ["export", "--output", "/nowhere/log.csv"],
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], cli: Cli) -> None:
    answer = cli("log", *arguments)
    assert answer.complains()


@pytest.mark.usefixtures("logged")
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["ADS.example"], 2),
        (["example/", "--action", "block"], 2),
        (["a.example/x"], 1),
        (["--client", "192.0.2.7"], 2),
        (["--list", "easylist", "--host", "ads.example"], 2),
        (["--since", "2027-01-15T08:00:01+00:00"], 2),
        (["--until", "2027-01-15T08:00:01+00:00"], 1),
        (["ad"], 2),
        (["\x1b[2J"], 1),
    ],
)
def test_search_by_text_and_conditions(arguments: list[str], found: int, cli: Cli) -> None:
    answer = cli("log", "search", *arguments, "--json")
    assert (answer.code, len(answer.lines)) == (0, found)


@pytest.mark.usefixtures("logged")
@pytest.mark.parametrize("text", ["nowhere", '"', "*", "NEAR(a b)", "%", "a' OR 1=1", "\u202e"])
def test_search_without_a_hit_is_a_negative_answer(text: str, cli: Cli) -> None:
    assert cli("log", "search", text).code == 1


@pytest.mark.usefixtures("logged")
def test_search_pages(cli: Cli) -> None:
    first = cli("log", "search", "--limit", "2", "--json")
    assert [line["id"] for line in first.lines] == [3, 2]
    assert "--before 2" in first.err
    rest = cli("log", "search", "--limit", "2", "--before", "2", "--json")
    assert [line["id"] for line in rest.lines] == [1]
    assert "--before" not in rest.err


@pytest.mark.usefixtures("logged")
def test_clients_have_their_names(cli: Cli, state: Path) -> None:
    cli("client", "add", "kim-tablet", "--address", "192.0.2.7")
    cli("group", "add", "kids")
    cli("client", "set", "kim-tablet", "--group", "kids")
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    store.log.write([RECORDS[0]._replace(client="192.0.2.99", user="ada", reason="login-refused", url="", action="block")])
    store.close()
    for arguments, found in (
        (["--client", "kim-tablet"], 2),
        (["--group", "kids"], 2),
        (["--group", "default"], 2),
        (["--user", "ada"], 1),
        (["--client", "user:ada"], 1),
        (["--reason", "login-refused"], 1),
    ):
        assert len(cli("log", "search", *arguments, "--json").lines) == found, arguments
    assert "kim-tablet (192.0.2.7) BLOCK" in cli("log", "tail").out
    assert "user ada (192.0.2.99) BLOCK GET document login-refused" in cli("log", "tail").out
    assert cli("log", "search", "--user", "ada", "--json").lines[0]["user"] == "ada"
    names = {one["name"]: one["client_name"] for one in cli("log", "stats", "--json").json["clients"]}
    assert names == {"192.0.2.7": "kim-tablet", "192.0.2.8": "", "user:ada": ""}
    assert cli("log", "purge", "--client", "kim-tablet", "--yes", "--json").json == {"removed": 2}
    assert cli("log", "stats", "--json").json["decisions"] == 2


@pytest.mark.usefixtures("logged")
def test_stats_count(cli: Cli) -> None:
    found = cli("log", "stats", "--json").json
    assert (found["decisions"], found["blocked"], found["median_us"], found["since"]) == (3, 2, 20.0, NOW // 3600 * 3600)
    assert [(one["name"], one["count"]) for one in found["answers"]] == [("adblock", 2), ("unknown", 1)]
    assert [(one["name"], one["count"]) for one in found["blocked_sites"]] == [("ads.example", 2)]
    assert found["hours"] == [{"start": NOW // 3600 * 3600, "decisions": 3, "blocked": 2}]
    assert found["uncounted"] == 0
    shown = cli("log", "stats").out
    assert "3 decisions" in shown
    assert "2 blocked" in shown
    assert "█" in shown
    assert cli("log", "stats", "--client", "192.0.2.8", "--json").json["decisions"] == 1


def test_stats_of_nothing(cli: Cli) -> None:
    assert cli("log", "stats", "--json").json["decisions"] == 0
    assert cli("log", "stats").out.startswith("0 decisions")


@pytest.mark.usefixtures("logged")
def test_purge_removes_what_is_older(cli: Cli) -> None:
    assert cli("log", "purge", "--before", "2027-01-15T08:00:01+00:00", "--json").json == {"removed": 1}
    assert cli("log", "purge", "--before", "9000-01-01", "--yes").out == "2 decisions removed.\n"


@pytest.mark.usefixtures("logged")
def test_export_as_lines_and_csv(cli: Cli, tmp_path: Path) -> None:
    assert [line["id"] for line in cli("log", "export", "--format", "jsonl").lines] == [3, 2, 1]
    file = tmp_path / "log.csv"
    cli("log", "export", "--output", str(file), "--action", "block")
    rows = list(csv.DictReader(file.open(encoding="utf-8", newline="")))
    assert [row["id"] for row in rows] == ["3", "2"]
    assert rows[0]["time"] == "2027-01-15T08:00:02.000+00:00"
    assert tuple(rows[0]) == COLUMNS
    assert "\x1b" not in file.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.usefixtures("logged")
@pytest.mark.parametrize(("separator", "character"), [("comma", ","), ("semicolon", ";"), ("tab", "\t")])
def test_csv_with_each_separator(separator: str, character: str, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    cli("log", "export", "--output", str(file), "--separator", separator)
    rows = list(csv.DictReader(file.open(encoding="utf-8", newline=""), delimiter=character))
    assert [row["id"] for row in rows] == ["3", "2", "1"]
    assert tuple(rows[0]) == COLUMNS


@pytest.mark.usefixtures("logged")
def test_parquet_is_written_or_named(cli: Cli, tmp_path: Path) -> None:
    answer = cli("log", "export", "--format", "parquet", "--output", str(tmp_path / "log.parquet"))
    if importlib.util.find_spec("pyarrow") is None:
        assert answer.code == 2
        assert "gatewayfilter[parquet]" in answer.err
    else:
        table = importlib.import_module("pyarrow.parquet").read_table(tmp_path / "log.parquet")
        assert table.column("id").to_pylist() == [3, 2, 1]
