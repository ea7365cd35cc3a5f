"""`gatewayfilter match`: decisions in bulk, on requests of JSON lines, access logs, probes or Parquet."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.bulk.bulk_run import BulkRun, open_lines
from gatewayfilter.cli.filter.match_files import open_outputs
from gatewayfilter.cli.filter.request_workers import RequestWorker, lines_of
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.cli.bulk.line_workers import OpenLines
    from gatewayfilter.cli.filter.table_match import TableMatch
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.engine.filter_engine import FilterEngine

ALONE = 20_000
"""Lines that are decided without workers."""

PARQUET = "parquet"


@click.command(
    cls=FilterCommand,
    examples=(
        "gatewayfilter match --requests requests.jsonl > verdicts.jsonl",
        "gatewayfilter match --list easylist.txt --list easyprivacy.txt --stats < requests.jsonl > verdicts.jsonl",
        "gatewayfilter match --format squid --requests /var/log/squid/access.log --dead bad.jsonl > verdicts.jsonl",
        "gatewayfilter match --format parquet --requests traffic.parquet --output verdicts.parquet",
    ),
    short_help="Decide many requests: JSON lines, logs, Parquet.",
)
@click.option(
    "--requests",
    "file",
    type=click.Path(path_type=Path, allow_dash=True),
    default="-",
    metavar="FILE",
    help="The requests (default: standard input).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([*(form.value for form in TrafficFormat), PARQUET]),
    default="jsonl",
    show_default=True,
    help="Format of the requests.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File for the verdicts; Parquet if its name ends in .parquet (default: JSON lines on standard output).",
)
@click.option(
    "--dead",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File for what holds no request: JSON lines with number, reason and text.",
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
def match(
    invocation: Invocation,
    *,
    file: Path,
    form: str,
    output: Path | None,
    dead: Path | None,
    lists: tuple[Path, ...],
    jobs: int,
    stats: bool,
) -> None:
    """Decide many requests: JSON lines {"url", "source", "type"} in, the same with the verdict added out.

    Added are action, reason, rule, source_list and category. Source and type may be missing; an unknown type
    counts as other; other fields stay as they are. A line that is no request gets "error" in place of a verdict, or goes to
    --dead, and its number is named on standard error. With --list only those files count, and no state folder is needed.

    Requests may also be squid's access log, the combined log format, Zeek's http.log, the fields that tshark prints, or a
    Parquet file with a column url. Parquet needs the extra `parquet`, and is decided in one process.
    """
    run = BulkRun("match", "request", "decided", ALONE, jobs, stats)
    started = time.process_time()
    to_parquet = output is not None and output.suffix == f".{PARQUET}"
    with ExitStack() as stack:
        stream = stack.enter_context(open_lines(file))
        if form == PARQUET and not stream.seekable():
            raise click.UsageError("Parquet is read from a file, not from a pipe: give --requests FILE.")
        tables = _tables() if to_parquet or form == PARQUET else None
        engine = stack.enter_context(_engine(invocation, lists))
        files = stack.enter_context(open_outputs(file, output, dead, whole=to_parquet))
        if tables is not None:
            found = tables(engine, files.output if to_parquet else None, apart=dead is not None)
            run.write_all(found.answers(file, stream, None if form == PARQUET else TrafficFormat(form)), 0, started, files)
            return
        lines = lines_of(engine, TrafficFormat(form), apart=dead is not None)
        run.answer_all(stream, lines, partial(_image, engine, TrafficFormat(form), apart=dead is not None), started, files)


def _tables() -> type[TableMatch]:
    try:
        from gatewayfilter.cli.filter.table_match import TableMatch
    except ModuleNotFoundError as error:
        raise click.UsageError("Parquet needs the Python package pyarrow: install the extra gatewayfilter[parquet].") from error
    return TableMatch


@contextmanager
def _image(engine: FilterEngine, form: TrafficFormat, *, apart: bool) -> Iterator[OpenLines]:
    """Yields what worker processes decide by: a snapshot that they map."""
    from tempfile import TemporaryDirectory

    from gatewayfilter.wiring import image_of

    with TemporaryDirectory(prefix="gatewayfilter-") as folder:
        yield RequestWorker(image_of(engine, Path(folder) / "snapshot"), form, apart)


@contextmanager
def _engine(invocation: Invocation, lists: tuple[Path, ...]) -> Iterator[FilterEngine]:
    from gatewayfilter.wiring import engine_for_lists, open_engine

    if lists:
        yield engine_for_lists(lists)
    else:
        with invocation.store() as store:
            yield open_engine(invocation.settings(), store)
