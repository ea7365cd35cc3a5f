"""`gatewayfilter audit`: who changed what, and its undo."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.actor import command_actor
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import print_json, print_table, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import AuditEntry

_VIA = {"session": "dashboard", "token": "API", "command": "command", "system": "program"}


@click.group(
    "audit",
    cls=FilterGroup,
    short_help="Who changed what, and its undo.",
    examples=("gatewayfilter audit list", "gatewayfilter audit undo 17"),
)
def audit_group() -> None:
    """The audit log: changes by the dashboard, the API and commands, with who made them."""


@audit_group.command(
    "list",
    examples=("gatewayfilter audit list", "gatewayfilter audit list --who kim --action rule. --json"),
    prints_data=True,
)
@click.option("--who", default="", metavar="NAME", help="Only changes by this account or user.")
@click.option("--action", default="", metavar="CODE", help="Only this action, or all that begin so if it ends in a dot: rule.")
@click.option("--undoable", is_flag=True, help="Only changes that can be taken back.")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, metavar="N", help="Most rows.")
@click.pass_obj
def list_entries(invocation: Invocation, *, who: str, action: str, undoable: bool, limit: int) -> None:
    """Show changes, the newest first."""
    with invocation.store() as store:
        found = store.audit.page(limit=limit, who=who, action=action, undoable=undoable)
    if invocation.json:
        print_json([_shown(entry) for entry in found])
    elif not found:
        say("Nothing is recorded.")
    else:
        print_table(
            ("id", "at", "who", "by", "action", "what", "detail", "undo"),
            [
                (
                    entry.entry_id,
                    show_moment(entry.at),
                    entry.actor.name,
                    " ".join(filter(None, (_VIA[entry.actor.via], entry.actor.detail))),
                    entry.action,
                    entry.subject,
                    entry.detail,
                    f"by {entry.undone_by}" if entry.undone_at is not None else "possible" if entry.undo is not None else "",
                )
                for entry in found
            ],
        )


@audit_group.command("undo", examples=("gatewayfilter audit undo 17",))
@click.argument("number", type=click.IntRange(1))
@click.pass_obj
def undo_entry(invocation: Invocation, *, number: int) -> None:
    """Take a change back, unless somebody has changed the same since. The undo is recorded, and can be taken back itself."""
    from gatewayfilter.model import Role
    from gatewayfilter.use_cases.access.undo import Undo
    from gatewayfilter.use_cases.learning.extraction_rules import take_back
    from gatewayfilter.use_cases.lists import source_jobs
    from gatewayfilter.use_cases.lists.source_undo import SourceUndo
    from gatewayfilter.wiring import review_service

    with invocation.store() as store:
        settings = invocation.settings()
        sources = SourceUndo(settings, partial(source_jobs.put_back, settings))
        undo = Undo(store, lambda: review_service(settings, store), partial(take_back, settings), sources=sources)
        entry = undo.undo(number, command_actor(), Role.ADMIN)
    say(f"Taken back: {entry.action} {entry.subject}".rstrip())


def _shown(entry: AuditEntry) -> dict[str, object]:
    return {
        "id": entry.entry_id,
        "at": entry.at,
        "who": entry.actor.name,
        "via": entry.actor.via.value,
        "via_detail": entry.actor.detail,
        "action": entry.action,
        "subject": entry.subject,
        "detail": entry.detail,
        "undoable": entry.undo is not None and entry.undone_at is None,
        "undone_at": entry.undone_at,
        "undone_by": entry.undone_by,
    }
