"""The run of a bulk command: lines from a file or standard input, answers to standard output, the tally to standard error."""

from __future__ import annotations

import os
import stat
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from gatewayfilter.cli.bulk.line_tally import Tally
from gatewayfilter.errors import ListError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from gatewayfilter.cli.bulk.json_lines import Answers, BulkLines
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
        lines: BulkLines,
        opener: Callable[[], AbstractContextManager[OpenLines]],
        started: float,
        files: OutputFiles | None = None,
    ) -> None:
        """Answers all lines, in order.

        Args:
            stream: the input, unbuffered.
            lines: answers the first lines, in this process.
            opener: returns what workers answer by; it stays open while they run.
            started: CPU seconds of this process (`time.process_time`) before `lines` was loaded.
            files: where answers go, and lines without one; standard output takes both when there are none.

        Raises:
            GatewayFilterError: a worker ended.
        """
        self.write_all(self._answers(stream, lines, opener), _size_of(stream), started, files)

    def write_all(self, answers: Iterator[Answers], total: int, started: float, files: OutputFiles | None = None) -> None:
        """Writes answers as they come, and the tally at the end.

        Args:
            answers: in order.
            total: bytes of input, 0 when that is unknown.
            started: as in `answer_all`.
            files: as in `answer_all`.
        """
        from gatewayfilter.cli.ui.progress import showing

        tally = Tally(self.noun)
        loaded, began = time.process_time(), time.monotonic()
        files = files or OutputFiles(sys.stdout.buffer)
        with showing(quiet=not _is_watched()) as report:
            try:
                for part in answers:
                    files.write(part)
                    tally.add(part)
                    text = f"{tally.total:,} {self.noun}s {self.done}, MB of input"
                    report(text, tally.size // 1_000_000, total // 1_000_000)
            finally:
                tally.say_bad_lines()
            tally.cpu_s += time.process_time() - loaded
        if self.stats:
            tally.say_all(time.monotonic() - began, loaded - started)

    def _answers(
        self, stream: BinaryIO, lines: BulkLines, opener: Callable[[], AbstractContextManager[OpenLines]]
    ) -> Iterator[Answers]:
        from gatewayfilter.cli.bulk.line_workers import answer_on_all_cores

        jobs = self.jobs or _cores()
        batches = lines.batches(stream)
        for batch in batches:
            answers = lines.decide(batch)
            yield answers._replace(cpu_s=0.0)  # in this process: counted with the rest of it
            if jobs > 1 and batch.first > self.alone:
                break
        else:
            return
        with opener() as opened:
            yield from answer_on_all_cores(opened, batches, jobs, self.command)


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """Where answers are written.

    Attributes:
        output: takes the answers.
        dead: takes the lines without one, when they are kept apart.
    """

    output: BinaryIO
    dead: BinaryIO | None = None

    def write(self, answers: Answers) -> None:
        """Writes the answers to a batch; a reader of a pipe has them at once."""
        self.output.write(answers.text)
        self.output.flush()
        if self.dead is not None and answers.dead:
            self.dead.write(answers.dead)


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
