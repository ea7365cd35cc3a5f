"""What `gatewayfilter queue` prints: `gatewayfilter.cli.learning.queue_commands`."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.cli.learning.queue_commands import clear
from gatewayfilter.settings import CrawlTask
from gatewayfilter.use_cases.learning.crawl_queue import Added, QueueFacts, TaskFacts
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

QUEUE = "gatewayfilter.use_cases.learning.crawl_queue"
AT = "2023-11-14 22:13:20"


def double(monkeypatch: pytest.MonkeyPatch, name: str, result: object, module: str = QUEUE) -> list[Any]:
    """Has a function return this; returns its calls."""
    calls: list[Any] = []

    def answer(*arguments: object, **named: object) -> object:
        calls.append((*arguments, *named.items()))
        return result

    monkeypatch.setattr(f"{module}.{name}", answer)
    return calls


def test_urls_are_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = double(monkeypatch, "add_urls", Added(1, 0))
    assert texts(Doubled("store"), "queue", "add", "a.example", "b.example") == (0, "1 URL queued.\n", "")
    assert calls == [(SETTINGS, "store", ("a.example", "b.example"), "")]
    calls = double(monkeypatch, "add_urls", Added(0, 1_000))
    assert texts(Doubled("store"), "queue", "add", "a.example", "--task", "t") == (1, "0 URLs queued, 1,000 there already.\n", "")
    assert calls == [(SETTINGS, "store", ("a.example",), "t")]
    answer = called(Doubled(), "queue", "add", "a.example", "--json")
    assert (answer.code, answer.json) == (1, {"queued": 0, "known": 1_000})


def test_crawl_tasks_are_shown_with_their_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    double(monkeypatch, "queue_tasks", ())
    none = "There are no crawl tasks: a table [crawl.tasks.NAME] in the settings makes one.\n"
    assert texts(Doubled(), "queue", "tasks") == (0, none, "")
    urls = {"waiting": 4, "leased": 3, "done": 2, "dead": 1}
    strategy = CrawlTask(depth=2, pages_per_site=50, recrawl_hours=12.5)
    found = (TaskFacts("forums", strategy, 7, urls, MOMENT), TaskFacts("gone", None, 0, urls))
    double(monkeypatch, "queue_tasks", found)
    head, forums, gone = table(texts(Doubled(), "queue", "tasks")[1])
    assert head[:5] == ["task", "depth", "pages per site", "follows", "again after h"]
    assert head[5:] == ["links", "waiting", "leased", "done", "dead", "paused since"]
    assert forums == ["forums", "2", "50", strategy.follow.value, "12.5", "7", "4", "3", "2", "1", AT]
    assert gone == ["gone", "not set", "none", "0", "4", "3", "2", "1"]
    document = called(Doubled(), "queue", "tasks", "--json").json
    assert document["gone"] == {"strategy": None, "links": 0, "urls": urls, "held_since": None}
    assert (document["forums"]["strategy"]["depth"], document["forums"]["held_since"]) == (2, MOMENT)


def test_urls_of_the_queue_are_shown() -> None:
    rows: list[Any] = []
    asked: list[Any] = []

    def show(limit: int, state: object) -> list[Any]:
        asked.append((limit, state))
        return rows

    store = SimpleNamespace(frontier=SimpleNamespace(show=show))
    assert texts(Doubled(store), "queue", "show") == (0, "The queue is empty.\n", "")
    assert texts(Doubled(store), "queue", "show", "--state", "dead", "-n", "3") == (0, "No URL is dead.\n", "")
    assert asked == [(50, None), (3, "dead")]
    row = {"priority": 5, "attempts": 2, "task": "forums", "url": "http://a.example/", "error": "refused"}
    rows += [SimpleNamespace(state="waiting", held=True, not_before=MOMENT, **row),
             SimpleNamespace(state="waiting", held=False, not_before=0.0, **row)]  # fmt: skip
    assert table(texts(Doubled(store), "queue", "show")[1]) == [
        ["state", "priority", "tries", "not before", "task", "url", "error"],
        ["paused", "5", "2", "2023-11-14 22:13", "forums", "http://a.example/", "refused"],
        ["waiting", "5", "2", "forums", "http://a.example/", "refused"],
    ]
    assert len(called(Doubled(store), "queue", "show", "--json").json) == 2


def test_counts_and_pauses_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = SimpleNamespace(kind="task", name="forums", since=MOMENT)
    calls = double(monkeypatch, "queue_facts", QueueFacts({"waiting": 2_000, "due": 1}, MOMENT, (hold,)))  # type: ignore[arg-type]
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    assert texts(Doubled("store"), "queue", "stats") == (
        0,
        (
            "state    urls\nwaiting  2,000\ndue      1\n"
            f"\nPaused since {AT}: `gatewayfilter queue resume` lets it go on.\n"
            f"\nThe task forums is paused since {AT}: `gatewayfilter queue resume --task forums` lets it go on.\n"
        ),
        "",
    )
    assert calls == [("store", MOMENT)]
    double(monkeypatch, "queue_facts", QueueFacts({"waiting": 1}, None))
    assert texts(Doubled(), "queue", "stats")[1] == "state    urls\nwaiting  1\n"
    assert called(Doubled(), "queue", "stats", "--json").json == {"waiting": 1, "paused_since": None, "held": []}


def test_the_queue_a_task_or_a_host_is_paused_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    for changed, paused, on in ((True, "is paused", "goes on"), (False, "was paused already", "was not paused")):
        pauses, resumes = double(monkeypatch, "pause_queue", changed), double(monkeypatch, "resume_queue", changed)
        for options, what in (((), "The queue"), (("--task", "t"), "The task t"), (("--host", "h"), "The host h")):
            context = Doubled("store")
            assert texts(context, "queue", "pause", *options) == (0, f"{what} {paused}.\n", "")
            assert texts(context, "queue", "resume", *options) == (0, f"{what} {on}.\n", "")
            assert [change.action for change in context.recorded] == ["queue.paused", "queue.resumed"]
        assert pauses[1:] == [(SETTINGS, "store", MOMENT, "t", ""), (SETTINGS, "store", MOMENT, "", "h")]
        assert resumes == [("store", "", ""), ("store", "t", ""), ("store", "", "h")]
        assert called(Doubled(), "queue", "pause", "--json").json == {"paused": True, "changed": changed}
        assert called(Doubled(), "queue", "resume", "--json").json == {"paused": False, "changed": changed}


def test_proxies_are_shown_and_one_has_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = "gatewayfilter.use_cases.learning.proxy_checks"
    double(monkeypatch, "check_proxies", [], checks)
    none = "No outbound proxies are set: crawl.proxies and crawl.proxies_from are empty.\n"
    assert texts(Doubled(), "queue", "proxies") == (1, none, "")
    dead = SimpleNamespace(address="b:1", response_ms=9.0, successes=0, anonymous=None, failures=3)
    double(monkeypatch, "check_proxies", [dead], checks)
    assert texts(Doubled(), "queue", "proxies")[0] == 1
    good = [SimpleNamespace(address="a:1", response_ms=12.6, successes=1, anonymous=hides, failures=0) for hides in (True, False)]
    double(monkeypatch, "check_proxies", [*good, dead], checks)
    code, out, _ = texts(Doubled(), "queue", "proxies")
    assert (code, table(out)) == (
        0,
        [
            ["proxy", "answers in ms", "anonymous", "failures"],
            ["a:1", "13", "yes", "0"],
            ["a:1", "13", "no", "0"],
            ["b:1", "unknown", "3"],
        ],
    )
    assert called(Doubled(), "queue", "proxies", "--json").code == 0


def test_urls_are_revived_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    double(monkeypatch, "retry_failed", 1)
    assert texts(Doubled(), "queue", "retry") == (0, "1 URL put back to waiting.\n", "")
    assert called(Doubled(), "queue", "retry", "--json").json == {"revived": 1}
    calls = double(monkeypatch, "clear_queue", 2_000)
    assert texts(Doubled("store"), "queue", "clear") == (0, "2,000 URLs removed.\n", "")
    assert called(Doubled("store"), "queue", "clear", "--task", "t", "--json").json == {"removed": 2_000}
    assert calls == [("store", None), ("store", "t")]


@pytest.mark.parametrize(("confirmed", "cleared"), [(True, 2), (False, 1)])
def test_at_a_terminal_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, *, confirmed: bool, cleared: int) -> None:
    calls = double(monkeypatch, "clear_queue", 1)
    asked: list[str] = []

    def confirm(question: str, *, err: bool) -> bool:
        assert err
        asked.append(question)
        return confirmed

    monkeypatch.setattr("click.confirm", confirm)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    assert clear.main([], standalone_mode=False, obj=Doubled()) == (0 if confirmed else 1)
    assert clear.main(["--yes"], standalone_mode=False, obj=Doubled()) == 0
    assert len(calls) == cleared
    assert asked == ["Empty the queue?"]
    clear.main(["--task", "t"], standalone_mode=False, obj=Doubled())
    assert asked[1:] == ["Take the URLs of the task t out of the queue?"]
