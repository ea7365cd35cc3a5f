"""The Spark job as a process: session, signals, restarts by the checkpoint."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.scaleout.spark.job import JobOptions, SparkJob

if TYPE_CHECKING:
    from types import FrameType


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
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.sql.session.timeZone": "UTC",
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
    query = SparkJob(spark, options).start()

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        query.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        if once:  # availableNow fails in Spark's Kafka source where the first micro-batch is one that is run again
            query.processAllAvailable()
            query.stop()
        else:
            query.awaitTermination()
    except PySparkException as error:
        raise GatewayFilterError(f"the Spark job ended: {str(error).splitlines()[0][:500]}") from error
    finally:
        spark.stop()
