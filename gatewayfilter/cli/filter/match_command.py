"""`gatewayfilter match`: decisions in bulk, JSON lines in and out."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.bulk.bulk_run import BulkRun, open_lines
from gatewayfilter.cli.filter.jsonl_requests import RequestLines, RequestWorker
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.scaleout.stream.deciding import RecordDecider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.cli.bulk.line_workers import OpenLines
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
    run = BulkRun("match", "request", "decided", ALONE, jobs, stats)
    started = time.process_time()
    with open_lines(file) as stream, _engine(invocation, lists) as engine:
        run.answer_all(stream, RequestLines(RecordDecider.over(engine)), partial(_image, engine), started)


@contextmanager
def _image(engine: FilterEngine) -> Iterator[OpenLines]:
    """Yields what worker processes decide by: a snapshot that they map."""
    from tempfile import TemporaryDirectory

    from gatewayfilter.wiring import image_of

    with TemporaryDirectory(prefix="gatewayfilter-") as folder:
        yield RequestWorker(image_of(engine, Path(folder) / "snapshot"))


@contextmanager
def _engine(invocation: Invocation, lists: tuple[Path, ...]) -> Iterator[FilterEngine]:
    from gatewayfilter.wiring import engine_for_lists, open_engine

    if lists:
        yield engine_for_lists(lists)
    else:
        with invocation.store() as store:
            yield open_engine(invocation.settings(), store)
