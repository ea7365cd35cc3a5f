"""Synthetic loads: CPU of the proxy a request, GatewayFilter, `mitmdump -q`, squid with ssl-bump and e2guardian in turns.

    python scripts/bench/bench_loads.py [--rounds N] [--requests N] [--megabytes N] [--lists FILE ...]
        [--loads WORDS ...] [--only NAME ...] [--against CHECKOUT]

Each load is sent through each contestant in each round, and each body is compared with what the origin sent; the first round does
not count. Figures are of all processes of a proxy, after connections have been opened, except in the load of new connections.
e2guardian is not set up for intercepted TLS: it has plain HTTP alone. Prints two Markdown tables: CPU a request, and CPU a
megabyte of a streamed body. Needs what bench_browsing.py needs, without Chromium; e2guardian where it is installed.
"""

import argparse
import contextlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench_browsing import DIRECT, OTHER, OURS, OURS_H2, SQUID, STOCK, Road, roads
from bench_handshakes import FIELDS
from bench_proxy import DATA, free_port, wait_for
from browsing_web import Web, make_graph
from loads_client import H1, H2, Client, Target, Way, dealt
from proxy_peers import e2guardian

E2GUARDIAN: Final = "e2guardian"
_PEERS: Final = (STOCK, SQUID, E2GUARDIAN, OURS_H2)
HOSTS: Final = 40
_SETTLE_S: Final = 0.1
_FIRST_FILE: Final = 100
"""The numbers below are those of the pages' own files."""
_KINDS: Final = ("script", "script", "stylesheet", "xmlhttprequest", "other")
_FILES: Final = 30
_STREAMS: Final = 4
"""Bodies a round."""
_BROWSER: Final = dict(line.split(": ", 1) for line in FIELDS.splitlines())
_SHORT: Final = {"Accept": "*/*", "User-Agent": "bench"}


@dataclass(frozen=True, slots=True)
class Load:
    """A kind of traffic.

    Attributes:
        name: in the table.
        way: how requests reach the proxy.
        connections: at once.
        one_url: the same URL each time.
        each_new: a connection for each request, which counts.
    """

    name: str
    way: Way
    connections: int
    one_url: bool = False
    each_new: bool = False


LOADS: Final = (
    Load("HTTP, one URL, 1 KB", Way(_SHORT), 32, one_url=True),
    Load("HTTP, 40 hosts", Way(_BROWSER), 32),
    Load("HTTPS, 40 hosts, HTTP/1.1", Way(_BROWSER, (H1,)), 8),
    Load("HTTPS, 40 hosts, the client offers HTTP/2 and HTTP/1.1", Way(_BROWSER, (H2, H1)), 8),
    Load("HTTPS, 40 hosts, the client offers HTTP/2 alone", Way(_BROWSER, (H2,)), 8),
    Load("a new intercepted TLS connection with one request", Way(_BROWSER, (H1,)), 8, each_new=True),
)
STREAMS: Final = (
    Load("HTTP", Way(_SHORT), 1),
    Load("HTTPS, HTTP/1.1", Way(_SHORT, (H1,)), 1),
    Load("HTTPS, the client offers HTTP/2 alone", Way(_SHORT, (H2,)), 1),
)
_ALL: Final = (LOADS, STREAMS)


@dataclass(slots=True)
class Result:
    """Of a load through a proxy: CPU seconds of each round a request, requests sent, those that failed, protocols spoken."""

    cpu: list[float] = field(default_factory=list)
    sent: int = 0
    failed: list[str] = field(default_factory=list)
    protocols: set[str] = field(default_factory=set)


