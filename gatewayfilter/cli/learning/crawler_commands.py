"""`gatewayfilter crawler`: the crawler's modules, each as a process of its own, over Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gatewayfilter.cli.ui.command import FilterCommand, FilterGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewayfilter.cli.ui.command_context import Invocation


@click.group(
    "crawler",
    cls=FilterGroup,
    short_help="The crawler's modules apart, over Kafka.",
    examples=(
        "gatewayfilter crawler schedule --brokers kafka:9092",
        "gatewayfilter crawler fetch --brokers kafka:9092",
    ),
)
def crawler_group() -> None:
    """The crawler as scheduler, fetchers, parsers and storage, which exchange messages over Kafka."""


def _on_kafka(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that all modules have."""
    for option in (
        click.option(
            "--kafka-config",
            type=click.Path(path_type=Path, exists=True),
            metavar="FILE",
            help="Lines NAME=VALUE for librdkafka: TLS, SASL (default: kafka.config_file).",
        ),
        click.option(
            "--prefix",
            default="gatewayfilter-crawl",
            show_default=True,
            metavar="NAME",
            help="Of the names of topics and groups.",
        ),
        click.option("--brokers", default="", metavar="HOST:PORT,…", help="Kafka's brokers (default: kafka.brokers)."),
    ):
        command = option(command)
    return command


@crawler_group.command(
    "schedule",
    cls=FilterCommand,
    examples=("gatewayfilter crawler schedule --brokers kafka:9092 --on-the-way 1000",),
    short_help="Send URLs of the queue to the fetchers.",
)
@_on_kafka
@click.option(
    "--on-the-way",
    type=click.IntRange(1, 100_000),
    default=400,
    show_default=True,
    help="Most URLs between here and the storage: what may lie in the topics.",
)
@click.option(
    "--partitions", type=click.IntRange(1, 1_000), default=12, show_default=True, help="Of each topic, when it is made."
)
@click.pass_obj
def schedule(invocation: Invocation, /, **options: Any) -> None:
    """Lease URLs of the queue and send them to the fetchers, until ^C or SIGTERM. Makes the topics.

    One scheduler runs for each prefix. URLs that may not be fetched, as those with a secret in them, go into no topic.
    """
    _run(invocation, "schedule", **options)


@crawler_group.command(
    "fetch",
    cls=FilterCommand,
    examples=("gatewayfilter crawler fetch --brokers kafka:9092",),
    short_help="Fetch pages; needs no database.",
)
@_on_kafka
@click.pass_obj
def fetch(invocation: Invocation, /, **options: Any) -> None:
    """Fetch the pages that the scheduler sends, until ^C or SIGTERM; with the limits, delays and address rules of `[crawl]`."""
    _run(invocation, "fetch", **options)


@crawler_group.command(
    "parse",
    cls=FilterCommand,
    examples=("gatewayfilter crawler parse --brokers kafka:9092",),
    short_help="Judge fetched pages; needs no database.",
)
@_on_kafka
@click.pass_obj
def parse(invocation: Invocation, /, **options: Any) -> None:
    """Judge fetched pages by the words and extraction rules of the state folder, until ^C or SIGTERM."""
    _run(invocation, "parse", **options)


@crawler_group.command(
    "store",
    cls=FilterCommand,
    examples=("gatewayfilter crawler store --brokers kafka:9092",),
    short_help="Store what the parsers found.",
)
@_on_kafka
@click.pass_obj
def store(invocation: Invocation, /, **options: Any) -> None:
    """Put judged pages on the learned lists, and their links into the queue, until ^C or SIGTERM; one for each state folder."""
    _run(invocation, "store", **options)


def _run(invocation: Invocation, name: str, *, brokers: str, prefix: str, kafka_config: Path | None, **options: Any) -> None:
    from gatewayfilter.scaleout.kafka.properties import read_properties

    try:
        from gatewayfilter.processes.sharing.crawl_modules import ModuleOptions, Role, run_module
        from gatewayfilter.scaleout.kafka.module_topics import ModuleTopics
    except ImportError as error:
        raise click.UsageError("this needs confluent-kafka: install the extra gatewayfilter[kafka].") from error
    settings = invocation.settings()
    brokers = brokers or settings.kafka.brokers
    if not brokers:
        raise click.UsageError("--brokers, or kafka.brokers in the settings, is needed")
    file = kafka_config or settings.kafka.config_file
    topics = ModuleTopics(brokers, prefix, read_properties(file) if file else {})
    run_module(Role(name), settings, ModuleOptions(topics, **options))
