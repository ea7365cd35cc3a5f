"""`gatewayfilter db`: the schema of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import print_json, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.group("db", cls=FilterGroup, short_help="The database.", examples=("gatewayfilter db status",))
def db_group() -> None:
    """The database: manual rules, learned entries, the queue and the log."""


@db_group.command(examples=("gatewayfilter db status --json",), prints_data=True)
@click.pass_obj
def status(invocation: Invocation) -> int:
    """Show the schema version of the database and the one that this program needs.

    Exit code 0 when they are the same, 1 when `db upgrade` has something to do.
    """
    from gatewayfilter.store import schema_status

    found = schema_status(invocation.settings().store_url)
    current = found.current == found.head
    if invocation.json:
        print_json({"current": found.current, "head": found.head, "up_to_date": current})
    elif current:
        say(f"The database is up to date (version {found.head}).")
    else:
        say(f"The database is at version {found.current or 'none'}, this program needs {found.head}: gatewayfilter db upgrade")
    return 0 if current else 1


@db_group.command(examples=("gatewayfilter db upgrade",), prints_data=True)
@click.pass_obj
def upgrade(invocation: Invocation) -> None:
    """Bring the database to the version that this program needs; `run` and most commands do so by themselves."""
    from gatewayfilter.store import schema_status
    from gatewayfilter.store import upgrade as upgrade_schema
    from gatewayfilter.wiring import prepare_data_dir

    settings = invocation.settings()
    prepare_data_dir(settings)
    before = schema_status(settings.store_url).current
    upgrade_schema(settings.store_url)
    after = schema_status(settings.store_url).current
    if invocation.json:
        print_json({"before": before, "after": after})
    elif before == after:
        say(f"The database is up to date (version {after}).")
    else:
        say(f"The database went from version {before or 'none'} to {after}.")
