"""`gatewayfilter list import` and `export`: manual rules from and to files."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.lists.meaning_option import meaning_option
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import expiry_option
from gatewayfilter.cli.ui.output import counted, print_json, say
from gatewayfilter.cli.ui.progress import showing
from gatewayfilter.errors import ListError
from gatewayfilter.model import ListAction
from gatewayfilter.use_cases.lists.list_writers import FORMATS, EntryWriter, left_out
from gatewayfilter.use_cases.lists.rule_editing import RuleValues

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.use_cases.lists.rule_transfer import RulesRead
    from gatewayfilter.wiring import Progress

_SHOWN_REJECTS = 5
_PATIENCE_S = 1.0


@click.command(
    "import",
    cls=FilterCommand,
    examples=("gatewayfilter list import mine.json", "gatewayfilter list import --allow trusted-hosts.txt"),
    prints_data=True,
    audited="rule.imported",
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@meaning_option("The action of lines that have none of their own (default: block).")
@click.option("--comment", default="", metavar="TEXT", help="For entries that bring no comment.")
@click.option("--expires", metavar="TIME", callback=expiry_option, help="For entries that bring no expiry.")
@click.option("--group", default="", metavar="NAME", help="For entries that bring no group.")
@click.option("--force", is_flag=True, help="Accept entries that are usually too broad, and more than 100,000 entries.")
@click.pass_obj
def import_entries(
    invocation: Invocation, *, file: Path, meaning: str, comment: str, expires: float | None, group: str, force: bool
) -> None:
    """Import entries from FILE (- for standard input): what `list export` writes, or one pattern a line.

    The file may be compressed. Bad lines are counted and named; the others are imported. To follow a list of others, add it as a
    source instead.
    """
    from gatewayfilter.use_cases.lists.rule_transfer import MOST_RULES, import_rules

    values = RuleValues(ListAction(meaning), comment, group, expires)
    with showing(quiet=invocation.json, patience_s=_PATIENCE_S) as progress:
        found = _read(file, values, progress, force=force)
        if len(found.rules) > MOST_RULES and not force:
            raise ListError(
                f"{file} holds {len(found.rules):,} entries, and every worker would keep them in memory; "
                f"`gatewayfilter source add {file}` takes it as a list, --force takes it as it is"
            )
        progress(f"storing {counted(len(found.rules), 'entry', 'entries')}", 0, 0)
        with invocation.store() as store:
            changed = import_rules(store, found.rules)
    if invocation.json:
        print_json({"read": len(found.rules), "changed": changed, "rejected": found.rejected})
        return
    say(f"{counted(len(found.rules), 'entry', 'entries')} read, {changed:,} new or changed.")
    for reject in found.rejected[:_SHOWN_REJECTS]:
        say(f"gatewayfilter: {file}:{reject.line}: {reject.text!r}: {reject.why}", err=True)
    if (more := len(found.rejected) - _SHOWN_REJECTS) > 0:
        say(f"gatewayfilter: and {counted(more, 'more bad line')}", err=True)


def _read(file: Path, values: RuleValues, progress: Progress, *, force: bool) -> RulesRead:
    from gatewayfilter.use_cases.lists.rule_transfer import read_rules, text_of

    progress(f"reading {file}", 0, 0)
    try:
        with nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as content:
            text = text_of(content, str(file))
    except OSError as error:
        raise ListError(f"cannot read {file}: {error.strerror or error}") from error
    lines = text.count("\n") + 1
    return read_rules(text, values, str(file), force=force, report=lambda line: progress(f"reading {file}", line, lines))


@click.command(
    "export",
    cls=FilterCommand,
    examples=(
        "gatewayfilter list export > mine.json",
        "gatewayfilter list export --format rpz --action block > policy.zone",
        "gatewayfilter list export --format rpz --left-out",
    ),
)
@click.option("--format", "file_format", type=click.Choice(FORMATS), default="json", show_default=True, help="How to write them.")
@click.option(
    "--action",
    type=click.Choice([action.value for action in ListAction]),
    help="Only these; hosts and domains write block by default.",
)
@click.option("--group", metavar="NAME", help="Only entries of this group.")
@click.option("--learned", is_flag=True, help="What the crawler learned, in place of your own entries.")
@click.option(
    "--left-out", "is_left_out", is_flag=True, help="Name what the format cannot express, and why, in place of the rest."
)
@click.pass_obj
def export_entries(
    invocation: Invocation, *, file_format: str, action: str | None, group: str | None, learned: bool, is_left_out: bool
) -> None:
    """Write your entries to standard output; `list import` reads every format back.

    What a format cannot express is left out and counted on standard error: hosts and dnsmasq have no pages, for instance.
    Entries that are switched off are written by json and csv alone; expired ones by none.
    """
    from gatewayfilter.use_cases.lists.rule_transfer import RuleExport, exported_rules

    wanted = RuleExport(file_format, None if action is None else ListAction(action), group, learned)
    now = time.time()
    if is_left_out:
        with invocation.store() as store:
            for rule, why in left_out(exported_rules(store, wanted, now), file_format):
                click.echo(f"{rule.action.value} {rule.kind.value} {rule.pattern}: {why}")
        return
    written = 0
    writer = EntryWriter(file_format)
    with invocation.store() as store, showing(quiet=not _shows_progress(), patience_s=_PATIENCE_S) as progress:
        for line in writer.lines(exported_rules(store, wanted, now)):
            click.echo(line)
            written += 1
            if written % 1000 == 0:
                progress("exporting", written, 0)
    if writer.left_out:
        say(f"gatewayfilter: {counted(writer.left_out, 'entry', 'entries')} left out that {file_format} cannot express", err=True)


def _shows_progress() -> bool:
    """A bar between the lines of the export would spoil both."""
    return sys.stderr.isatty() and not sys.stdout.isatty()
