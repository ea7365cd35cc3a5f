"""The Spark job: records from Kafka or folders, decided by the batch function, to Kafka and Parquet.

Each micro-batch runs inside foreachBatch: the rules in force are looked up, broadcast when they changed, and name their version
on every row; Spark would never see a broadcast that is bound anew outside. A micro-batch that is run again after a crash
replaces its own folder of Parquet files, so that they hold each record once; in Kafka its answers have the keys of before.
Records are decided and counted in one pass, and written once: no rows are kept between passes, none are shuffled.

Source: [ad-traffic §2.3]: the driver looks for new rules and broadcasts them to the workers.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # as Spark's own documentation names it
from pyspark.sql.types import BinaryType, DoubleType, IntegerType, LongType, StringType, StructField, StructType

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.scaleout.spark.local_folder import LocalFolder
from gatewayfilter.scaleout.spark.offset_ranges import OffsetRange, planned_ranges, read_range
from gatewayfilter.scaleout.spark.output_folder import COUNT_COLUMNS, OutputFolder
from gatewayfilter.scaleout.spark.partition_answers import Wanted, answer_partition, keys_of
from gatewayfilter.scaleout.spark.partition_counts import COUNTS, DEAD, RECORDS, PartitionCounts
from gatewayfilter.scaleout.stream.batch import RECORD, VERDICT, decide_batch, with_verdicts
from gatewayfilter.scaleout.stream.batch_process import set_up_process
from gatewayfilter.scaleout.stream.rule_set import RuleFolder, RuleSet
from gatewayfilter.scaleout.stream.worker.answers import Places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.broadcast import Broadcast
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)

_SPARK_TYPES: Final = {pa.string(): StringType(), pa.float64(): DoubleType(), pa.int32(): IntegerType(), pa.int64(): LongType()}
RECORD_TYPE: Final = StructType([StructField(column.name, _SPARK_TYPES[column.type]) for column in RECORD])
"""The schema of `RECORD` in Spark."""

_KEY: Final = StructField("key", StringType())
_ANSWER_TYPE: Final = StructType(
    [_KEY, *RECORD_TYPE.fields, *(StructField(column.name, _SPARK_TYPES[column.type]) for column in VERDICT)]
)
_PART: Final = StructField("part", StringType())
"""What a row is, by the folder that it is for: records, dead, counts."""
_OUTPUT: Final = pa.schema([("key", pa.string()), *RECORD, *VERDICT, ("part", pa.string())])
_OUTPUT_TYPE: Final = StructType([*_ANSWER_TYPE.fields, _PART])
_LETTER_TYPE: Final = StructType(
    [StructField("topic", StringType()), StructField("key", BinaryType()), StructField("value", BinaryType())]
)
MESSAGE: Final = ("topic", "partition", "offset", "value")
"""Columns of a message of Kafka."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Where records come from and go to; `""` for what is not wanted.

    Attributes:
        checkpoint: folder of Spark's checkpoint; a job that is started again goes on from there.
        rules: folder of snapshots, or a snapshot file.
        source: `kafka`, `json` or `parquet`.
        brokers: of Kafka.
        topic: of records.
        folder: of JSON or Parquet files.
        output_topic, dead_topic: of Kafka.
        output: folder of Parquet files: records with verdicts below `records/`, counts below `counts/`, what is no request
            below `dead/`.
        window_s: length of a window of counts, 0 for none.
        every_s: seconds between micro-batches.
        most: records of a micro-batch from Kafka.
        off_categories: categories of lists that are switched off.
        properties: further options of Spark's Kafka source and sink (`kafka.…`).
    """

    checkpoint: str
    rules: Path
    source: str = "kafka"
    brokers: str = ""
    topic: str = ""
    folder: str = ""
    output_topic: str = ""
    dead_topic: str = ""
    output: str = ""
    window_s: int = 60
    every_s: float = 5.0
    most: int = 1_000_000
    off_categories: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)


class SparkJob:
    """Decides the records of a stream.

    Args:
        spark: the session.
        options: where records come from and go to.
    """

    def __init__(self, spark: SparkSession, options: JobOptions) -> None:
        self._spark = spark
        self._options = options
        self._folder = RuleFolder(options.rules, options.off_categories)
        self._version = ""
        self._sent: Broadcast[bytes] | None = None

    def start(self) -> StreamingQuery:
        """Starts the query, which goes on from the checkpoint."""
        writer = self._records().writeStream.foreachBatch(self.decide).option("checkpointLocation", self._options.checkpoint)
        return writer.trigger(processingTime=f"{self._options.every_s} seconds").start()

    def decide(self, frame: DataFrame, number: int) -> None:
        """Decides a micro-batch and writes it.

        Args:
            frame: key, and the fields of records.
            number: of the micro-batch; the same when it is run again.
        """
        self._refresh()
        if self._work_here(frame, number):
            return
        rules = partial(decide_partition, self._sent, self._version, self._options.off_categories, self._options.window_s)
        answered = frame.mapInArrow(rules, _OUTPUT_TYPE)
        outputs = [name for name in (self._options.output_topic, self._options.dead_topic, self._options.output) if name]
        if len(outputs) > 1:
            answered = answered.persist()  # decided once, written to several places
        try:
            if self._options.output:
                OutputFolder(self._spark, self._options.output).write(answered, number)
            self._send(answered)
        finally:
            if len(outputs) > 1:
                answered.unpersist()

    def _work_here(self, frame: DataFrame, number: int) -> bool:
        """Decides a micro-batch from Kafka by workers that write the files themselves; returns whether they can."""
        options = self._options
        if options.source != "kafka" or options.properties or self._has_tokens():  # which are Java's, as its key stores are
            return False
        path = OutputFolder(self._spark, options.output).local_path() if options.output else None
        if options.output and path is None:
            return False
        ranges = planned_ranges(frame)
        if ranges is None:
            return False
        folder = LocalFolder(path) if path is not None else None
        work = folder.begin() if folder is not None else None
        wanted = Wanted("" if work is None else str(work), options.output_topic, options.dead_topic, options.window_s)
        rules = partial(answer_task, self._sent, self._version, options.off_categories, wanted, options.brokers, ranges)
        tasks = max(1, len(ranges))
        letters = self._spark.range(0, len(ranges), 1, tasks).mapInArrow(rules, _LETTER_TYPE)
        if options.output_topic or options.dead_topic:
            letters.write.format("kafka").option("kafka.bootstrap.servers", options.brokers).save()
        else:
            letters.write.format("noop").mode("overwrite").save()
        if folder is not None and work is not None:
            folder.commit(work, number)
        return True

    def _has_tokens(self) -> bool:
        """Returns whether Spark gets delegation tokens from Kafka, by which it logs in without further options."""
        return any(name.startswith("spark.kafka.clusters.") for name, _ in self._spark.sparkContext.getConf().getAll())

    def _refresh(self) -> None:
        """Broadcasts the rules in force when they changed; the old ones are released."""
        file = self._folder.current()
        if file.version == self._version:
            return
        with open(file.path, "rb") as snapshot:  # noqa: PTH123  # a text
            blob = snapshot.read()
        old, self._sent, self._version = self._sent, self._spark.sparkContext.broadcast(blob), file.version
        if old is not None:
            old.unpersist()
        _log.info("rules %s", self._version)

    def _records(self) -> DataFrame:
        options = self._options
        if options.source != "kafka":
            reader = self._spark.readStream.schema(RECORD_TYPE).format(options.source)
            frame = reader.option("columnNameOfCorruptRecord", "_corrupt").load(options.folder)
            place = F.concat_ws("/", F.input_file_name(), *(F.col(name).cast("string") for name in ("time", "client", "url")))
            return frame.select(F.md5(place).alias("key"), *RECORD_TYPE.names)
        frame = (
            self._spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", options.brokers)
            .option("subscribe", options.topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", options.most)
            .option("kafka.isolation.level", "read_committed")
            .options(**options.properties)
            .load()
        )
        # The values are parsed beside the decisions, in Arrow: half of the cost of Spark's own from_json.
        return frame.select(*MESSAGE)

    def _send(self, answered: DataFrame) -> None:
        options = self._options
        for topic, part in ((options.output_topic, RECORDS), (options.dead_topic, DEAD)):
            if topic:
                names = [field.name for field in _ANSWER_TYPE.fields if field.name != "key"]
                frame = answered.where(F.col("part") == part)
                value = F.to_json(F.struct(*names)).alias("value")
                writer = frame.select("key", value).write.format("kafka").option("kafka.bootstrap.servers", options.brokers)
                writer.options(**options.properties).option("topic", topic).save()


def answer_task(
    sent: Broadcast[bytes],
    version: str,
    off_categories: tuple[str, ...],
    wanted: Wanted,
    brokers: str,
    ranges: Sequence[OffsetRange],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yields the letters of ranges of messages, and writes their files; runs in Spark's Python workers.

    Args:
        sent: the rules.
        version: of the rules.
        off_categories: categories of lists that are switched off.
        wanted: what is wanted.
        brokers: of Kafka.
        ranges: of the whole micro-batch.
        batches: `id` is the number of a range.
    """
    set_up_process()
    rules = _opened(_Sent(sent, version), off_categories)
    for batch in batches:
        for number in batch["id"].to_pylist():
            yield from answer_partition(read_range(brokers, ranges[number]), rules, wanted, number)


