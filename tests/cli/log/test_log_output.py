"""What `gatewayfilter log` prints, in full: `gatewayfilter.cli.log.log_commands`, `gatewayfilter.cli.log.log_stats`,
`gatewayfilter.cli.log.log_lines`, `gatewayfilter.cli.log.log_filters`, `gatewayfilter.cli.log.log_export`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from gatewayfilter.cli.log.log_commands import purge
from gatewayfilter.cli.log.log_filters import merged, query_of, words_to_options
from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.model import (
    LogCount,
    LogDimension,
    LogHour,
    LogPage,
    LogQuery,
    LogRecord,
    LogSummary,
)
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

AT = "2023-11-14 22:13:20"
RECORD = LogRecord(MOMENT, "10.0.0.7", "GET", "http://a.example/", "script", "block", "blacklist", "ut1", "a.example", "ads", 30)
PLAIN = LogRecord(MOMENT, "", "", "http://b.example/", "", "allow", "unknown", elapsed_us=10)
LINE = f"{AT} kim (10.0.0.7) BLOCK GET http://a.example/ script blacklist [ads] (ut1: a.example)\n"


class Clients:
    """The names of clients: kim has an address."""

    def __init__(self, store: object, settings: object) -> None:
        assert (store is not None, settings) == (True, SETTINGS)

    def name(self, client: str) -> str:
        return {"10.0.0.7": "kim"}.get(client, "")

    def shown(self, client: str) -> str:
        return self.name(client) or client

    def named(self, text: str) -> frozenset[str]:
        if text == "nobody":
            raise MissingItemError("there is no client 'nobody'")
        if text == "?":
            raise PolicyError("'?' is no client")
        return frozenset({"10.0.0.7", "10.0.0.8"})

    def group(self, _text: str) -> frozenset[str]:
        return frozenset({"10.0.0.8", "10.0.0.9"})

    def user(self, text: str) -> frozenset[str]:
        return frozenset({f"user:{text}"})


CLIENTS: Any = Clients("store", SETTINGS)


@pytest.fixture(autouse=True)
def _clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.use_cases.traffic.log_clients.LogClients", Clients)


class Log:
    """A log that answers searches by pages."""

    def __init__(self, *pages: LogPage, tails: tuple[list[tuple[int, LogRecord]], ...] = ()) -> None:
        self.pages, self.tails = list(pages), list(tails)
        self.asked: list[Any] = []

    @property
    def log(self) -> Log:
        return self

    @property
    def log_search(self) -> Log:
        return self

    def page(self, query: LogQuery, limit: int, *, before: int | None) -> LogPage:
        self.asked.append((query, limit, before))
        return self.pages.pop(0)

    def tail(self, limit: int, after: int | None = None) -> list[tuple[int, LogRecord]]:
        self.asked.append((limit, after))
        return self.tails.pop(0) if self.tails else []


def test_a_search_shows_lines_and_how_to_go_on() -> None:
    log = Log(LogPage(((7, RECORD), (3, PLAIN)), 3, MOMENT))
    assert texts(Doubled(log), "log", "search", "casino", "--limit", "2", "--before", "9") == (
        0,
        f"{LINE}{AT} - ALLOW http://b.example/ unknown\n",
        f"More: searched back to {AT}; add --before 3\n",
    )
    assert log.asked == [(LogQuery("casino"), 2, 9)]
    log = Log(LogPage(((7, RECORD),), 3, None), LogPage((), None))
    assert texts(Doubled(log), "log", "search", "cas") == (0, LINE, "")
    assert log.asked == [(LogQuery("cas"), 50, None), (LogQuery("cas"), 49, 3)]
    short = "A text of one or two characters is searched at the beginning of hosts only.\n"
    for text, told in (("", ""), ("c", short), ("ca", short)):
        assert texts(Doubled(Log(LogPage(()))), "log", "search", text) == (1, "", told)
    answer = called(Doubled(Log(LogPage(((7, RECORD), (6, RECORD)), 6, None))), "log", "search", "--limit", "2", "--json")
    assert answer.err == "More: add --before 6\n"
    assert answer.lines[0] == {
        "id": 7,
        "at": MOMENT,
        "client": "10.0.0.7",
        "method": "GET",
        "url": "http://a.example/",
        "resource_type": "script",
        "action": "block",
        "reason": "blacklist",
        "source_list": "ut1",
        "rule": "a.example",
        "category": "ads",
        "elapsed_us": 30,
        "user": "",
        "client_name": "kim",
    }


def test_a_search_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 19.9, 20.0])
    monkeypatch.setattr("gatewayfilter.cli.log.log_commands.time", SimpleNamespace(monotonic=lambda: next(times)))
    log = Log(LogPage(((7, RECORD),), 5, None), LogPage((), 3, None), LogPage((), None))
    assert texts(Doubled(log), "log", "search", "casino")[2] == "More: add --before 3\n"
    assert len(log.asked) == 2


def test_long_urls_are_cut_and_users_named() -> None:
    long = "http://a.example/" + "x" * 144
    for url, shown in ((long[:160], long[:160]), (long, f"{long[:160]}…")):
        log = Log(LogPage(((1, PLAIN._replace(url=url, client="10.0.0.9")),)))
        assert texts(Doubled(log), "log", "search")[1] == f"{AT} 10.0.0.9 ALLOW {shown} unknown\n"
    log = Log(LogPage(((1, PLAIN._replace(url=long, user="lee", client="10.0.0.9", rule="r")),)))
    assert texts(Doubled(log), "log", "search", "--full")[1] == f"{AT} user lee (10.0.0.9) ALLOW {long} unknown (r)\n"
    log = Log(LogPage(((1, PLAIN._replace(user="lee", source_list="l")),)))
    assert texts(Doubled(log), "log", "search")[1] == f"{AT} user lee ALLOW http://b.example/ unknown (l)\n"


def test_the_newest_are_shown_oldest_first_and_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(LogPage(((9, RECORD), (8, PLAIN))), tails=([(9, RECORD)],))
    assert texts(Doubled(log), "log", "tail") == (0, f"{AT} - ALLOW http://b.example/ unknown\n{LINE}", "")
    assert log.asked == [(1, None), (LogQuery(), 20, 10)]
    log = Log(tails=([],))
    assert texts(Doubled(log), "log", "tail", "-n", "0") == (0, "", "")
    sleeps: list[float] = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) > 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("gatewayfilter.cli.log.log_commands.time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    log = Log(LogPage(()), tails=([], [(4, PLAIN), (5, RECORD)], [], [(6, RECORD)]))
    code, out, _ = texts(Doubled(log), "log", "tail", "blocked", "-f")
    assert (code, out, sleeps) == (130, LINE * 2, [0.5] * 4)
    assert log.asked == [(1, None), (LogQuery(action="block"), 20, 1), (1000, 0), (1000, 5), (1000, 5)]


def test_decisions_are_purged_with_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def purged(*given: object) -> int:
        asked.append(given)
        return 2_000

    monkeypatch.setattr("gatewayfilter.use_cases.traffic.log_files.purge_log", purged)
    context = Doubled("store")
    arguments = ("log", "purge", "--before", "2023-11-14T22:13:20+00:00", "--client", "kim")
    assert texts(context, *arguments) == (0, "2,000 decisions removed.\n", "")
    assert (asked.pop(), context.recorded[0].action) == (("store", SETTINGS, MOMENT, "kim"), "log.purged")
    assert called(Doubled("store"), "log", "purge", "--client", "kim", "--json").json == {"removed": 2_000}
    assert asked.pop()[2:] == (None, "kim")
    assert called(Doubled("store"), "log", "purge", "--before", "2023-11-14", "--json").code == 0
    assert asked.pop()[3] == ""
    assert "'?' is no client" in called(Doubled("store"), "log", "purge", "--client", "?").complains()
    assert called(Doubled(), "log", "purge").complains().startswith("name a time (--before) or a client (--client)")
    questions: list[str] = []
    yes = [False, True]

    def confirm(question: str, *, err: bool) -> bool:
        assert err
        questions.append(question)
        return yes.pop(0)

    monkeypatch.setattr(click, "confirm", confirm)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    both = ["--before", "2023-11-14T22:13:20+00:00", "--client", "kim"]
    assert purge.main(both, standalone_mode=False, obj=Doubled("store")) == 1
    assert purge.main(["--client", "kim"], standalone_mode=False, obj=Doubled("store")) == 0
    assert purge.main(["--client", "kim", "--yes"], standalone_mode=False, obj=Doubled("store")) == 0
    assert questions == [f"Remove all decisions of kim before {AT}?", "Remove all decisions of kim?"]
    assert len(asked) == 2


def test_conditions_are_read_from_options_and_sentences() -> None:
    found = query_of(CLIENTS, since=1.0, until=2.0, client="kim", group="kids", action="block", category="ads", reason="adblock",
                     source_list="ut1", host="*.A.example")  # fmt: skip
    assert found == LogQuery("", 1.0, 2.0, frozenset({"10.0.0.8"}), "block", "adblock", "ads", "ut1", "a.example")
    assert query_of(CLIENTS, text="t", user="lee", host=".a.example") == LogQuery(
        "t", clients=frozenset({"user:lee"}), host="a.example"
    )
    assert query_of(CLIENTS).clients is None
    with pytest.raises(MissingItemError, match="there is no client 'nobody'"):
        query_of(CLIENTS, client="nobody")
    for wrong, why in (
        ({"client": "?"}, "'\\?' is no client"),
        ({"reason": "zz"}, "'zz' is no reason"),
        ({"host": "a b"}, "is no host"),
    ):
        with pytest.raises(click.BadParameter, match=why):
            query_of(CLIENTS, **wrong)  # type: ignore[arg-type]
    words = "blocked requests of the group client ads for kim on a.example by ut1 because adblock in kids "
    words += "containing x since today until 1h"
    assert words_to_options(words.split()) == {
        "action": "block",
        "category": "ads",
        "client": "kim",
        "host": "a.example",
        "source_list": "ut1",
        "reason": "adblock",
        "group": "kids",
        "text": "x",
        "since": "today",
        "until": "1h",
    }
    assert words_to_options(["allowed", "and", "decisions", "to", "user", "lee", "at", "b"]) == {
        "action": "allow",
        "user": "lee",
        "host": "b",
    }
    assert words_to_options(["a-b"]) == {"category": "a-b"}
    for sentence, why in (
        ("on", "something is missing after 'on'"),
        ("a/b", "'a/b' is not understood"),
        ("ads games", "two words for one"),
    ):
        with pytest.raises(click.BadParameter, match=why):
            words_to_options(sentence.split())
    options = merged({"host": "", "client": None}, ["for", "kim", "since", "1970-01-01T00:00:09+00:00"])
    assert options == {"host": "", "client": "kim", "since": 9.0}
    with pytest.raises(click.BadParameter, match="'ut1' and --source-list are two conditions for one thing"):
        merged({"source_list": "x"}, ["by", "ut1"])


HOURS = (LogHour(MOMENT - 800, 10, 5), LogHour(MOMENT + 2_800, 40, 0), LogHour(MOMENT + 6_400, 1, 1))
TOPS = {
    LogDimension.REASON: (LogCount("unknown", 1_000, 0), LogCount("adblock", 30, 30)),
    LogDimension.CATEGORY: (LogCount("ads", 9, 2), LogCount("games", 5, 4), LogCount("none", 7, 0)),
    LogDimension.HOST: tuple(LogCount(f"{one}.example", 1, 1) for one in "ababcdefghijk"),
    LogDimension.CLIENT: (LogCount("10.0.0.7", 4, 1), LogCount("kim", 3, 1), LogCount("", 5, 0)),
}
SUMMARY = LogSummary(MOMENT - 800, MOMENT + 10_000, 51, 6, HOURS, TOPS, 1)


def stats_of(summary: LogSummary, records: list[tuple[int, LogRecord]]) -> Any:
    asked: list[Any] = []

    def summed(*given: object) -> LogSummary:
        asked.append(given)
        return summary

    tails = SimpleNamespace(tail=lambda limit: records if limit == 1000 else [])
    return SimpleNamespace(log_stats=SimpleNamespace(summary=summed), log=tails, asked=asked)


def test_counts_have_a_chart_and_tables() -> None:
    store = stats_of(SUMMARY, [(1, RECORD), (2, PLAIN), (3, RECORD._replace(elapsed_us=24))])
    code, out, _ = texts(
        Doubled(store), "log", "stats", "--client", "kim", "--group", "kids", "--since", "1970-01-01T00:00:01+00:00"
    )
    assert store.asked == [(1.0, None, frozenset({"10.0.0.8"}))]
    chart = out.splitlines()
    assert (code, chart[:6]) == (
        0,
        [
            "51 decisions from 2023-11-14 22:00 to 2023-11-15 01:00, 6 blocked, 24 µs each (median).",
            "1 newer decision not counted yet: the running filter counts them in the background.",
            "",
            f"11-14 22:00  {'█' * 5}{'░' * 5} 10 (5 blocked)",
            f"11-14 23:00  {'░' * 40} 40 (0 blocked)",
            "11-15 00:00  █ 1 (1 blocked)",
        ],
    )
    assert table("\n".join(chart[6:])) == [
        ["answers", "decisions", "blocked"],
        ["unknown", "1,000", "0", "█" * 20],
        ["adblock", "30", "30", "█"],
        ["categories", "decisions", "blocked"],
        ["games", "5", "4", "█" * 11],
        ["ads", "9", "2", "█" * 20],
        ["blocked sites", "decisions", "blocked"],
        ["a.example", "2", "2", "█" * 20],
        ["b.example", "2", "2", "█" * 20],
        *([f"{one}.example", "1", "1", "█" * 10] for one in "cdefghij"),
        ["clients", "decisions", "blocked"],
        ["(others)", "5", "0", "█" * 14],
        ["kim", "7", "2", "█" * 20],
    ]
    assert (
        texts(Doubled(stats_of(LogSummary(None, None), [])), "log", "stats")[1] == "0 decisions, 0 blocked, 0 µs each (median).\n"
    )
    document = called(Doubled(store), "log", "stats", "--json").json
    assert (document["decisions"], document["blocked"], document["since"], document["until"]) == (
        51,
        6,
        MOMENT - 800,
        MOMENT + 10_000,
    )
    assert (document["uncounted"], document["median_us"], document["hours"][2]) == (
        1,
        24,
        {"start": MOMENT + 6_400, "decisions": 1, "blocked": 1},
    )
    assert document["categories"] == [{"name": "games", "count": 4, "blocked": 4}, {"name": "ads", "count": 2, "blocked": 2}]
    assert document["clients"][1] == {"name": "10.0.0.7", "client_name": "kim", "count": 4, "blocked": 1}
    assert document["answers"][0] == {"name": "unknown", "count": 1_000, "blocked": 0}


def test_a_chart_of_many_hours_has_days() -> None:
    for hours, bars, first in ((48, 48, "11-14 22:00"), (49, 3, "2023-11-14")):
        summary = replace(
            SUMMARY, hours=tuple(LogHour(MOMENT + 3_600 * hour, 1, 0) for hour in range(hours)), tops={}, uncounted=0
        )
        lines = texts(Doubled(stats_of(summary, [])), "log", "stats")[1].splitlines()[2:]
        assert (len(lines), lines[0].startswith(first)) == (bars, True)
    assert lines[1].endswith(" 24 (0 blocked)")
    days = tuple(LogHour(MOMENT + 86_400 * day, 1, 0) for day in range(50))
    lines = texts(Doubled(stats_of(replace(SUMMARY, hours=days, tops={}, uncounted=0), [])), "log", "stats")[1].splitlines()[2:]
    assert (len(lines), lines[0][:10]) == (48, "2023-11-16")


ROWS = [{"id": 1, "url": "http://a.example/"}, {"id": 2, "url": "http://b.example/"}]


def test_an_export_tells_where_and_how_many(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def rows(store: object, query: LogQuery, clients: object) -> Iterator[dict[str, Any]]:
        assert (store, query.category, isinstance(clients, Clients)) == ("store", "ads", True)
        return iter(ROWS)

    monkeypatch.setattr("gatewayfilter.cli.log.log_export.exported_rows", rows)
    export = ("log", "export", "--category", "ads", "--format")
    assert called(Doubled("store"), *export, "jsonl").lines == ROWS
    file = tmp_path / "log"
    assert texts(Doubled("store"), *export, "jsonl", "--output", file) == (0, "", f"2 decisions written to {file}.\n")
    assert (file.read_text(), file.stat().st_mode & 0o777) == (
        '{"id":1,"url":"http://a.example/"}\n{"id":2,"url":"http://b.example/"}\n',
        0o600,
    )
    assert texts(Doubled("store"), *export, "csv")[1].splitlines()[1:] == ["1,http://a.example/", "2,http://b.example/"]
    assert texts(Doubled("store"), *export, "csv", "--separator", "semicolon", "--output", file)[2].startswith(
        "2 decisions written"
    )
    assert "1;http://a.example/" in file.read_text()
    assert called(Doubled("store"), *export, "parquet").complains().startswith("parquet needs a file")
    assert "cannot write" in called(Doubled("store"), *export, "csv", "--output", tmp_path / "none" / "x").complains()
