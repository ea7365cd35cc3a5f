import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.interfaces import CrawlRequest, Priority
from gatewayfilter.store import Store

type Cli = Callable[..., Any]


@pytest.fixture
def queued(state: Path) -> None:
    state.mkdir(parents=True)
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    now = time.time()
    store.frontier.add(
        [CrawlRequest("http://a.example/", Priority.MANUAL), CrawlRequest("http://b.example/", Priority.LINK)], now
    )
    (lease,) = store.frontier.lease(1, 60, now)
    store.frontier.dead_letter(lease, "refused")
    store.close()


@pytest.mark.usefixtures("queued")
def test_the_queue_is_shown_by_state(cli: Cli) -> None:
    assert [(row["url"], row["state"]) for row in cli("queue", "show", "--state", "dead", "--json").json] == [
        ("http://a.example/", "dead")
    ]
    assert "http://b.example/" in cli("queue", "show").out
    assert cli("queue", "show", "--state", "done").out == "No URL is done.\n"
    assert cli("queue", "show", "--state", "resting").out == "No URL is done.\n", "the name of earlier releases"


@pytest.mark.usefixtures("queued")
def test_stats_retry_and_clear(cli: Cli) -> None:
    stats = cli("queue", "stats", "--json").json
    assert (stats["waiting"], stats["dead"]) == (1, 1)
    assert "waiting  1" in cli("queue", "stats").out
    assert cli("queue", "retry", "--json").json == {"revived": 1}
    assert cli("queue", "retry").out == "0 URLs put back to waiting.\n"
    assert cli("queue", "clear", "--json").json == {"removed": 2}
    assert cli("queue", "clear", "--yes").out == "0 URLs removed.\n"
    assert cli("queue", "show").out == "The queue is empty.\n"


@pytest.mark.usefixtures("queued")
def test_a_task_and_a_host_are_paused(cli: Cli) -> None:
    assert cli("queue", "pause", "--host", "b.example", "--json").json == {"paused": True, "changed": True}
    assert cli("queue", "pause", "--host", "B.example").out == "The host B.example was paused already.\n"
    assert cli("queue", "pause", "--task", "none").code == 1
    assert cli("queue", "pause", "--task", "none", "--host", "b.example").code == 2
    assert cli("queue", "pause", "--host", "no host").code == 2
    (held,) = cli("queue", "stats", "--json").json["held"]
    assert (held["kind"], held["name"]) == ("host", "b.example")
    assert "queue resume --host b.example" in cli("queue", "stats").out
    assert cli("queue", "show", "--state", "waiting", "--json").json[0]["held"] is True
    assert cli("queue", "resume").out == "The queue was not paused.\n"
    assert cli("queue", "resume", "--host", "b.example").out == "The host b.example goes on.\n"


def test_outbound_proxies_are_shown_without_their_passwords(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    none = cli("queue", "proxies")
    assert none.code == 1
    assert "No outbound proxies are set" in none.out
    monkeypatch.setenv("GATEWAYFILTER_CRAWL__PROXIES", "127.0.0.1:9,http://user:secret@127.0.0.1:1")
    monkeypatch.setenv("GATEWAYFILTER_CRAWL__PROXY_CHECK_URL", "http://127.0.0.1:1/")
    shown = cli("queue", "proxies")
    assert "http://127.0.0.1:9" in shown.out
    assert "secret" not in shown.out
    rows = cli("queue", "proxies", "--json").json
    assert [(row["address"], row["failures"]) for row in rows] == [("http://127.0.0.1:9", 1), ("http://127.0.0.1:1", 1)]


@pytest.mark.usefixtures("queued")
def test_pause_and_resume(cli: Cli) -> None:
    assert cli("queue", "pause").out == "The queue is paused.\n"
    assert cli("queue", "pause", "--json").json == {"paused": True, "changed": False}
    assert "Paused since" in cli("queue", "stats").out
    assert cli("queue", "resume", "--json").json == {"paused": False, "changed": True}
    assert cli("queue", "resume").out == "The queue was not paused.\n"
    assert cli("queue", "stats", "--json").json["paused_since"] is None


def test_adding_and_tasks(cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del state
    assert "There are no crawl tasks" in cli("queue", "tasks").out
    monkeypatch.setenv("GATEWAYFILTER_CRAWL__TASKS", '{"forums": {"depth": 3, "priority": 70}}')
    assert cli("queue", "add", "a.example", "http://a.example/#x", "b.example").out == "2 URLs queued.\n"
    again = cli("queue", "add", "a.example")
    assert (again.code, again.out) == (1, "0 URLs queued, 1 there already.\n")
    assert cli("queue", "add", "--task", "forums", "a.example", "c.example", "--json").json == {"queued": 1, "known": 1}
    rows = {row["url"]: (row["priority"], row["task"]) for row in cli("queue", "show", "--json").json}
    assert rows == {
        "http://a.example/": (Priority.MANUAL, "forums"),  # what waited already belongs to the task now
        "http://b.example/": (Priority.MANUAL, ""),
        "http://c.example/": (70, "forums"),
    }
    found = cli("queue", "tasks", "--json").json["forums"]
    assert (found["strategy"]["depth"], found["urls"]["waiting"], found["links"]) == (3, 2, 0)
    assert "forums" in cli("queue", "tasks").out
    assert cli("queue", "clear", "--task", "forums").out == "2 URLs removed.\n"
    assert [row["url"] for row in cli("queue", "show", "--json").json] == ["http://b.example/"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["10.0.0.1"], "may not be crawled: 10.0.0.1 is not a public address"),
        (["a.example/logout", "b.example"], "may not be crawled"),
        (["http://["], "not a URL"),
        (["--task", "none", "a.example"], "there is no crawl task 'none'"),
    ],
)
def test_what_cannot_be_added_is_said_and_nothing_is(cli: Cli, arguments: list[str], sentence: str) -> None:
    assert sentence in cli("queue", "add", *arguments).complains()
    assert cli("queue", "show").out == "The queue is empty.\n"
