"""The folder of a job's Parquet files: records, dead letters and counts of each micro-batch, written in one pass.

All rows of a micro-batch are written once, below `_work`, into a folder for each kind. Those of records and dead letters are
moved into place; counts, a few thousand rows, are added up into theirs, which is complete last. A micro-batch that is run again
replaces its folders.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812  # as Spark's own documentation names it

from gatewayfilter.scaleout.spark.partition_counts import COUNTS, DEAD, RECORDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT_COLUMNS: Final = {"time": "window", "rules_version": "rules_version", "category": "dimension", "rule": "value"}
"""Columns of answers that hold counts while they are on their way → names of these columns; `bytes` holds the records, and
`status` the blocked ones."""


class OutputFolder:
    """A folder of Parquet files.

    Args:
        spark: the session.
        path: the folder, on any file system that Spark writes to.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path

    def local_path(self) -> Path | None:
        """Returns the folder's path where it is on a file system that is mounted, `None` where it is on another one."""
        files, place = self._files(self._path)
        return Path(place.toUri().getPath()).absolute() if files.getUri().getScheme() == "file" else None

    def write(self, answered: DataFrame, number: int) -> None:
        """Writes a micro-batch.

        Args:
            answered: rows with `part`, the folder that each is for.
            number: of the micro-batch.
        """
        work = f"{self._path}/_work/batch={number}"
        answered.write.mode("overwrite").option("compression", "snappy").partitionBy("part").parquet(work)
        for part in (RECORDS, DEAD):
            self._move(f"{work}/part={part}", f"{self._path}/{part}/batch={number}", answered)
        self._add_up(f"{work}/part={COUNTS}", f"{self._path}/{COUNTS}/batch={number}", answered)
        self._delete(work)

    def _add_up(self, source: str, target: str, answered: DataFrame) -> None:
        if not self._exists(source):
            return
        schema = answered.drop("part").schema
        counts = self._spark.read.schema(schema).parquet(source).coalesce(1)  # one partition: nothing is shuffled
        names = [F.col(column).alias(name) for column, name in COUNT_COLUMNS.items()]
        sums = (F.sum("bytes").alias("records"), F.sum(F.col("status").cast("long")).alias("blocked"))
        added = counts.groupBy(*names).agg(*sums).withColumn("window", F.col("window").cast("long"))
        added.write.mode("overwrite").parquet(target)

    def _move(self, source: str, target: str, answered: DataFrame) -> None:
        """Puts a folder into place; an empty one where there is none, so that readers find the columns."""
        self._delete(target)
        if not self._exists(source):
            self._spark.createDataFrame([], answered.drop("part").schema).coalesce(1).write.parquet(target)
            return
        files, place = self._files(target)
        files.mkdirs(place.getParent())
        if not files.rename(self._files(source)[1], place):
            raise OSError(f"{source} cannot be moved to {target}")
        files.create(self._files(f"{target}/_SUCCESS")[1]).close()

    def _exists(self, path: str) -> bool:
        files, place = self._files(path)
        return bool(files.exists(place))

    def _delete(self, path: str) -> None:
        files, place = self._files(path)
        files.delete(place, True)

    def _files(self, path: str) -> tuple[Any, Any]:
        """Returns the file system of a path, and the path, as Hadoop's objects."""
        context = self._spark.sparkContext
        java: Any = context._jvm  # noqa: SLF001  # Hadoop's file systems have no other way in from Python
        place = java.org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(context._jsc.hadoopConfiguration()), place  # noqa: SLF001  # as above
