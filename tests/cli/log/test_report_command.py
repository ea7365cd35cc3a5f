import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.cli.log.report_words import WORDS
from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import LearnedEntry, ListAction, LogRecord
from gatewayfilter.store import Store

type Cli = Callable[..., Any]

NOW = 1_700_000_000.0
SINCE = ("--since", "2023-11-14T00:00:00+00:00", "--until", "2023-11-16T00:00:00+00:00")
EVIL = "<script>alert(1)</script>\"'&\x1b[2J\u202e"


@pytest.fixture
def logged(state: Path, cli: Cli) -> None:
    state.mkdir(parents=True)
    cli("client", "add", "kim-tablet", "--address", "192.0.2.7")
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    store.log.write(
        [
            LogRecord(
                NOW, "192.0.2.7", "GET", "http://games.example/x", "document", "block", "blacklist", "ut1", "r", "games", 9
            ),
            LogRecord(NOW + 1, "192.0.2.8", "GET", "http://a.example/x", "document", "allow", "unknown", elapsed_us=9),
            LogRecord(NOW + 2, EVIL, "GET", f"http://{EVIL}/", "document", "block", EVIL, EVIL, EVIL, EVIL, 9, EVIL),
            LogRecord(NOW - 90 * 86_400, "192.0.2.7", "GET", "http://old.example/", "document", "block", "blacklist", "ut1"),
        ]
    )
    store.unblock.ask(
        [UnblockRequest(f"http://games.example/{EVIL}", "192.0.2.7", "blacklist", "ut1", "r", "games", EVIL, NOW, 1)]
    )
    store.lists.put_learned(
        [LearnedEntry("casino.example/", ListAction.BLOCK, "gambling", f"http://casino.example/{EVIL}", "d", NOW, 9e9)]
    )
    store.close()


@pytest.mark.usefixtures("logged")
def test_the_report_as_text(cli: Cli) -> None:
    shown = cli("report", *SINCE)
    assert shown.code == 0
    assert "3 requests, 2 of them blocked (67 %)." in shown.out
    for text in ("kim-tablet", "games.example", "ut1", "casino.example", "192.0.2.8"):
        assert text in shown.out
    assert "old.example" not in shown.out
    assert "\x1b" not in shown.out
    assert "\u202e" not in shown.out
    new = shown.out.partition("New devices")[2].partition("Requests to unblock")[0]
    assert "192.0.2.8" in new
    assert "192.0.2.7" not in new  # it was seen long before


@pytest.mark.usefixtures("logged")
def test_the_report_in_chinese_and_as_json(cli: Cli) -> None:
    assert "共 3 次请求" in cli("report", *SINCE, "--language", "zh").out
    found = cli("report", *SINCE, "--json").json
    assert (found["summary"]["decisions"], found["learned_count"], len(found["requests"])) == (3, 1, 1)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.usefixtures("logged")
@pytest.mark.parametrize("language", sorted(WORDS))
def test_the_html_file_stands_alone_and_escapes_everything(language: str, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert cli("report", *SINCE, "--html", str(file), "--language", language).code == 0
    text = file.read_text(encoding="utf-8")
    parser = _Tags()
    parser.feed(text)
    names = {tag for tag, _ in parser.tags}
    assert not names & {"script", "img", "link", "iframe", "a", "form"}
    assert not any({"src", "href", "onload", "onclick"} & set(attributes) for _, attributes in parser.tags)
    assert not re.search(r"url\(|@import", text)
    assert f'lang="{language}"' in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text
    assert file.stat().st_mode & 0o777 == 0o600


def test_both_languages_have_the_same_words() -> None:
    places = [{key: sorted(re.findall(r"\{\w+\}", text)) for key, text in words.items()} for words in WORDS.values()]
    assert places[0] == places[1]


def test_an_empty_state_folder(cli: Cli) -> None:
    assert "0 requests" in cli("report").out
    assert cli("report", "--since", "today", "--until", "yesterday").code == 2


@pytest.mark.usefixtures("logged")
def test_a_file_that_cannot_be_written(cli: Cli) -> None:
    answer = cli("report", "--html", "/nowhere/report.html")
    assert answer.code == 2
    assert "cannot write" in answer.err


def test_times_are_those_of_the_filter(cli: Cli, logged: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # 1_700_000_000 is 2023-11-14T22:13:20Z: the day after in Shanghai.
    monkeypatch.setenv("GATEWAYFILTER_FILTER__TIMEZONE", "Asia/Shanghai")
    day = ("--since", "2023-11-15", "--until", "2023-11-16")
    assert "11-15 06:00" in cli("report", *day).out
    assert "11-15 06:00" in cli("log", "stats", *day).out
    assert "2023-11-15 06:13:20" in cli("log", "search", "games.example").out
