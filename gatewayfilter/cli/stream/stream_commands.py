"""`gatewayfilter stream`: decisions on recorded traffic at scale."""

from __future__ import annotations

import click

from gatewayfilter.cli.stream.decisions_command import decisions
from gatewayfilter.cli.stream.spark_command import spark
from gatewayfilter.cli.stream.worker_command import worker
from gatewayfilter.cli.ui.command import FilterGroup


@click.group(
    "stream",
    cls=FilterGroup,
    short_help="Decide recorded traffic: a Kafka consumer group, or Spark.",
    examples=(
        "gatewayfilter stream worker --brokers kafka:9092 --topic traffic --output verdicts",
        "gatewayfilter stream spark --source json --folder /srv/traffic --output /srv/decided --checkpoint /srv/state",
    ),
)
def stream_group() -> None:
    """Decide recorded traffic at scale: a Kafka consumer group, or Spark."""


stream_group.add_command(worker)
stream_group.add_command(spark)
stream_group.add_command(decisions)
