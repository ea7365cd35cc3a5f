"""The progress display of a crawl on standard error: one updated line on a terminal, else a plain line now and then."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gatewayfilter.cli.ui.output import counted, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gatewayfilter.crawl import CrawlProgress

EVERY_S = 5.0
"""Between two plain lines; work that is shorter shows none."""


def sentence_of(progress: CrawlProgress) -> str:
    """Returns how far a crawl is, in one line."""
    parts = [
        f"{progress.done:,} done",
        f"{progress.running:,} running",
        f"{progress.waiting:,} queued",
        f"{progress.harmful:,} harmful",
        counted(progress.failed, "error"),
        f"{progress.rate:.1f} pages/s",
    ]
    return " · ".join(parts)


@contextmanager
def showing_crawl(*, quiet: bool = False) -> Iterator[Callable[[CrawlProgress], None]]:
    """Yields the callback that a crawl reports to; with `quiet`, for `--json`, nothing is shown."""
    if quiet:
        yield lambda _progress: None
    elif sys.stderr.isatty():
        with _living_line() as report:
            yield report
    else:
        yield _plain_lines()


def _plain_lines(every_s: float = EVERY_S) -> Callable[[CrawlProgress], None]:
    next_s = every_s

    def report(progress: CrawlProgress) -> None:
        nonlocal next_s
        if progress.elapsed_s >= next_s:
            next_s = progress.elapsed_s + every_s
            say(sentence_of(progress), err=True)

    return report


@contextmanager
def _living_line() -> Iterator[Callable[[CrawlProgress], None]]:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    # Results pass above the line when they go to the same terminal; into a file they go as they are.
    same = sys.stdout.isatty()
    with Bars(*columns, console=Console(stderr=True), transient=True, redirect_stdout=same) as bars:
        task = bars.add_task("", total=None)
        shown_at = 0.0

        def report(progress: CrawlProgress) -> None:
            nonlocal shown_at
            last = not progress.running and not progress.waiting
            if time.monotonic() - shown_at >= 0.1 or last:
                shown_at = time.monotonic()
                total = progress.done + progress.running + progress.waiting
                bars.update(task, description=sentence_of(progress), completed=progress.done, total=total, refresh=True)

        yield report
