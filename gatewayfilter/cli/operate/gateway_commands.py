"""`gatewayfilter gateway`: this machine as the LAN's gateway. These commands need root; the filter itself does not."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import counted, print_json, print_table, say

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.config import Settings
    from gatewayfilter.gateway.control import Gateway, GatewayStatus
    from gatewayfilter.gateway.watchdog import Watchdog

_LAN = click.option(
    "--lan", multiple=True, metavar="INTERFACE", help="An interface of the LAN, in place of gateway.lan; repeatable."
)
_FAIL_OPEN = click.option(
    "--fail-open/--fail-closed", default=None, help="Whether web traffic goes past the filter while no worker listens or answers."
)


@click.group(
    "gateway",
    cls=FilterGroup,
    short_help="This machine as the LAN's gateway.",
    examples=("sudo gatewayfilter gateway up --lan lan0", "sudo gatewayfilter gateway status", "gatewayfilter gateway print"),
)
def gateway_group() -> None:
    """This machine as the LAN's gateway: firewall rules and forwarding, for IPv4 and IPv6.

    In transparent mode web traffic of the LAN is redirected to the filter; in the other modes what goes around the proxy is
    refused. SSH, DNS, DHCP and everything else of the machine itself stay as they are.
    """


def _settings(invocation: Invocation, lan: tuple[str, ...], *, fail_open: bool | None) -> Settings:
    return invocation.settings(gateway__lan=lan or None, gateway__fail_open=fail_open)


def _gateway(settings: Settings) -> Gateway:
    from gatewayfilter.gateway.control import Gateway
    from gatewayfilter.gateway.nft import Kernel
    from gatewayfilter.gateway.plan import make_plan
    from gatewayfilter.gateway.runtime_state import RuntimeStateFile

    return Gateway(make_plan(settings), Kernel(), RuntimeStateFile())


def _watchdog(settings: Settings, *, restoring: bool = False) -> Watchdog:
    from gatewayfilter.gateway.liveness_probe import LivenessProbe
    from gatewayfilter.gateway.nft import Kernel
    from gatewayfilter.gateway.plan import make_plan
    from gatewayfilter.gateway.runtime_state import RuntimeStateFile
    from gatewayfilter.gateway.watchdog import Watchdog

    port = make_plan(settings).proxy_port
    answers = LivenessProbe(settings.proxy.listen)
    return Watchdog(_gateway(settings), Kernel(), RuntimeStateFile(), port, restoring=restoring, answers=answers)


@gateway_group.command(
    examples=(
        "sudo gatewayfilter gateway up",
        "sudo gatewayfilter gateway up --lan lan0 --lan wlan0 --fail-open",
        "sudo gatewayfilter gateway up --confirm 60",
    ),
    prints_data=True,
)
@_LAN
@_FAIL_OPEN
@click.option("--wait", "wait_s", type=click.FloatRange(0, 3600), default=10.0, show_default=True, metavar="SECONDS",
              help="How long to wait for the filter's port.")  # fmt: skip
@click.option("--no-check", is_flag=True, help="Load the rules although no filter listens: web traffic is refused until it does.")
@click.option("--confirm", "confirm_s", type=click.FloatRange(1, 3600), metavar="SECONDS",
              help="Take everything back unless Enter is pressed within this time: safe over SSH.")  # fmt: skip
@click.option("--foreground", is_flag=True, help="Stay, be the watchdog, and take everything back at the end: for systemd.")
@click.pass_obj
def up(
    invocation: Invocation,
    *,
    lan: tuple[str, ...],
    fail_open: bool | None,
    wait_s: float,
    no_check: bool,
    confirm_s: float | None,
    foreground: bool,
) -> int:
    """Load the firewall rules and switch forwarding on; when a step fails, what was done is taken back.

    Idempotent. Needs root. With --fail-open a watchdog is started that lets traffic pass around the filter
    while no worker listens or answers.
    """
    settings = _settings(invocation, lan, fail_open=fail_open)
    gateway = _gateway(settings)
    changed = gateway.up(wait_s=wait_s, check=not no_check)
    if confirm_s is not None and not _confirmed(confirm_s):
        gateway.down()
        say("Not confirmed: everything was taken back.", err=True)
        return 1
    if not foreground and settings.gateway.fail_open:
        _start_watchdog(invocation, lan)
    _tell(invocation, gateway.status(), changed=changed)
    if foreground:
        _stay(gateway, _watchdog(settings, restoring=True))
    return 0


def _confirmed(seconds: float) -> bool:
    from select import select

    say(f"The rules are loaded. Press Enter within {seconds:.0f} s to keep them.")
    try:
        ready, _, _ = select([sys.stdin], [], [], seconds)
        return bool(ready) and sys.stdin.readline() != ""
    except KeyboardInterrupt:
        return False


def _start_watchdog(invocation: Invocation, lan: tuple[str, ...]) -> None:
    """Starts `gateway watch` as a process of its own; it ends by itself when the gateway is down, or there is one already."""
    arguments = [
        sys.executable,
        "-m",
        "gatewayfilter.cli",
        "gateway",
        "watch",
        *(part for name in lan for part in ("--lan", name)),
    ]
    if invocation.config is not None:
        arguments += ["--config", str(invocation.config.absolute())]
    if invocation.data_dir is not None:
        arguments += ["--data-dir", str(invocation.data_dir.absolute())]
    nowhere = subprocess.DEVNULL
    subprocess.Popen(arguments, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True, cwd="/")  # noqa: S603  ourselves


def _stay(gateway: Gateway, watchdog: Watchdog) -> None:
    from gatewayfilter.gateway.watchdog import until_terminated
    from gatewayfilter.telemetry import set_up_logging

    set_up_logging("info")
    try:

        def watch_and_wait(stop: threading.Event) -> bool:
            watchdog.run(stop)
            return stop.wait()

        until_terminated(watch_and_wait)
    finally:
        gateway.down()


def _tell(invocation: Invocation, status: GatewayStatus, *, changed: bool) -> None:
    if invocation.json:
        print_json({"changed": changed, "status": status})
        return
    say("The gateway is up." if changed else "The gateway is up already; nothing was changed.")
    for problem in status.problems:
        say(f"  but {problem}", err=True)


@gateway_group.command(examples=("sudo gatewayfilter gateway down",), prints_data=True)
@click.pass_obj
def down(invocation: Invocation) -> None:
    """Remove the firewall rules and put forwarding back as it was before `gateway up`. Needs root."""
    from gatewayfilter.gateway.control import take_down
    from gatewayfilter.gateway.nft import Kernel
    from gatewayfilter.gateway.runtime_state import RuntimeStateFile

    changed = take_down(Kernel(), RuntimeStateFile())
    if invocation.json:
        print_json({"changed": changed})
    else:
        say("The gateway is down: devices go past the filter." if changed else "The gateway was not up; nothing was changed.")


@gateway_group.command(
    examples=("sudo gatewayfilter gateway status", "sudo gatewayfilter gateway status --json"), prints_data=True
)
@_LAN
@_FAIL_OPEN
@click.pass_obj
def status(invocation: Invocation, *, lan: tuple[str, ...], fail_open: bool | None) -> int:
    """Compare the kernel with the configuration. Exit code 0 when they agree and the gateway is up, else 1. Needs root."""
    from gatewayfilter.gateway.control import GatewayState

    found = _gateway(_settings(invocation, lan, fail_open=fail_open)).status()
    if invocation.json:
        print_json(found)
    else:
        print_table(("what", "value"), [
            ("state", _STATES[found.state]),
            ("filter listens", _families(found.listening)),
            ("kernel forwards", _families(found.forwarding)),
            ("when no worker serves", _failing(found)),
            ("redirected", counted(found.redirected, "connection")),
            ("QUIC refused", counted(found.quic_refused, "datagram")),
        ])  # fmt: skip
        for problem in found.problems:
            say(f"! {problem}")
    return 0 if found.state is GatewayState.UP and not found.problems else 1


_STATES = {
    "up": "up, as wanted",
    "open": "open: web traffic goes past the filter",
    "down": "down",
    "outdated": "up, from other settings",
    "changed": "up, changed since",
    "foreign": "up, not by gateway up",
}


def _families(families: tuple[int, ...]) -> str:
    return " and ".join(f"IPv{family}" for family in families) or "no"


def _failing(found: GatewayStatus) -> str:
    if not found.fail_open:
        return "refuse (fail closed)"
    return f"let past (fail open), {'watched' if found.watched else 'but nobody watches'}"


@gateway_group.command(
    "print", examples=("gatewayfilter gateway print", "gatewayfilter gateway print --lan lan0 | sudo nft -c -f -")
)
@_LAN
@click.pass_obj
def print_rules(invocation: Invocation, *, lan: tuple[str, ...]) -> None:
    """Print the ruleset that `gateway up` would load. Changes nothing, needs no rights."""
    from gatewayfilter.gateway.plan import make_plan
    from gatewayfilter.gateway.ruleset import ruleset

    click.echo(ruleset(make_plan(_settings(invocation, lan, fail_open=None))), nl=False)


@gateway_group.command(examples=("sudo gatewayfilter gateway watch",))
@_LAN
@click.pass_obj
def watch(invocation: Invocation, *, lan: tuple[str, ...]) -> int:
    """Run the watchdog of a gateway that fails open: `gateway up --fail-open` starts this by itself.

    It ends when the gateway goes down. Exit code 1 when another one runs already. Needs root.
    """
    from gatewayfilter.gateway.watchdog import until_terminated
    from gatewayfilter.telemetry import set_up_logging

    watchdog = _watchdog(_settings(invocation, lan, fail_open=True))
    set_up_logging("info")
    run: Callable[..., bool] = watchdog.run
    return 0 if until_terminated(run) else 1
