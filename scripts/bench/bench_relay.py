"""What passes through: spliced connections beside intercepted ones and haproxy in TCP mode, streams, many connections.

    python scripts/bench/bench_relay.py [--rounds N] [--gigabytes N] [--connections N] [--stream-mb N] [--idle N] [--active N]
                                       [--only PART ...]

Prints Markdown tables. CPU time is that of the proxy's process alone, user and system, all its threads, with what it does beside
the connections (a worker follows the lists and writes its log); client and origin are processes of their own on loopback. Of each
round the parts take turns, and the first round warms up. One worker with its log and its frontier; `gatewayfilter run` with one
worker for what memory really is. haproxy comes from `apt-get install haproxy`; without it, its rows are left out.
"""

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psutil
import trustme
from bench_proxy import free_port, wait_for
from relay_contestants import SPAWN, Contestant, forked, haproxy, worker
from relay_load import connect_often, cpu, download, first_byte_ms, hold_many, request_often, stream_many
from relay_origin import raise_limit, run_origin

PARTS = ("splice", "https", "many", "streams")


def measure_splice(spliced: Contestant, relay: Contestant | None, ports: Sequence[int], options: argparse.Namespace) -> None:
    """Prints bytes and connections through the relay beside haproxy."""
    size = int(options.gigabytes * 1e9)
    print("| passed through unread | CPU s/GB | CPU µs/new connection |\n|---|---|---|")
    contestants = [one for one in (spliced, relay) if one is not None]
    figures: dict[str, list[tuple[float, float]]] = {one.name: [] for one in contestants}
    for number in range(options.rounds + 1):
        for one in contestants:
            bulk = cpu(one, lambda one=one: download(one, ports[0], size)) / options.gigabytes  # type: ignore[misc]
            new = cpu(one, lambda one=one: connect_often(one, ports[0], options.connections)) / options.connections  # type: ignore[misc]
            if number:
                figures[one.name].append((bulk, new * 1e6))
    for name, found in figures.items():
        print(f"| {name} | {statistics.median(f[0] for f in found):.2f} | {statistics.median(f[1] for f in found):.0f} |")
    print()


def measure_https(contestants: Sequence[Contestant], ports: Sequence[int], folder: Path, options: argparse.Namespace) -> None:
    """Prints HTTPS through relays beside HTTPS that is looked into, which is the second contestant."""
    spliced, opened_up = contestants[:2]
    print(f"| HTTPS, 1 KB, CPU µs | {' | '.join(one.name for one in contestants)} | spliced to intercepted |")
    print("|---" * (len(contestants) + 2) + "|")
    count = options.connections
    for title, each_new in (("a request, keep-alive", False), ("a request with its connection", True)):
        figures: dict[str, list[float]] = {one.name: [] for one in contestants}
        for number in range(options.rounds + 1):
            for one in contestants:
                ca = one.ca if one is opened_up and one.ca is not None else folder / "origin-ca.pem"
                used = asyncio.run(request_often(one, ports[1], count, ca, each_new=each_new))
                if number:
                    figures[one.name].append(used / count * 1e6)
        median = {name: statistics.median(found) for name, found in figures.items()}
        ratios = [low / high for low, high in zip(figures[spliced.name], figures[opened_up.name], strict=True)]
        shown = " | ".join(f"{median[one.name]:.0f}" for one in contestants)
        print(f"| {title} | {shown} | {statistics.median(ratios):.3f} |")
    print()


def measure_streams(proxy: Contestant, ports: Sequence[int], options: argparse.Namespace) -> None:
    """Prints the first byte of a large body, and memory while ten of them run."""

    async def compare() -> float:
        target = f"localhost:{ports[0]}"
        late = []
        for _ in range(options.rounds * 3):
            direct = await first_byte_ms(ports[0], target, proxied=False)
            late.append(await first_byte_ms(proxy.port, target, proxied=True) - direct)
        return statistics.median(late)

    late = asyncio.run(compare())
    most = asyncio.run(stream_many(proxy, ports[0], options.stream_mb * 1_000_000, 10))
    print(f"| streams of {options.stream_mb} MB by HTTP | |\n|---|---|")
    print(f"| first byte, later than direct | {late:.1f} ms |")
    shared = most - psutil.Process(proxy.pid).memory_full_info().uss / 1e6
    print(f"| most resident memory of the worker while ten run | {most:.0f} MB, of it shared with others {shared:.0f} MB |\n")


def measure_many(proxy: Contestant, ports: Sequence[int], options: argparse.Namespace) -> None:
    """Prints what becomes of requests while many connections are held."""
    answered, took = asyncio.run(hold_many(proxy, ports[0], options.idle, options.active, 10))
    print(f"| {options.idle:,} idle and {options.active:,} active connections | |\n|---|---|")
    print(f"| requests answered | {answered:,} of {options.active * 10:,}, {answered / took:.0f}/s |")
    print(f"| resident memory | {proxy.rss_mb():.0f} MB |\n")


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--connections", type=int, default=500, help="or requests, in each round")
    parser.add_argument("--stream-mb", type=int, default=400)
    parser.add_argument("--idle", type=int, default=2000)
    parser.add_argument("--active", type=int, default=500)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    options = parser.parse_args()
    raise_limit()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(folder / "origin-ca.pem"))
        authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(folder / "origin.pem"))
        ports = [free_port(), free_port()]
        origin = SPAWN.Process(target=run_origin, args=(ports, str(folder / "origin.pem")), daemon=True)
        origin.start()
        wait_for(ports[0])
        if {"splice", "https", "many"} & set(options.only):
            measure_workers(folder, ports, options)
        if "streams" in options.only:
            with forked(folder / "forked") as alone:
                measure_streams(alone, ports, options)
        origin.terminate()


def measure_workers(folder: Path, ports: Sequence[int], options: argparse.Namespace) -> None:
    """Runs the workers and haproxy side by side."""
    with (
        worker(folder / "spliced", "GatewayFilter, listener", [".localhost"]) as spliced,
        worker(folder / "opened", "GatewayFilter, intercepting", []) as opened_up,
        haproxy(folder, ports) as relay,
    ):
        if "splice" in options.only:
            measure_splice(spliced, relay, ports, options)
        if "https" in options.only:
            measure_https([one for one in (spliced, opened_up, relay) if one is not None], ports, folder, options)
        if "many" in options.only:
            measure_many(spliced, ports, options)


if __name__ == "__main__":
    main()
