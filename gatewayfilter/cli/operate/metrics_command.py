"""`gatewayfilter metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.command(
    "metrics",
    cls=FilterCommand,
    examples=("gatewayfilter metrics", "gatewayfilter metrics > /var/lib/node_exporter/gatewayfilter.prom"),
    short_help="Print all counters for Prometheus.",
)
@click.pass_obj
def metrics(invocation: Invocation) -> int:
    """Print the counters of all processes in the exposition format of Prometheus, as GET /metrics serves them.

    Exit code 1 where no filter runs on the state folder.
    """
    from gatewayfilter.processes.supervision.run_lock import running_process
    from gatewayfilter.use_cases.metrics.exposition import StatusCollector, exposition

    settings = invocation.settings()
    click.echo(exposition(StatusCollector(settings.data_dir / "run")), nl=False)
    return 0 if running_process(settings.data_dir) else 1
