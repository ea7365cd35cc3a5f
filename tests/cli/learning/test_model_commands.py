"""`learn` and `words test`: the second opinion from a file to a verdict, and what is shown of a judgement."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

type Cli = Callable[..., Any]

OFFERS = ("free spins and a jackpot", "bet on slots", "roulette bonus today", "poker and chips for cash")
CALM = ("beans need water", "the library opens at nine", "a walk along the river", "soup with leeks")


@pytest.fixture
def decided(tmp_path: Path) -> Path:
    lines = [
        {"text": f"{pool[index % 4]} {pool[(index + 1) % 4]} {index}", "label": label}
        for index in range(30)
        for pool, label in ((OFFERS, "gambling"), (CALM, ""))
    ]
    path = tmp_path / "decided.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_a_model_is_trained_asked_and_switched_off(cli: Cli, state: Path, decided: Path) -> None:
    assert cli("learn", "status").code == 1
    text = "roulette, slots and poker: bet tonight"
    before = cli("words", "test", text, "--json").json
    answer = cli("learn", "train", "--from", str(decided), "--json")
    assert (answer.code, answer.json["examples"], answer.json["harmful"], answer.json["used"]) == (0, 60, 30, True)
    assert answer.json["auc"] > 0.9
    assert (state / "words" / "model.npz").is_file()
    assert "60 texts, 30 of them harmful" in cli("learn", "status").out
    after = cli("words", "test", text, "--json").json
    assert before["score"] < after["score"] <= before["score"] + 0.5 * before["limit"]
    assert "second opinion" in cli("words", "test", text).out
    assert cli("learn", "off").code == 0
    assert cli("words", "test", text, "--json").json == before
    assert cli("learn", "off").code == 1


def test_nothing_is_trained_on_too_little(cli: Cli, state: Path, tmp_path: Path) -> None:
    assert cli("learn", "train").code == 2  # nobody has decided a review yet
    assert "at least 20 harmful" in cli("learn", "train").err
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": 1}')
    answer = cli("learn", "train", "--from", str(bad))
    assert answer.code == 2
    assert "bad.jsonl:1" in answer.err
    bad.write_bytes(b"\xff\xfe")
    assert "not UTF-8" in cli("learn", "train", "--from", str(bad)).err
    assert not (state / "words" / "model.npz").exists()


def test_a_model_no_better_than_chance_is_not_used(cli: Cli, state: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    texts = ["".join(chance.choices("abcdefgh ", k=40)) for _ in range(120)]
    lines = [{"text": text, "label": "drugs" if index % 2 else ""} for index, text in enumerate(texts)]
    path = tmp_path / "noise.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    answer = cli("learn", "train", "--from", str(path))
    assert answer.code == 1
    assert "little better than chance" in answer.err
    assert not (state / "words" / "model.npz").exists()


def test_a_damaged_model_is_one_sentence(cli: Cli, state: Path) -> None:
    (state / "words").mkdir(parents=True)
    (state / "words" / "model.npz").write_bytes(b"nonsense")
    for command in (("learn", "status"), ("words", "test", "hello")):
        answer = cli(*command)
        assert answer.code == 2
        assert "is no model of this program" in answer.err
    assert cli("learn", "off").code == 0
    assert cli("words", "test", "hello").code == 0


def test_words_of_a_page_are_marked_zone_by_zone(cli: Cli, state: Path, tmp_path: Path) -> None:
    del state
    page = tmp_path / "page.html"
    page.write_text("<title>Roulette</title><p>Free spins at our online casino. Join now.</p><!-- porn -->")
    answer = cli("words", "test", str(page))
    assert answer.code == 1
    assert "title: [roulette]" in answer.out
    assert "main: [free spins] at our [online casino]" in answer.out
    assert "porn" not in answer.out
    breakdown = answer.out[answer.out.index("score breakdown") :]
    assert "words and combinations" in breakdown
    assert "score of gambling" in breakdown
    assert f"limit {cli('words', 'test', str(page), '--json').json['limit']:.1f}" in breakdown


def test_the_score_breakdown_adds_up(cli: Cli, state: Path) -> None:
    del state
    answer = cli("words", "test", "free spins at an online casino with roulette, says the gambling commission in court")
    rows = [line.split() for line in answer.out[answer.out.index("score breakdown") :].splitlines()[1:] if line.strip()]
    numbers = [float(next(cell for cell in row if cell.replace(".", "").isdigit())) for row in rows]
    signs = [-1 if "-" in row else 1 for row in rows[:-1]]
    assert sum(sign * number for sign, number in zip(signs, numbers, strict=False)) == pytest.approx(numbers[-1], abs=0.11)


def test_a_long_text_is_no_file_name(cli: Cli, state: Path) -> None:
    del state
    assert cli("words", "test", "calm " * 2_000).code == 0
    assert cli("words", "test", "http://127.0.0.1:1/x").code == 2
