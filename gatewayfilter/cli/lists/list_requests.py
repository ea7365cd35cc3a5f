"""`gatewayfilter list requests`: users' requests to unblock pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import counted, print_json, print_table, say
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.urls import parse_url

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.interfaces import UnblockRequest


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter list requests", "gatewayfilter list requests --allow 3", "gatewayfilter list requests --dismiss 4"),
    prints_data=True,
)
@click.option(
    "--allow", metavar="ID", type=int, multiple=True, help="Allow the page of this request; may be given several times."
)
@click.option("--dismiss", metavar="ID", type=int, multiple=True, help="Close this request; the page stays blocked.")
@click.pass_obj
def requests(invocation: Invocation, *, allow: tuple[int, ...], dismiss: tuple[int, ...]) -> int:
    """Show users' requests to unblock pages, the newest first, or close some of them.

    Closing a request also closes those of other users for the same page. Exit code 1 when one of them is not there.
    """
    with invocation.store() as store:
        found = [] if allow or dismiss else store.unblock.open_requests()
        completed: list[UnblockRequest] = []
        missing: list[int] = []
        for number in dict.fromkeys((*allow, *dismiss)):
            request = store.unblock.complete(number)
            if request is None:
                missing.append(number)
                continue
            completed.append(request)
            if number in allow:
                comment = f"asked for: {request.comment}" if request.comment else "asked for"
                store.lists.add_rule(ListAction.ALLOW, EntryKind.URL, parse_url(request.url).key, comment=comment)
    if invocation.json:
        print_json({"requests": found, "settled": completed, "missing": missing})
    elif allow or dismiss:
        for request in completed:
            say(f"{request.request_id}: {'allows' if request.request_id in allow else 'dismissed'} {request.url}")
        if missing:
            numbers = ", ".join(map(str, missing))
            say(f"{counted(len(missing), 'request is', 'requests are')} not there: {numbers}", err=True)
    elif not found:
        say("No open requests.")
    else:
        print_table(
            ("id", "asked", "times", "client", "url", "reason", "list", "comment"),
            [
                (
                    request.request_id,
                    show_day(request.at),
                    request.times,
                    request.client,
                    request.url,
                    request.reason,
                    request.source_list,
                    request.comment,
                )
                for request in found
            ],
        )
    return 1 if missing else 0
