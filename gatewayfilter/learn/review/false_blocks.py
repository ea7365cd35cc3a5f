"""False blocks that reviewers found: counts by week and category of the pages that were blocked when they were decided."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from gatewayfilter.interfaces import PageDecision

ALL = ""
"""The category of a row over all categories."""


@dataclass(frozen=True, slots=True)
class FalseBlockRow:
    """Decisions of a week in a category.

    Attributes:
        week: ISO week in local time, as `2026-W47`; `""` for all weeks.
        category: the classifier's; `ALL` for all of them.
        decided: pages that were blocked when they were decided.
        false_blocks: of them, those that were rejected.
        reviewed: further pages that were decided without having been blocked.
    """

    week: str
    category: str
    decided: int = 0
    false_blocks: int = 0
    reviewed: int = 0

    @property
    def rate(self) -> float | None:
        """Share of false blocks among the decided pages, `None` without any."""
        return self.false_blocks / self.decided if self.decided else None


def false_block_rows(decisions: Iterable[PageDecision]) -> list[FalseBlockRow]:
    """Returns a row for each week and category, the newest week first, and at the end one for each category and one for all."""
    counts: dict[tuple[str, str], list[int]] = {}
    for decision in decisions:
        week = time.strftime("%G-W%V", time.localtime(decision.decided_at))
        for key in ((week, decision.category), ("", decision.category), ("", ALL)):
            row = counts.setdefault(key, [0, 0, 0])
            row[0] += decision.blocked
            row[1] += decision.blocked and decision.rejected
            row[2] += not decision.blocked
    weeks = sorted({week for week, _ in counts}, reverse=True)  # the row of all weeks sorts last
    return [
        FalseBlockRow(week, category, *counts[week, category])
        for week in weeks
        for category in sorted((name for at, name in counts if at == week), key=lambda name: (name == ALL, name))
    ]
