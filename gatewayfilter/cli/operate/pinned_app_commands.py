"""`gatewayfilter pinned-apps`: apps with certificate pinning, which accept no certificate of the filter."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.errors import StartupError
from gatewayfilter.urls import canonical_host

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.proxy.listener.pinned_apps import PinnedAppsFile


@click.group(
    "pinned-apps",
    cls=FilterGroup,
    short_help="Apps that accept no certificate of the filter's.",
    examples=("gatewayfilter pinned-apps list",),
)
def pinned_apps_group() -> None:
    """Hosts that pass unread because an app pins its certificates, each for one device and for `tls.pinned_apps_days`."""


def _file(invocation: Invocation) -> PinnedAppsFile:
    from gatewayfilter.proxy.listener.pinned_apps import PinnedAppsFile

    return PinnedAppsFile.in_folder(invocation.settings().data_dir)


@pinned_apps_group.command("list", examples=("gatewayfilter pinned-apps list --json",), prints_data=True)
@click.pass_obj
def list_entries(invocation: Invocation) -> None:
    """Show which names pass through for which device, and until when."""
    now = time.time()
    entries = [entry for entry in _file(invocation).read() if entry.expires_at > now]
    if invocation.json:
        print_json([asdict(entry) for entry in entries])
    elif not entries:
        say("No app has been found that accepts no certificate of the filter's.")
    else:
        rows = [
            (entry.client, entry.host, str(entry.failures), show_moment(entry.learned_at), show_moment(entry.expires_at))
            for entry in entries
        ]
        print_table(("device", "name", "failures", "since", "until"), rows)


@pinned_apps_group.command(
    "remove",
    examples=("gatewayfilter pinned-apps remove app.example --client 192.168.1.20",),
    prints_data=True,
    recorded="pinned-app.removed",
)
@click.argument("host")
@click.option("--client", default="", metavar="IP", help="Only for this device.")
@click.pass_obj
def remove_entry(invocation: Invocation, *, host: str, client: str) -> int:
    """Decrypt connections to a name again, within a second.

    The name may be learned again, unless the host is blocked or allowed.

    Exit code 1 when it was not there.
    """
    try:
        removed = _file(invocation).remove(canonical_host(host), client)
    except OSError as error:
        raise StartupError(f"cannot change what passes through: {error.strerror}") from error
    if invocation.json:
        print_json({"removed": removed})
    else:
        say(f"Removed {removed}." if removed else f"{host} does not pass through.")
    return 0 if removed else 1
