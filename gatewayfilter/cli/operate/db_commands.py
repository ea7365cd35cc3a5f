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

    Exit code 0 when they are the same, 1 when `db upgrade` has something to do, or the program is too old.
    """
    from gatewayfilter.store import schema_status

    found = schema_status(invocation.settings().store_url)
    current = found.current == found.head
    if invocation.json:
        print_json({"current": found.current, "head": found.head, "up_to_date": current})
    elif current:
        say(f"The database is up to date (version {found.head}).")
    elif found.is_newer:
        say(f"The database is at version {found.current}, newer than this program's {found.head}: update GatewayFilter")
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


@db_group.command(examples=("gatewayfilter db check",), prints_data=True)
@click.pass_obj
def check(invocation: Invocation) -> int:
    """Verify the file of the database; of a large one that takes minutes. Nothing is changed.

    Exit code 0 when it is whole, 1 when it is damaged: `db repair` makes a new one.
    """
    from gatewayfilter.errors import StoreError
    from gatewayfilter.store import faults_of

    try:
        faults = faults_of(invocation.settings().store_url)
    except StoreError as error:
        faults = [str(error)]
    if invocation.json:
        print_json({"faults": faults})
    elif faults:
        say("\n".join(faults))
    else:
        say("The database is whole.")
    return int(bool(faults))


@db_group.command(examples=("gatewayfilter db repair",), prints_data=True)
@click.pass_obj
def repair(invocation: Invocation) -> None:
    """Replace a damaged database by a new one, with manual rules, policies and learned entries of the newest snapshot.

    The damaged one is kept beside it. What no snapshot holds is not taken over: log, queue, reviews, accounts, and changes since
    the snapshot was published. A backup holds more: `gatewayfilter restore`. Stop the filter first.
    """
    from gatewayfilter.processes.supervision.run_lock import RunLock
    from gatewayfilter.use_cases.backup.database_repair import repair_database

    settings = invocation.settings()
    with RunLock(settings.data_dir):
        done = repair_database(settings)
    if invocation.json:
        print_json({"moved_to": done.moved_to, "manual_rules": done.manual_rules, "learned": done.learned})
        return
    if done.moved_to is not None:
        say(f"The damaged database was moved to {done.moved_to}.")
    say(f"A new one was made, with {done.manual_rules} manual rules and {done.learned} learned entries of the snapshot.")
