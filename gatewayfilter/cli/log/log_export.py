"""`gatewayfilter log export`: decisions as CSV, JSON lines or Parquet."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from gatewayfilter.cli.log.log_filters import filter_options, query_of
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import counted, print_json_line, say
from gatewayfilter.private_files import private
from gatewayfilter.use_cases.traffic.log_csv import Separator, write_csv
from gatewayfilter.use_cases.traffic.log_files import COLUMNS, exported_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.cli.ui.command_context import Invocation

_PARQUET_ROWS: Final = 50_000


@click.command(
    "export",
    cls=FilterCommand,
    examples=(
        "gatewayfilter log export --since 7d > week.csv",
        "gatewayfilter log export --separator semicolon --output week.csv",
        "gatewayfilter log export --format jsonl --client kim-tablet --output kim.jsonl",
        "gatewayfilter log export --format parquet --output log.parquet",
    ),
)
@click.option(
    "--format", "form", type=click.Choice(["csv", "jsonl", "parquet"]), default="csv", show_default=True, help="Form of the file."
)
@click.option(
    "--separator",
    type=click.Choice([one.value for one in Separator]),
    default=Separator.COMMA.value,
    show_default=True,
    help="Between the cells of CSV; spreadsheets expect a semicolon where numbers have a decimal comma.",
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="In place of standard output.")
@filter_options
@click.pass_obj
def export(invocation: Invocation, /, *, form: str, separator: str, output: Path | None, **options: Any) -> None:
    """Write decisions to a file, newest first. Parquet needs the extra `parquet` and --output.

    In CSV, an apostrophe stands before a text, or a part of one, that a spreadsheet would take for a formula.
    """
    from gatewayfilter.use_cases.traffic.log_clients import LogClients

    if form == "parquet" and output is None:
        raise click.UsageError("Parquet needs a file: add --output.")
    with invocation.store() as store:
        clients = LogClients(store, invocation.settings())
        rows = exported_rows(store, query_of(clients, **options), clients)
        if form == "parquet":
            assert output is not None
            count = _write_parquet(output, rows)
        elif form == "csv":
            with _opened(output) as file:
                count = write_csv(file, COLUMNS, (row.values() for row in rows), Separator(separator))
        else:
            count = _write_lines(output, rows)
    if output is not None:
        say(f"{counted(count, 'decision')} written to {output}.", err=True)


@contextmanager
def _opened(output: Path | None) -> Iterator[IO[str]]:
    if output is None:
        yield sys.stdout
        return
    try:
        with open(output, "w", encoding="utf-8", newline="", opener=private) as file:
            yield file
    except OSError as error:
        raise click.BadParameter(f"cannot write {output}: {error.strerror}") from error


def _write_lines(output: Path | None, rows: Iterator[dict[str, Any]]) -> int:
    import json

    count = 0
    if output is None:
        for count, row in enumerate(rows, 1):  # noqa: B007
            print_json_line(row)
        return count
    with _opened(output) as file:
        for count, row in enumerate(rows, 1):  # noqa: B007
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
    return count


def _write_parquet(output: Path, rows: Iterator[dict[str, Any]]) -> int:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise click.UsageError("Parquet needs the Python package pyarrow: install the extra gatewayfilter[parquet].") from error
    kinds = {"id": pa.int64(), "at": pa.float64(), "elapsed_us": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    count, part = 0, []
    try:
        with open(output, "wb", opener=private) as file, parquet.ParquetWriter(file, schema) as writer:
            for row in rows:
                part.append(row)
                count += 1
                if len(part) >= _PARQUET_ROWS:
                    writer.write_table(pa.Table.from_pylist(part, schema=schema))
                    part = []
            writer.write_table(pa.Table.from_pylist(part, schema=schema))
    except OSError as error:
        raise click.BadParameter(f"cannot write {output}: {error.strerror or error}") from error
    return count
