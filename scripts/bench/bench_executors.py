"""The speed-up over 1 to 6 executors ([ad-traffic], J = T0 / Ts), simulated by CPU quotas on a machine with fewer cores.

An executor is a process that decides its share of the batches with `match_batch`, as Spark's Python workers do, from Arrow
batches in memory; Spark's JVM and Kafka are not in it. One that is ahead of its quota of CPU time is stopped (SIGSTOP) until it
is no longer, so that six of them fit on a part of one core: cgroups would change the machine. Time is by the clock, from when
all have their rules; batches go out one by one.

    python scripts/bench/bench_executors.py [--share 0.05] [--records 240000] [--plot docs/images/executors.svg]
"""

import argparse
import json
import multiprocessing
import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from gatewayfilter.scaleout.stream.batch import match_batch
from gatewayfilter.scaleout.stream.rule_set import RuleSet
from gatewayfilter.wiring import engine_for_lists

BATCH = 2_000
TICK_S = 0.01
MOST = 6


def execute(rules: RuleSet, batches: list[pa.RecordBatch], numbers: "Queue[int]", ready: Connection) -> None:
    """Decides batches until there are none: a forked process."""
    match_batch(batches[0].slice(0, 1), rules)
    ready.send(True)
    while (number := numbers.get()) >= 0:
        match_batch(batches[number], rules)


def run(count: int, share: float, engine: Any, batches: list[pa.RecordBatch]) -> tuple[float, float]:
    """Returns the seconds until `count` executors have decided all batches, and the CPU seconds that they took."""
    context = multiprocessing.get_context("fork")
    numbers = context.Queue()
    executors, pipes = [], []
    for _ in range(count):
        receiver, sender = context.Pipe(duplex=False)
        executor = context.Process(target=execute, args=(RuleSet.of_engine(engine), batches, numbers, sender))
        executor.start()
        executors.append(executor)
        pipes.append(receiver)
    for pipe in pipes:
        pipe.recv()
    running = {psutil.Process(executor.pid): 0.0 for executor in executors}
    before = {process: _cpu(process) for process in running}
    began = time.monotonic()
    for number in [*range(len(batches)), *[-1] * count]:
        numbers.put(number)
    spent = dict.fromkeys(running, 0.0)
    stopped: set[psutil.Process] = set()
    while any(executor.is_alive() for executor in executors):
        time.sleep(TICK_S)
        allowed = (time.monotonic() - began) * share
        for process in running:
            spent[process] = max(spent[process], _cpu(process) - before[process])
            ahead = spent[process] > allowed
            if ahead != (process in stopped):
                (stopped.add if ahead else stopped.discard)(process)
                _signal(process, signal.SIGSTOP if ahead else signal.SIGCONT)
    return time.monotonic() - began, sum(spent.values())


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def _signal(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.Error:
        return


def main() -> int:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.05, help="of a core, for each executor")
    parser.add_argument("--records", type=int, default=240_000)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw the table there (SVG)")
    options = parser.parse_args()
    data = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
    if not data.is_dir():
        print("The test data folder is not there.")
        return 0
    real = [json.loads(line) for line in (data / "requests" / "requests.jsonl").read_bytes().splitlines()]
    records = []
    for number in range(options.records):
        record = dict(real[number % len(real)])
        record["url"] += f"{'&' if '?' in record['url'] else '?'}n={number}"
        records.append(record)
    batches = pa.Table.from_pylist(records).to_batches(BATCH)
    engine = engine_for_lists([data / "lists" / "easylist.txt", data / "lists" / "easyprivacy.txt"])
    print(f"load average {os.getloadavg()[0]:.1f}; {options.records:,} distinct records, {options.share:.0%} of a core each\n")
    print("| executors | s | speed-up | CPU µs a record | share of a core that each got |\n|---|---|---|---|---|")
    speed_ups: list[float] = []
    first_s = 0.0
    for count in range(1, MOST + 1):
        spent_s, cpu_s = run(count, options.share, engine, batches)
        first_s = first_s or spent_s
        speed_ups.append(first_s / spent_s)
        each = cpu_s / options.records * 1e6
        print(f"| {count} | {spent_s:.1f} | {speed_ups[-1]:.2f} | {each:.2f} | {cpu_s / spent_s / count:.1%} |", flush=True)
    print(f"\nload average {os.getloadavg()[0]:.1f} after")
    if options.plot:
        _draw(options.plot, speed_ups)
    return 0


def _draw(file: Path, speed_ups: list[float]) -> None:
    import matplotlib as mpl  # noqa: PLC0415  # takes a second, for --plot alone

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "gatewayfilter"
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(5.2, 3.2))
    counts = range(1, len(speed_ups) + 1)
    axes.plot(counts, counts, linestyle="--", color="grey", label="as many times as fast")
    axes.plot(counts, speed_ups, marker="o", label="measured")
    axes.set_xlabel("executors, each with an equal quota of CPU time")
    axes.set_ylabel("speed-up")
    axes.legend()
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main())
