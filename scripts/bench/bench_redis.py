"""Redis: microseconds a key of the shared cache, one by one, pipelined and by hash tags, and takes of the shared queue.

Starts servers of its own on loopback: one, and a cluster of three masters. CPU time of the client and of the servers stand apart,
because each has a core of its own where it counts. The values are verdicts of some 400 bytes.
Needs redis-server and the extra redis.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import md5
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from gatewayfilter.interfaces import CrawlRequest  # noqa: E402
from gatewayfilter.model import Classification, ContentId, ContentKind, Evidence, Fingerprint  # noqa: E402
from gatewayfilter.scaleout.redis.cached_value import ValueCodec, key_of  # noqa: E402
from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker  # noqa: E402
from gatewayfilter.scaleout.redis.connection import Client, RedisConnection  # noqa: E402
from gatewayfilter.scaleout.redis.fingerprint_cache import RedisFingerprintCache  # noqa: E402
from gatewayfilter.scaleout.redis.frontier import RedisFrontier  # noqa: E402
from gatewayfilter.telemetry import Counters  # noqa: E402
from tests.scaleout.redis.redis_servers import Server, cluster, cluster_url, server  # noqa: E402

KEYS = 20_000
SINGLE = 2_000
URLS = 20_000
CODEC = ValueCodec(b"benchmark".ljust(32))
EVIDENCE = tuple(Evidence(f"word {number}", "gambling", 1.5, "main", number * 100) for number in range(5))
SAID = Classification("", 3.5, 20.0, {"gambling": 3.5}, EVIDENCE, "A page of some kind", "utf-8", bytes(16))


def content(number: int) -> ContentId:
    """Returns the identity of a content."""
    return ContentId(ContentKind.PAGE, md5(str(number).encode(), usedforsecurity=False).digest(), bytes(16))


def spent(servers: list[Server], work: Callable[[], int]) -> tuple[float, float, float]:
    """Returns the microseconds of each thing that `work` counts: on the clock, of the client's CPU, of the servers' CPU."""
    before, wall, cpu = _server_s(servers), time.perf_counter(), time.process_time()
    count = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall / count * 1e6, cpu / count * 1e6, (_server_s(servers) - before) / count * 1e6


def _server_s(servers: list[Server]) -> float:
    infos = [one.client().info("cpu") for one in servers]
    return sum(float(info["used_cpu_user"]) + float(info["used_cpu_sys"]) for info in infos)


def cache_rows(name: str, servers: list[Server], url: str) -> None:
    """Measures look-ups of fingerprints and prints a row for each way."""
    connection = RedisConnection(url, 10.0, CircuitBreaker("Redis", "the benchmark fails"))
    cache = RedisFingerprintCache(connection, CODEC, Counters())
    now = time.time()
    contents = [content(number) for number in range(KEYS)]
    cache.put_all([Fingerprint(one, SAID, "", "words", "http://a.example/", now, now + 900) for one in contents], now)
    keys = [key_of(CODEC.space, one) for one in contents]

    def single(client: Client) -> int:
        return sum(client.get(key) is not None for key in keys[:SINGLE])

    def pipelined(client: Client) -> int:
        found = 0
        for start in range(0, SINGLE, 1000):
            with client.pipeline(transaction=False) as pipeline:
                for key in keys[start : start + 1000]:
                    pipeline.get(key)
                found += sum(value is not None for value in pipeline.execute())
        return found

    def by_tag(most: int) -> int:
        return sum(len(cache._read(contents[start : start + most], connection._opened())) for start in range(0, KEYS, most))  # noqa: SLF001

    def decoded() -> int:
        return sum(len(cache.find_all(contents[start : start + 2000], now)) for start in range(0, KEYS, 2000))

    for way, work in (
        ("GET, one by one", lambda: connection.use(single)),
        ("GET, pipelined by 1,000", lambda: connection.use(pipelined)),
        ("by hash tag, 2,000 keys a round", lambda: by_tag(2000)),
        ("by hash tag, 64 keys a round", lambda: by_tag(64)),
        ("the same by 2,000, verified and decoded", decoded),
    ):
        wall, client_us, server_us = spent(servers, work)
        print(f"| {name} | {way} | {wall:.1f} | {client_us:.1f} | {server_us:.1f} |", flush=True)
    connection.close()


def frontier_rows(one: Server) -> None:
    """Measures the queue and prints a row for each change."""
    connection = RedisConnection(one.url, 30.0, CircuitBreaker("Redis", "the benchmark fails"))
    frontier = RedisFrontier(connection)
    offers = [CrawlRequest(f"http://s{number % 500}.example/{number}", 10 + number % 3 * 10) for number in range(URLS)]

    def take(most: int) -> list[object]:
        taken: list[object] = []
        while leases := frontier.lease(most, 600.0, time.time()):
            taken += leases
        return taken

    def take_and_acknowledge() -> int:
        count = 0
        while leases := frontier.lease(100, 600.0, time.time()):
            frontier.done_all([(lease, 0.0) for lease in leases])
            count += len(leases)
        return count

    for way, work in (
        ("push, 500 a call", lambda: frontier.add(offers, time.time())),
        ("take, 100 a call", lambda: len(take(100))),
        ("take and acknowledge, 100 a call", take_and_acknowledge),
        ("take, 1 a call", lambda: len(take(1))),
    ):
        if way.startswith("take and"):
            frontier.clear()
            frontier.add(offers, time.time())
        elif way.endswith("1 a call"):
            frontier.add(offers[:SINGLE], time.time())
        wall, client_us, server_us = spent([one], work)
        print(f"| queue | {way} | {wall:.1f} | {client_us:.1f} | {server_us:.1f} |", flush=True)
    connection.close()


def main() -> None:
    """Measures and prints."""
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    value = CODEC.encode(Fingerprint(content(0), SAID, "", "words", "http://a.example/", 0, 1)) or b""
    print(f"redis-server {version}; {KEYS:,} values of {len(value)} bytes\n")
    print("| what | how | us on the clock | us of CPU, client | us of CPU, server |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        with server(Path(folder) / "one") as one:
            cache_rows("one server", [one], one.url)
            one.client().flushall()
            frontier_rows(one)
        with cluster(Path(folder) / "cluster", replicas=False) as servers:
            cache_rows("3 masters", servers, cluster_url(servers))


if __name__ == "__main__":
    main()
