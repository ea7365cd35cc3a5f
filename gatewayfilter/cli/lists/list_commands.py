"""`gatewayfilter list`: manual rules, which outrank every list."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.lists.list_groups import disable, enable, groups
from gatewayfilter.cli.lists.list_import_export import export_entries, import_entries
from gatewayfilter.cli.lists.list_search import search
from gatewayfilter.cli.lists.list_stats import stats
from gatewayfilter.cli.lists.meaning_option import meaning_option
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import expiry_option, show_day
from gatewayfilter.cli.ui.output import counted, hint, print_json, print_table, say
from gatewayfilter.errors import BroadRuleError, RuleError
from gatewayfilter.model import LearnedEntry, ListAction
from gatewayfilter.use_cases.lists.patterns import Pattern, verb_of, written
from gatewayfilter.use_cases.lists.rule_editing import RuleValues, add_rules, forget_learned, read_wanted, remove_rules

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.group(
    "list",
    cls=FilterGroup,
    short_help="Your own entries: they outrank every list.",
    examples=("gatewayfilter list add ads.example.com", "gatewayfilter list add --allow https://example.com/fine"),
)
def list_group() -> None:
    """Your own entries: pages, sites, wildcards and /regular expressions/ to block or allow.

    They outrank every list, allow outranks block, and they count in running workers within a second.
    """


@list_group.command(
    examples=(
        "gatewayfilter list add ads.example.com tracker.example",
        "gatewayfilter list add --allow https://example.com/page --comment 'asked by Kim' --expires 7d",
        "gatewayfilter list add '/[?&]aff_id=[0-9]+/'",
        "gatewayfilter list add --splice bank.example",
        "gatewayfilter list add --group homework video.example games.example",
    ),
    prints_data=True,
    audited="rule.added",
)
@click.argument("patterns", nargs=-1, required=True, metavar="PATTERN...")
@meaning_option("They are blocked (the default).")
@click.option("--exact", is_flag=True, help="A host without its subdomains.")
@click.option("--comment", default="", metavar="TEXT", help="The reason, for later readers.")
@click.option("--expires", metavar="TIME", callback=expiry_option, help="When it ends: 7d, 12h or 2030-01-31 (default: never).")
@click.option("--group", default="", metavar="NAME", help="Put it into this group, which is switched on and off as one.")
@click.option("--for", "scope", default="", metavar="WHOM", help="They count for client:NAME or group:NAME alone.")
@click.option("--force", is_flag=True, help="Accept entries that are usually too broad: com, *, /.*/.")
@click.pass_obj
def add(  # noqa: PLR0913  each is an option
    invocation: Invocation,
    *,
    patterns: tuple[str, ...],
    meaning: str,
    exact: bool,
    comment: str,
    expires: float | None,
    group: str,
    scope: str,
    force: bool,
) -> None:
    """Add entries, or change action, comment and expiry of those that are there.

    A host means the host with all its subdomains, a URL this page by http and https, `example.com/path/*`
    this path and all below it. A page without a query is blocked with any, and allowed as it is written. `*`
    stands for any text; a regular expression stands between slashes. An entry that is added to a group which
    is switched off, too.
    """
    action = ListAction(meaning)
    read = [_wanted(text, action, exact=exact, force=force) for text in patterns]
    values = RuleValues(action, comment, group, expires, scope)
    with invocation.store() as store:
        added = add_rules(store, read, values)
    if invocation.json:
        print_json([item.rule for item in added])
        return
    for item in added:
        until = f" until {show_day(expires)}" if expires else ""
        until += f" for {scope}" if scope else ""
        say(f"{item.rule.rule_id}: {verb_of(action)} {item.pattern.describe(action)}{until}")
        if item.whole_site:
            say(f"   (this page alone; for the whole site: {item.whole_site})")
        if item.mixed_scripts:
            say(f"gatewayfilter: {item.mixed_scripts!r} mixes letters of several alphabets; is that the host you mean?", err=True)
    if not added[0].rule.enabled:
        hint(f"gatewayfilter: the group {group!r} is switched off; `gatewayfilter list enable --group {group}`", err=True)


def _wanted(text: str, action: ListAction, *, exact: bool, force: bool) -> Pattern:
    try:
        return read_wanted(text, action, exact=exact, force=force)
    except BroadRuleError as error:
        raise RuleError(f"{error}; add it with --force if you mean it") from error


@list_group.command(
    examples=("gatewayfilter list remove ads.example.com", "gatewayfilter list remove 17 18"),
    prints_data=True,
    audited="rule.removed",
)
@click.argument("entries", nargs=-1, required=True, metavar="PATTERN|ID...")
@click.option("--group", metavar="NAME", help="Only entries of this group.")
@click.option("--learned", is_flag=True, help="Forget what the crawler learned of these pages or sites instead.")
@click.pass_obj
def remove(invocation: Invocation, *, entries: tuple[str, ...], group: str | None, learned: bool) -> int:
    """Remove entries by their pattern or their number.

    Exit code 1 when one of them is not there; the others are removed.
    """
    with invocation.store() as store:
        found = forget_learned(store, entries) if learned else remove_rules(store, entries, group)
    if invocation.json:
        print_json(found)
    else:
        say(f"{counted(found.removed, 'entry', 'entries')} removed.")
        for entry in found.missing:
            say(f"gatewayfilter: there is no entry {entry!r}", err=True)
    return 1 if found.missing else 0


@list_group.command(examples=("gatewayfilter list show", "gatewayfilter list show --learned --action block"), prints_data=True)
@click.option("--action", type=click.Choice([action.value for action in ListAction]), help="Only these.")
@click.option("--group", metavar="NAME", help="Only entries of this group.")
@click.option("--learned", is_flag=True, help="What the crawler learned, in place of your own entries.")
@click.pass_obj
def show(invocation: Invocation, *, action: str | None, group: str | None, learned: bool) -> None:
    """Show your own entries, oldest first, or what the crawler learned."""
    with invocation.store() as store:
        if learned:
            _show_learned(invocation, [entry for entry in store.lists.learned() if action in {None, entry.action}])
            return
        rules = [rule for rule in store.lists.rules() if action in {None, rule.action} and group in {None, rule.group}]
    if invocation.json:
        print_json(rules)
    elif not rules:
        hint("There are no entries. Add one: gatewayfilter list add PATTERN")
    else:
        now = time.time()
        print_table(
            ("id", "on", "action", "kind", "pattern", "for", "group", "expires", "comment"),
            [
                (
                    rule.rule_id,
                    "yes" if rule.enabled else "no",
                    rule.action,
                    rule.kind,
                    written(rule),
                    rule.scope,
                    rule.group,
                    _expiry(rule.expires_at, now),
                    rule.comment,
                )
                for rule in rules
            ],
        )


def _show_learned(invocation: Invocation, entries: list[LearnedEntry]) -> None:
    if invocation.json:
        print_json(entries)
    elif not entries:
        say("Nothing was learned yet.")
    else:
        now = time.time()
        print_table(
            ("action", "category", "url", "expires", "evidence"),
            [
                (entry.action, entry.category, entry.url, _expiry(entry.expires_at, now), entry.detail)
                for entry in sorted(entries, key=lambda entry: entry.created_at)
            ],
        )


def _expiry(expires_at: float | None, now: float) -> str:
    return f"{show_day(expires_at)}{' (expired)' if expires_at is not None and expires_at <= now else ''}"


for command in (enable, disable, groups, search, import_entries, export_entries, stats):
    list_group.add_command(command)
