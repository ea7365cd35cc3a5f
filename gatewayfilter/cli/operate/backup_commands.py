"""`gatewayfilter backup` and `gatewayfilter restore`."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import counted, print_json, print_table, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.config import Settings
    from gatewayfilter.use_cases.backup import KindChanges, RestoreReport
    from gatewayfilter.use_cases.backup.state_files import Places

_VARIABLE = "GATEWAYFILTER_BACKUP_PASSPHRASE"
_MAX_PASSPHRASE_FILE = 4096
_FILE = click.Path(path_type=Path)


@click.command(
    "backup",
    cls=FilterCommand,
    examples=(
        "gatewayfilter backup /media/usb/filter.gfbackup",
        "gatewayfilter backup all.gfbackup --with-ca --with-log --with-fingerprints",
    ),
    prints_data=True,
    short_help="Write everything into one file, while the filter runs.",
)
@click.argument("file", type=_FILE)
@click.option("--with-ca", is_flag=True, help="The certificate authority too, encrypted with a passphrase.")
@click.option("--with-fingerprints", is_flag=True, help="Fingerprints of content and verdicts on pages too.")
@click.option("--with-log", is_flag=True, help="The decision log too.")
@click.option("--no-lists", is_flag=True, help="Subscriptions without their last copies: they are fetched again.")
@click.option("--passphrase-file", type=_FILE, metavar="FILE", help=f"Its first line is the passphrase; else ${_VARIABLE}.")
@click.option("--overwrite", is_flag=True, help="Replace a file of this name.")
@click.pass_obj
def backup(
    invocation: Invocation,
    *,
    file: Path,
    with_ca: bool,
    with_fingerprints: bool,
    with_log: bool,
    no_lists: bool,
    passphrase_file: Path | None,
    overwrite: bool,
) -> None:
    """Write everything into one file: settings, policies, rules, words, learned entries, reviews, subscriptions.

    The filter may run meanwhile. The file has mode 0600; `restore` reads it on any machine and into any database.
    """
    from gatewayfilter.store.backup import Part
    from gatewayfilter.use_cases.backup import Wanted, back_up

    parts = {Part.STATE} | ({Part.FINGERPRINTS} if with_fingerprints else set()) | ({Part.LOG} if with_log else set())
    passphrase = _passphrase(passphrase_file, confirm=True) if with_ca else None
    places = _places(invocation)
    with invocation.store() as store:
        report = back_up(
            store,
            places,
            file.expanduser().absolute(),
            Wanted(frozenset(parts), not no_lists, passphrase),
            overwrite=overwrite,
        )
    if invocation.json:
        print_json(report)
        return
    print_table(("what", "number"), [(what, f"{count:,}") for what, count in report.counts.items()])
    say(f"{report.path}: {report.size_bytes / 1e6:,.1f} MB.")
    if not report.with_ca:
        say("Without the certificate authority: on another machine each device needs a new one, unless you add --with-ca.")


@click.command(
    "restore",
    cls=FilterCommand,
    examples=("gatewayfilter restore filter.gfbackup --dry-run", "gatewayfilter restore filter.gfbackup"),
    prints_data=True,
    short_help="Restore everything from a backup.",
    recorded="backup.restored",
)
@click.argument("file", type=_FILE)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--with-ca", is_flag=True, help="The certificate authority too; the filter must not run.")
@click.option("--passphrase-file", type=_FILE, metavar="FILE", help=f"Its first line is the passphrase; else ${_VARIABLE}.")
@click.pass_obj
def restore(invocation: Invocation, *, file: Path, dry_run: bool, with_ca: bool, passphrase_file: Path | None) -> None:
    """Restore everything that a backup holds, and remove what it does not have; all of it, or nothing if anything fails.

    The state before is backed up first, into backups/ of the state folder. The filter may run: rules and policies are in force
    within a second. Database, state folder and the file of proxy users stay where they are on this machine. Programs that
    settings name stay those of this machine.
    """
    from gatewayfilter.processes.supervision.run_lock import RunLock, running_process
    from gatewayfilter.use_cases.backup import Restore
    from gatewayfilter.wiring import prepare_data_dir

    settings, places = invocation.settings(), _places(invocation)
    path = file.expanduser().absolute()
    prepare_data_dir(settings)
    running = running_process(settings.data_dir)
    if running and with_ca and not dry_run:
        raise click.UsageError(f"the filter (process {running}) runs: stop it first, it would go on with the old authority")
    passphrase = _passphrase(passphrase_file, confirm=False) if with_ca else None
    with ExitStack() as held:
        if not running and not dry_run:
            held.enter_context(RunLock(settings.data_dir))
        store = held.enter_context(invocation.store())
        job = Restore(store, places, passphrase)
        if dry_run:
            _show(invocation, job.preview(path), "would be ")
            return
        report = job.carry_out(path)
    published = _publish(settings, quiet=invocation.json)
    if invocation.json:
        print_json(
            {
                "changes": [_record(change) for change in report.changes],
                "safety_copy": report.safety_copy,
                "published": published,
                "restart": bool(running) and _needs_restart(report),
            }
        )
        return
    _show(invocation, report.changes, "")
    say(f"The state before is in {report.safety_copy}.")
    if running and _needs_restart(report):
        say("Restart the filter: it reads its settings and secrets when it starts.")


def _needs_restart(report: RestoreReport) -> bool:
    return bool(report.files & {"settings", "secrets of this installation", "pinned apps"})


def _publish(settings: Settings, *, quiet: bool) -> bool:
    """Builds the snapshot of what was restored. A failure is reported: what was restored stays."""
    from gatewayfilter.cli.ui.command_context import open_store
    from gatewayfilter.cli.ui.progress import showing
    from gatewayfilter.errors import GatewayFilterError
    from gatewayfilter.wiring import publish_now

    try:
        with closing(open_store(settings)) as store, showing(quiet=quiet) as progress:
            publish_now(settings, store, progress)
    except GatewayFilterError as error:
        say(f"gatewayfilter: restored, but the lists were not published: {error}", err=True)
        return False
    return True


def _record(change: KindChanges) -> dict[str, object]:
    return {"kind": change.kind, "added": change.added, "changed": change.changed, "removed": change.removed}


def _show(invocation: Invocation, changes: list[KindChanges], mood: str) -> None:
    if invocation.json:
        print_json({"changes": [_record(change) for change in changes]})
        return
    rows = [
        (change.kind, f"{change.added:,}", f"{change.changed:,}", f"{change.removed:,}")
        for change in changes
        if change.added or change.changed or change.removed
    ]
    if rows:
        print_table(("what", f"{mood}added", f"{mood}changed", f"{mood}removed"), rows)
    else:
        say("Nothing differs from the backup.")
    total = sum(change.added + change.changed + change.removed for change in changes)
    if mood and total:
        say(f"{counted(total, 'change')}; nothing was changed.")


def _places(invocation: Invocation) -> Places:
    from gatewayfilter.use_cases.backup.state_files import Places

    loaded = invocation.loaded()
    return Places.of(loaded.settings, loaded.file)


def _passphrase(file: Path | None, *, confirm: bool) -> str:
    """Returns the passphrase: of a file, of the environment, or typed. It is no option: others see a command line."""
    if file is not None:
        try:
            with file.open(encoding="utf-8") as lines:
                return lines.readline(_MAX_PASSPHRASE_FILE).rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from error
    if passphrase := os.environ.get(_VARIABLE):
        return passphrase
    if not sys.stdin.isatty():
        raise click.UsageError(f"a passphrase is needed: --passphrase-file FILE, or ${_VARIABLE}")
    return str(click.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True))
