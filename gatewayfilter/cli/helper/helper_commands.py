"""`gatewayfilter helper`: decisions for other proxies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand, FilterGroup

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.group(
    "helper",
    cls=FilterGroup,
    examples=("gatewayfilter helper squid --socket /run/gatewayfilter/squid/helper.sock", "gatewayfilter helper daemon"),
    short_help="Decide for other proxies, such as squid.",
)
def helper_group() -> None:
    """Decide for other proxies: they carry the traffic, and ask this filter about each request."""


@helper_group.command(
    "squid",
    cls=FilterCommand,
    examples=(
        "gatewayfilter helper squid --socket /run/gatewayfilter/squid/helper.sock",
        "gatewayfilter helper squid --protocol rewrite",
    ),
    short_help="A helper process for squid.",
)
@click.option(
    "--protocol",
    type=click.Choice(["acl", "rewrite"]),
    default="acl",
    show_default=True,
    help="acl for external_acl_type, rewrite for url_rewrite_program.",
)
@click.option(
    "--socket",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The daemon's Unix socket, in place of helper.socket; then no settings are read.",
)
@click.option(
    "--on-error",
    type=click.Choice(["allow", "block"]),
    help="What happens to requests while the daemon is away, in place of proxy.on_error; with --socket alone they are allowed.",
)
@click.option("--block-url", metavar="URL", help="Block page for rewrite, in place of helper.block_url.")
@click.pass_obj
def squid(invocation: Invocation, *, protocol: str, path: Path | None, on_error: str | None, block_url: str | None) -> None:
    """Serve squid's external_acl or url_rewrite protocol on standard input and output; squid starts this command.

    It passes requests to the daemon, which `gatewayfilter run` or `gatewayfilter helper daemon` runs where `helper.socket` is
    set. Channels (`concurrency=`) are recognized by themselves.
    """
    from gatewayfilter.integration.squid.helper import helper_command

    if path is not None:
        arguments = helper_command(path, protocol, on_error or "allow", block_url or "", 2000)
    else:
        from gatewayfilter.processes.integration.daemon import usable_socket

        settings = invocation.settings()
        arguments = helper_command(
            usable_socket(settings),
            protocol,
            on_error or settings.proxy.on_error.value,
            settings.helper.block_url if block_url is None else block_url,
            settings.helper.timeout_ms,
        )
    os.execv(arguments[0], arguments)  # noqa: S606  the small process in place of this one


@helper_group.command(
    "daemon",
    cls=FilterCommand,
    examples=("GATEWAYFILTER_HELPER__SOCKET=/run/gatewayfilter/squid/helper.sock gatewayfilter helper daemon",),
    short_help="Serve other proxies without running a proxy.",
)
@click.pass_obj
def daemon(invocation: Invocation) -> None:
    """Serve other proxies in the foreground until Ctrl-C or SIGTERM, without a proxy and a learner.

    `gatewayfilter run` does the same in a process of its own, and has unknown pages judged and lists updated besides.
    """
    from gatewayfilter.processes.entry_points import serves_others
    from gatewayfilter.processes.integration.daemon import run_daemon, usable_socket

    settings = invocation.settings()
    if not serves_others(settings):
        usable_socket(settings)
    run_daemon(settings)
