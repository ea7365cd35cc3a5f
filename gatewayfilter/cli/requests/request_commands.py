"""`gatewayfilter request`: users' requests to unblock pages, and their decisions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.requests.whom_options import ONCE, read_lifetime, scope_text, until_text, whom_of, whom_options
from gatewayfilter.cli.ui.actor import record
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import hint, print_json, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.interfaces import UnblockRequest
    from gatewayfilter.use_cases.requests import Approval


@click.group(
    "request",
    cls=FilterGroup,
    short_help="Requests of users to unblock pages.",
    examples=("gatewayfilter request list", "gatewayfilter request approve 3 --for 1h", "gatewayfilter request deny 4 --word no"),
)
def request_group() -> None:
    """Requests of users to unblock pages, from the button of the block page.

    A decision takes effect within a second. The user reads it on the page that the button led to, and on the block page.
    """


@request_group.command(
    "list", examples=("gatewayfilter request list", "gatewayfilter request list --all --json"), prints_data=True
)
@click.option("--all", "everything", is_flag=True, help="Decided requests, too.")
@click.pass_obj
def list_requests(invocation: Invocation, *, everything: bool) -> None:
    """Show the open requests, the newest first."""
    from gatewayfilter.use_cases.requests import state_of

    with invocation.store() as store:
        found = store.unblock.requests() if everything else store.unblock.open_requests()
    if invocation.json:
        print_json(found)
        return
    if not found:
        say("There are no requests." if everything else "No open requests.")
        return
    now = time.time()
    for request in found:
        blocked = (request.reason, request.category, request.source_list, request.rule)
        times = f", {request.times} times" if request.times > 1 else ""
        say(f"{request.request_id}: {request.who} asked at {show_day(request.at)}{times} for {request.url}")
        say(f"   blocked by {', '.join(filter(None, blocked))}")
        if request.comment:
            say(f"   note: {request.comment}")
        if request.decided_at is not None or request.state.value == "closed":
            say(f"   {state_of(request, now)} {_decision(request)}".rstrip())
    if not everything:
        hint(f"To approve: gatewayfilter request approve {found[0].request_id} --for 1h")


def _decision(request: UnblockRequest) -> str:
    parts = []
    if request.state.value == "approved":
        parts.append(f"for {scope_text(request.scope)} {until_text(request.until)}")
        if request.rule_ids:
            parts.append(f"(entry {', '.join(map(str, request.rule_ids))})")
    if request.decided_at is not None:
        parts.append(f"at {show_day(request.decided_at)}")
    if request.word:
        parts.append(f"answer: {request.word}")
    return " ".join(parts)


@request_group.command(
    examples=(
        "gatewayfilter request approve 3",
        "gatewayfilter request approve 3 --for 1d --site",
        "gatewayfilter request approve 3 --for ever --group kids --word 'have fun'",
        "gatewayfilter request approve 3 --for once",
    ),
    prints_data=True,
)
@click.argument("number", type=click.IntRange(1))
@click.option("--for", "lifetime", default="1h", show_default=True, metavar="TIME", help="How long: 1h, 1d, ever, once.")
@click.option("--site/--page", "site", default=None, help="The whole site, or the page alone.")
@whom_options
@click.option("--word", default="", metavar="TEXT", help="An answer to the user.")
@click.pass_obj
def approve(
    invocation: Invocation, *, number: int, lifetime: str, site: bool | None, word: str, client: str, group: str, everybody: bool
) -> None:
    """Approve a request: an entry of your own allows the page, for the client that asked unless you say otherwise.

    The whole site is approved by default if an entry for the host, a schedule or a policy blocked it, and the page alone
    otherwise. A page that was judged by itself is approved alone. `--for once` approves one visit within a day. A device
    without a name becomes a client, named by its address.
    """
    from gatewayfilter.use_cases.access.inverses import inverse_of_approval
    from gatewayfilter.use_cases.requests import RequestDecisions

    once = lifetime.strip().lower() == ONCE
    with invocation.store() as store:
        found = RequestDecisions(store).approve(
            number,
            lifetime_s=None if once else read_lifetime(lifetime),
            site=site,
            whom=whom_of(client, group, everybody=everybody),
            word=_word(word),
            once=once,
        )
        detail = f"{number} of {found.requests[0].who}, for {lifetime}"
        record(store, "request.approved", found.requests[0].url, detail, inverse_of_approval(found.requests))
    if invocation.json:
        print_json({"requests": found.requests, "rules": found.rules, "client": _name(found), "link": found.link})
        return
    request = found.requests[0]
    if found.client is not None:
        say(f"The device {request.client} is the client {found.client.name} from now on.")
    for rule in found.rules:
        say(f"{number}: entry {rule.rule_id} allows {rule.pattern} for {scope_text(rule.scope)} {until_text(rule.expires_at)}.")
    if found.link is not None:
        what = f"one visit of {found.link.pattern} for {scope_text(found.link.scope)} {until_text(found.link.until)}"
        say(f"{number}: approved {what}; the user opens it from the block page.")
    if found.page_alone:
        say("   (this page alone: it was judged by itself, the rest of the site was not)")
    elif found.site:
        hint(f"   (this page alone; for the whole site: gatewayfilter request approve {number} --for {lifetime} --site)")


def _name(found: Approval) -> str:
    return found.client.name if found.client is not None else ""


@request_group.command(
    examples=("gatewayfilter request deny 3", "gatewayfilter request deny 3 --word 'Homework first'"), prints_data=True
)
@click.argument("number", type=click.IntRange(1))
@click.option("--word", default="", metavar="TEXT", help="An answer to the user.")
@click.pass_obj
def deny(invocation: Invocation, *, number: int, word: str) -> None:
    """Deny a request, or withdraw its approval: the page is blocked within a second.

    The user may ask for the page again after an hour.
    """
    from gatewayfilter.use_cases.requests import RequestDecisions

    with invocation.store() as store:
        found = RequestDecisions(store).deny(number, _word(word))
        record(store, "request.denied", found.url, f"{number} of {found.who}")
    if invocation.json:
        print_json(found)
    else:
        say(f"{number}: denied {found.url} for {found.who}.")


@request_group.command(
    examples=("gatewayfilter request link 3", "gatewayfilter request link 3 --for 30min --once --client tablet"), prints_data=True
)
@click.argument("number", type=click.IntRange(1))
@click.option("--for", "lifetime", default="1h", show_default=True, metavar="TIME", help="How long the link works: 10min, 1h.")
@click.option("--once", is_flag=True, help="For one visit.")
@click.option("--site/--page", "site", default=None, help="The whole site, or the page alone.")
@whom_options
@click.pass_obj
def link(
    invocation: Invocation, *, number: int, lifetime: str, once: bool, site: bool | None, client: str, group: str, everybody: bool
) -> None:
    """Approve a request by a signed link, to be sent to the user; it works on the client that asked alone."""
    from gatewayfilter.cli.requests.bypass_commands import show_link
    from gatewayfilter.use_cases.access.inverses import inverse_of_approval
    from gatewayfilter.use_cases.requests import RequestDecisions

    seconds = read_lifetime(lifetime)
    if seconds is None:
        raise click.BadParameter("a link ends: write 10min, 1h or 1d")
    with invocation.store() as store:
        found = RequestDecisions(store).link(
            number, lifetime_s=seconds, once=once, site=site, whom=whom_of(client, group, everybody=everybody)
        )
        request = store.unblock.find(number)
        undo = None if request is None else inverse_of_approval([request])
        record(store, "request.approved", found.url, f"{number}, link for {lifetime}", undo)
    show_link(invocation, found)


def _word(text: str) -> str:
    from gatewayfilter.errors import PolicyError
    from gatewayfilter.use_cases.requests import read_word

    try:
        return read_word(text)
    except PolicyError as error:
        raise click.BadParameter(str(error)) from error
