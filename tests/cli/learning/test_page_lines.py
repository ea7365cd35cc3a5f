"""`classify --lines`: pages as JSON lines in, judgements out."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from gatewayfilter.cli.bulk.json_lines import Batch
from gatewayfilter.cli.learning import classify_command
from gatewayfilter.cli.learning.page_lines import PageLines, PageWorker
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from gatewayfilter.settings import ClassifySettings, Settings, Strictness
from tests.case_tables import all_cases

type Cli = Callable[..., Any]

COMMAND = [sys.executable, "-m", "gatewayfilter.cli", "classify", "--lines"]
CASINO = "Play slots, roulette and blackjack for real money at our online casino. Deposit bonus, free spins, jackpot: bet now!"
BEANS = "Beans want warm soil and a pole to climb on."


class _Classifier:
    """Finds casinos, doubts bets, and remembers the pages."""

    def __init__(self) -> None:
        self.pages: list[Page] = []

    def classify_page(self, page: Page) -> Classification:
        self.pages.append(page)
        text = page.body.decode()
        if "casino" in text:
            return Classification("gambling", 42.00001, 20.0, certainty=0.9987654)
        return Classification("", 12.0, 20.0, certainty=0.62, doubt="gambling" if "bet" in text else "")

    def classify_text(self, text: str) -> Classification:
        raise NotImplementedError


def _judge(record: object) -> tuple[dict[str, Any], _Classifier]:
    classifier = _Classifier()
    lines = PageLines(classifier)
    answers = lines.decide(Batch(1, [record if isinstance(record, bytes) else json.dumps(record).encode()], 1))
    return json.loads(answers.text), classifier


def test_the_judgement_is_added_and_the_rest_stays() -> None:
    record = {"url": "http://play.example/", "html": "<p>casino", "headers": {"Server": "x"}, "label": "赌博", "n": [1]}
    answer, _ = _judge(record)
    assert answer == record | {
        "category": "gambling", "score": 42.0, "limit": 20.0, "harmful": True, "certainty": 0.99877, "doubt": "",
    }  # fmt: skip


def test_a_doubtful_page_is_not_harmful_and_an_older_judgement_is_replaced() -> None:
    answer, _ = _judge({"text": "a bet", "category": "x", "harmful": True, "error": "y"})
    assert (answer["category"], answer["harmful"], answer["doubt"], answer["certainty"]) == ("", False, "gambling", 0.62)
    assert "error" not in answer


@all_cases(
    ("record", "content_type", "url"),
    [
        ({"html": "<p>x", "text": "y"}, "text/html; charset=utf-8", ""),
        ({"html": "<p>x", "url": "Lucky.example/bonus"}, "text/html; charset=utf-8", "http://lucky.example/bonus"),
        ({"html": "<p>赌", "headers": {"Content-Type": "text/html; charset=gbk"}}, "text/html; charset=utf-8", ""),
        ({"html": "<p>x", "headers": {"content-type": "application/xhtml+xml"}}, "application/xhtml+xml; charset=utf-8", ""),
        ({"html": "<p>x", "headers": {"content-type": "image/png", "x": 7}}, "text/html; charset=utf-8", ""),
        ({"html": None, "text": "y", "url": None, "headers": None}, "text/plain; charset=utf-8", ""),
        ({"text": "\ud800"}, "text/plain; charset=utf-8", ""),
    ],
)
def test_a_record_becomes_the_page_that_it_describes(record: dict[str, Any], content_type: str, url: str) -> None:
    _, classifier = _judge(record)
    (page,) = classifier.pages
    assert (page.headers["content-type"], page.url, page.final_url) == (content_type, url, url)
    page.body.decode()


@all_cases(
    ("record", "error"),
    [
        (b"no json", "not JSON"),
        ([1], "not an object"),
        ({}, "no html or text"),
        ({"html": 7, "x": 1}, "no html or text"),
        ({"text": "y", "url": 7}, "not a URL"),
        ({"text": "y", "url": "http://"}, "not a URL: 'http://'"),
        ({"text": "y", "headers": []}, "headers are no object"),
        (b'{"text": "' + b"x" * PageLines.max_line + b'"}', "line too long"),
    ],
)
def test_a_line_without_a_page_gets_an_error(record: object, error: str) -> None:
    answer, classifier = _judge(record)
    assert answer["error"] == error
    assert "category" not in answer
    assert not classifier.pages


def test_lines_of_ten_megabytes_are_judged() -> None:
    answer, _ = _judge({"text": "x" * 10_000_000 + "casino"})
    assert answer["harmful"]


@pytest.mark.slow
def test_the_command_judges_by_the_words_of_the_state_folder_and_makes_none(cli: Cli, tmp_path: Path, state: Path) -> None:
    file = tmp_path / "pages.jsonl"
    file.write_text("\n".join(json.dumps(record) for record in ({"text": CASINO, "n": 1}, {"text": BEANS}, {"n": 3})))
    answer = cli("classify", "--lines", file, "--stats")
    first, second, third = answer.lines
    assert (first["n"], first["category"], first["harmful"], first["score"] > first["limit"]) == (1, "gambling", True, True)
    assert (second["category"], second["harmful"]) == ("", False)
    assert third == {"n": 3, "error": "no html or text"}
    assert answer.code == 0
    assert "line 3: no html or text\ngatewayfilter: 1 line held no page" in answer.err
    assert "1  harmful gambling" in answer.err
    assert "pages/CPU-s" in answer.err
    assert not state.exists()
    cli("words", "add", "--category", "gambling", "beans", "warm soil", "--weight", "30")
    assert cli("classify", "--lines", file).lines[1]["category"] == "gambling"


def test_harmful_is_what_is_blocked_at_standard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Settings] = []

    def classifier(settings: Settings) -> _Classifier:
        used.append(settings)
        return _Classifier()

    monkeypatch.setattr("gatewayfilter.wiring.classifier", classifier)
    PageWorker(Settings(data_dir=tmp_path, classify=ClassifySettings(strictness=Strictness.STRICT, topics=False))).open()
    assert [(settings.classify.strictness, settings.classify.topics) for settings in used] == [(Strictness.STANDARD, False)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name one page, or give --lines FILE"),
        (["page.html", "--lines", "-"], "name one page, or give --lines FILE"),
        (["--lines", "-", "--parts"], "--parts is for a single page"),
        (["--lines", "not-there.jsonl"], "cannot read not-there.jsonl: No such file or directory"),
    ],
)
def test_bad_input_is_one_sentence(cli: Cli, arguments: list[str], sentence: str) -> None:
    answer = cli("classify", *arguments)
    assert answer.code == 2
    assert sentence in answer.err


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAYFILTER_")}
    return {**clean, "HOME": str(tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.mark.slow
def test_all_jobs_give_the_same_answers_in_the_same_order(environment: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "pages.jsonl"
    count = 3 * classify_command.ALONE
    lines = (json.dumps({"text": f"{(CASINO, BEANS)[n % 2]} {n} " + "x " * 300, "n": n}) for n in range(count))
    file.write_text("\n".join("nonsense" if n % 50 == 49 else line for n, line in enumerate(lines)) + "\n")
    done = [
        subprocess.run([*COMMAND, file, "--jobs", jobs], capture_output=True, text=True, check=True, env=environment)
        for jobs in ("1", "2")
    ]
    assert done[0].stdout == done[1].stdout
    answers = [json.loads(line) for line in done[1].stdout.splitlines()]
    assert [answer.get("n") for answer in answers] == [None if n % 50 == 49 else n for n in range(count)]
    assert all(answer["harmful"] is (answer["n"] % 2 == 0) for answer in answers if "n" in answer)
    assert "12 lines held no page" in done[1].stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.slow
def test_endless_input_of_long_lines_takes_bounded_memory(environment: dict[str, str]) -> None:
    """Memory after 300 MB of lines is what it was after 100."""
    line = json.dumps({"html": "<p>" + "beans in the garden " * 250_000}).encode() + b"\n"
    with subprocess.Popen(
        [*COMMAND, "-", "--jobs", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        writer = threading.Thread(target=process.stdin.writelines, args=([line] * 60,), daemon=True)
        writer.start()
        used = []
        for number in range(60):
            assert json.loads(process.stdout.readline())["harmful"] is False
            if number in {19, 59}:
                used.append(psutil.Process(process.pid).memory_info().rss)
        writer.join()
        process.stdin.close()
        assert process.wait(30) == 0
    assert used[1] < used[0] + 60_000_000
