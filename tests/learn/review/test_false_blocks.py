"""False blocks by week and category."""

import time

from gatewayfilter.interfaces import PageDecision
from gatewayfilter.learn.review.false_blocks import FalseBlockRow, false_block_rows

MONDAY = time.mktime((2026, 11, 16, 12, 0, 0, 0, 0, -1))
WEEK_S = 7 * 86_400.0


def decision(category: str, at: float, *, rejected: bool = False, blocked: bool = True) -> PageDecision:
    return PageDecision(category, rejected, blocked, at)


def test_rates_are_of_the_pages_that_were_blocked() -> None:
    rows = false_block_rows(
        [
            decision("gambling", MONDAY - WEEK_S, rejected=True),
            decision("gambling", MONDAY),
            decision("gambling", MONDAY + 3600, rejected=True),
            decision("gambling", MONDAY, rejected=True, blocked=False),
            decision("adult", MONDAY, rejected=True, blocked=False),
        ]
    )
    assert rows == [
        FalseBlockRow("2026-W47", "adult", 0, 0, 1),
        FalseBlockRow("2026-W47", "gambling", 2, 1, 1),
        FalseBlockRow("2026-W46", "gambling", 1, 1, 0),
        FalseBlockRow("", "adult", 0, 0, 1),
        FalseBlockRow("", "gambling", 3, 2, 1),
        FalseBlockRow("", "", 3, 2, 2),
    ]
    assert [row.rate for row in rows[:2]] == [None, 0.5]


def test_nothing_decided_gives_no_row() -> None:
    assert false_block_rows([]) == []
