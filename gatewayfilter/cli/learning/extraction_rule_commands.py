"""`gatewayfilter rules`: extraction rules of the operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.errors import ClassifyError, MissingRuleError

if TYPE_CHECKING:
    from gatewayfilter.classify import ExtractionRule, RuleFolder
    from gatewayfilter.cli.ui.command_context import Invocation


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


def _folder(invocation: Invocation) -> RuleFolder:
    from gatewayfilter.wiring import rules_folder

    return rules_folder(invocation.settings())


def _summary(rule: ExtractionRule) -> dict[str, object]:
    return {"name": rule.name, "version": rule.version, "urls": rule.urls}


@rules_group.command(examples=("gatewayfilter rules add news.toml",), prints_data=True, recorded="extraction.added")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.pass_obj
def add(invocation: Invocation, *, files: tuple[str, ...]) -> None:
    """Put rules to use, each as a new version of its name. Try them before with `crawl --rule`."""
    from gatewayfilter.classify import read_rule_file

    folder = _folder(invocation)
    read = [read_rule_file(Path(file)) for file in files]  # all are checked before the first is written
    added = [folder.add(rule) for rule in read]
    if invocation.json:
        print_json([_summary(rule) for rule in added])
        return
    for rule in added:
        say(f"{rule.name} is in use, version {rule.version}")


@rules_group.command("list", examples=("gatewayfilter rules list",), prints_data=True)
@click.pass_obj
def list_rules(invocation: Invocation) -> int:
    """Show the rules in use, in the order in which they are tried: the first that matches a URL reads its page.

    Exit code 1 when one cannot be used.
    """
    folder = _folder(invocation)
    rows: list[dict[str, object]] = []
    for name in folder.names():
        try:
            rule = folder.rule(name)
        except ClassifyError as error:
            rows.append({"name": name, "error": str(error)})
        else:
            rows.append({**_summary(rule), "fields": [field.name for field in rule.fields], "links": len(rule.links)})
    if invocation.json:
        print_json(rows)
    else:
        columns = ("rule", "version", "for", "fields")
        print_table(columns, [_row(row) for row in rows])
    return int(any("error" in row for row in rows))


def _row(row: dict[str, object]) -> tuple[object, object, object, object]:
    if "error" in row:
        return row["name"], "", row["error"], ""
    fields = row["fields"]
    assert isinstance(fields, list)
    return row["name"], row["version"], row["urls"], ", ".join(fields)


@rules_group.command(examples=("gatewayfilter rules show news > news.toml", "gatewayfilter rules show news --version 1"))
@click.argument("name", metavar="NAME")
@click.option("--version", type=click.IntRange(1), default=None, metavar="N", help="An earlier version.")
@click.pass_obj
def show(invocation: Invocation, *, name: str, version: int | None) -> None:
    """Print a rule as it was written, to change it and add it again."""
    click.echo(_folder(invocation).rule(name, version or 0).source, nl=False)


@rules_group.command(examples=("gatewayfilter rules history news",), prints_data=True)
@click.argument("name", metavar="NAME")
@click.pass_obj
def history(invocation: Invocation, *, name: str) -> None:
    """Show the versions of a rule, the oldest first."""
    versions = _folder(invocation).history(name)
    if invocation.json:
        print_json(versions)
        return
    if not versions:
        raise MissingRuleError(f"there never was a rule {name!r}")
    rows = [(found.version, show_moment(found.written_at), "in use" if found.in_use else "") for found in versions]
    print_table(("version", "written", ""), rows)


@rules_group.command(examples=("gatewayfilter rules restore news 1",), prints_data=True, recorded="extraction.restored")
@click.argument("name", metavar="NAME")
@click.argument("version", type=click.IntRange(1), metavar="VERSION")
@click.pass_obj
def restore(invocation: Invocation, *, name: str, version: int) -> None:
    """Put an earlier version to use again, as a new one; a removed rule comes back with it."""
    rule = _folder(invocation).restore(name, version)
    if invocation.json:
        print_json(_summary(rule))
    else:
        say(f"{rule.name} is in use as it was in version {version}, now version {rule.version}")


@rules_group.command(examples=("gatewayfilter rules remove news",), prints_data=True, recorded="extraction.removed")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_obj
def remove(invocation: Invocation, *, names: tuple[str, ...]) -> int:
    """Take rules out of use; their history stays. Exit code 1 when one of them is not there."""
    folder = _folder(invocation)
    removed = [name for name in names if folder.remove(name)]
    missing = [name for name in names if name not in removed]
    if invocation.json:
        print_json({"removed": removed, "missing": missing})
    else:
        for name in removed:
            say(f"{name} is out of use")
        for name in missing:
            say(f"gatewayfilter: no rule {name!r}", err=True)
    return int(bool(missing))
