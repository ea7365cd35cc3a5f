"""Times of requests through the proxy while the log cannot be written: the database locked, its disk full, and undisturbed.

    python scripts/bench/bench_log_outage.py [--rounds 3] [--seconds 30] [--rate 300]

One worker, kept-alive requests of one connection at a steady rate, spans of each kind in turn. A locked span has another process
hold SQLite's write lock. The database lies on a small tmpfs in a mount namespace of this process; a full span fills it. Where
mounts are not allowed, the full spans are left out. Printed are percentiles of the time from the first byte sent to the last one
received, and what became of the decisions: a row stored for each, or one counted as dropped.
"""

import argparse
import json
import multiprocessing
import os
import socket
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from subprocess import run
from typing import Final

import trustme
from bench_proxy import free_port, wait_for
from filter_process import Filter
from proxy_load import origin

BODY: Final = b"x" * 1024
MEGABYTES: Final = 160
WARM_UP: Final = 300
PERCENTILES: Final = (50, 90, 99, 99.9, 100)
CATCH_UP_S: Final = 60.0


class TimedClient:
    """A kept-alive connection through the proxy, whose URLs are all different."""

    def __init__(self, port: int, origin_port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._host = f"localhost:{origin_port}"
        self.sent = 0

    def request(self) -> float:
        """Returns the milliseconds of a request."""
        self.sent += 1
        head = (
            f"GET http://{self._host}/page/{self.sent}.png HTTP/1.1\r\nHost: {self._host}\r\nUser-Agent: bench\r\n"
            "Accept: image/png\r\nSec-Fetch-Dest: image\r\nSec-Fetch-Site: same-origin\r\n\r\n"
        ).encode()
        began = time.perf_counter()
        self._socket.sendall(head)
        answer = b""
        while not answer.endswith(BODY):
            data = self._socket.recv(65536)
            if not data:
                raise SystemExit(f"the filter answered {answer[:200]!r}")
            answer += data
        return (time.perf_counter() - began) * 1000

    def span(self, seconds: float, rate: float) -> list[float]:
        """Returns the milliseconds of each request of a span."""
        begun, times = time.perf_counter(), list[float]()
        while (passed := time.perf_counter() - begun) < seconds:
            if len(times) < passed * rate:
                times.append(self.request())
            else:
                time.sleep(0.001)
        return times


def hold_lock(file: Path, held: Event, release: Event) -> None:
    """Holds the write lock until it is released. Polls for it: SQLite's own waiting loses against busy writers."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=0.0)) as connection:
        while not held.is_set():
            with suppress(sqlite3.OperationalError):
                connection.execute("BEGIN EXCLUSIVE")
                held.set()
                break
            time.sleep(0.001)
        release.wait()
        connection.execute("ROLLBACK")


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Has another process hold the lock meanwhile."""
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    process = context.Process(target=hold_lock, args=(file, held, release))
    process.start()
    held.wait()
    try:
        yield
    finally:
        release.set()
        process.join()


@contextmanager
def full(file: Path) -> Iterator[None]:
    """Fills the file system of a file meanwhile."""
    filler = file.with_name("filler")
    with filler.open("wb", buffering=0) as opened, suppress(OSError):
        while opened.write(bytes(4096)):
            pass
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def undisturbed(_: Path) -> Iterator[None]:
    """Disturbs nothing."""
    yield


def small_disk(folder: Path) -> bool:
    """Mounts a tmpfs that other processes of the machine do not see. Returns whether that is allowed."""
    folder.mkdir()
    try:
        os.unshare(os.CLONE_NEWNS)
    except OSError:
        return False
    commands = (("--make-rprivate", "/"), ("-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=700", "log", str(folder)))
    return all(run(("mount", *command), check=False).returncode == 0 for command in commands)


def percentile(times: Sequence[float], of_hundred: float) -> float:
    """Returns a percentile of sorted times."""
    return times[min(int(len(times) * of_hundred / 100), len(times) - 1)]


def counters(state: Path) -> dict[str, int]:
    """Returns the counters of the worker."""
    found: dict[str, int] = json.loads((state / "run" / "proxy-0.json").read_text())["counters"]
    return found


def rows(file: Path) -> int:
    """Returns the number of stored decisions."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM decisions").fetchone()[0])


def measure(folder: Path, options: argparse.Namespace) -> None:
    """Runs the spans and prints the tables."""
    disk = folder / "disk"
    kinds: dict[str, Callable[[Path], AbstractContextManager[None]]] = {"undisturbed": undisturbed, "locked": locked}
    if small_disk(disk):
        kinds["full"] = full
    file, state = disk / "log.sqlite3", folder / "state"
    certificate = folder / "origin.pem"
    ports = free_port(), free_port()
    issued = trustme.CA().issue_cert("localhost")
    certificate.write_bytes(issued.private_key_pem.bytes() + issued.cert_chain_pems[0].bytes())
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    with origin(folder / "origin", ports, certificate, BODY):
        wait_for(ports[0])
        made = Filter(state, "--workers", "1", "--no-learn", settings={"GATEWAYFILTER_STORE__URL": f"sqlite:///{file}"})
        made.start()
        client = TimedClient(made.port, ports[0])
        for _ in range(WARM_UP):
            client.request()
        for number in range(options.rounds):
            for kind, disturbed in kinds.items():
                before = counters(state)
                with disturbed(file):
                    times[kind] += client.span(options.seconds, options.rate)
                deadline = time.monotonic() + CATCH_UP_S
                while rows(file) + counters(state).get("log_dropped", 0) < client.sent and time.monotonic() < deadline:
                    time.sleep(0.2)
                after = counters(state)
                refused = after.get("store_errors", 0) - before.get("store_errors", 0)
                print(f"round {number + 1}, {kind}: {refused} tries refused", file=sys.stderr, flush=True)
        stored, dropped = rows(file), counters(state).get("log_dropped", 0)
        made.stop()
    print(f"{options.rate:.0f}/s, spans of {options.seconds:.0f} s, load {os.getloadavg()[0]:.0f}\n")
    print(f"| ms | requests | {' | '.join(f'p{one:g}' for one in PERCENTILES)} |\n|---|---|{'---|' * len(PERCENTILES)}")
    for kind, found in times.items():
        found.sort()
        print(f"| {kind} | {len(found):,} | {' | '.join(f'{percentile(found, one):.2f}' for one in PERCENTILES)} |")
    print(f"\nOf {client.sent:,} decisions {stored:,} were stored and {dropped:,} dropped.")


def main(argv: Sequence[str] | None = None) -> int:
    """Prints Markdown tables. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=300.0)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        try:
            measure(Path(name), options)
        finally:
            run(("umount", "-l", f"{name}/disk"), check=False, capture_output=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
