"""`gatewayfilter stream decisions`: how far the filter's own decisions are sent to Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import print_json, say
from gatewayfilter.errors import ConfigError

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.command(
    "decisions",
    cls=FilterCommand,
    prints_data=True,
    examples=("gatewayfilter stream decisions", "gatewayfilter stream decisions --from-oldest"),
    short_help="Show how far the filter's own decisions are sent to Kafka.",
)
@click.option("--from-oldest", is_flag=True, help="Send all decisions that the log still has, again or for the first time.")
@click.pass_obj
def decisions(invocation: Invocation, /, *, from_oldest: bool) -> int:
    """Show how far the filter's own decisions are sent to `kafka.decisions`.

    They are sent while the filter runs. Exit code 1 while Kafka is away.
    """
    from gatewayfilter.use_cases.metrics.decision_stream import decision_stream, send_from_oldest

    settings = invocation.settings()
    if not settings.kafka.decisions:
        raise ConfigError("kafka.decisions is not set: no decisions are sent to Kafka")
    with invocation.store() as store:
        if from_oldest:
            send_from_oldest(store)
        found = decision_stream(settings, store)
    if invocation.json:
        print_json({"topic": found.topic, "state": found.state, "fault": found.fault, "sent_to": found.position,
                    "waiting": found.waiting})  # fmt: skip
    else:
        say(f"{found.topic} at {found.brokers}: {found.sentence}")
    return 1 if found.fault else 0
