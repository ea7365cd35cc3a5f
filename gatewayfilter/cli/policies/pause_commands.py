"""`gatewayfilter pause` and `gatewayfilter resume`."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import read_duration, show_day
from gatewayfilter.cli.ui.output import hint, print_json, say
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import PauseScope, to_record

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter pause 30min", "gatewayfilter pause 1h --client tablet", "gatewayfilter pause 15min --group kids"),
    prints_data=True,
    short_help="Stop filtering for a while.",
    audited="pause.started",
)
@click.argument("duration")
@click.option("--client", metavar="NAME", help="For this client alone.")
@click.option("--group", metavar="NAME", help="For the clients of this group alone.")
@click.option("--include-malware", is_flag=True, help="Lists of malware, phishing and fraud do not block either.")
@click.pass_obj
def pause(invocation: Invocation, *, duration: str, client: str | None, group: str | None, include_malware: bool) -> None:
    """Stop filtering for a while: for everybody, a group or a client. It ends by itself, or by `resume`.

    Lists of malware, phishing and fraud still block unless `--include-malware` is given.
    """
    from gatewayfilter.use_cases.policies import PolicyEditor

    seconds = read_duration(duration)
    if seconds is None:
        raise PolicyError(f"{duration!r} is no duration; write 30min, 1h or 1h30min")
    scope, target = _scope(client, group)
    with invocation.store() as store:
        found = PolicyEditor(store.policies).pause(scope, target, seconds, harm_too=include_malware)
    if invocation.json:
        print_json(to_record(found))
    else:
        say(f"Filtering is paused for {_whom(scope, target)} until {show_day(found.until)}.")


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter resume", "gatewayfilter resume --client tablet"),
    prints_data=True,
    short_help="End a pause.",
    audited="pause.ended",
)
@click.option("--client", metavar="NAME", help="The pause of this client.")
@click.option("--group", metavar="NAME", help="The pause of this group.")
@click.pass_obj
def resume(invocation: Invocation, *, client: str | None, group: str | None) -> int:
    """End a pause now: that of everybody, of a group or of a client. Exit code 1 when there was none."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    scope, target = _scope(client, group)
    with invocation.store() as store:
        ended = PolicyEditor(store.policies).resume(scope, target)
        others = () if ended else store.policies.read().pauses_at(time.time())
    if invocation.json:
        print_json({"ended": ended})
    else:
        say(f"Filtering goes on for {_whom(scope, target)}." if ended else f"There is no pause for {_whom(scope, target)}.")
        for pause in others:
            option = _option(pause.scope, pause.target)
            hint(f"Paused is {_whom(pause.scope, pause.target)}: gatewayfilter resume{option}")
    return 0 if ended else 1


def _scope(client: str | None, group: str | None) -> tuple[PauseScope, str]:
    if client is not None and group is not None:
        raise PolicyError("give --client or --group, not both")
    if client is not None:
        return PauseScope.CLIENT, client
    return (PauseScope.GROUP, group) if group is not None else (PauseScope.ALL, "")


def _whom(scope: PauseScope, target: str) -> str:
    return "everybody" if scope is PauseScope.ALL else f"the {scope} {target}"


def _option(scope: PauseScope, target: str) -> str:
    return "" if scope is PauseScope.ALL else f" --{scope} {shlex.quote(target)}"
