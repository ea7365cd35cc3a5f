"""Recognition: judging the real pages with warm fingerprints against judging them without [page-dedup].

What is measured is what the learner does for a page before it writes its verdict: with fingerprints the identity of the body
and the look-up, in memory, in the database (a learner that just started) and in the shared cache (a machine that judged none
of them); without, the classification. The cache needs redis-server and the extra redis.

Needs the folder of real pages: GATEWAYFILTER_TEST_DATA, or ../shared/data beside the repository. CPU time, rounds interleaved,
medians.
"""

import gzip
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from gatewayfilter.classify import load_classifier  # noqa: E402
from gatewayfilter.interfaces import Page  # noqa: E402
from gatewayfilter.learn import ContentIds, Recognition  # noqa: E402
from gatewayfilter.model import Fingerprint  # noqa: E402
from gatewayfilter.scaleout.redis.cached_fingerprints import CachedFingerprints  # noqa: E402
from gatewayfilter.scaleout.redis.cached_value import ValueCodec  # noqa: E402
from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker  # noqa: E402
from gatewayfilter.scaleout.redis.connection import RedisConnection  # noqa: E402
from gatewayfilter.scaleout.redis.fingerprint_cache import RedisFingerprintCache  # noqa: E402
from gatewayfilter.store import Store  # noqa: E402
from gatewayfilter.store.repositories import fingerprints  # noqa: E402
from gatewayfilter.telemetry import Counters  # noqa: E402
from tests.scaleout.redis.redis_servers import server  # noqa: E402

ROUNDS = 7
BATCH = 32
"""Pages that a crawler looks up at once."""
KEY = b"benchmark".ljust(32)


def cpu_ms(work: Callable[[Page], object], pages: Sequence[Page]) -> float:
    """Returns the CPU time of one pass over the pages, in milliseconds a page."""
    begun = time.process_time_ns()
    for page in pages:
        work(page)
    return (time.process_time_ns() - begun) / 1e6 / len(pages)


class OtherMachine:
    """A machine with an empty database that finds all pages in a shared cache, by batches, as its crawler looks them up.

    Args:
        folder: for its database.
        url: of Redis.
        first: the fingerprints of the machine that judged the pages.
    """

    def __init__(self, folder: Path, url: str, first: Sequence[Fingerprint]) -> None:
        self._store = Store.open(f"sqlite:///{folder}/other.sqlite3")
        connection = RedisConnection(url, 10.0, CircuitBreaker("Redis", "the benchmark fails"))
        self._cache = RedisFingerprintCache(connection, ValueCodec(KEY), Counters())
        self._cache.put_all(first, time.time())
        self._store.also_close(connection.close)

    def cpu_ms(self, pages: Sequence[Page]) -> float:
        """Returns the CPU time of a process that knows nothing yet, in milliseconds a page."""
        known = CachedFingerprints(self._store.fingerprints, self._cache, Counters())
        recognition = Recognition(known, ContentIds(KEY), str)
        begun = time.process_time_ns()
        found = [known for start in range(0, len(pages), BATCH) for _, known in recognition.pages(pages[start : start + BATCH])]
        took = time.process_time_ns() - begun
        if None in found:
            raise AssertionError("a page was not in the shared cache")
        return took / 1e6 / len(pages)

    def close(self) -> None:
        """Closes its database."""
        self._store.close()


def main() -> None:
    """Measures and prints."""
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data") / "pages" / "html"
    bodies = [gzip.decompress(file.read_bytes()) for file in sorted(folder.glob("*.gz"))]
    if not bodies:
        print("no real pages found: set GATEWAYFILTER_TEST_DATA")
        return
    pages = [
        Page(f"http://{number}.example/", f"http://{number}.example/", 200, {"content-type": "text/html"}, body)
        for number, body in enumerate(bodies)
    ]
    classifier = load_classifier([ROOT / "lists" / "words"])
    with tempfile.TemporaryDirectory() as state, server(Path(state) / "redis") as redis:
        store = Store.open(f"sqlite:///{state}/bench.sqlite3")
        ids = ContentIds(KEY)
        warm = Recognition(store.fingerprints, ids, str)
        for page in pages:
            warm.record(ids.of_page(page.body), classifier.classify_page(page), page.url)
        now = time.time()
        other = OtherMachine(Path(state), redis.url, store.fingerprints.newest(len(pages), now))
        without, known, started, single, first, shared = [], [], [], [], [], []
        for _ in range(ROUNDS):
            without.append(cpu_ms(classifier.classify_page, pages))
            known.append(cpu_ms(warm.page, pages))
            started.append(cpu_ms(Recognition(store.fingerprints, ids, str).page, pages))
            single.append(cpu_ms(lambda page: store.fingerprints.find(ids.of_page(page.body), 0.0), pages))
            with patch.object(fingerprints, "_PREPARED_AFTER", sys.maxsize):
                first.append(cpu_ms(lambda page: store.fingerprints.find(ids.of_page(page.body), 0.0), pages))
            shared.append(other.cpu_ms(pages))
        if any(warm.page(page)[1] is None for page in pages):
            raise AssertionError("a page was not known again")
        other.close()
        store.close()
    judged = statistics.median(without)
    print(f"{len(pages)} real pages, mean {statistics.mean(map(len, bodies)) / 1000:.0f} KB, median of {ROUNDS} rounds\n")
    print("| recognition | CPU ms a page | against judging |")
    print("|---|---|---|")
    for name, times in (
        ("judged, no fingerprints", without),
        ("warm fingerprints", known),
        ("a learner that just started: 16 from the database, the others read at once", started),
        ("each from the database, the first eight of a process (a command that looks at one page)", first),
        ("each from the database, from the ninth on", single),
        (f"another machine: from the shared cache, {BATCH} pages at once", shared),
    ):
        ms = statistics.median(times)
        print(f"| {name} | {ms:.3f} | {judged / ms:.0f}x |")


if __name__ == "__main__":
    main()
