"""Judgements and score breakdowns as people see them, in full: `gatewayfilter.cli.ui.classification_view`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatewayfilter.cli.ui.classification_view import show_breakdown, show_judgement, show_second_look
from gatewayfilter.model import HOST_ZONE, Classification, Evidence, ScoreBreakdown
from gatewayfilter.settings import Strictness
from tests.cli.test_command_doubles import table

HARMLESS = Classification("", 3.25, 20.0)
WORD = Evidence("casino", "gambling", 4.5, "main", 17)
BREAKDOWN = ScoreBreakdown("v1", "gambling", 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 20.0, 3, 3)


def test_a_harmless_page_has_a_line_alone(capsys: pytest.CaptureFixture[str]) -> None:
    show_judgement(HARMLESS)
    assert capsys.readouterr().out == "HARMLESS: nearest to a limit with a score of 3.2 (limit 20.0)\n"


def test_all_that_is_known_of_a_page_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    found = Classification(
        "gambling",
        42.0,
        20.0,
        {"gambling": 42.0, "ads": 1.0, "adult": 2.5},
        (WORD, Evidence("new host", "gambling", 1.25, HOST_ZONE, 0), Evidence("ranked", "gambling", 0.0, HOST_ZONE, 0)),
        "Win!",
        "utf-8",
        fields={"author": ["Kim", "Lee"]},
        certainty=0.975,
    )
    show_judgement(found, Strictness.STANDARD)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"GAMBLING: {found.summary()}"
    assert lines[1:6] == [
        "certainty that it is harmful: likely (97 %)",
        "strictness: standard: pages are blocked that are almost certainly harmful; doubtful ones are allowed and go to review",
        "title: Win!",
        "charset: utf-8",
        "other scores: adult 2.5, ads 1.0",
    ]
    assert table("\n".join(lines[6:])) == [
        ["field", "value"],
        ["author", "Kim"],
        ["author", "Lee"],
        ["word", "category", "weight", "zone", "position"],
        ["casino", "gambling", "4.50", "main", "17"],
        ["second look", "log-odds"],
        ["new host", "+1.2"],
        ["ranked"],
    ]
    assert [number for number, line in enumerate(lines) if not line] == [6, 10, 13]
    show_judgement(replace(found, category="", doubt="adult"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("IN DOUBT, allowed: adult, score 42.0")
    assert lines[1] == "certainty that it is harmful: doubtful (97 %)"
    assert lines[2] == "title: Win!", "no strictness is named"
    assert lines[4] == "other scores: gambling 42.0, adult 2.5, ads 1.0"
    show_judgement(replace(found, certainty=None), Strictness.STRICT)
    assert "strictness" not in capsys.readouterr().out


def test_twelve_words_are_shown_and_the_others_counted(capsys: pytest.CaptureFixture[str]) -> None:
    for number, more in ((12, ""), (13, "and 1 more hit"), (14, "and 2 more hits")):
        show_judgement(replace(HARMLESS, evidence=(WORD,) * number))
        lines = capsys.readouterr().out.splitlines()
        assert (sum("casino" in line for line in lines), lines[-1] if more else "") == (12, more)


def test_without_facts_there_is_no_second_look(capsys: pytest.CaptureFixture[str]) -> None:
    show_second_look(replace(HARMLESS, evidence=(WORD,)))
    assert capsys.readouterr().out == ""


def test_a_breakdown_has_only_lines_that_add_something(capsys: pytest.CaptureFixture[str]) -> None:
    show_breakdown(BREAKDOWN)
    assert table(capsys.readouterr().out) == [
        ["score breakdown"],
        ["words and combinations", "4.0"],
        ["score of gambling", "= 4.0", "limit 20.0"],
    ]
    show_breakdown(replace(BREAKDOWN, topic=9.0, topic_counted=9.0, context=2.0, context_counted=2.0, opinion=1.5))
    assert table(capsys.readouterr().out)[2:5] == [
        ["topic words", "+ 9.0"],
        ["context", "- 2.0"],
        ["certainty, second opinion", "+ 1.5"],
    ]
    show_breakdown(replace(BREAKDOWN, topic=9.0, topic_counted=8.0, context=2.0, context_counted=1.0, opinion=-1.5, words=2))
    assert table(capsys.readouterr().out)[2:] == [
        ["topic words", "+ 8.0", "of 9.0"],
        ["context", "- 1.0", "of 2.0"],
        ["certainty, second opinion", "- 1.5"],
        ["score of gambling", "= 4.0", "limit 20.0; 2 of 3 words that it needs"],
    ]


def test_two_breakdowns_stand_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    then, now = replace(BREAKDOWN, topic=9.0, topic_counted=8.0), replace(BREAKDOWN, strong=5.0, score=5.0, opinion=-1.0)
    show_breakdown(then, now, compared=True)
    assert table(capsys.readouterr().out) == [
        ["score breakdown", "then", "by today's words"],
        ["words and combinations", "4.0", "5.0"],
        ["topic words", "+ 8.0 of 9.0"],
        ["certainty, second opinion", "- 1.0"],
        ["score of gambling", "= 4.0 limit 20.0", "= 5.0 limit 20.0"],
    ]
    show_breakdown(BREAKDOWN, None, compared=True)
    assert table(capsys.readouterr().out)[1:] == [
        ["words and combinations", "4.0", "0.0"],
        ["score of gambling", "= 4.0 limit 20.0", "= 0.0"],
    ]
    show_breakdown(BREAKDOWN, now)
    assert len(table(capsys.readouterr().out)) == 3, "not compared: the second one is left out"
