"""`gatewayfilter match`: decisions in bulk, JSON lines in and out."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from gatewayfilter.cli.command import FilterCommand
from gatewayfilter.cli.output import counted, say
from gatewayfilter.cli.request_lines import RequestLines, read_batches
from gatewayfilter.errors import ListError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from gatewayfilter.cli.invocation import Invocation
    from gatewayfilter.interfaces import Decide


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
@click.option("--stats", is_flag=True, help="Print counts and speed on standard error at the end.")
@click.pass_obj
def match(invocation: Invocation, *, file: Path, lists: tuple[Path, ...], stats: bool) -> None:
    """Decide many requests: JSON lines {"url", "source", "type"} in, the same with the verdict added out.

    Added are action, reason, rule, source_list and category. Source and type may be missing; a type that nobody knows
    counts as other; other fields stay as they are. A line that is no request gets "error" in place of a verdict.
    With --list only those files count, and no state folder is needed.
    """
    started = time.process_time()
    with _requests(file) as stream, _engine(invocation, lists) as engine:
        lines = RequestLines(engine)
        loaded, began = time.process_time(), time.monotonic()
        output = sys.stdout.buffer
        for batch in read_batches(stream):
            output.write(lines.decide(batch))
            output.flush()
        wall_s, cpu_s = time.monotonic() - began, time.process_time() - loaded
    if stats:
        _show_stats(lines.counts, wall_s, cpu_s, loaded - started)


@contextmanager
def _engine(invocation: Invocation, lists: tuple[Path, ...]) -> Iterator[Decide]:
    from gatewayfilter.wiring import engine_for_lists, open_engine

    if lists:
        yield engine_for_lists(lists)
    else:
        with invocation.store() as store:
            yield open_engine(invocation.settings(), store)


def _requests(file: Path) -> AbstractContextManager[BinaryIO]:
    if str(file) == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return file.open("rb")
    except OSError as error:
        raise ListError(f"cannot read {file}: {error.strerror}") from error


def _show_stats(counts: Counter[tuple[str, str]], wall_s: float, cpu_s: float, load_s: float) -> None:
    total = counts.total()
    for (action, reason), count in counts.most_common():
        say(f"{count:>12,}  {action} {reason}", err=True)
    say(
        f"{total:>12,}  in all: {total / max(wall_s, 1e-9):,.0f} requests/s, {cpu_s / max(total, 1) * 1e6:.1f} µs CPU a request, "
        f"{load_s:.2f} s CPU to load",
        err=True,
    )
    if errors := sum(count for (action, _), count in counts.items() if action == "error"):
        say(f"gatewayfilter: {counted(errors, 'line')} held no request", err=True)
