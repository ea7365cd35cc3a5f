"""Word lists as others write them, through the command line: imported, in effect at once, and taken out again."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

DATA = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")
real = pytest.mark.skipif(
    not (DATA / "phraselists").is_dir(), reason="real word lists are not here: set GATEWAYFILTER_TEST_DATA to their folder"
)

type Cli = Callable[..., Any]


def import_counts(cli: Cli, file: Path, *options: str) -> tuple[int, int]:
    """Imports a list; returns how many phrases were read and rejected."""
    answer = cli("words", "import", file, "--category", "borrowed", "--new-category", "--json", *options)
    assert answer.code == 0, answer.err
    return answer.json["read"], answer.json["rejected"]


@real
@pytest.mark.parametrize(
    "name", ["en-weapons-weighted", "en-drugadvocacy-weighted", "en-goodphrases-weighted", "ukenglish-gambling-banned"]
)
def test_phrase_lists_of_e2guardian_are_read_whole(cli: Cli, name: str) -> None:
    file = DATA / "phraselists" / name
    text = file.read_text(encoding="utf-8", errors="replace")
    written = {line.strip() for line in text.splitlines() if line.strip().startswith("<")}
    read, rejected = import_counts(cli, file)
    assert rejected == 0
    assert len(written) * 0.9 <= read <= len(written), "some phrases stand there twice, in other letters or with blanks"
    shown = cli("words", "show", "borrowed", "--own", "--json").json["words"]
    assert len(shown) == read
    against = {item["phrase"] for item in shown if item["kind"] == "context"}
    assert bool(against) is ("><-" in text), "negative weights speak against"
    again = cli("words", "import", file, "--category", "borrowed", "--new-category", "--json").json
    assert (again["read"], again["changed"]) == (read, 0)


@real
def test_lists_in_old_charsets_are_read_as_what_they_say(cli: Cli) -> None:
    for charset in ("gb2312", "big5"):
        read, rejected = import_counts(cli, DATA / "phraselists" / f"chinese{charset}-pornography-weighted")
        assert (read > 0, rejected) == (True, 0)
    phrases = [item["phrase"] for item in cli("words", "show", "borrowed", "--own", "--json").json["words"]]
    assert all("\ufffd" not in phrase for phrase in phrases)
    assert any("\u4e00" <= character <= "\u9fff" for phrase in phrases for character in phrase)


@real
@pytest.mark.parametrize(
    "name", ["ldnoobw-en.txt", "ldnoobw-zh.txt", "ldnoobw-ja.txt", "ldnoobw-ru.txt", "zh-adult.txt", "zh-adult-types.txt"]
)
def test_plain_lists_count_at_once(cli: Cli, name: str) -> None:
    file = DATA / "words" / name
    words = {line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()}
    read, rejected = import_counts(cli, file, "--weight", "30")
    assert len(words) * 0.95 <= read + rejected <= len(words) + 1
    assert rejected <= 2
    phrases = [item["phrase"] for item in cli("words", "show", "borrowed", "--own", "--json").json["words"]]
    judged = cli("words", "test", "; ".join(phrases[:8]), "--json")
    assert judged.code == 1
    assert "borrowed" in judged.json["scores"]


def test_the_arithmetic_adds_up(cli: Cli, tmp_path: Path) -> None:
    """What `words test` shows of a file, a text and standard input is one and the same sum."""
    page = tmp_path / "page.html"
    page.write_text("<title>Zorgle</title><p>blurb and frobnicate, quux and quiet</p>", encoding="utf-8")
    cli("words", "add", "--category", "nonsense", "--new-category", "zorgle", "blurb", "frobnicate", "--weight", "10")
    cli("words", "add", "--category", "nonsense", "--new-category", "quux + frobnicate", "--weight", "7")
    cli("words", "add", "--category", "nonsense", "--new-category", "quiet", "--weight", "4", "--context")
    shown = cli("words", "test", page)
    for part in ("title: [zorgle]", "[blurb] and [frobnicate]", "words and combinations  57.0", "- 4.0", "= 53.0", "limit 20.0"):
        assert part in shown.out, shown.out
    assert cli("words", "test", page, "--json").json["scores"]["nonsense"] == 53.0
    assert cli("words", "test", "-", stdin=page.read_bytes()).out == shown.out


@pytest.mark.parametrize("pattern", ["/(a+)+$/", "/(a|a)*b/", r"/(\w+\s?)*$/", "/(.*a){25}/"])
def test_a_rule_that_would_take_for_ever_takes_no_time(cli: Cli, pattern: str) -> None:
    """A backtracking engine would not come back from these; rules are matched in linear time."""
    assert cli("list", "add", "--block", pattern, "--force").code == 0
    assert cli("check", f"http://example.com/{'a' * 4000}!").code in {0, 1}


def test_one_word_of_two_megabytes(cli: Cli) -> None:
    assert cli("words", "test", "-", stdin="casino" * 340_000).code in {0, 1}
    assert (
        "is longer than 100 characters"
        in cli("words", "add", "--category", "nonsense", "--new-category", "a" * 100_000).complains()
    )
