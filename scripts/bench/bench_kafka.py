"""Records decided for each CPU second and each second through a real Kafka: by the stream worker, and by Spark.

Needs `make services`. Records are the real requests, each made distinct by a parameter; EasyList and EasyPrivacy decide them.
The broker shares the machine. CPU is that of the worker, or of Spark's driver, JVM and Python workers together, without the
broker's; the start is left out: figures are from the first answers to the last. Each row is printed when it is measured.

    python scripts/bench/bench_kafka.py [--records 1000000] [--cores 2]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

import confluent_kafka as kafka
import psutil
from confluent_kafka.admin import AdminClient, NewTopic
from pyarrow import parquet

from gatewayfilter.wiring import engine_for_lists, image_of
from tests.scaleout.stream.kafka_broker import KafkaBroker, services_folder

PARTITIONS = 4
COMMAND = [sys.executable, "-m", "gatewayfilter.cli", "stream"]


@dataclass
class Point:
    """Where a run stands: seconds, CPU seconds of Python and of Java, and records."""

    at: float
    python: float
    java: float
    records: int


class Usage:
    """CPU seconds of a process and its descendants; those that ended count with what was last seen of them."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._seen: dict[int, tuple[bool, float]] = {}

    def point(self, records: int) -> Point:
        """Returns where the run stands."""
        try:
            tree = [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            tree = []
        for process in tree:
            try:
                times = process.cpu_times()
                self._seen[process.pid] = "java" in process.name(), times.user + times.system
            except psutil.Error:
                continue
        python, java = (sum(spent for is_java, spent in self._seen.values() if is_java is kind) for kind in (False, True))
        return Point(time.monotonic(), python, java, records)


def main() -> int:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--only", choices=["worker", "spark"], help="leave the other out")
    parser.add_argument("--most", type=int, help="records of a micro-batch of Spark, a quarter of all by default")
    parser.add_argument("--natural", action="store_true", help="requests repeat as they were recorded, none is made distinct")
    options = parser.parse_args()
    data = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
    if not data.is_dir():
        print("The test data folder is not there.")
        return 0
    with TemporaryDirectory(prefix="gatewayfilter-") as name:
        folder = Path(name)
        engine = engine_for_lists([data / "lists" / "easylist.txt", data / "lists" / "easyprivacy.txt"])
        image_of(engine, folder / "snapshot")
        (folder / "kafka").mkdir()
        broker = KafkaBroker(folder / "kafka")
        broker.start()
        try:
            size = fill(broker, data / "requests" / "requests.jsonl", options.records, distinct=not options.natural)
            print(f"{options.records:,} records of {size / options.records:.0f} bytes on the average\n")
            print("| | records/s | CPU µs a record | of it Java | records/CPU-s |\n|---|---|---|---|---|", flush=True)
            if options.only != "spark":
                worker(broker, folder, options.records, "worker, all answers", "--output", "out")
                worker(broker, folder, options.records, "worker, 100 together", "--output", "out", "--together", "100")
                worker(broker, folder, options.records, "worker, blocked only", "--output", "blocked", "--blocked-only")
            if options.only != "worker":
                spark(broker, folder, options.records, options.cores, options.most or max(1, options.records // 4))
        finally:
            broker.kill()
    return 0


def fill(broker: KafkaBroker, file: Path, count: int, *, distinct: bool = True) -> int:
    """Sends the records, evenly to all partitions. Returns their bytes."""
    names = ("traffic", "out", "blocked", "dead", "counts")
    admin = AdminClient({"bootstrap.servers": broker.address})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        future.result(30)
    producer = kafka.Producer(
        {"bootstrap.servers": broker.address, "linger.ms": 50, "compression.type": "lz4", "queue.buffering.max.kbytes": 1 << 18}
    )
    size = 0
    for number, value in enumerate(generated(file, count, distinct=distinct)):
        size += len(value)
        while True:
            try:
                producer.produce("traffic", value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(300):
        raise SystemExit("the broker did not take all records")
    return size


def generated(file: Path, count: int, *, distinct: bool = True) -> Iterator[bytes]:
    """Yields records: the requests of a file in turn, each with a time and a client, and a parameter that makes it distinct."""
    requests = [json.loads(line) for line in file.read_bytes().splitlines()]
    for number in range(count):
        record = dict(requests[number % len(requests)])
        if distinct:
            record["url"] += f"{'&' if '?' in record['url'] else '?'}n={number}"
        record["time"] = 1_793_449_800.0 + number / 10_000
        record["client"] = f"192.0.{number % 16}.{number % 251}"
        yield json.dumps(record).encode()


def worker(broker: KafkaBroker, folder: Path, count: int, name: str, *more: str) -> None:
    """Measures one worker, by the offsets that its group commits."""
    group = name.replace(", ", "-").replace(" ", "-")
    command = [*COMMAND, "worker", "--brokers", broker.address, "--topic", "traffic", "--group", group, "--dead", "dead"]
    command += ["--counts", "counts", "--rules", str(folder / "snapshot"), *more]
    reader = kafka.Consumer({"bootstrap.servers": broker.address, "group.id": group, "enable.auto.commit": False})
    parts = [kafka.TopicPartition("traffic", number) for number in range(PARTITIONS)]
    known = [0] * PARTITIONS

    def committed() -> int:
        with suppress(kafka.KafkaException):  # a broker that has just started may not have its coordinator yet
            known[:] = [max(0, part.offset) for part in reader.committed(parts, 20)]
        return sum(known)

    measured(command, folder, name, count, committed)
    reader.close()


def spark(broker: KafkaBroker, folder: Path, count: int, cores: int, most: int) -> None:
    """Measures Spark on some cores of this machine, by the micro-batches that it completes."""
    jars = ",".join(map(str, sorted((services_folder() / "spark").glob("*.jar"))))
    out = folder / "decided"
    command = [*COMMAND, "spark", "--brokers", broker.address, "--topic", "traffic", "--output", str(out), "--jars", jars]
    command += ["--checkpoint", str(folder / "checkpoint"), "--rules", str(folder / "snapshot"), "--master", f"local[{cores}]"]
    command += ["--most", str(most), "--every", "0.1", "--once"]
    complete: dict[str, int] = {}

    def written() -> int:
        for mark in out.glob("counts/batch=*/_SUCCESS"):
            if mark.parent.name not in complete:
                parts = (out / "records" / mark.parent.name).glob("*.parquet")
                complete[mark.parent.name] = sum(parquet.ParquetFile(part).metadata.num_rows for part in parts)
        return sum(complete.values())

    measured(command, folder, f"Spark, local[{cores}], to Parquet", count, written)


def measured(command: list[str], folder: Path, name: str, count: int, done: Callable[[], int]) -> None:
    """Runs a command until it has done all records, and prints a row of the table."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "GATEWAYFILTER_DATA_DIR": str(folder)})
    usage, first = Usage(process.pid), None
    now = usage.point(0)
    while now.records < count * 0.999:  # what is no URL is a dead letter, in other files
        if process.poll() is not None and done() == now.records:
            raise SystemExit(f"{name} ended:\n{(folder / 'log').read_text(encoding='utf-8')[-2000:]}")
        time.sleep(0.2)
        now = usage.point(done())
        if now.records and first is None:
            first = now
    process.terminate()
    process.wait(60)
    first = first or now
    records = max(1, now.records - first.records)
    wall, java, python = now.at - first.at, now.java - first.java, now.python - first.python
    each = (java + python) / records
    print(f"| {name} | {records / wall:,.0f} | {each * 1e6:.1f} | {java / records * 1e6:.1f} | {1 / each:,.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
