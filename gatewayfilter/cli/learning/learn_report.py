"""`gatewayfilter learn report`: false blocks that reviewers found, and the words that their decisions lowered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import counted, print_json, print_table, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.learn import LoweredWord
    from gatewayfilter.learn.review.false_blocks import FalseBlockRow

_WEEK_S = 7 * 86_400.0
_MOST_SHOWN = 20


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter learn report", "gatewayfilter learn report --weeks 52 --json"),
    prints_data=True,
)
@click.option("--weeks", type=click.IntRange(1, 520), default=12, show_default=True, metavar="N", help="How far back.")
@click.pass_obj
def report(invocation: Invocation, *, weeks: int) -> None:
    """Show how many blocked pages people found harmless, by week and category, and which words weigh less since.

    The rate is of the pages that people decided. They look at what was asked for and at what seems wrong, so it is no estimate of
    all blocks.
    """
    from gatewayfilter.learn.review.false_blocks import false_block_rows
    from gatewayfilter.learn.verdicts.word_feedback import MOST_PAGES, lowered_words

    with invocation.store() as store:
        rows = false_block_rows(store.decisions.decisions_since(time.time() - weeks * _WEEK_S))
        words = lowered_words(store.decisions.decided_pages(MOST_PAGES))
    lowered = sorted(words.values(), key=lambda word: (word.factor, word.category, word.word))
    if invocation.json:
        print_json({"weeks": [_document(row) for row in rows], "lowered": lowered})
        return
    if rows:
        _show_rows(rows)
    else:
        say(f"No page was decided in the last {counted(weeks, 'week')}: nothing is known of false blocks.")
    if lowered:
        _show_words(lowered)


def _document(row: FalseBlockRow) -> dict[str, object]:
    return {
        "week": row.week,
        "category": row.category,
        "decided": row.decided,
        "false_blocks": row.false_blocks,
        "rate": None if row.rate is None else round(row.rate, 4),
        "reviewed": row.reviewed,
    }


def _show_rows(rows: list[FalseBlockRow]) -> None:
    shown = [
        (
            row.week or "all",
            row.category or "all",
            row.decided,
            row.false_blocks,
            "" if row.rate is None else f"{row.rate:.1%}",
            row.reviewed,
        )
        for row in rows
    ]
    print_table(("week", "category", "blocked, decided", "false blocks", "rate", "decided, not blocked"), shown)


def _show_words(lowered: list[LoweredWord]) -> None:
    say()
    say("Words that weigh less in second looks, by rejected pages:")
    print_table(
        ("category", "word", "weighs", "sites rejected", "sites approved"),
        [(word.category, word.word, f"{word.factor:.0%}", word.rejected, word.approved) for word in lowered[:_MOST_SHOWN]],
    )
    if len(lowered) > _MOST_SHOWN:
        say(f"and {counted(len(lowered) - _MOST_SHOWN, 'more word')}: --json shows all")
