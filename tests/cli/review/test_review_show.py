"""One task with all that is known of it: the score breakdown of then, and of today where the words have changed."""

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from gatewayfilter.settings import Settings
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring import learning_sink, page_buffer

pytestmark = pytest.mark.slow

type Cli = Callable[..., Any]

PLAY = "http://play.example/"
HTML = """<html><head><title>Online casino with free spins</title></head><body><p>Play slots, roulette and blackjack for real
money at our online casino. Deposit bonus, free spins, jackpot, sports betting: bet now!</p></body></html>"""


@pytest.fixture(scope="module", params=[True, False], ids=["archived", "text-alone"])
def judged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bool]:
    """A state folder whose learner has judged two pages alike, with the archive or without; and which of both."""
    folder = tmp_path_factory.mktemp("judged")
    settings = Settings(data_dir=folder)
    with closing(Store.open(settings.store_url)) as store:
        sink = learning_sink(settings, store, Counters())
        buffer = page_buffer(settings, store, Counters(), sink, evidence_only=True) if request.param else None
        for url in (PLAY, "http://mirror.example/"):
            page = Page(url, url, 200, {"content-type": "text/html"}, HTML.encode())
            (sink if buffer is None else buffer).page(page)
        if buffer is not None:
            buffer.flush()
    return folder, bool(request.param)


@pytest.fixture
def archived(judged: tuple[Path, bool], state: Path) -> bool:
    """A copy of that folder, of the test's own; whether its pages are archived."""
    folder, archived = judged
    shutil.copytree(folder, state)
    return archived


def other_words(state: Path) -> None:
    """Has one word weigh more, and a limit that no page reaches."""
    (state / "words").mkdir(exist_ok=True)
    own = 'category = "gambling"\nlimit = 1000.0\n[words]\n"19.5" = ["online casino"]\n7 = ["ranunculus"]\n'
    (state / "words" / "gambling.toml").write_text(own, encoding="utf-8")


def adds_up(breakdown: dict[str, float]) -> bool:
    parts = breakdown["strong"] + breakdown["topic_counted"] - breakdown["context_counted"] + breakdown["opinion"]
    return abs(parts - breakdown["score"]) < 0.01


@pytest.mark.usefixtures("archived")
def test_the_score_breakdown_is_kept_and_adds_up(cli: Cli) -> None:
    task = cli("review", "show", "1", "--json").json
    assert task["today"] is None
    assert (task["score_breakdown"]["category"], task["score_breakdown"]["score"]) == ("gambling", pytest.approx(task["score"]))
    assert adds_up(task["score_breakdown"])
    shown = cli("review", "show", "1").out
    assert f"score of gambling       = {task['score']:.1f}" in shown
    assert "today" not in shown
    assert cli("review", "export").lines[0]["score_breakdown"] == task["score_breakdown"]


def test_by_other_words_both_stand_beside_each_other(cli: Cli, state: Path, archived: bool) -> None:  # noqa: FBT001  a fixture
    before = cli("review", "show", "1", "--json").json
    other_words(state)
    task = cli("review", "show", "1", "--json").json
    assert (task["score_breakdown"], task["classification"]) == (before["score_breakdown"], before["classification"]), (
        "what was, stays"
    )
    today = task["today"]
    assert today["whole"] is archived
    assert today["score_breakdown"]["words_version"] != before["score_breakdown"]["words_version"]
    assert today["score_breakdown"]["limit"] == 1000.0
    assert adds_up(today["score_breakdown"])
    shown = cli("review", "show", "1").out
    assert "weight then  today" in shown
    assert "by today's words" in shown
    verdict = f"{today['classification']['category'] or 'harmless'}, score {today['classification']['score']:.1f} (limit 1000.0)"
    assert f"The words have changed since: by today's it is {verdict}" in shown
    assert ("the archive has the page no more" in shown) is not archived
    then = next(hit["weight"] for hit in before["classification"]["evidence"] if hit["word"] == "online casino")
    line = next(line for line in shown.splitlines() if " online casino " in line)
    assert line.split()[:2] == [f"{then:+.1f}", "+58.5" if archived else "+19.5"], "of the text alone the title counts as text"


