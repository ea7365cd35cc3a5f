"""The Spark job as a process: session, signals, restarts by the checkpoint."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from threading import Event
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.scaleout.spark.job import JobOptions, SparkJob

_log = logging.getLogger(__name__)

STARTS: Final = 3
"""Starts of the query in a row: Spark 4.1's Kafka source fails in its metrics behind a micro-batch that is run again."""

STEADY_S: Final = 300.0
"""A query that ran for so long before it failed counts as started well."""


LIGHT_JVM: Final = {f"spark.{part}.defaultJavaOptions": "-XX:TieredStopAtLevel=1" for part in ("driver", "executor")}
"""For jobs whose records do not pass through the JVM: compiling its code a second time costs more there than it saves."""


def session(master: str = "", jars: str = "", settings: dict[str, str] | None = None) -> SparkSession:
    """Returns a session whose workers run this Python.

    Args:
        master: `local[*]` or the address of a cluster, `""` for that of spark-submit.
        jars: Spark's Kafka source and what it needs: files with commas between them.
        settings: further settings of Spark.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("gatewayfilter")
    chosen = {
        **({"spark.master": master} if master else {}),
        **({"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} if master.startswith("local") else {}),
        **({"spark.jars": jars} if jars else {}),
        "spark.ui.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.session.timeZone": "UTC",
        # A file for each kind of row at once (OutputFolder): otherwise Spark sorts the rows by kind.
        "spark.sql.maxConcurrentOutputFileWriters": "4",
        **(settings or {}),
    }
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def serve(spark: SparkSession, options: JobOptions, *, once: bool = False) -> None:
    """Runs the job until SIGINT or SIGTERM, or until all is decided.

    Raises:
        GatewayFilterError: a micro-batch failed; the next start goes on behind the last one that was complete.
    """
    job = SparkJob(spark, options)
    stopped = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    try:
        left = STARTS
        while True:
            began = time.monotonic()
            try:
                _run(job, stopped, once=once)
            except PySparkException as error:
                why = str(error).splitlines()[0][:500]
                left = (STARTS if time.monotonic() - began > STEADY_S else left) - 1
                if not left:
                    raise GatewayFilterError(f"the Spark job ended: {why}") from error
                _log.warning("the query is started again from its checkpoint: %s", why)
            else:
                return
    finally:
        spark.stop()


def _run(job: SparkJob, stopped: Event, *, once: bool) -> None:
    query = job.start()
    if once:  # not by availableNow, whose failure on a micro-batch that is run again leaves the query behind
        query.processAllAvailable()
        query.stop()
        return
    while not stopped.wait(0.2):
        if query.awaitTermination(1):
            return
    query.stop()
