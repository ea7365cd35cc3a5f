"""Records decided for each CPU second: a loop of `decide`, the batch function, and the worker's answers without a broker.

Rounds are interleaved and the median counts. "distinct" clears the memory of verdicts before each round; "repeated" decides
the same records again. The worker's row reads JSON, decides, and makes answers and counts; sending them is not in it.

    python scripts/bench/bench_stream.py [--rounds 5]
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.scaleout.stream.batch import match_batch
from gatewayfilter.scaleout.stream.rule_set import RuleSet
from gatewayfilter.scaleout.stream.traffic.lines import JsonReader
from gatewayfilter.scaleout.stream.worker.answers import Answering, Places
from gatewayfilter.urls import parse_url
from gatewayfilter.wiring import engine_for_lists

BATCH = 20_000


def main() -> int:  # noqa: C901  # the contestants are small functions in it
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    data = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
    if not data.is_dir():
        print("The test data folder is not there.")
        return 0
    lines = (data / "requests" / "requests.jsonl").read_bytes().splitlines()
    records = [json.loads(line) for line in lines]
    engine = engine_for_lists([data / "lists" / "easylist.txt", data / "lists" / "easyprivacy.txt"])
    batches = pa.Table.from_pylist(records).to_batches(BATCH)
    places = Places([("traffic", 0)] * len(lines), list(range(len(lines))))
    known = RuleSet.of_engine(engine)
    answering = Answering(JsonReader())

    def loop() -> None:
        for record in records:
            try:
                kind = ResourceType(record["type"]) if record["type"] in ResourceType else ResourceType.OTHER
                engine.decide(Request(parse_url(record["url"]), parse_url(record["source"]) if record["source"] else None, kind))
            except UrlError:
                continue

    def batched(rules: RuleSet) -> None:
        for batch in batches:
            match_batch(batch, rules)

    def worker(rules: RuleSet) -> None:
        for first in range(0, len(lines), BATCH):
            answers = answering.answer(lines[first : first + BATCH], places.part(first, first + BATCH), rules, 0.0)
            for spliced in answers.decided:
                for _ in spliced.runs():
                    pass

    rows: dict[str, Callable[[], None]] = {
        "loop of decide": loop,
        "match_batch, distinct": lambda: batched(RuleSet.of_engine(engine)),
        "match_batch, repeated": lambda: batched(known),
        "worker without broker, distinct": lambda: worker(RuleSet.of_engine(engine)),
        "worker without broker, repeated": lambda: worker(known),
    }
    spent: dict[str, list[float]] = {name: [] for name in rows}
    for name, work in [*rows.items()] * (options.rounds + 1):
        began = time.process_time()
        work()
        spent[name].append(time.process_time() - began)
    print("| | CPU µs a record | records/CPU-s |\n|---|---|---|")
    for name, times in spent.items():
        each = statistics.median(times[1:]) / len(lines)
        print(f"| {name} | {each * 1e6:.2f} | {1 / each:,.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