def test_the_page_itself_is_written_as_long_as_the_archive_has_it(cli: Cli, archived: bool) -> None:  # noqa: FBT001
    page = cli("review", "page", "1")
    if archived:
        assert (page.code, page.out) == (0, HTML)
    else:
        assert (page.code, page.out, page.err) == (1, "", "The archive has no page of task 1 any more.\n")
    assert cli("review", "page", "9").err == "There is no task 9.\n"


def test_a_newer_state_of_the_page_is_not_taken_for_it(cli: Cli, state: Path, archived: bool) -> None:  # noqa: FBT001
    if not archived:
        pytest.skip("nothing is archived")
    settings = Settings(data_dir=state)
    with closing(Store.open(settings.store_url)) as store:
        said = Classification("gambling", 42.0, 20.0)

        class Harmful:
            def page(self, page: Page) -> Classification:
                store.verdicts.record(page.url, said, time.time())
                return said

        buffer = page_buffer(settings, store, Counters(), Harmful(), evidence_only=True)
        assert buffer is not None
        buffer.page(Page(PLAY, PLAY, 200, {"content-type": "text/html"}, HTML.replace("now!", "now, and poker!").encode()))
        buffer.flush()
    assert cli("review", "page", "1").code == 1
    assert cli("review", "page", "2").code == 0
    other_words(state)
    assert cli("review", "show", "1", "--json").json["today"]["whole"] is False


@pytest.mark.usefixtures("archived")
def test_pages_alike_are_named_and_listed(cli: Cli) -> None:
    assert "2  open  the same page  http://mirror.example/" in cli("review", "show", "1").out
    assert [row["task"] for row in cli("review", "list", "--group", "2", "--json").json] == [1, 2]
    assert "there is no task 9" in cli("review", "list", "--group", "9").complains()


@pytest.mark.usefixtures("archived")
def test_all_of_the_text_is_shown_when_asked_for(cli: Cli, state: Path) -> None:
    with closing(Store.open(Settings(data_dir=state).store_url)) as store:
        task = store.reviews.get(1)
        assert task is not None
        long = replace(task, key="long.example/", url="http://long.example/", text="word " * 400 + "the end", group_id=0)
        number = store.reviews.add(long)
        old = store.reviews.add(replace(long, key="old.example/", score_breakdown=None))
    assert "the end" not in cli("review", "show", number).out
    assert "the end" in cli("review", "show", number, "--text").out
    shown = cli("review", "show", old).out
    assert f"score {task.classification.score:.1f}; limit" in shown, "of a task of before the score breakdown was kept"
    assert "score breakdown" not in shown


def test_a_decision_loses_no_evidence_and_is_told_apart_from_the_classifiers(cli: Cli, archived: bool) -> None:  # noqa: FBT001
    cli("review", "change", "1", "fraud", "--by", "ada")
    cli("review", "reject", "1", "--by", "ada")
    task = cli("review", "show", "1", "--json").json
    assert bool(task["archived"]) is archived
    assert (cli("review", "page", "1").code == 0) is archived
    shown = cli("check", PLAY)
    assert "ada said on " in shown.out
    assert "that it is harmless (review task 1)." in shown.out
    assert "GAMBLING: score" in shown.out
    assert cli("check", PLAY, "--json").json["reviewed"]["decided_by"] == "ada"
    cli("review", "undo", "1")
    assert "ada said" in (out := cli("check", PLAY).out)
    assert "that it is fraud (review task 1)." in out
    cli("review", "undo", "1")
    assert "ada said" not in cli("check", PLAY).out
    assert cli("check", PLAY, "--json").json["reviewed"] is None
