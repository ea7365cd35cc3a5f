"""`gatewayfilter publish`, and the publication by `source` after a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import counted, print_json, say
from gatewayfilter.cli.ui.progress import showing

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.config import Settings
    from gatewayfilter.sources.publish import PublishReport


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter publish", "gatewayfilter publish --full"),
    prints_data=True,
    short_help="Build the snapshot of all lists now and swap it in.",
)
@click.option("--full", is_flag=True, help="Read every list again, also where only entries changed.")
@click.pass_obj
def publish(invocation: Invocation, *, full: bool) -> None:
    """Build the snapshot of all lists, entries and learned pages now; running workers swap to it without a pause.

    Where no list has changed, only the entries that came or went are put into what is in use; the rest is taken over.
    """
    report = publish_lists(invocation.settings(), quiet=invocation.json, full=full)
    if invocation.json:
        print_json(report)
    else:
        say(published_sentence(report))


def published_sentence(report: PublishReport) -> str:
    """Returns what was published, in one line."""
    entries = sum(item.report.accepted for item in report.sources if item.report is not None)
    sources = counted(len(report.sources) - len(report.skipped), "source")
    return (
        f"Published {counted(entries, 'entry', 'entries')} of {sources}, {report.manual_rules:,} of your own and "
        f"{report.learned:,} learned: {report.size_bytes / 1e6:.1f} MB in {report.elapsed_s:.1f} s"
        f"{f', rebuilt ({report.rebuilt})' if report.rebuilt else ''}."
    )


def publish_lists(settings: Settings, *, quiet: bool, full: bool = False) -> PublishReport:
    """Publishes, with progress on standard error.

    Raises:
        SnapshotError: it could not be written; the last one stays in use.
        StoreError: the database cannot be opened.
    """
    from gatewayfilter.cli.ui.command_context import open_store
    from gatewayfilter.processes.low_priority import low_priority
    from gatewayfilter.wiring import publish_now

    store = open_store(settings)
    try:
        with low_priority(), showing(quiet=quiet) as progress:
            report = publish_now(settings, store, progress, full=full)
    finally:
        store.close()
    for item in report.skipped:
        say(f"gatewayfilter: {item.source.name} was left out: {item.error}", err=True)
    return report
