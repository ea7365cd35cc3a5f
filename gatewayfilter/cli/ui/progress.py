"""Progress display of long work: a bar on a terminal, else a plain line a step. Always on standard error."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gatewayfilter.cli.ui.output import printable, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.wiring import Progress


@contextmanager
def showing(*, quiet: bool = False, patience_s: float = 0.0) -> Iterator[Progress]:
    """Yields the callback that work reports to.

    Args:
        quiet: shows nothing, for `--json`.
        patience_s: how long work may take before anything is shown, for work that is seldom long.
    """
    if quiet:
        yield lambda _step, _done, _total: None
    elif sys.stderr.isatty():
        with _bars() as report:
            yield _after(patience_s, report)
    else:
        yield _after(patience_s, _lines())


def _after(patience_s: float, report: Progress) -> Progress:
    if not patience_s:
        return report
    begin = time.monotonic() + patience_s

    def late(step: str, done: int, total: int) -> None:
        if time.monotonic() >= begin:
            report(step, done, total)

    return late


def _lines() -> Progress:
    last = ""

    def report(step: str, done: int, total: int) -> None:
        nonlocal last
        if step != last and not 0 < total <= done:
            last = step
            say(step, err=True)

    return report


@contextmanager
def _bars() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=None, visible=False)

        def report(step: str, done: int, total: int) -> None:
            bars.update(task, description=printable(step), completed=done, total=total or None, visible=True)

        yield report
