"""`gatewayfilter db`: the schema of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import hint, print_json, say

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
        hint("Or go back to the copy that was made before its upgrade: gatewayfilter db rollback")
    else:
        hint(f"The database is at version {found.current or 'none'}, this program needs {found.head}: gatewayfilter db upgrade")
    return 0 if current else 1


@db_group.command(examples=("gatewayfilter db upgrade",), prints_data=True)
@click.pass_obj
def upgrade(invocation: Invocation) -> None:
    """Bring the database to the version that this program needs; `run` and most commands do so by themselves.

    A SQLite database is copied into backups/ beside it before: `db rollback` goes back to the newest copy.
    """
    from gatewayfilter.store import Store, schema_status
    from gatewayfilter.wiring import prepare_data_dir

    settings = invocation.settings()
    prepare_data_dir(settings)
    before = schema_status(settings.store_url).current
    Store.open(settings.store_url).close()
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


@db_group.command(examples=("gatewayfilter db rollback",), prints_data=True)
@click.pass_obj
def rollback(invocation: Invocation) -> None:
    """Go back to the database as it was before a later version of the program upgraded it. Stop the filter first.

    For a program that was set back to an earlier version. The newest copy in backups/ that this program can read takes the
    database's place; the newer database is kept beside it. What happened since the upgrade is in the newer one alone.
    """
    from gatewayfilter.errors import StartupError, StoreError
    from gatewayfilter.processes.supervision.run_lock import RunLock
    from gatewayfilter.store import go_back, schema_status

    settings = invocation.settings()
    if settings.store.url:
        raise StoreError("db rollback is for the database in the state folder: restore the one in store.url from its own dump")
    with RunLock(settings.data_dir):
        found = schema_status(settings.store_url)
        if not found.is_newer:
            raise StartupError(
                f"the database is not newer than this program (version {found.current or 'none'}): nothing was changed"
            )
        copy, aside = go_back(settings.data_dir / "gatewayfilter.sqlite3")
    if invocation.json:
        print_json({"copy": copy, "moved_to": aside})
        return
    say(f"The database is again as in {copy}.")
    say(f"The newer one was moved to {aside}.")
