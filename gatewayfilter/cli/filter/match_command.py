"""`gatewayfilter match`: decisions in bulk, JSON lines in and out."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from gatewayfilter.cli.filter.jsonl_requests import REPORTED, RequestLines, read_batches
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import counted, say
from gatewayfilter.errors import ListError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from gatewayfilter.cli.filter.jsonl_requests import Answers
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.engine.filter_engine import FilterEngine

ALONE = 20_000
"""Lines that are decided without workers."""


@click.command(
    cls=FilterCommand,
    examples=(
        "gatewayfilter match --requests requests.jsonl > verdicts.jsonl",
        "gatewayfilter match --list easylist.txt --list easyprivacy.txt --stats < requests.jsonl > verdicts.jsonl",
    ),
    short_help="Decide many requests, JSON lines in and out.",
)
@click.option(
    "--requests",
    "file",
    type=click.Path(path_type=Path, allow_dash=True),
    default="-",
    metavar="FILE",
    help="JSON lines (default: standard input).",
)
@click.option(
    "--list",
    "lists",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Only this list; may be repeated.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Worker processes, 0 for one a core; they start when the input turns out to be long.",
)
@click.option("--stats", is_flag=True, help="Print counts and speed on standard error at the end.")
@click.pass_obj
def match(invocation: Invocation, *, file: Path, lists: tuple[Path, ...], jobs: int, stats: bool) -> None:
    """Decide many requests: JSON lines {"url", "source", "type"} in, the same with the verdict added out.

    Added are action, reason, rule, source_list and category. Source and type may be missing; an unknown type
    counts as other; other fields stay as they are. A line that is no request gets "error" in place of a verdict, and its
    number is named on standard error. With --list only those files count, and no state folder is needed.
    """
    from gatewayfilter.cli.ui.progress import showing

    started = time.process_time()
    tally = Tally()
    with _requests(file) as stream, _engine(invocation, lists) as engine, showing(quiet=not _is_watched()) as report:
        loaded, began = time.process_time(), time.monotonic()
        total = _size_of(stream)
        output = sys.stdout.buffer
        try:
            for answers in _answers(engine, stream, jobs or _cores()):
                output.write(answers.text)
                output.flush()
                tally.add(answers)
                report(f"{tally.total:,} requests decided, MB of input", tally.size // 1_000_000, total // 1_000_000)
        finally:
            tally.say_bad_lines()
        tally.cpu_s += time.process_time() - loaded
    if stats:
        tally.say_all(time.monotonic() - began, loaded - started)


def _answers(engine: FilterEngine, stream: BinaryIO, jobs: int) -> Iterator[Answers]:
    """Yields the answers to all lines, in order; the first ones are decided here, as workers take half a second to start."""
    from tempfile import TemporaryDirectory

    from gatewayfilter.cli.filter.match_workers import decide_on_all_cores
    from gatewayfilter.wiring import image_of

    batches = read_batches(stream)
    lines = RequestLines(engine)
    for batch in batches:
        answers = lines.decide(batch)
        yield answers._replace(cpu_s=0.0)  # in this process: counted with the rest of it
        if jobs > 1 and batch.first > ALONE:
            break
    else:
        return
    with TemporaryDirectory(prefix="gatewayfilter-") as folder:
        yield from decide_on_all_cores(image_of(engine, Path(folder) / "snapshot"), batches, jobs)


class Tally:
    """Counts what became of the lines.

    Attributes:
        size: bytes of input that are answered.
        cpu_s: CPU seconds of all processes.
    """

    def __init__(self) -> None:
        self.size = 0
        self.cpu_s = 0.0
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
        """Prints the first lines that held no request, and how many there are."""
        errors = sum(count for (action, _), count in self._counts.items() if action == "error")
        for number, why in self._bad:
            say(f"line {number:,}: {why[:200]}", err=True)
        if errors > len(self._bad):
            say("…", err=True)
        if errors:
            say(f"gatewayfilter: {counted(errors, 'line')} held no request", err=True)

    def say_all(self, wall_s: float, load_s: float) -> None:
        """Prints counts and speed."""
        for (action, reason), count in self._counts.most_common():
            say(f"{count:>12,}  {action} {reason}", err=True)
        per_s, per_cpu_s = self.total / max(wall_s, 1e-9), self.total / max(self.cpu_s, 1e-9)
        say(
            f"{self.total:>12,}  in all: {per_s:,.0f} requests/s, {per_cpu_s:,.0f} requests/CPU-s, {load_s:.2f} s CPU to load",
            err=True,
        )


@contextmanager
def _engine(invocation: Invocation, lists: tuple[Path, ...]) -> Iterator[FilterEngine]:
    from gatewayfilter.wiring import engine_for_lists, open_engine

    if lists:
        yield engine_for_lists(lists)
    else:
        with invocation.store() as store:
            yield open_engine(invocation.settings(), store)


def _requests(file: Path) -> AbstractContextManager[BinaryIO]:
    """Opens the input without a buffer: a thread that waits for input must hold no lock that the end of the program needs."""
    try:
        if str(file) == "-":
            return open(0, "rb", buffering=0, closefd=False)
        return file.open("rb", buffering=0)
    except OSError as error:
        raise ListError(f"cannot read {file}: {error.strerror}") from error


def _size_of(stream: BinaryIO) -> int:
    """Returns the bytes of a regular file, 0 for what has no size."""
    found = os.fstat(stream.fileno())
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _is_watched() -> bool:
    """Returns whether a progress bar is seen, and does not mix with the answers."""
    return sys.stderr.isatty() and not sys.stdout.isatty()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
