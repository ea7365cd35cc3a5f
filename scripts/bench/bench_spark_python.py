"""The Python side of Spark against the bare matcher: CPU time from messages of Kafka to files, and of reading and deciding alone.

Both get the same batches in turn, each by an engine of its own, so that neither profits from what the other one remembers. The
first half of the files warms up; of the rest the median counts. In the files are records with their verdicts and counts, as in
those of `stream spark`; what completes a file is shared out over its records. Records are those of bench_kafka.

    python scripts/bench/bench_spark_python.py [--files 4]
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from gatewayfilter.scaleout.spark.partition_answers import Wanted, answer_partition
from gatewayfilter.scaleout.stream.batch import decide_batch
from gatewayfilter.scaleout.stream.batch_process import set_up_process
from gatewayfilter.scaleout.stream.rule_set import RuleSet
from gatewayfilter.scaleout.stream.traffic.lines import JsonReader
from gatewayfilter.scaleout.stream.worker.answers import Places
from gatewayfilter.wiring import engine_for_lists
from scripts.bench.bench_kafka import generated

BATCH = 40_000
"""As `offset_ranges.MOST`, whose module imports Spark and Kafka."""
FILE = 6
"""Batches of a file: a micro-batch of a million records from four partitions has files of 250,000."""


def main() -> int:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=4)
    count = max(2, parser.parse_args().files)
    data = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
    if not data.is_dir():
        print("The test data folder is not there.")
        return 0
    set_up_process()
    lists = [data / "lists" / "easylist.txt", data / "lists" / "easyprivacy.txt"]
    alone, whole = (RuleSet.of_engine(engine_for_lists(lists)) for _ in range(2))
    records = generated(data / "requests" / "requests.jsonl", count * FILE * BATCH)
    spent, completing = (Spent(), Spent()), Spent()
    with TemporaryDirectory(prefix="gatewayfilter-") as folder:
        for file in range(count):
            one_file(file, records, (alone, whole), folder, spent, completing)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*.parquet")) / count / FILE / BATCH
    half = count // 2
    bare, full = (statistics.median(times[half * FILE :]) for times in spent)
    full += statistics.median(completing[half:]) / FILE
    print("| | CPU µs a record | |\n|---|---|---|")
    print(f"| reading and deciding | {bare / BATCH * 1e6:.2f} | 1 |")
    print(f"| from messages to files | {full / BATCH * 1e6:.2f} | {full / bare:.2f} |")
    print(f"\n{size:.0f} bytes of files a record, load average {os.getloadavg()[0]:.0f}")
    return 0


class Spent(list[float]):
    """CPU seconds, a part at a time."""

    @contextmanager
    def part(self) -> Iterator[None]:
        """Adds what is spent inside."""
        began = time.process_time()
        yield
        self.append(time.process_time() - began)


def one_file(
    number: int, records: Iterator[bytes], rules: tuple[RuleSet, RuleSet], folder: str, spent: tuple[Spent, Spent], end: Spent
) -> None:
    """Decides the batches of a file, by each of both in turn, and writes it.

    Args:
        number: of the file.
        records: messages, of which the next ones are taken.
        rules: of the bare matcher, and of the other.
        folder: for files.
        spent: gets the CPU time of each batch, likewise.
        end: gets that of completing the file.
    """
    reader, messages = JsonReader(), list(islice(records, FILE * BATCH))
    waiting: list[tuple[list[bytes], Places] | None] = []
    kept: list[Places] = []  # as the messages: who reads from Kafka frees them, and is neither of both
    answers = answer_partition(iter(waiting.pop, None), rules[1], Wanted(folder), number)
    for first in range(0, len(messages), BATCH):
        values = messages[first : first + BATCH]
        kept.append(Places([("traffic", 0)] * BATCH, list(range(first, first + BATCH))))
        waiting.append((values, kept[-1]))
        for contestant in (0, 1) if first // BATCH % 2 else (1, 0):
            with spent[contestant].part():
                if contestant:
                    next(answers)
                else:
                    decide_batch(reader.read(values).batch, rules[0])
    waiting.append(None)
    with end.part():
        list(answers)


if __name__ == "__main__":
    sys.exit(main())
