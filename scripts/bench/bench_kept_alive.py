"""CPU of a kept-alive request in this tree against another checkout, precise enough to tell 2 % from noise.

    python scripts/bench/bench_kept_alive.py [--against CHECKOUT] [--starts N] [--rounds N] [--requests N] [--burst N]
                                             [--cores together|apart|free] [--case http|https ...] [--seed N] [--calls]
                                             [--functions N] [--policies]

Prints a Markdown table. Both filters run at once with one worker and `--no-learn`, and answer for one origin that an allow list
names. A round sends the same number of requests to each, in bursts whose order is drawn, and reads both workers' CPU clocks at
its ends: what disturbs the machine disturbs both sides of a pair. Each start has new processes, since its addresses make one
process up to 3 % faster than the next, and a hash seed that both sides share. Without `--against` the tree is compared with
itself (A/A): the ratios then show the noise of the benchmark. The checkout runs with its `.venv`, or with this Python where it
has none.

Ratios are this tree to the other. "Median" is the median of the rounds' ratios. "Lower quartile" divides the lower quartiles of
both sides, which leaves disturbed rounds out; a quartile of the ratios themselves would be below 1 for two equal sides. The
intervals hold 95 % of a bootstrap that draws starts, and rounds within them.

`--calls` counts bytecode instructions and calls of the event loop's thread in place of CPU time (call_count/sitecustomize.py):
the same figures in each run but for timers. They tell nothing of the time that C code and the kernel take.
With `--policies` this tree has a client for the load, in a group with a policy and a schedule; the other one has no policies.
With `--functions` it lists the functions whose instructions differ most, or in A/A those that have most.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path

import numpy as np
import psutil
import trustme
from bench_proxy import free_port, wait_for
from filter_process import Filter
from numpy.typing import NDArray
from proxy_load import origin

ROOT = Path(__file__).resolve().parents[2]
HOST = "localhost"
BODY = b"x" * 1024
CASES = {"http": "HTTP/1.1, plain", "https": "HTTP/1.1 inside intercepted TLS"}
WARM_UP = 500
RESAMPLES = 4000
_HEAD = (
    "GET {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Mozilla/5.0\r\nAccept: image/avif,image/webp,*/*;q=0.8\r\n"
    "Accept-Language: en\r\nAccept-Encoding: gzip\r\nSec-Fetch-Dest: image\r\nSec-Fetch-Mode: no-cors\r\n"
    "Sec-Fetch-Site: same-origin\r\n\r\n"
)
_POLICIES = (
    "policy add kids",
    "policy set kids source.starter-ads=off unknown=hold",
    "group add kids --policy kids",
    "client add tablet --address 127.0.0.1 --group kids",
    "schedule add bedtime --policy kids --block malware --daily 21:00-06:00",
)


@dataclass(frozen=True, slots=True)
class Clocks:
    """CPU time that a worker has used so far, in µs.

    Attributes:
        loop: of the event loop's thread.
        process: of all threads.
    """

    loop: float
    process: float


class Connection:
    """One connection of a client through a filter, to the origin.

    Args:
        port: where the filter listens.
        origin_port: where the origin does.
        ca: the filter's CA for CONNECT and TLS, `None` for plain HTTP.
    """

    def __init__(self, port: int, origin_port: int, ca: Path | None) -> None:
        target = f"{HOST}:{origin_port}"
        self._socket: socket.socket = socket.create_connection(("127.0.0.1", port), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if ca is not None:
            self._socket.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            self._read_until(b"\r\n\r\n")
            self._socket = ssl.create_default_context(cafile=str(ca)).wrap_socket(self._socket, server_hostname=HOST)
        prefix = "" if ca is not None else f"http://{target}"
        self._heads = [_HEAD.format(url=f"{prefix}/page/{number}/picture.png", host=target).encode() for number in range(50)]
        self._next = 0

    def request(self, count: int) -> None:
        """Sends requests one after another and reads their answers."""
        for _ in range(count):
            self._socket.sendall(self._heads[self._next])
            self._next = (self._next + 1) % len(self._heads)
            self._read_until(BODY)

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def _read_until(self, end: bytes) -> None:
        answer = self._socket.recv(65536)
        while not answer.endswith(end):
            data = self._socket.recv(65536)
            if not data:
                break
            answer += data
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the filter answered {answer[:200]!r}")


class Contestant:
    """A filter under test with its one worker.

    Args:
        running: it, started.
        state: its state folder.
    """

    def __init__(self, running: Filter, state: Path) -> None:
        self.port = running.port
        self.ca = state / "ca" / "mitmproxy-ca-cert.pem"
        self.worker = running.workers()[0]
        self._schedstat = Path(f"/proc/{self.worker.pid}/task/{self.worker.pid}/schedstat")
        self._process_clock = (~self.worker.pid << 3) | 2  # CPUCLOCK_SCHED of a process, as clock_getcpuclockid(3) makes it

    def clocks(self) -> Clocks:
        """Returns the CPU time used so far."""
        loop_ns = int(self._schedstat.read_text().split()[0])
        return Clocks(loop_ns / 1e3, time.clock_gettime_ns(self._process_clock) / 1e3)

    def pin(self, core: int) -> None:
        """Keeps all threads of the worker on one core."""
        for thread in self.worker.threads():
            os.sched_setaffinity(thread.id, {core})


@dataclass(slots=True)
class Figures:
    """CPU µs a request of all rounds of a case.

    Attributes:
        loop, process: one array a start, shape (rounds, 2): this tree, the other one.
    """

    loop: list[NDArray[np.float64]] = field(default_factory=list)
    process: list[NDArray[np.float64]] = field(default_factory=list)


@contextlib.contextmanager
def running(
    checkout: Path, folder: Path, origin_ca: Path, hash_seed: int = 0, *, is_counted: bool = False, has_policies: bool = False
) -> Iterator[Contestant]:
    """Runs the filter of a checkout with an allow list that names the origin.

    Args:
        checkout: the tree.
        folder: its state folder.
        origin_ca: what the origin's certificate is verified with.
        hash_seed: of its dictionaries and sets.
        is_counted: whether its workers count when they get SIGUSR2.
        has_policies: whether the load comes from a client with policies.
    """
    folder.mkdir(exist_ok=True)
    allowed = folder.with_suffix(".md5")
    allowed.write_text(md5(f".{HOST}".encode(), usedforsecurity=False).hexdigest() + "\n")
    settings = {
        "GATEWAYFILTER_PROXY__UPSTREAM_CA": str(origin_ca),
        "GATEWAYFILTER_PROXY__UNKNOWN": "block",
        "PYTHONHASHSEED": str(hash_seed),
    }
    if is_counted:
        settings["PYTHONPATH"] = f"{Path(__file__).with_name('call_count')}:{checkout}"
        settings["KEPT_ALIVE_COUNTS"] = str(folder)
    made = Filter(folder, "--workers", "1", "--no-learn", settings=settings, checkout=checkout)
    made.command("source", "add", str(allowed), "--name", "origin", "--format", "digests", "--action", "allow")
    for command in _POLICIES if has_policies else ():
        made.command(*command.split())
    made.start()
    try:
        yield Contestant(made, folder)
    finally:
        made.stop()


def measure_start(
    pair: Sequence[Contestant], origin_port: int, case: str, options: argparse.Namespace, draw: random.Random
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Measures all rounds of one start. Returns µs a request of the loop and of the process, shape (rounds, 2) each."""
    connections = [Connection(one.port, origin_port, one.ca if case == "https" else None) for one in pair]
    for connection in connections:
        connection.request(WARM_UP)
    loop, process = np.empty((options.rounds, 2)), np.empty((options.rounds, 2))
    for number in range(options.rounds):
        before = [one.clocks() for one in pair]
        for _ in range(options.requests // options.burst):
            for side in draw.sample((0, 1), 2):
                connections[side].request(options.burst)
        for side, one in enumerate(pair):
            after = one.clocks()
            loop[number, side] = after.loop - before[side].loop
            process[number, side] = after.process - before[side].process
    for connection in connections:
        connection.close()
    sent = options.requests // options.burst * options.burst
    return loop / sent, process / sent


def median_ratio(rounds: NDArray[np.float64]) -> float:
    """Returns the median of the rounds' ratios."""
    return float(np.median(rounds[:, 0] / rounds[:, 1]))


def quartile_ratio(rounds: NDArray[np.float64]) -> float:
    """Returns the ratio of the lower quartiles."""
    low = np.quantile(rounds, 0.25, axis=0)
    return float(low[0] / low[1])


def pooled(starts: Sequence[NDArray[np.float64]], of: Callable[[NDArray[np.float64]], float]) -> float:
    """Returns the mean over starts: a start counts once, whatever its machine did meanwhile."""
    return float(np.mean([of(one) for one in starts]))


def interval(
    starts: Sequence[NDArray[np.float64]], of: Callable[[NDArray[np.float64]], float], draw: np.random.Generator
) -> tuple[float, float]:
    """Returns the 95 % interval of a bootstrap that draws starts, and rounds within them."""
    found = np.empty((len(starts), RESAMPLES // 10))
    for start, rounds in enumerate(starts):
        for number in range(found.shape[1]):
            found[start, number] = of(rounds[draw.integers(0, len(rounds), len(rounds))])
    picked = draw.integers(0, len(starts), (RESAMPLES, len(starts)))
    resample = draw.integers(0, found.shape[1], picked.shape)
    means = found[picked, resample].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def shown(starts: Sequence[NDArray[np.float64]], of: Callable[[NDArray[np.float64]], float], draw: np.random.Generator) -> str:
    """Returns a ratio as a difference in %, with its interval."""
    low, high = interval(starts, of, draw)
    return f"{pooled(starts, of) - 1:+.1%} ({low - 1:+.1%} … {high - 1:+.1%})"


def pin(pair: Sequence[Contestant], site: psutil.Process, cores: str) -> None:
    """Keeps workers, origin and this process on one core, or ("apart") the workers on the first and the others on the last."""
    if cores == "free":
        return
    every = sorted(os.sched_getaffinity(0))
    for one in pair:
        one.pin(every[0])
    others = every[0] if cores == "together" else every[-1]
    for task in (os.getpid(), *(thread.id for one in (site, *site.children(recursive=True)) for thread in one.threads())):
        os.sched_setaffinity(task, {others})


def measure_time(folder: Path, ports: Sequence[int], site: psutil.Process, options: argparse.Namespace) -> None:
    """Prints CPU time of both trees."""
    draw = random.Random(options.seed)
    found = {case: Figures() for case in options.case}
    every = os.sched_getaffinity(0)
    for start in range(options.starts):
        with contextlib.ExitStack() as stack:
            trees = [ROOT, options.against or ROOT]
            order, hash_seed = draw.sample((0, 1), 2), draw.randrange(1, 2**32)
            pair: dict[int, Contestant] = {}
            for side in order:
                name = folder / f"{start}-{side}"
                of_client = options.policies and side == 0
                made = running(trees[side], name, folder / "origin-ca.pem", hash_seed, has_policies=of_client)
                pair[side] = stack.enter_context(made)
            both = [pair[0], pair[1]]
            pin(both, site, options.cores)
            for case in draw.sample(options.case, len(options.case)):
                loop, process = measure_start(both, ports[case == "https"], case, options, draw)
                found[case].loop.append(loop)
                found[case].process.append(process)
                line = f"start {start + 1}, {case}: loop {median_ratio(loop):.4f}, process {median_ratio(process):.4f}"
                print(line, file=sys.stderr, flush=True)
            os.sched_setaffinity(0, every)
    resampling = np.random.default_rng(options.seed)
    other = "itself (A/A)" if options.against is None else "the other"
    print(f"| kept-alive GET, 1 KB, CPU | this tree, µs | {other}, µs | median | lower quartile |\n|---|---|---|---|---|")
    for case, figures in found.items():
        for title, starts in (("event loop", figures.loop), ("whole worker", figures.process)):
            middle = np.mean([np.median(one, axis=0) for one in starts], axis=0)
            ratios = f"{shown(starts, median_ratio, resampling)} | {shown(starts, quartile_ratio, resampling)}"
            print(f"| {CASES[case]}: {title} | {middle[0]:.1f} | {middle[1]:.1f} | {ratios} |")


@dataclass(frozen=True, slots=True)
class Counts:
    """What the event loop's thread executed for a request.

    Attributes:
        instructions, calls: bytecode instructions; calls of Python and C functions.
        functions: instructions by qualified name.
    """

    instructions: float
    calls: float
    functions: dict[str, float]


def count(one: Contestant, connection: Connection, requests: int, folder: Path) -> Counts:
    """Returns what requests on a warm connection have the worker execute."""
    written = folder / f"{one.worker.pid}.json"
    written.unlink(missing_ok=True)
    os.kill(one.worker.pid, signal.SIGUSR2)
    connection.request(requests)
    os.kill(one.worker.pid, signal.SIGUSR2)
    while not written.exists():
        time.sleep(0.01)
    found = json.loads(written.read_text())
    functions = {name: number / requests for name, number in found["functions"].items()}
    return Counts(found["instructions"] / requests, found["calls"] / requests, functions)


def least_counts(one: Contestant, port: int, case: str, requests: int, folder: Path) -> Counts:
    """Returns the counts of the least of seven rounds: timers only add."""
    connection = Connection(one.port, port, one.ca if case == "https" else None)
    connection.request(WARM_UP)
    rounds = [count(one, connection, requests, folder) for _ in range(7)]
    connection.close()
    return min(rounds, key=lambda counts: counts.instructions)


def print_functions(this: Counts, that: Counts, most: int, *, is_same: bool) -> None:
    """Prints the functions that differ most; those of one tree with itself by their instructions."""
    print("\n| function | this tree | the other | more |\n|---|---|---|---|")
    names = this.functions.keys() | that.functions.keys()
    pairs = {name: (this.functions.get(name, 0.0), that.functions.get(name, 0.0)) for name in names}
    shown = sorted(pairs, key=lambda name: pairs[name][0] if is_same else abs(pairs[name][0] - pairs[name][1]), reverse=True)
    for name in shown[:most]:
        print(f"| {name} | {pairs[name][0]:.1f} | {pairs[name][1]:.1f} | {pairs[name][0] - pairs[name][1]:+.1f} |")


def measure_calls(folder: Path, ports: Sequence[int], options: argparse.Namespace) -> None:
    """Prints instructions and calls of both trees."""
    other = "itself (A/A)" if options.against is None else "the other"
    print(f"| kept-alive GET, 1 KB, event loop | this tree | {other} | difference |\n|---|---|---|---|")
    folders = [folder / "counted-0", folder / "counted-1"]
    least: dict[str, list[Counts]] = {}
    with contextlib.ExitStack() as stack:
        pair = [
            stack.enter_context(running(tree, name, folder / "origin-ca.pem", is_counted=True, has_policies=has_policies))
            for tree, name, has_policies in (
                (ROOT, folders[0], options.policies),
                (options.against or ROOT, folders[1], False),
            )
        ]
        for case in options.case:
            port = ports[case == "https"]
            least[case] = [least_counts(one, port, case, options.requests, name) for one, name in zip(pair, folders, strict=True)]
            this, that = least[case]
            for what, mine, theirs in (
                ("instructions", this.instructions, that.instructions),
                ("calls", this.calls, that.calls),
            ):
                print(f"| {CASES[case]}: {what} | {mine:.1f} | {theirs:.1f} | {mine / theirs - 1:+.2%} |", flush=True)
    if options.functions:
        for this, that in least.values():
            print_functions(this, that, options.functions, is_same=options.against is None)


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="the other checkout (default: this one again)")
    parser.add_argument("--starts", type=int, default=24, help="how often both filters are started")
    parser.add_argument("--rounds", type=int, default=25, help="of each start and case")
    parser.add_argument("--requests", type=int, default=100, help="of each side in a round")
    parser.add_argument("--burst", type=int, default=10, help="requests in a row to one side")
    parser.add_argument("--cores", choices=("together", "apart", "free"), default="together", help="where workers and load run")
    parser.add_argument("--case", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", action="store_true", help="count instructions and calls in place of CPU time")
    parser.add_argument("--policies", action="store_true", help="this tree has policies for the client, the other has none")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="with --calls, list N functions of each case")
    options = parser.parse_args()
    if options.against is not None:
        options.against = options.against.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(folder / "origin-ca.pem"))
        authority.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(str(folder / "origin.pem"))
        ports = [free_port(), free_port()]
        with origin(folder / "origin", ports, folder / "origin.pem", BODY) as site:
            wait_for(ports[0])
            if options.calls:
                measure_calls(folder, ports, options)
            else:
                measure_time(folder, ports, site.process, options)


if __name__ == "__main__":
    main()
