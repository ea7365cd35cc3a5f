"""`gatewayfilter list import` and `export`: people's entries from and to files."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.command import FilterCommand
from gatewayfilter.cli.list_formats import FORMATS, read_entries, write_entries
from gatewayfilter.cli.moments import expiry_option
from gatewayfilter.cli.output import counted, print_json, say
from gatewayfilter.cli.patterns import pattern_of_key
from gatewayfilter.errors import ListError
from gatewayfilter.model import LearnedEntry, ListAction, PersonRule

if TYPE_CHECKING:
    from gatewayfilter.cli.invocation import Invocation

_SHOWN_REJECTS = 5


@click.command(
    "import",
    cls=FilterCommand,
    examples=("gatewayfilter list import mine.json", "gatewayfilter list import --allow trusted-hosts.txt"),
    prints_data=True,
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--allow/--block", default=False, help="What lines mean that do not say so themselves (default: block).")
@click.option("--comment", default="", metavar="TEXT", help="For entries that bring no comment.")
@click.option("--expires", metavar="TIME", callback=expiry_option, help="For entries that bring no expiry.")
@click.option("--group", default="", metavar="NAME", help="For entries that bring no group.")
@click.option("--force", is_flag=True, help="Also what is broader than people usually mean.")
@click.pass_obj
def import_entries(
    invocation: Invocation, *, file: Path, allow: bool, comment: str, expires: float | None, group: str, force: bool
) -> None:
    """Import entries from FILE (- for standard input): what `list export` writes, or one pattern a line.

    Bad lines are counted and named; the others are imported. To follow a list of others, add it as a source instead.
    """
    found = read_entries(_read(file), ListAction.ALLOW if allow else ListAction.BLOCK, force=force)
    if not found.rules and found.rejected:
        position, text, why = found.rejected[0]
        raise ListError(f"{file} holds no usable entry; line {position}, {text!r}: {why}")
    rules = [
        PersonRule(
            rule_id=0,
            action=rule.action,
            kind=rule.kind,
            pattern=rule.pattern,
            comment=rule.comment or comment,
            group=rule.group or group,
            expires_at=expires if rule.expires_at is None else rule.expires_at,
        )
        for rule in found.rules
    ]
    with invocation.store() as store:
        changed = store.lists.add_rules(rules)
    if invocation.json:
        print_json({"read": len(rules), "changed": changed, "rejected": [_reject(*reject) for reject in found.rejected]})
        return
    say(f"{counted(len(rules), 'entry', 'entries')} read, {changed:,} new or changed.")
    for position, text, why in found.rejected[:_SHOWN_REJECTS]:
        say(f"gatewayfilter: {file}:{position}: {text!r}: {why}", err=True)
    if (more := len(found.rejected) - _SHOWN_REJECTS) > 0:
        say(f"gatewayfilter: and {counted(more, 'more bad line')}", err=True)


def _reject(position: int, text: str, why: str) -> dict[str, object]:
    return {"line": position, "text": text, "why": why}


def _read(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ListError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ListError(f"{file} is not UTF-8 text: byte {error.start}") from error


@click.command(
    "export",
    cls=FilterCommand,
    examples=("gatewayfilter list export > mine.json", "gatewayfilter list export --format hosts --action block"),
)
@click.option("--format", "file_format", type=click.Choice(FORMATS), default="json", show_default=True, help="How to write them.")
@click.option(
    "--action",
    type=click.Choice([action.value for action in ListAction]),
    help="Only these; hosts and domains write block unless told.",
)
@click.option("--group", metavar="NAME", help="Only entries of this group; json writes all, the others those for everybody.")
@click.option("--learned", is_flag=True, help="What the crawler learned, in place of your own entries.")
@click.pass_obj
def export_entries(invocation: Invocation, *, file_format: str, action: str | None, group: str | None, learned: bool) -> None:
    """Write your entries to standard output; `list import` reads every format back.

    What a format cannot say is left out and counted on standard error: hosts and dnsmasq know no pages, for instance.
    """
    if action is None and file_format in {"hosts", "domains"}:
        action = ListAction.BLOCK
    if group is None and file_format != "json":
        group = ""
    now = time.time()
    with invocation.store() as store:
        rules = [_as_rule(entry) for entry in store.lists.learned()] if learned else store.lists.rules()
    chosen = [
        rule
        for rule in rules
        if action in {None, rule.action} and group in {None, rule.group} and (rule.expires_at is None or rule.expires_at > now)
    ]
    lines, left_out = write_entries(chosen, file_format)
    for line in lines:
        click.echo(line)
    if left_out:
        say(f"gatewayfilter: {counted(left_out, 'entry', 'entries')} left out that {file_format} cannot say", err=True)


def _as_rule(entry: LearnedEntry) -> PersonRule:
    pattern = pattern_of_key(entry.key)
    return PersonRule(0, entry.action, pattern.kind, pattern.text, f"{entry.category}: {entry.detail}", "", entry.expires_at)