class Targets:
    """What is requested.

    Args:
        web: where the files are added.
        megabytes: of a streamed body.
    """

    def __init__(self, web: Web, megabytes: int) -> None:
        self._hosts = web.http2_hosts[:HOSTS]
        self._chance = random.Random(11)
        self._one = Target(self._hosts[0], f"/other/{_FIRST_FILE}/page", web.add("other", _FIRST_FILE, 1024)[1:])
        self._stream = Target(self._hosts[0], f"/media/{_FIRST_FILE}/film", web.add("media", _FIRST_FILE, megabytes * 1_000_000))
        kinds = [_KINDS[number % len(_KINDS)] for number in range(_FILES)]
        self._files = [
            (kind, _FIRST_FILE + 1 + number, web.add(kind, _FIRST_FILE + 1 + number, (number + 1) * 1024))
            for number, kind in enumerate(kinds)
        ]

    def streams(self) -> list[Target]:
        """Returns the requests for large bodies."""
        return [self._stream] * _STREAMS

    def queues(self, load: Load, count: int) -> Iterator[list[list[Target]]]:
        """Yields what the connections of a load request, by groups of connections that are open together."""
        if load.one_url:
            yield [list(queue) for queue in dealt([self._one] * count, load.connections)]
        elif not load.way.offered:
            made = [self._make(self._hosts[number % HOSTS]) for number in range(count)]
            yield [list(queue) for queue in dealt(made, load.connections)]
        else:
            for start in range(0, HOSTS, load.connections):
                hosts = self._hosts[start : start + load.connections]
                yield [[self._make(host) for _ in range(count // HOSTS)] for host in hosts]

    def _make(self, host: str) -> Target:
        kind, number, bodies = self._chance.choice(self._files)
        words = "/".join(f"{self._chance.getrandbits(24):x}" for _ in range(self._chance.randint(1, 4)))
        query = f"?id={self._chance.getrandbits(64):x}&v={self._chance.getrandbits(160):x}" if self._chance.random() < 0.4 else ""
        return Target(host, f"/{kind}/{number}/{words}{query}", bodies)


def send(road: Road, load: Load, queues: Sequence[Sequence[Target]], result: Result) -> float:
    """Sends requests over a group of connections. Returns the CPU seconds of the proxy."""
    hosts = [queue[0].host for queue in queues]
    if load.each_new:
        before = road.cpu_s()
        for place in range(len(queues[0])):
            _once(road, load, hosts, [[queue[place]] for queue in queues], result)
    else:
        client = Client(road.port, load.way, hosts)
        time.sleep(_SETTLE_S)
        before = road.cpu_s()
        client.send(queues)
        time.sleep(_SETTLE_S)
        spent = road.cpu_s() - before
        _close(client, result)
        return spent
    time.sleep(_SETTLE_S)  # connections that are being closed are part of the work
    return road.cpu_s() - before


def _once(road: Road, load: Load, hosts: Sequence[str], queues: Sequence[Sequence[Target]], result: Result) -> None:
    client = Client(road.port, load.way, hosts)
    client.send(queues)
    _close(client, result)


def _close(client: Client, result: Result) -> None:
    client.close()
    result.failed += client.failed
    result.protocols |= client.protocols


def measure(
    found: Sequence[Road], targets: Targets, rounds: int, requests: int, loads: Sequence[Load]
) -> dict[tuple[str, str], Result]:
    """Runs the rounds. Returns what was measured, by load and contestant."""
    results: defaultdict[tuple[str, str], Result] = defaultdict(Result)
    for number in range(rounds + 1):
        for load in loads:
            turn = number % len(found)
            groups = [[targets.streams()]] if load in STREAMS else list(targets.queues(load, requests))
            for road in (*found[turn:], *found[:turn]):
                if load.way.offered and road.name == E2GUARDIAN:
                    continue
                result = Result()
                spent = sum(send(road, load, queues, result) for queues in groups)
                sent = sum(len(queue) for queues in groups for queue in queues)
                kept = results[load.name, road.name]
                kept.failed += result.failed
                kept.sent += sent
                kept.protocols |= result.protocols
                if number:
                    kept.cpu.append(spent / sent)
    return results


def print_requests(found: Sequence[Road], results: dict[tuple[str, str], Result], loads: Sequence[Load]) -> None:
    """Prints what a request costs."""
    names = [road.name for road in found]
    first = next((name for name in (STOCK, OTHER) if name in names), None)
    compared = [] if first is None else [first]
    others = [name for name in names if name not in {first, OURS}]
    heads = [*compared, OURS, *(f"to {name}" for name in compared), *others]
    print(f"\n| CPU µs a request | {' | '.join(heads)} | failed requests |")
    print("|---|" + "---|" * len(heads) + "---|")
    for load in loads:
        of = {name: results.get((load.name, name)) for name in names}
        costs = {name: _cost(of[name], load) for name in names}
        ratios = [
            statistics.median(own / stock for own, stock in zip(_cpu(of[OURS]), _cpu(of[name]), strict=True)) for name in compared
        ]
        cells = [*(costs[name] for name in compared), costs[OURS], *(f"{ratio:.2f}" for ratio in ratios)]
        print(f"| {load.name} | {' | '.join([*cells, *(costs[name] for name in others)])} | {_failed(of)} |")


def print_streams(found: Sequence[Road], results: dict[tuple[str, str], Result], megabytes: int, streams: Sequence[Load]) -> None:
    """Prints what a megabyte costs."""
    print(
        f"\n| CPU ms a streamed MB, bodies of {megabytes} MB | "
        + " | ".join(road.name for road in found)
        + " | failed requests |"
    )
    print("|---|" + "---|" * len(found) + "---|")
    for load in streams:
        of = {road.name: results.get((load.name, road.name)) for road in found}
        cells = [_cost(of[road.name], load, 1000 / megabytes, 2) for road in found]
        print(f"| {load.name} | {' | '.join(cells)} | {_failed(of)} |")


def _cpu(result: Result | None) -> list[float]:
    return result.cpu if result is not None else []


def _cost(result: Result | None, load: Load, scale: float = 1e6, places: int = 0) -> str:
    if result is None:
        return ""
    spoken = f" ({' and '.join(sorted(result.protocols))})" if H2 in load.way.offered else ""
    return f"{statistics.median(result.cpu) * scale:,.{places}f}{spoken}"


def _failed(of: dict[str, Result | None]) -> str:
    failed = {name: result for name, result in of.items() if result is not None and result.failed}
    for name, result in failed.items():
        print(f"{name}: {result.failed[0]}", file=sys.stderr)
    sent = next(result.sent for result in of.values() if result is not None)
    return "; ".join(f"{name} {len(result.failed):,} of {sent:,}" for name, result in failed.items()) or f"0 of {sent:,} each"


@contextlib.contextmanager
def _guardian(folder: Path) -> Iterator[list[Road]]:
    port = free_port()
    with e2guardian(folder / "e2guardian", port, free_port()) as pid:
        if pid is not None:
            wait_for(port)
        yield [] if pid is None else [Road(E2GUARDIAN, port, (pid,))]


def main() -> None:
    """Reads the options and measures, in a network namespace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=800, help="a round, load and proxy; a multiple of 40")
    parser.add_argument("--megabytes", type=int, default=50, help="of a streamed body")
    parser.add_argument(
        "--lists", nargs="*", help="Adblock lists; by default EasyList and EasyPrivacy of the test data, if there"
    )
    parser.add_argument("--loads", nargs="*", default=[], help="those alone whose names contain one of these")
    parser.add_argument(
        "--only", nargs="*", choices=_PEERS, help="these proxies beside ours; by default all but the second of ours"
    )
    parser.add_argument("--against", type=Path, help="another checkout, whose worker takes part")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [load.name for load in (*LOADS, *STREAMS)]
    if unknown := [words for words in options.loads if not any(words in name for name in names)]:
        parser.error(f"no load has {unknown[0]!r} in its name; there are: {'; '.join(dict.fromkeys(names))}")
    if not options.inside:
        command = ["unshare", "--net", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
        sys.exit(subprocess.run([*command, sys.executable, *sys.argv, "--inside"], check=False).returncode)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    lists = options.lists
    if lists is None:
        lists = [str(path) for name in ("easylist.txt", "easyprivacy.txt") for path in sorted(DATA.glob(f"**/{name}"))[:1]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        web = Web(folder / "web", make_graph())
        targets = Targets(web, options.megabytes)
        (folder / "hosts").write_text(web.addresses())
        subprocess.run(["mount", "--bind", str(folder / "hosts"), "/etc/hosts"], check=True)
        peers = [STOCK, SQUID, E2GUARDIAN] if options.only is None else options.only or [DIRECT]
        chosen = [[one for one in some if not options.loads or any(map(one.name.__contains__, options.loads))] for some in _ALL]
        with contextlib.ExitStack() as stack:
            stack.enter_context(web.serving())
            ways = stack.enter_context(roads(folder, web.authority, lists, peers, options.against))
            found = [road for road in ways if road.name != DIRECT]
            if E2GUARDIAN in peers:
                found += stack.enter_context(_guardian(folder))
            results = measure(found, targets, options.rounds, options.requests, [*chosen[0], *chosen[1]])
            print_requests(found, results, chosen[0])
            print_streams(found, results, options.megabytes, chosen[1])


if __name__ == "__main__":
    main()
