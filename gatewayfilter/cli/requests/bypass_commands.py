"""`gatewayfilter bypass`: signed links that unblock a page for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.requests.whom_options import read_lifetime, scope_text, until_text, whom_of, whom_options
from gatewayfilter.cli.ui.actor import record
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import print_json, print_table, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.interfaces import BypassLink


@click.group(
    "bypass",
    cls=FilterGroup,
    short_help="Signed links that unblock a page for a while.",
    examples=("gatewayfilter bypass add https://games.example/ --client tablet --for 10min",),
)
def bypass_group() -> None:
    """Signed links that unblock a page when they are opened: on some clients alone, until their end.

    A link names its page, its clients and its end; it cannot be changed, guessed, or used elsewhere.
    """


@bypass_group.command(
    examples=(
        "gatewayfilter bypass add https://games.example/ --client tablet --for 10min",
        "gatewayfilter bypass add https://games.example/ --group kids --for 1d --once --site",
    ),
    prints_data=True,
)
@click.argument("url")
@click.option("--for", "lifetime", default="10min", show_default=True, metavar="TIME", help="How long the link works.")
@click.option("--once", is_flag=True, help="For one visit of at most five minutes.")
@click.option("--site", is_flag=True, help="The whole site, not the page alone.")
@whom_options
@click.pass_obj
def add(
    invocation: Invocation, *, url: str, lifetime: str, once: bool, site: bool, client: str, group: str, everybody: bool
) -> None:
    """Make a link. Its holder opens it on one of its clients, and the page is unblocked there within a second."""
    from gatewayfilter.urls import parse_loose_url
    from gatewayfilter.use_cases.access.inverses import inverse_of_link
    from gatewayfilter.use_cases.requests import RequestDecisions

    seconds = read_lifetime(lifetime)
    if seconds is None:
        raise click.BadParameter("a link ends: write 10min, 1h or 1d")
    page = parse_loose_url(url)
    with invocation.store() as store:
        found = RequestDecisions(store).add_link(
            page, lifetime_s=seconds, once=once, site=site, whom=whom_of(client, group, everybody=everybody)
        )
        record(store, "link.added", found.url, f"for {scope_text(found.scope)}", inverse_of_link(found))
    show_link(invocation, found)


@bypass_group.command("list", examples=("gatewayfilter bypass list",), prints_data=True)
@click.pass_obj
def list_links(invocation: Invocation) -> None:
    """Show all links, the newest first, without what makes them work."""
    from gatewayfilter.use_cases.requests import link_state

    with invocation.store() as store:
        links = store.bypass.links()
    if invocation.json:
        print_json(links)
    elif not links:
        say("There are no links.")
    else:
        now = time.time()
        rows = [
            (
                link.link_id,
                link_state(link, now),
                scope_text(link.scope),
                show_day(link.until),
                "yes" if link.once else "no",
                link.url,
            )
            for link in links
        ]
        print_table(("id", "state", "for", "until", "once", "url"), rows)


@bypass_group.command(examples=("gatewayfilter bypass revoke 3",), prints_data=True)
@click.argument("number", type=click.IntRange(1))
@click.pass_obj
def revoke(invocation: Invocation, *, number: int) -> int:
    """Revoke a link: it no longer works, and what it unblocked is blocked within a second. Exit code 1 if there is none."""
    with invocation.store() as store:
        found = store.bypass.revoke(number, time.time())
        if found is not None:
            record(store, "link.revoked", found.url)
    if invocation.json:
        print_json({"revoked": found is not None})
    else:
        say(f"Revoked the link {number}." if found is not None else f"There is no link {number}.", err=found is None)
    return 0 if found is not None else 1


def show_link(invocation: Invocation, link: BypassLink) -> None:
    """Prints a link with the address that opens it."""
    from gatewayfilter.store.secret_key import REQUEST_KEY, load_key
    from gatewayfilter.use_cases.requests import address_of

    address = address_of(load_key(invocation.settings().data_dir, REQUEST_KEY), link)
    if invocation.json:
        print_json({"link": link, "address": address})
        return
    what = "one visit of " if link.once else ""
    say(f"{link.link_id}: allows {what}{link.pattern} for {scope_text(link.scope)} {until_text(link.until)}.")
    say(address)
