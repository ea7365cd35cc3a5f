"""The run of a bulk command: lines from a file or standard input, answers to standard output, the tally to standard error."""

from __future__ import annotations

import os
import stat
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from gatewayfilter.cli.bulk.json_lines import read_batches
from gatewayfilter.cli.bulk.line_tally import Tally
from gatewayfilter.errors import ListError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from gatewayfilter.cli.bulk.json_lines import Answers, JsonLines
    from gatewayfilter.cli.bulk.line_workers import OpenLines


@dataclass(frozen=True, slots=True)
class BulkRun:
    """A bulk command as it was called.

    Attributes:
        command: its name.
        noun: what a line holds, such as `request`.
        done: the verb of the progress bar, such as `decided`.
        alone: lines that are answered without workers: those take half a second to start.
        jobs: worker processes, 0 for one a core.
        stats: counts and speed are printed at the end.
    """

    command: str
    noun: str
    done: str
    alone: int
    jobs: int = 0
    stats: bool = False

    def answer_all(
        self,
        stream: BinaryIO,
        lines: JsonLines,
        opener: Callable[[], AbstractContextManager[OpenLines]],
        started: float,
    ) -> None:
        """Answers all lines, in order.

        Args:
            stream: the input, unbuffered.
            lines: answers the first lines, in this process.
            opener: returns what workers answer by; it stays open while they run.
            started: CPU seconds of this process (`time.process_time`) before `lines` was loaded.

        Raises:
            GatewayFilterError: a worker ended.
        """
        from gatewayfilter.cli.ui.progress import showing

        tally = Tally(self.noun)
        loaded, began = time.process_time(), time.monotonic()
        total = _size_of(stream)
        output = sys.stdout.buffer
        with showing(quiet=not _is_watched()) as report:
            try:
                for answers in self._answers(stream, lines, opener):
                    output.write(answers.text)
                    output.flush()
                    tally.add(answers)
                    text = f"{tally.total:,} {self.noun}s {self.done}, MB of input"
                    report(text, tally.size // 1_000_000, total // 1_000_000)
            finally:
                tally.say_bad_lines()
            tally.cpu_s += time.process_time() - loaded
        if self.stats:
            tally.say_all(time.monotonic() - began, loaded - started)

    def _answers(
        self, stream: BinaryIO, lines: JsonLines, opener: Callable[[], AbstractContextManager[OpenLines]]
    ) -> Iterator[Answers]:
        from gatewayfilter.cli.bulk.line_workers import answer_on_all_cores

        jobs = self.jobs or _cores()
        batches = read_batches(stream, lines.max_line)
        for batch in batches:
            answers = lines.decide(batch)
            yield answers._replace(cpu_s=0.0)  # in this process: counted with the rest of it
            if jobs > 1 and batch.first > self.alone:
                break
        else:
            return
        with opener() as opened:
            yield from answer_on_all_cores(opened, batches, jobs, self.command)


def open_lines(file: Path) -> AbstractContextManager[BinaryIO]:
    """Opens the input without a buffer: a thread that waits for input must hold no lock that the end of the program needs.

    Raises:
        ListError: it cannot be read.
    """
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
