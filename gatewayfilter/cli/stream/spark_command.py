"""`gatewayfilter stream spark`: the Spark job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gatewayfilter.cli.ui.command import FilterCommand

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.command(
    "spark",
    cls=FilterCommand,
    examples=(
        "gatewayfilter stream spark --brokers kafka:9092 --topic traffic --output /srv/decided --checkpoint /srv/state",
        "gatewayfilter stream spark --source json --folder /srv/traffic --output /srv/decided --checkpoint /srv/state --once",
    ),
    short_help="Decide records by Spark, from Kafka or folders.",
)
@click.option(
    "--source", type=click.Choice(["kafka", "json", "parquet"]), default="kafka", show_default=True, help="Where records are."
)
@click.option("--brokers", default="", metavar="HOST:PORT,…", help="Kafka's brokers.")
@click.option("--topic", default="", metavar="NAME", help="Topic of records: JSON objects.")
@click.option("--folder", default="", metavar="FOLDER", help="Folder of JSON or Parquet files; new files are taken up.")
@click.option("--checkpoint", required=True, metavar="FOLDER", help="Spark's checkpoint: the next start goes on from there.")
@click.option("--output", default="", metavar="FOLDER", help="Folder of Parquet files: records/, counts/ and dead/.")
@click.option("--output-topic", default="", metavar="TOPIC", help="Topic for the records with their verdicts.")
@click.option("--dead-topic", default="", metavar="TOPIC", help="Topic for what holds no request, with the reason.")
@click.option(
    "--rules",
    type=click.Path(path_type=Path, exists=True),
    metavar="PATH",
    help="Snapshot file or folder of snapshots (default: that of the state folder); a newer one is taken into use.",
)
@click.option(
    "--window",
    "window_s",
    type=click.IntRange(0, 86_400),
    default=60,
    show_default=True,
    help="Seconds of a window of counts, 0 for none.",
)
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(0.1, 86_400),
    default=5.0,
    show_default=True,
    help="Seconds between micro-batches.",
)
@click.option("--most", type=click.IntRange(1), default=1_000_000, show_default=True, help="Records of a micro-batch from Kafka.")
@click.option("--once", is_flag=True, help="End when all records that are there are decided.")
@click.option("--master", default="local[*]", show_default=True, help="Spark's master; an empty one leaves it to spark-submit.")
@click.option("--jars", default="", metavar="FILE,…", help="Spark's Kafka source and what it needs.")
@click.pass_obj
def spark(invocation: Invocation, /, *, rules: Path | None, master: str, jars: str, once: bool, **options: Any) -> None:
    """Decide records by Spark Structured Streaming, from Kafka or from folders of files.

    Rules are looked up before each micro-batch and broadcast when they changed; each row has their version. Needs the extra
    `spark` and Java 17.
    """
    if options["source"] == "kafka" and not (options["brokers"] and options["topic"]):
        raise click.UsageError("--source kafka needs --brokers and --topic.")
    if options["source"] != "kafka" and not options["folder"]:
        raise click.UsageError(f"--source {options['source']} needs --folder.")
    if not any(options[name] for name in ("output", "output_topic")):
        raise click.UsageError("there is no output: give --output or --output-topic.")
    try:
        from gatewayfilter.scaleout.spark.job import JobOptions
        from gatewayfilter.scaleout.spark.service import LIGHT_JVM, serve, session
    except ImportError as error:
        raise click.UsageError("this needs pyspark and pyarrow: install the extra gatewayfilter[spark].") from error
    settings = invocation.settings()
    off = tuple(settings.filter.disabled_categories)
    job = JobOptions(**options, rules=rules or settings.data_dir / "snapshots", off_categories=off)
    is_light = job.source == "kafka" and "://" not in job.output
    serve(session(master, jars, LIGHT_JVM if is_light else None), job, once=once)
