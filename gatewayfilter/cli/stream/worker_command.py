"""`gatewayfilter stream worker`: one member of a Kafka consumer group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gatewayfilter.cli.ui.command import FilterCommand

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.command(
    "worker",
    cls=FilterCommand,
    examples=(
        "gatewayfilter stream worker --brokers kafka:9092 --topic traffic --output verdicts --dead dead --counts counts",
        "gatewayfilter stream worker --brokers kafka:9092 --topic squid --format squid --rules /srv/rules --output verdicts",
    ),
    short_help="Decide records of Kafka topics, as a member of a consumer group.",
)
@click.option("--brokers", required=True, metavar="HOST:PORT,…", help="Kafka's brokers.")
@click.option("--topic", "topics", multiple=True, required=True, metavar="NAME", help="Topic of records; may be repeated.")
@click.option("--group", default="gatewayfilter", show_default=True, help="Consumer group: its members share the partitions.")
@click.option("--output", default="", metavar="TOPIC", help="Topic for the records with their verdicts.")
@click.option("--dead", default="", metavar="TOPIC", help="Topic for messages that hold no request, with the reason.")
@click.option("--counts", default="", metavar="TOPIC", help="Topic for counts by host, category, rule and client network.")
@click.option(
    "--window", "window_s", type=click.IntRange(1, 86_400), default=60, show_default=True, help="Seconds of a window of counts."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "squid", "combined", "zeek", "tshark"]),
    default="jsonl",
    show_default=True,
    help="Format of the messages.",
)
@click.option("--blocked-only", is_flag=True, help="Only blocked records go to --output; all are counted.")
@click.option(
    "--together",
    type=click.IntRange(1, 1_000),
    default=1,
    show_default=True,
    help="Records of one message to --output, as JSON lines: less work for Kafka and its readers.",
)
@click.option(
    "--rules",
    type=click.Path(path_type=Path, exists=True),
    metavar="PATH",
    help="Snapshot file or folder of snapshots (default: that of the state folder); a newer one is taken into use.",
)
@click.option("--batch", type=click.IntRange(1, 100_000), default=20_000, show_default=True, help="Messages of a transaction.")
@click.option(
    "--kafka-config",
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="Lines NAME=VALUE for librdkafka: TLS, SASL.",
)
@click.option("--metrics", default="", metavar="HOST:PORT", help="Serve metrics for Prometheus.")
@click.pass_obj
def worker(invocation: Invocation, /, *, rules: Path | None, kafka_config: Path | None, **options: Any) -> None:
    """Decide records of Kafka topics, as one member of a consumer group, until ^C or SIGTERM.

    Answers, counts and offsets are committed in one transaction for each batch: readers of committed messages see each answer
    once. Each answer has the version of the rules. Needs the extra `stream`.
    """
    from gatewayfilter.scaleout.kafka.properties import read_properties

    try:
        from gatewayfilter.scaleout.stream.worker.service import ServiceOptions, serve
    except ImportError as error:
        raise click.UsageError("this needs pyarrow and confluent-kafka: install the extra gatewayfilter[stream].") from error
    settings = invocation.settings()
    properties = read_properties(kafka_config) if kafka_config else {}
    serve(
        ServiceOptions(**options, rules=rules or settings.data_dir / "snapshots", properties=properties),
        tuple(settings.filter.disabled_categories),
    )
