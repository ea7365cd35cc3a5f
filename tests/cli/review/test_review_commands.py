import getpass
import shlex
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.interfaces import Page, UnblockRequest
from gatewayfilter.settings import LearnSettings, Settings
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring import learning_sink

PLAY = "http://play.example/"

type Cli = Callable[..., Any]

_HTML = """<html><head><title>Online casino with free spins</title></head><body><p>Play slots, roulette and blackjack for real
money at our online casino. Deposit bonus, free spins, jackpot, sports betting: bet now! {more}</p></body></html>"""


@pytest.fixture(scope="module")
def judged_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder whose learner has judged two pages alike and one that is fine."""
    folder = tmp_path_factory.mktemp("judged")
    settings = Settings(data_dir=folder, learn=LearnSettings())
    with closing(Store.open(settings.store_url)) as store:
        sink = learning_sink(settings, store, Counters())
        for url, body in {
            "http://play.example/": _HTML.format(more=""),
            "http://mirror.example/": _HTML.format(more=""),
            "http://garden.example/": "<title>Beans</title><p>Beans want warm soil and a pole to climb on.</p>",
        }.items():
            sink.page(Page(url, url, 200, {"content-type": "text/html"}, body.encode()))
    return folder


@pytest.fixture
def judged(judged_folder: Path, state: Path) -> None:
    """A copy of that folder, of the test's own."""
    shutil.copytree(judged_folder, state)


@pytest.mark.usefixtures("judged")
def test_tasks_are_listed_and_shown(cli: Cli) -> None:
    assert [(row["task"], row["group"], row["state"], row["blocked"]) for row in cli("review", "list", "--json").json] == [
        (1, 1, "open", True),
        (2, 1, "open", True),
    ]
    shown = cli("review", "show", "1").out
    for part in ("http://play.example/", "open, blocked, gambling", "online casino", "limit", "alike: 2"):
        assert part in shown
    assert cli("review", "show", "2", "--json").json["alike"] == [1]
    assert cli("review", "list", "--category", "fraud").out == "No task waits.\n"
    assert cli("review", "list", "--state", "approved").out == "There are no such tasks.\n"
    missing = cli("review", "show", "9")
    assert (missing.code, missing.err) == (1, "There is no task 9.\n")


@pytest.mark.usefixtures("judged")
def test_tasks_alike_are_decided_together_and_undone_one_by_one(cli: Cli) -> None:
    decided = cli("review", "reject", "1", "--alike", "--by", "ada", "--note", "a test", "--json").json
    assert [(task["task"], task["state"], task["decided_by"]) for task in decided] == [
        (1, "rejected", "ada"),
        (2, "rejected", "ada"),
    ]
    assert cli("review", "list").out == "No task waits.\n"
    assert [row["action"] for row in cli("list", "show", "--json").json] == ["allow", "allow"]
    assert "ada  reject: a test" in cli("review", "show", "1").out
    assert cli("review", "undo", "2").out == "task 2: open, blocked: http://mirror.example/\n"
    assert len(cli("list", "show", "--json").json) == 1
    assert f"{getpass.getuser()}  undo" in cli("review", "show", "2").out


@pytest.mark.usefixtures("judged")
def test_another_category_and_what_does_not_go(cli: Cli) -> None:
    assert "approved, blocked" in cli("review", "change", "1", "fraud").out
    assert cli("review", "list", "--state", "approved", "--json").json[0]["category"] == "fraud"
    assert "there is no category 'frodo'" in cli("review", "change", "1", "frodo").complains()
    assert "task 1 was approved by" in cli("review", "approve", "1").complains()
    assert "add --overturn" in cli("review", "reject", "1", "--by", "somebody else").complains()
    assert "rejected, not blocked" in cli("review", "reject", "1", "--by", "somebody else", "--overturn").out
    assert "there is no task 9" in cli("review", "reject", "9").complains()


@pytest.mark.usefixtures("judged")
def test_tasks_about_the_same_content_are_decided_with_it(cli: Cli) -> None:
    assert cli("review", "reject", "2").out.splitlines() == [
        "task 2: rejected, not blocked: http://mirror.example/",
        "task 1: rejected, not blocked: http://play.example/ (the same content)",
    ]
    assert cli("review", "undo", "2").out == "task 2: open, blocked: http://mirror.example/\n"
    assert cli("review", "redo", "2").out == "task 2: rejected, not blocked: http://mirror.example/\n"
    assert "nothing of task 2 was undone last" in cli("review", "redo", "2").complains()


@pytest.mark.usefixtures("judged")
def test_what_cannot_be_decided_keeps_nothing_else_from_it(cli: Cli) -> None:
    answer = cli("review", "approve", "9", "1")
    assert answer.code == 1
    assert answer.err == "gatewayfilter: there is no task 9\n"
    assert answer.out.startswith("task 1: approved, blocked")


@pytest.mark.usefixtures("judged")
def test_a_rule_that_lets_an_approved_page_through_is_named(cli: Cli) -> None:
    cli("list", "add", "--allow", "play.example")
    assert cli("review", "approve", "1").out.splitlines()[:2] == [
        "task 1: approved, blocked: http://play.example/",
        "  your rule 1 allows it all the same; to remove it: gatewayfilter list remove 1",
    ]


