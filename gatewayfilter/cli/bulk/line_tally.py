"""The tally of a bulk command: counts of results, the first bad lines, and the speed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gatewayfilter.cli.bulk.json_lines import REPORTED
from gatewayfilter.cli.ui.output import counted, say

if TYPE_CHECKING:
    from gatewayfilter.cli.bulk.json_lines import Answers


class Tally:
    """Counts the results of lines.

    Args:
        noun: what a good line holds, such as `request`.

    Attributes:
        size: bytes of input that are answered.
        cpu_s: CPU seconds of all processes.
    """

    def __init__(self, noun: str) -> None:
        self.size = 0
        self.cpu_s = 0.0
        self._noun = noun
        self._counts: Counter[tuple[str, str]] = Counter()
        self._bad: list[tuple[int, str]] = []

    @property
    def total(self) -> int:
        """Lines that were not blank."""
        return self._counts.total()

    def add(self, answers: Answers) -> None:
        """Counts a batch."""
        self.size += answers.size
        self.cpu_s += answers.cpu_s
        self._counts.update(answers.counts)
        if len(self._bad) < REPORTED:
            self._bad += answers.bad[: REPORTED - len(self._bad)]

    def say_bad_lines(self) -> None:
        """Prints the first lines without an answer, and how many there are."""
        errors = sum(count for (result, _), count in self._counts.items() if result == "error")
        for number, why in self._bad:
            say(f"line {number:,}: {why[:200]}", err=True)
        if errors > len(self._bad):
            say("…", err=True)
        if errors:
            say(f"gatewayfilter: {counted(errors, 'line')} held no {self._noun}", err=True)

    def say_all(self, wall_s: float, load_s: float) -> None:
        """Prints counts and speed."""
        for result, count in self._counts.most_common():
            say(f"{count:>12,}  {' '.join(filter(None, result))}", err=True)
        per_s, per_cpu_s = self.total / max(wall_s, 1e-9), self.total / max(self.cpu_s, 1e-9)
        say(
            f"{self.total:>12,}  in all: {per_s:,.0f} {self._noun}s/s, {per_cpu_s:,.0f} {self._noun}s/CPU-s, "
            f"{load_s:.2f} s CPU to load",
            err=True,
        )
