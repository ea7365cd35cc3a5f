"""`gatewayfilter fleet`: one publisher of lists, rules and policies, and gateways that follow it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import hint, print_json, print_table, say
from gatewayfilter.errors import ConfigError

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.use_cases.fleet_status import FleetStatus


@click.group(
    "fleet",
    cls=FilterGroup,
    short_help="A publisher of lists, and gateways that follow it.",
    examples=("gatewayfilter fleet status",),
)
def fleet_group() -> None:
    """A publisher of lists, rules and policies, and gateways that follow it."""


@fleet_group.command(examples=("gatewayfilter fleet init",), prints_data=True)
@click.pass_obj
def init(invocation: Invocation) -> None:
    """Make this machine a publisher: make its signing key, and print the public key for followers."""
    from gatewayfilter.wiring import prepare_data_dir
    from gatewayfilter.wiring.fleet import signing_keys

    settings = invocation.settings()
    prepare_data_dir(settings)
    keys = signing_keys(settings).create()
    _show_keys(invocation, keys.public)


@fleet_group.command(examples=("gatewayfilter fleet key",), prints_data=True)
@click.pass_obj
def key(invocation: Invocation) -> None:
    """Print the public key that followers put into fleet.key."""
    from gatewayfilter.wiring.fleet import signing_keys

    _show_keys(invocation, signing_keys(invocation.settings()).read().public)


@fleet_group.command(examples=("gatewayfilter fleet rotate", "gatewayfilter fleet rotate --finish"), prints_data=True)
@click.option("--finish", is_flag=True, help="Remove the old key: every follower has seen the new one.")
@click.pass_obj
def rotate(invocation: Invocation, *, finish: bool) -> None:
    """Make a second signing key; followers learn it by the next manifest, which both keys sign."""
    from gatewayfilter.wiring.fleet import signing_keys

    file = signing_keys(invocation.settings())
    _show_keys(invocation, (file.finish() if finish else file.rotate()).public)


def _show_keys(invocation: Invocation, keys: tuple[bytes, ...]) -> None:
    from gatewayfilter.fleet.public_keys import write_public_key

    texts = [write_public_key(raw) for raw in keys]
    if invocation.json:
        print_json({"keys": texts})
        return
    say(texts[0])
    for text in texts[1:]:
        say(f"{text} (the next one, until `fleet rotate --finish`)")


@fleet_group.group(
    "follower",
    cls=FilterGroup,
    short_help="The followers that this publisher admits.",
    examples=("gatewayfilter fleet follower list",),
)
def follower_group() -> None:
    """The followers that this publisher admits."""


@follower_group.command("add", examples=("gatewayfilter fleet follower add north-school",), prints_data=True)
@click.argument("name")
@click.pass_obj
def add_follower(invocation: Invocation, *, name: str) -> None:
    """Admit a follower and print its token, once: a digest alone is stored."""
    from gatewayfilter.wiring.fleet import members

    token = members(invocation.settings()).add(name)
    if invocation.json:
        print_json({"name": name, "token": token})
        return
    say(f"The token of {name}. It is shown only now:")
    say(token)


@follower_group.command("remove", examples=("gatewayfilter fleet follower remove north-school",), prints_data=True)
@click.argument("name")
@click.pass_obj
def remove_follower(invocation: Invocation, *, name: str) -> None:
    """Remove a follower: its token is refused at once."""
    from gatewayfilter.wiring.fleet import members

    members(invocation.settings()).remove(name)
    if invocation.json:
        print_json({"removed": name})
    else:
        say(f"Removed the follower {name}.")


@follower_group.command("list", examples=("gatewayfilter fleet follower list",), prints_data=True)
@click.pass_obj
def list_followers(invocation: Invocation) -> None:
    """Show the followers, with what each reported last."""
    from gatewayfilter.use_cases.fleet_status import fleet_status

    found = fleet_status(invocation.settings())
    if invocation.json:
        print_json([asdict(row) for row in found.followers])
    elif found.followers:
        _print_followers(found)
    else:
        hint("There are no followers: gatewayfilter fleet follower add NAME")


@fleet_group.command("gateways", examples=("gatewayfilter fleet gateways", "gatewayfilter fleet gateways --host shop.example"),
                     prints_data=True)  # fmt: skip
@click.option("--host", default="", metavar="HOST", help="Show which crawler fetches the pages of this host now.")
@click.pass_obj
def gateways(invocation: Invocation, *, host: str) -> int:
    """Show the gateways that keep in step by `sync.url`, and the crawlers that share the queue.

    Exit code 1 while this gateway is not in step.
    """
    from gatewayfilter.use_cases.metrics.shared_gateways import shared_gateways

    with invocation.store() as store:
        found = shared_gateways(invocation.settings(), store, host)
    if invocation.json:
        print_json(asdict(found))
        return 1 if found.fault else 0
    say(found.sentence)
    for name in found.gateways:
        say(f"gateway  {name}")
    for name in found.crawlers:
        say(f"crawler  {name}")
    if host:
        say(f"{host} is crawled by {found.owner or 'the crawler of this machine: none shares its queue'}.")
    return 1 if found.fault else 0


@fleet_group.command(examples=("gatewayfilter fleet export /srv/www/fleet",), prints_data=True)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.pass_obj
def export(invocation: Invocation, *, folder: Path) -> None:
    """Write what followers fetch to FOLDER, for any web server or CDN."""
    from gatewayfilter.fleet.export import copy_export
    from gatewayfilter.use_cases.fleet_status import fleet_status
    from gatewayfilter.wiring import fleet_folder
    from gatewayfilter.wiring.fleet import export_now

    settings = invocation.settings()
    if settings.fleet.follow:
        raise ConfigError("this machine follows a publisher (fleet.follow): a follower does not publish again")
    with invocation.store() as store:
        export_now(settings, store)
    written = copy_export(fleet_folder(settings).export, folder)
    sequence = fleet_status(settings).sequence
    if invocation.json:
        print_json({"folder": str(folder), "sequence": sequence, "bytes": written})
    else:
        say(f"Exported manifest {sequence} to {folder}: {written:,} bytes written.")


@fleet_group.command(examples=("gatewayfilter fleet pull",), prints_data=True)
@click.pass_obj
def pull(invocation: Invocation) -> int:
    """Poll the publisher now, as the running filter does every minute.

    Exit code 1 when the publisher could not be followed.
    """
    from gatewayfilter.errors import FleetError
    from gatewayfilter.telemetry import Counters
    from gatewayfilter.wiring.fleet import follower

    settings = invocation.settings()
    if not settings.fleet.follow:
        raise FleetError("this machine follows no publisher: set fleet.follow and fleet.key")
    with invocation.store() as store:
        state = follower(settings, store, Counters()).poll()
    if invocation.json:
        print_json({"fault": state.fault.value, "sentence": state.sentence, "in_force": state.in_force, "fetched": state.fetched})
    elif state.sentence:
        say(f"Not followed: {state.sentence}.")
    else:
        say(f"Manifest {state.in_force} is in force; {state.fetched:,} bytes were fetched for its snapshot.")
    return 1 if state.sentence else 0


@fleet_group.command(examples=("gatewayfilter fleet status", "gatewayfilter fleet status --json"), prints_data=True)
@click.pass_obj
def status(invocation: Invocation) -> int:
    """Show what is published and followed.

    Exit code 1 when the publisher cannot be followed, or followers are silent.
    """
    import time

    from gatewayfilter.use_cases.fleet_status import fleet_status, follower_trouble

    settings = invocation.settings()
    found, now = fleet_status(settings), time.time()
    trouble = follower_trouble(settings, now)
    silent = found.silent(now)
    if invocation.json:
        print_json({**asdict(found), "trouble": trouble, "silent": list(silent)})
        return 1 if trouble or silent else 0
    if found.publishes:
        when = show_moment(found.exported_at) if found.sequence else "never"
        say(f"Publisher: manifest {found.sequence}, signed {when}, {len(found.followers)} followers.")
        _print_followers(found)
    if found.follow:
        state = found.state
        when = show_moment(state.contact_at) if state.contact_at else "never"
        say(f"Follows {found.follow}: manifest {state.in_force} in force, last contact {when}.")
        if state.exceptions:
            say(f"Local exceptions: {', '.join(state.exceptions)}.")
    if trouble:
        say(f"{trouble[0].upper()}{trouble[1:]}.")
    if not found.publishes and not found.follow:
        hint("This machine is in no fleet: gatewayfilter fleet init makes it a publisher, fleet.follow a follower.")
    return 1 if trouble or silent else 0


def _print_followers(found: FleetStatus) -> None:
    if not found.followers:
        return
    print_table(
        ("follower", "last report", "manifest", "version", "workers", "state"),
        [
            (
                row.name,
                show_moment(row.reported_at) if row.report else "never",
                row.report.sequence if row.report else "",
                row.report.program if row.report else "",
                row.report.workers if row.report else "",
                row.report.fault.value if row.report else "",
            )
            for row in found.followers
        ],
    )