@pytest.mark.usefixtures("judged")
def test_the_record_says_who_did_what(cli: Cli) -> None:
    assert cli("review", "log").out == "Nothing was decided yet.\n"
    cli("review", "reject", "1", "--by", "ada", "--note", "a museum")
    cli("review", "undo", "1", "--by", "bob")
    rows = cli("review", "log", "--json").json
    assert [(row["who"], row["action"], row["undone"], row["task"], row["note"]) for row in rows] == [
        ("bob", "undo", False, 1, ""),
        ("ada", "reject", False, 2, "a museum"),
        ("ada", "reject", True, 1, "a museum"),
    ]
    assert "reject (undone)  1     http://play.example/" in cli("review", "log").out
    assert len(cli("review", "log", "-n", "1", "--json").json) == 1


@pytest.mark.usefixtures("judged")
def test_stats_and_export(cli: Cli) -> None:
    stats = cli("review", "stats", "--json").json
    assert [(row["state"], row["category"], row["tasks"]) for row in stats["counts"]] == [("open", "gambling", 2)]
    assert (stats["open"], stats["decided_in_7_days"], stats["median_hours_to_decision"]) == (2, 0, None)
    assert "2 tasks wait, the oldest for 0.0 hours." in cli("review", "stats").out
    cli("review", "reject", "1")
    cli("review", "change", "2", "gambling")
    stats = cli("review", "stats", "--json").json
    assert (stats["open"], stats["oldest_open_hours"], stats["decided_in_7_days"]) == (0, None, 2)
    assert "2 decided in the last 7 days, half of them within 0.0 hours." in cli("review", "stats").out
    assert cli("review", "phrases").out.startswith("Nothing to propose"), "the approved page has the same phrases"
    assert [line["task"] for line in cli("review", "export").lines] == [1, 2]
    examples = cli("review", "export", "--examples").lines
    assert [(line["label"], line["url"]) for line in examples] == [
        ("", "http://play.example/"),
        ("gambling", "http://mirror.example/"),
    ]
    assert "roulette" in examples[0]["text"]


@pytest.mark.slow
@pytest.mark.usefixtures("judged")
def test_phrases_of_rejected_pages_are_taken_over_by_one_command(cli: Cli) -> None:
    assert cli("review", "phrases").out.startswith("Nothing to propose")
    cli("review", "reject", "1")
    proposed = cli("review", "phrases", "--json").json
    assert {phrase["category"] for phrase in proposed} == {"gambling"}
    first, third = proposed[0], proposed[2]
    assert first["phrase"] in cli("review", "phrases").out
    taken = cli("review", "phrases", "--take", "1", "--take", "3")
    assert (
        taken.out.splitlines()[0] == f"{first['phrase']!r} covers {first['word']!r} from now on: it does not count for gambling."
    )
    own = [word["phrase"] for word in cli("words", "show", "gambling", "--own", "--json").json["words"]]
    assert sorted(own) == sorted([first["phrase"], third["phrase"]])
    left = [phrase["phrase"] for phrase in cli("review", "phrases", "--json").json]
    assert first["phrase"] not in left
    missing = cli("review", "phrases", "--take", "999")
    assert (missing.code, missing.out) == (1, "")
    assert "there is no phrase 999" in missing.err
    back = taken.out.splitlines()[-1].removeprefix("To take it back: gatewayfilter ")
    assert cli(*shlex.split(back)).code == 0


def test_without_tasks(cli: Cli) -> None:
    assert cli("review", "list").out == "No task waits.\n"
    assert cli("review", "stats").out == "There are no tasks.\n"
    assert cli("review", "export").out == ""


@pytest.mark.usefixtures("judged")
def test_fingerprints_are_counted_and_images_imported(cli: Cli, tmp_path: Path) -> None:
    assert cli("fingerprints", "stats", "--json").json["page"] == 2
    known = tmp_path / "known.md5"
    known.write_text(f"# bad\n{'0A' * 16}  a.jpg\n\n{'1b' * 16}\nnot a digest\n{'1b' * 15}\n")
    answer = cli("fingerprints", "images", str(known), "--category", "adult")
    assert answer.out == "2 images taken, 2 lines rejected.\n"
    assert "line 5: no MD5: not a digest" in answer.err
    assert cli("fingerprints", "stats", "--json").json["image"] == 2
    assert "no category" in cli("fingerprints", "images", str(known), "--category", "frodo").complains()
    known.write_text("nothing\n")
    assert cli("fingerprints", "images", str(known), "--category", "adult", "--json").code == 1


@pytest.mark.usefixtures("judged")
def test_what_visitors_asked_stands_beside_the_tasks(cli: Cli, state: Path) -> None:
    with closing(Store.open(Settings(data_dir=state).store_url)) as store:
        asks = [
            UnblockRequest(PLAY, client, "learned", "", "", "gambling", "my shop", 1e9) for client in ("10.0.0.2", "10.0.0.3")
        ]
        store.unblock.ask([*asks, asks[0], replace(asks[0], url="http://other.example/")])
    assert [row["asked"] for row in cli("review", "list", "--json").json] == [3, 0]
    assert [row["task"] for row in cli("review", "list", "--asked", "--json").json] == [1]
    shown = cli("review", "show", "1").out
    assert f"10.0.0.2  asked for {PLAY}, 2x: my shop" in shown
    assert [request["times"] for request in cli("review", "show", "1", "--json").json["asked"]] in ([1, 2], [2, 1])
    cli("review", "reject", "1")
    assert cli("review", "list", "--asked").out == "No task waits.\n"
    assert [request["url"] for request in cli("request", "list", "--json").json] == ["http://other.example/"]
