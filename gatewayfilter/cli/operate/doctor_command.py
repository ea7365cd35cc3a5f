"""`gatewayfilter doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import hint, print_json

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation

_MARKS = {"ok": "✓", "note": "·", "warning": "!", "error": "✗"}


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter doctor", "sudo gatewayfilter doctor --json"),
    short_help="Check the installation, and show how to fix each fault.",
    prints_data=True,
)
@click.pass_obj
def doctor(invocation: Invocation) -> int:
    """Check the installation, and show how to fix each fault.

    Checks the state folder and its owner, settings, disk, memory, clock, certificate authority, database, lists, services,
    messages, systemd units, processes, rendering, file limits, compiled code, port, default route, firewall, forwarding, IPv6,
    QUIC, DNS, squid's helpers, ICAP, the zone of resolvers, Kafka and gateways in step. Exit code 1 when something does not
    work; warnings and notes leave it 0. The firewall is checked as root only.
    """
    import time

    from gatewayfilter.use_cases.operation.self_check import Level, examined

    findings = []
    for finding in examined(invocation.loaded(), time.time()):
        findings.append(finding)
        if not invocation.json:
            hint(f"{_MARKS[finding.level]} {finding.check}: {finding.words}")
            if finding.mend and finding.level is not Level.OK:
                hint(f"    → {finding.mend}")
    healthy = not any(finding.level is Level.ERROR for finding in findings)
    if invocation.json:
        print_json({"healthy": healthy, "findings": findings})
    return 0 if healthy else 1
