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
    from gatewayfilter.use_cases.operation.second_opinion import WEEK_S, false_block_document, false_blocks

    with invocation.store() as store:
        rows, lowered = false_blocks(store, time.time() - weeks * WEEK_S)
    if invocation.json:
        print_json(false_block_document(rows, lowered))
        return
    if rows:
        _show_rows(rows)
    else:
        say(f"No page was decided in the last {counted(weeks, 'week')}: nothing is known of false blocks.")
    if lowered:
        _show_words(lowered)


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
