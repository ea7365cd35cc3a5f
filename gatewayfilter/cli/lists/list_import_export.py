"""`gatewayfilter list import` and `export`: manual rules from and to files."""

from __future__ import annotations

import codecs
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.lists.meaning_option import meaning_option
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import expiry_option
from gatewayfilter.cli.ui.output import counted, print_json, say
from gatewayfilter.cli.ui.progress import showing
from gatewayfilter.errors import ListError, RuleError
from gatewayfilter.model import LearnedEntry, ListAction, ManualRule
from gatewayfilter.use_cases.lists.list_readers import ReadEntries, read_entries
from gatewayfilter.use_cases.lists.list_writers import COMPLETE_FORMATS, FORMATS, EntryWriter
from gatewayfilter.use_cases.lists.patterns import pattern_of_key, refuse_unspliceable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.store import Store
    from gatewayfilter.wiring import Progress

_SHOWN_REJECTS = 5
_MOST_ENTRIES = 100_000
"""Manual rules are in every worker's memory and are read at each start: longer lists belong among the sources."""

_PATIENCE_S = 1.0
_LARGEST_FILE = 256_000_000
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@click.command(
    "import",
    cls=FilterCommand,
    examples=("gatewayfilter list import mine.json", "gatewayfilter list import --allow trusted-hosts.txt"),
    prints_data=True,
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
    with showing(quiet=invocation.json, patience_s=_PATIENCE_S) as progress:
        found = _read_entries(file, ListAction(meaning), progress, force=force)
        if len(found.rules) > _MOST_ENTRIES and not force:
            raise ListError(
                f"{file} holds {len(found.rules):,} entries, and every worker would keep them in memory; "
                f"`gatewayfilter source add {file}` takes it as a list, --force takes it as it is"
            )
        rules = [
            replace(
                rule,
                comment=rule.comment or comment,
                group=rule.group or group,
                expires_at=expires if rule.expires_at is None else rule.expires_at,
            )
            for rule in found.rules
        ]
        progress(f"storing {counted(len(rules), 'entry', 'entries')}", 0, 0)
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


def _read_entries(file: Path, action: ListAction, progress: Progress, *, force: bool) -> ReadEntries:
    progress(f"reading {file}", 0, 0)
    text = _read(file)
    lines = text.count("\n") + 1
    found = read_entries(text, action, force=force, report=lambda line: progress(f"reading {file}", line, lines))
    if action is ListAction.SPLICE:
        kept = [rule for rule in found.rules if not _why_unspliceable(rule)]
        refused = [(0, rule.pattern, why) for rule in found.rules if (why := _why_unspliceable(rule))]
        found = ReadEntries(kept, [*found.rejected, *refused])
    if not found.rules and found.rejected:
        position, sample, why = found.rejected[0]
        raise ListError(f"{file} holds no usable entry; line {position}, {sample!r}: {why}")
    return found


def _why_unspliceable(rule: ManualRule) -> str:
    try:
        refuse_unspliceable(rule.action, rule.kind)
    except RuleError as error:
        return str(error)
    return ""


def _reject(position: int, text: str, why: str) -> dict[str, object]:
    return {"line": position, "text": text, "why": why}


def _read(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read(_LARGEST_FILE + 1) if str(file) == "-" else _plain_bytes(file)
    except OSError as error:
        raise ListError(f"cannot read {file}: {error.strerror or error}") from error
    if len(data) > _LARGEST_FILE:
        raise ListError(f"{file} is larger than {_LARGEST_FILE:,} bytes; add it as a source instead")
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    try:
        return data[len(mark) :].decode(_MARKS.get(mark, "utf-8"))
    except UnicodeDecodeError as error:
        raise ListError(f"{file} is not UTF-8 text: byte {error.start}") from error


def _plain_bytes(file: Path) -> bytes:
    from gatewayfilter.sources.download.compression import DAMAGE, decompressed

    with file.open("rb") as packed:
        stream = decompressed(packed)
        if stream is None:
            return packed.read(_LARGEST_FILE + 1)
        plain = bytearray()
        try:
            while len(plain) <= _LARGEST_FILE and (chunk := stream.read(1 << 18)):
                plain += chunk
        except DAMAGE as error:
            raise ListError(f"{file} is damaged or cut off") from error
        return bytes(plain)


@click.command(
    "export",
    cls=FilterCommand,
    examples=("gatewayfilter list export > mine.json", "gatewayfilter list export --format rpz --action block > policy.zone"),
)
@click.option("--format", "file_format", type=click.Choice(FORMATS), default="json", show_default=True, help="How to write them.")
@click.option(
    "--action",
    type=click.Choice([action.value for action in ListAction]),
    help="Only these; hosts and domains write block by default.",
)
@click.option("--group", metavar="NAME", help="Only entries of this group.")
@click.option("--learned", is_flag=True, help="What the crawler learned, in place of your own entries.")
@click.pass_obj
def export_entries(invocation: Invocation, *, file_format: str, action: str | None, group: str | None, learned: bool) -> None:
    """Write your entries to standard output; `list import` reads every format back.

    What a format cannot express is left out and counted on standard error: hosts and dnsmasq have no pages, for instance.
    Entries that are switched off are written by json and csv alone; expired ones by none.
    """
    if action is None and file_format in {"hosts", "domains"}:
        action = ListAction.BLOCK
    now = time.time()
    written = 0
    writer = EntryWriter(file_format)
    with invocation.store() as store, showing(quiet=not _shows_progress(), patience_s=_PATIENCE_S) as progress:
        chosen = (
            rule
            for rule in _exported(store, learned=learned)
            if action in {None, rule.action}
            and group in {None, rule.group}
            and (rule.expires_at is None or rule.expires_at > now)
            and (rule.enabled or file_format in COMPLETE_FORMATS)
        )
        for line in writer.lines(chosen):
            click.echo(line)
            written += 1
            if written % 1000 == 0:
                progress("exporting", written, 0)
    if writer.left_out:
        say(f"gatewayfilter: {counted(writer.left_out, 'entry', 'entries')} left out that {file_format} cannot express", err=True)


def _shows_progress() -> bool:
    """A bar between the lines of the export would spoil both."""
    return sys.stderr.isatty() and not sys.stdout.isatty()


def _exported(store: Store, *, learned: bool) -> Iterable[ManualRule]:
    return map(_as_rule, store.lists.learned()) if learned else store.lists.rules()


def _as_rule(entry: LearnedEntry) -> ManualRule:
    pattern = pattern_of_key(entry.key)
    return ManualRule(0, entry.action, pattern.kind, pattern.text, f"{entry.category}: {entry.detail}", "", entry.expires_at)
