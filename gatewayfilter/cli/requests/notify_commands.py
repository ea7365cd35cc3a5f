"""`gatewayfilter notify`: messages to the operator about requests and faults."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import print_json, print_table, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation

_NONE = "No channel is set up: see notify.webhook_url, notify.ntfy_url, notify.smtp_host, notify.command."


@click.group(
    "notify",
    cls=FilterGroup,
    short_help="Messages to you about requests and faults.",
    examples=("gatewayfilter notify test", "gatewayfilter notify status"),
)
def notify_group() -> None:
    """Messages to you, by webhook, mail, ntfy or a program of yours: a user asks for a page, a list is out of date.

    A running filter sends them; the channels are settings of the section notify.
    """


@notify_group.command(examples=("gatewayfilter notify test",), prints_data=True)
@click.pass_obj
def test(invocation: Invocation) -> int:
    """Send a test message by each channel now. Exit code 1 when one of them fails, or none is set up."""
    from gatewayfilter.use_cases.operation.notifications import send_test

    results = send_test(invocation.settings(), time.time())
    if invocation.json:
        print_json({name: {"sent": not error, "error": error} for name, error in results.items()})
    elif not results:
        say(_NONE)
    else:
        for name, problem in results.items():
            say(f"{name}: {problem or 'sent'}")
    return 0 if results and not any(results.values()) else 1


@notify_group.command(examples=("gatewayfilter notify status",), prints_data=True)
@click.pass_obj
def status(invocation: Invocation) -> None:
    """Show the channels that are set up, and whether messages arrive."""
    from gatewayfilter.use_cases.operation.notifications import channel_states

    with invocation.store() as store:
        states = channel_states(invocation.settings(), store)
    if invocation.json:
        print_json(states)
    elif not states:
        say(_NONE)
    else:
        rows = [
            (
                name,
                "not used yet" if found is None else "fails" if found.failures else "good",
                show_day(found.sent_at) if found and found.sent_at else "",
                str(found.failures) if found else "0",
                show_day(found.failing_since) if found and found.failing_since else "",
                found.error if found else "",
            )
            for name, found in states.items()
        ]
        print_table(("channel", "state", "last message", "failures", "since", "last error"), rows)
