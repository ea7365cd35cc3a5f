"""Publishing and swapping while the real proxy serves 300 requests/s: failures, latency, memory of the workers.

    python scripts/bench/bench_swap.py [--domains 1000000] [--rate 300] [--seconds 20] [--lists FILE ...]

`gatewayfilter run` with two workers on loopback; requests go out by the clock, whether or not earlier ones have been answered,
and their latency counts from the moment they were due. First a quiet time, then as long with publications one after the other, of
three kinds in turn: a person's rule changes, and the next snapshot follows from the one in use; an Adblock list changes, so
that everything is built anew and each worker opens all Adblock rules anew; and `publish --full`. What a publication takes
from the two cores is part of what is measured.
"""

import argparse
import asyncio
import itertools
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench_proxy import BODY, DATA, free_port, run_origin, wait_for
from bench_publish import write_domains
from filter_process import Filter

SPAWN = multiprocessing.get_context("spawn")
CONNECTIONS = 32
SAMPLE_S = 0.05


@dataclass(slots=True)
class Phase:
    """What was seen: seconds of each request, failures, the workers' highest memory in MB by process id."""

    name: str
    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    highest: dict[int, float] = field(default_factory=dict)
    publications: list[str] = field(default_factory=list)

    def quantile_ms(self, share: float) -> float:
        """Returns a quantile of the latencies."""
        return sorted(self.latencies)[min(len(self.latencies) - 1, int(share * len(self.latencies)))] * 1e3


async def drive(phase: Phase, proxy_port: int, origin_port: int, rate: int, seconds: float) -> None:
    """Sends requests by the clock over keep-alive connections."""
    loop = asyncio.get_running_loop()
    due: asyncio.Queue[tuple[int, float] | None] = asyncio.Queue()

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy_port)
        while (item := await due.get()) is not None:
            number, at = item
            path = f"/page/{number % 500}/article.html"
            head = (
                f"GET http://localhost:{origin_port}{path} HTTP/1.1\r\nHost: localhost:{origin_port}\r\nUser-Agent: bench\r\n"
                "Accept: text/html,*/*;q=0.8\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n\r\n"
            )
            try:
                writer.write(head.encode())
                answer = await reader.readuntil(b"\r\n\r\n")
                if not answer.startswith(b"HTTP/1.1 200"):
                    phase.failures.append(answer[:80].decode("latin-1"))
                    return
                await reader.readexactly(len(BODY))
            except (OSError, asyncio.IncompleteReadError) as error:
                phase.failures.append(repr(error))
                return
            phase.latencies.append(loop.time() - at)
        writer.close()

    tasks = [asyncio.create_task(one()) for _ in range(CONNECTIONS)]
    begin = loop.time() + 0.5
    for number in range(int(rate * seconds)):
        at = begin + number / rate
        await asyncio.sleep(max(0.0, at - loop.time()))
        due.put_nowait((number, at))
    for _ in tasks:
        due.put_nowait(None)
    await asyncio.gather(*tasks)


class Watch:
    """Samples the workers' memory until it is stopped."""

    def __init__(self, filter_: Filter, phase: Phase) -> None:
        self._workers = filter_.workers()
        self._phase = phase
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            for worker in self._workers:
                used = worker.memory_info().rss / 1e6
                self._phase.highest[worker.pid] = max(used, self._phase.highest.get(worker.pid, 0.0))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def publish_until(stop: threading.Event, filter_: Filter, rules: Path, phase: Phase, pause_s: float) -> None:
    """Publishes one after the other, of three kinds in turn."""
    for number in itertools.count():
        if stop.is_set():
            return
        kind = ("rules", "following", "full")[number % 3]
        if kind == "following":
            filter_.command("list", "add", f"site{number}.example")
        elif kind == "rules":
            rules.write_text(f"[Adblock Plus 2.0]\n||changed{number}.example^$third-party\n")
        begin = time.monotonic()
        if kind == "rules":
            filter_.command("source", "update", "changing")
        else:
            filter_.command("publish", *(["--full"] if kind == "full" else []))
        phase.publications.append(f"{kind} {time.monotonic() - begin:.1f} s")
        stop.wait(pause_s)


def measure(folder: Path, options: argparse.Namespace) -> list[Phase]:
    """Runs both phases."""
    port = free_port()
    origin = SPAWN.Process(target=run_origin, args=([port, free_port()], _certificate(folder)), daemon=True)
    origin.start()
    wait_for(port)
    state = folder / "state"
    settings = {"GATEWAYFILTER_LEARN__ENABLED": "false"}
    filter_ = Filter(state, "--workers", "2", settings=settings)
    write_domains(folder / "domains.txt", options.domains)
    filter_.command("source", "add", str(folder / "domains.txt"), "--name", "domains", "--category", "gambling")
    rules = folder / "changing.txt"
    rules.write_text("[Adblock Plus 2.0]\n||changed.example^$third-party\n")
    for name in (*options.lists, str(rules)):
        filter_.command("source", "add", name, "--no-publish")
    filter_.command("publish")
    filter_.start()
    phases = [Phase("quiet"), Phase("publishing and swapping")]
    try:
        asyncio.run(drive(Phase("warm-up"), filter_.port, port, options.rate, 3))
        for phase in phases:
            stop = threading.Event()
            publisher = threading.Thread(target=publish_until, args=(stop, filter_, rules, phase, options.pause))
            with Watch(filter_, phase):
                if phase is phases[1]:
                    publisher.start()
                asyncio.run(drive(phase, filter_.port, port, options.rate, options.seconds))
            stop.set()
            if phase is phases[1]:
                publisher.join()
    finally:
        filter_.stop()
        origin.terminate()
    return phases


def _certificate(folder: Path) -> str:
    import trustme  # noqa: PLC0415  only the origin's HTTPS port, which is not asked, wants it

    path = folder / "origin.pem"
    trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(path))
    return str(path)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a Markdown table. Returns 1 when a request failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=300, help="requests a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two publications")
    lists = [str(path) for name in ("easylist.txt", "easyprivacy.txt") for path in sorted(DATA.glob(f"**/{name}"))[:1]]
    parser.add_argument("--lists", nargs="*", default=lists, help="Adblock lists (default: those of the test data)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        quiet, busy = measure(Path(folder), options)
    print("| phase | requests | failed | median ms | p99 ms | p99.9 ms | highest resident MB of each worker |")
    print("|---|---|---|---|---|---|---|")
    for phase in (quiet, busy):
        quantiles = " | ".join(f"{phase.quantile_ms(share):.1f}" for share in (0.5, 0.99, 0.999))
        resident = ", ".join(f"{used:.0f}" for used in phase.highest.values())
        print(f"| {phase.name} | {len(phase.latencies):,} | {len(phase.failures)} | {quantiles} | {resident} |")
    grown = max(busy.highest[pid] - quiet.highest[pid] for pid in quiet.highest)
    added = busy.quantile_ms(0.99) - quiet.quantile_ms(0.99)
    print(f"\n{len(busy.publications)} publications: {', '.join(busy.publications)}; load average {os.getloadavg()[0]:.1f}.")
    print(f"p99 rose by {added:.1f} ms, the memory of no worker by more than {grown:.0f} MB.")
    failed = quiet.failures + busy.failures
    if failed:
        print("\n".join(dict.fromkeys(failed)))
    assert statistics.median(quiet.latencies) > 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
