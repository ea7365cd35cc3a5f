"""The files that `match` writes: verdicts, and lines that hold no request. They are for their owner alone."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from gatewayfilter.cli.bulk.bulk_run import OutputFiles
from gatewayfilter.errors import ListError
from gatewayfilter.private_files import private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def open_outputs(requests: Path, output: Path | None, dead: Path | None, *, whole: bool = False) -> Iterator[OutputFiles]:
    """Yields the files that answers are written to.

    Args:
        requests: the input, which neither of them may be.
        output: takes the answers, None for standard output.
        dead: takes lines without an answer, None when they stay among the answers.
        whole: the output has its name when it is complete, and is not there otherwise.

    Raises:
        ListError: one cannot be written, or is the input or the other one.
    """
    _check_apart(requests, output, dead)
    part = output.with_name(f"{output.name}.part") if output and whole else output
    try:
        with _writer(part) as answers, _writer(dead) as letters:
            yield OutputFiles(answers or sys.stdout.buffer, letters)
        if output and part and whole:
            part.replace(output)
    finally:
        if part and whole:
            with suppress(OSError):
                part.unlink(missing_ok=True)


@contextmanager
def _writer(path: Path | None) -> Iterator[BinaryIO | None]:
    if path is None:
        yield None
        return
    with _opened(path) as file:
        yield file


def _opened(path: Path) -> BinaryIO:
    try:
        return open(path, "wb", opener=private)
    except OSError as error:
        raise ListError(f"cannot write {path}: {error.strerror}") from error


def _check_apart(requests: Path, output: Path | None, dead: Path | None) -> None:
    for path, other in ((output, requests), (dead, requests), (output, dead)):
        if path is None or other is None:
            continue
        with suppress(OSError):
            if path.absolute() == other.absolute() or path.samefile(other):
                raise ListError(
                    f"cannot write {path}: it is also {'the input' if other is requests else 'the file of dead lines'}"
                )