def decide_partition(
    sent: Broadcast[bytes], version: str, off_categories: tuple[str, ...], window_s: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a partition with their verdicts, and its counts; runs in Spark's Python workers."""
    set_up_process()
    rules = _opened(_Sent(sent, version), off_categories)
    counts = PartitionCounts(window_s)
    parts = pa.array([RECORDS, DEAD])
    for batch in batches:
        records = _parsed(batch)
        decided = decide_batch(records, rules)
        is_dead = decided.numbers >= len(decided.verdicts)
        answered = with_verdicts(records, decided, version).append_column("part", parts.take(pa.array(is_dead.astype(np.int8))))
        yield _aligned(answered, _OUTPUT)
        if window_s:
            counts.add(records, decided, time.time())
    rows = counts.table(version)
    hidden = {column: rows[name] for column, name in COUNT_COLUMNS.items()}
    hidden |= {"time": rows["window"].cast(pa.float64()), "bytes": rows["records"], "status": rows["blocked"].cast(pa.int32())}
    hidden["part"] = pa.array([COUNTS] * rows.num_rows, pa.string())
    yield _aligned(pa.RecordBatch.from_arrays(list(hidden.values()), list(hidden)), _OUTPUT)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A broadcast snapshot, equal to others by its version."""

    sent: Broadcast[bytes] = field(compare=False)
    version: str


@lru_cache(maxsize=2)
def _opened(sent: _Sent, off_categories: tuple[str, ...]) -> RuleSet:
    """Returns the rules of a version, opened once in each worker process."""
    return RuleSet.of_engine(FilterEngine(Snapshot.from_bytes(sent.sent.value), off_categories=off_categories), sent.version)


def _parsed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the records of a batch: those of Kafka are parsed; what holds none has its text as URL, which is none."""
    from gatewayfilter.scaleout.stream.traffic.lines import JsonReader  # noqa: PLC0415  # in the workers alone

    if batch.schema.names != list(MESSAGE):
        return batch
    lines = [line or b"" for line in batch["value"].to_pylist()]
    read = JsonReader().read(lines)
    places = Places(
        list(zip(batch["topic"].to_pylist(), batch["partition"].to_pylist(), strict=True)), batch["offset"].to_pylist()
    )
    bad = [{"url": lines[row][:1000].decode(errors="replace").replace("://", ": //")} for row, _ in read.bad]
    rows = [*read.rows, *(row for row, _ in read.bad)]
    keys = keys_of(places, np.array(rows, np.int64))
    if not bad:
        return _with_key(keys, read.batch)
    table = pa.Table.from_batches([read.batch.select(RECORD.names).cast(RECORD), pa.RecordBatch.from_pylist(bad, schema=RECORD)])
    return _with_key(keys, table.combine_chunks().to_batches()[0])


def _with_key(keys: Any, records: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([keys, *records.columns], ["key", *records.schema.names])


def _aligned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the batch with exactly these columns."""
    names = batch.schema.names
    columns = [
        batch[column.name].cast(column.type) if column.name in names else pa.nulls(batch.num_rows, column.type)
        for column in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
