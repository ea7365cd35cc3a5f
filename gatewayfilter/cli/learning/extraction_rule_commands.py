"""`gatewayfilter rules`: extraction rules of the operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.command_context import PendingChange
from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.errors import MissingRuleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.extraction.rules import ExtractionRule
    from gatewayfilter.interfaces import RuleMatches
    from gatewayfilter.use_cases.learning.extraction_rules import RuleChange, RuleSummary


@click.group(
    "rules",
    cls=FilterGroup,
    short_help="Where fields and links stand on the pages of a site.",
    examples=("gatewayfilter rules add news.toml", "gatewayfilter rules list"),
)
def rules_group() -> None:
    """Extraction rules: for which URLs, where fields stand on a page, and which links are followed.

    A field may take the place of a zone when the page is judged (`zone = "main"`).
    """


def _record(invocation: Invocation, action: str, changes: Sequence[RuleChange]) -> None:
    """Records what was changed in the audit log, with what takes it back."""
    from gatewayfilter.use_cases.access.inverses import inverse_of_extraction

    made = [change for change in changes if change.before != change.after]
    if made:
        names = ", ".join(change.name for change in made)
        invocation.record(PendingChange(action, names, "", inverse_of_extraction(change.step for change in made)))


def _summary(rule: ExtractionRule) -> dict[str, object]:
    return {"name": rule.name, "version": rule.version, "urls": rule.urls}


@rules_group.command(examples=("gatewayfilter rules add news.toml",), prints_data=True)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.pass_obj
def add(invocation: Invocation, *, files: tuple[str, ...]) -> None:
    """Put rules to use, each as a new version of its name. Try them before with `crawl --rule`."""
    from gatewayfilter.extraction.rule_folder import read_rule_file
    from gatewayfilter.use_cases.learning import extraction_rules as use_case

    read = [read_rule_file(Path(file)) for file in files]  # all are checked before the first is written
    changes = [use_case.save_rule(invocation.settings(), rule) for rule in read]
    _record(invocation, use_case.ADDED, changes)
    added = [change.rule for change in changes if change.rule is not None]
    if invocation.json:
        print_json([_summary(rule) for rule in added])
        return
    for rule in added:
        say(f"{rule.name} is in use, version {rule.version}")


@rules_group.command("list", examples=("gatewayfilter rules list",), prints_data=True)
@click.pass_obj
def list_rules(invocation: Invocation) -> int:
    """Show the rules in use, in the order in which they are tried: the first that matches a URL reads its page.

    With the pages that each has read, those in which it found nothing, and the last one; up to date within a minute.
    Exit code 1 when one cannot be used.
    """
    from gatewayfilter.interfaces import RuleMatches
    from gatewayfilter.use_cases.learning.extraction_rules import list_rules as rules_in_use

    rows = rules_in_use(invocation.settings())
    with invocation.store() as store:
        found = store.rule_matches.all()
    listed = [(row, found.get(row.name, RuleMatches())) for row in rows]
    if invocation.json:
        print_json([_listed(*pair) for pair in listed])
    else:
        columns = ("rule", "version", "for", "fields", "pages", "nothing found", "last page")
        print_table(columns, [_row(*pair) for pair in listed])
    return int(any(row.error for row in rows))


def _listed(row: RuleSummary, found: RuleMatches) -> dict[str, object]:
    if row.error:
        return {"name": row.name, "error": row.error}
    summary = {"name": row.name, "version": row.version, "urls": row.urls, "fields": list(row.fields), "links": row.links}
    return summary | {"pages": found.pages, "empty": found.empty, "last_at": found.last_at}


def _row(row: RuleSummary, found: RuleMatches) -> tuple[object, ...]:
    if row.error:
        return row.name, "", row.error, "", "", "", ""
    last = show_moment(found.last_at) if found.last_at else ""
    return row.name, row.version, row.urls, ", ".join(row.fields), found.pages, found.empty, last


@rules_group.command(examples=("gatewayfilter rules show news > news.toml", "gatewayfilter rules show news --version 1"))
@click.argument("name", metavar="NAME")
@click.option("--version", type=click.IntRange(1), default=None, metavar="N", help="An earlier version.")
@click.pass_obj
def show(invocation: Invocation, *, name: str, version: int | None) -> None:
    """Print a rule as it was written, to change it and add it again."""
    from gatewayfilter.use_cases.learning.extraction_rules import show_rule

    found = show_rule(invocation.settings(), name, version or 0)
    if not version and not found.current:
        raise MissingRuleError(f"the rule {name!r} was removed; its newest version: --version {found.rule.version}")
    click.echo(found.rule.source, nl=False)


@rules_group.command(examples=("gatewayfilter rules history news",), prints_data=True)
@click.argument("name", metavar="NAME")
@click.pass_obj
def history(invocation: Invocation, *, name: str) -> None:
    """Show the versions of a rule, the oldest first."""
    from gatewayfilter.use_cases.learning.extraction_rules import rule_history

    versions = rule_history(invocation.settings(), name)
    if invocation.json:
        print_json(versions)
        return
    rows = [(found.version, show_moment(found.written_at), "in use" if found.in_use else "") for found in versions]
    print_table(("version", "written", ""), rows)


@rules_group.command(examples=("gatewayfilter rules restore news 1",), prints_data=True)
@click.argument("name", metavar="NAME")
@click.argument("version", type=click.IntRange(1), metavar="VERSION")
@click.pass_obj
def restore(invocation: Invocation, *, name: str, version: int) -> None:
    """Put an earlier version to use again, as a new one; a removed rule comes back with it."""
    from gatewayfilter.use_cases.learning import extraction_rules as use_case

    change = use_case.restore_rule(invocation.settings(), name, version)
    _record(invocation, use_case.RESTORED, [change])
    rule = change.rule
    assert rule is not None
    if invocation.json:
        print_json(_summary(rule))
    else:
        say(f"{rule.name} is in use as it was in version {version}, now version {rule.version}")


@rules_group.command(examples=("gatewayfilter rules remove news",), prints_data=True)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_obj
def remove(invocation: Invocation, *, names: tuple[str, ...]) -> int:
    """Take rules out of use; their history stays. Exit code 1 when one of them is not there."""
    from gatewayfilter.use_cases.learning import extraction_rules as use_case

    changes, missing = [], []
    for name in dict.fromkeys(names):
        try:
            changes.append(use_case.remove_rule(invocation.settings(), name))
        except MissingRuleError:
            missing.append(name)
    _record(invocation, use_case.REMOVED, changes)
    removed = [change.name for change in changes]
    if invocation.json:
        print_json({"removed": removed, "missing": missing})
    else:
        for name in removed:
            say(f"{name} is out of use")
        for name in missing:
            say(f"gatewayfilter: no rule {name!r}", err=True)
    return int(bool(missing))
