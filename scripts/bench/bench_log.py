"""The decision log at size: CPU to write, count and index a decision, bytes on disk, and the time of pages, searches and charts.

    python scripts/bench/bench_log.py [ROWS] [FOLDER]

With a FOLDER the database is kept there and used again; building one of 10 million decisions takes some 20 minutes. Times of
queries are the median and the worst of 20, first over a connection that has read nothing yet and with the file out of the
system's cache, where that is allowed, then warm.
"""

import os
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC
from itertools import batched
from pathlib import Path
from statistics import median

from gatewayfilter.model import LogQuery, LogRecord
from gatewayfilter.store import Store
from gatewayfilter.use_cases.traffic.live_log import LiveLog
from gatewayfilter.use_cases.traffic.log_groups import grouped_page
from gatewayfilter.use_cases.traffic.log_overview import Span, span_edges

ROWS = 200_000
QUERIES = 20
BATCH = 500
SPAN_S = 30 * 86_400
END = 1.8e9
COLUMNS = "at, client, method, url, resource_type, action, reason, source_list, rule, category, elapsed_us, user_name"
REASONS = (
    ("allow", "unknown", "", "", ""),
    ("allow", "unknown", "", "", ""),
    ("allow", "whitelist", "starter-good", "", ""),
    ("block", "adblock", "easylist", "||ads^", "ads"),
    ("block", "blacklist", "ut1-gambling", ".casino.example", "gambling"),
)


class Traffic:
    """Decisions of clients over 30 days: 20,000 hosts, some visited more often than others, and URLs that rarely repeat.

    Args:
        clients: their number.
    """

    def __init__(self, clients: int = 200) -> None:
        self._draw = random.Random(7)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self.words = ["".join(self._draw.choices(letters, k=self._draw.randrange(3, 10))) for _ in range(5_000)]
        self.hosts = [
            f"{self._draw.choice(('www', 'cdn', 'api', 'img'))}.{self._draw.choice(self.words)}{number % 97}.example"
            for number in range(20_000)
        ]
        self.clients = [f"192.0.{number // 250}.{number % 250}" for number in range(clients)]

    def url(self) -> str:
        """Returns the address of a request: some 80 characters."""
        draw, words = self._draw, self.words
        host = self.hosts[min(int(draw.paretovariate(0.7)) - 1, 19_999)]
        return f"https://{host}/{draw.choice(words)}/{draw.choice(words)}/{draw.choice(words)}.js?id={draw.randrange(10**9)}&v={draw.randrange(99)}"

    def rows(self, count: int, begin: float, step_s: float) -> Iterator[LogRecord]:
        """Yields decisions in the order of their time."""
        draw = self._draw
        for number in range(count):
            action, reason, source, rule, category = REASONS[draw.randrange(5)]
            client = self.clients[min(int(draw.paretovariate(0.8)), len(self.clients)) - 1]
            user = "kim" if client == "192.0.0.3" else ""
            yield LogRecord(
                begin + number * step_s, client, "GET", self.url(), "script", action, reason, source, rule, category, 12, user
            )


def build(file: Path, rows: int) -> None:
    """Fills a new database by bulk inserts: what is measured later is not made here."""
    Store.open(f"sqlite:///{file}").close()
    traffic = Traffic()
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -200000")
        for part in batched(traffic.rows(rows, END - SPAN_S, SPAN_S / rows), 50_000):
            connection.execute("BEGIN")
            connection.executemany(f"INSERT INTO decisions ({COLUMNS}) VALUES ({', '.join('?' * 12)})", part)
            connection.execute("COMMIT")


def follow(step: Callable[[], int]) -> tuple[int, float, float]:
    """Runs a background job to its end. Returns its decisions, CPU seconds, and the longest step in seconds."""
    done, longest, began = 0, 0.0, time.process_time()
    while True:
        step_began = time.perf_counter()
        count = step()
        if not count:
            return done, time.process_time() - began, longest
        longest = max(longest, time.perf_counter() - step_began)
        done += count


def drop_cache(file: Path) -> None:
    """Has the system forget the file's pages, as far as it lets a program do that."""
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def queries(traffic: Traffic) -> dict[str, Callable[[Store, int], object]]:
    """Returns the kinds of queries; each is given a number that varies it."""
    draw = random.Random(3)
    hosts = [draw.choice(traffic.hosts) for _ in range(QUERIES)]
    words = [draw.choice(traffic.words) for _ in range(QUERIES)]
    client = [draw.choice(traffic.clients) for _ in range(QUERIES)]
    rare = LogQuery(text="nowhere-in-it")

    def depth(store: Store, number: int) -> int:
        return (store.log.tail(1)[0][0] * (number + 1)) // (QUERIES + 1)

    return {
        "newest page": lambda store, _: store.log_search.page(LogQuery()),
        "page in the middle": lambda store, n: store.log_search.page(LogQuery(), before=depth(store, n)),
        "page of a client": lambda store, n: store.log_search.page(LogQuery(clients=frozenset({client[n]}))),
        "page of a user": lambda store, n: store.log_search.page(
            LogQuery(clients=frozenset({"user:kim"})), before=depth(store, n)
        ),
        "page of a day": lambda store, n: store.log_search.page(
            LogQuery(since=END - (n + 2) * 86_400, until=END - (n + 1) * 86_400, action="block")
        ),
        "search a word": lambda store, n: store.log_search.page(LogQuery(text=words[n])),
        "search a host's name": lambda store, n: store.log_search.page(LogQuery(text=hosts[n])),
        "host, client, category": lambda store, n: store.log_search.page(
            LogQuery(host=hosts[n], clients=frozenset({client[n]}), category="ads")
        ),
        "search what is nowhere": lambda store, _: store.log_search.page(rare),
        "search common trigrams": lambda store, n: store.log_search.page(LogQuery(text=f".example/{words[n]}/www")),
        "search two characters": lambda store, n: store.log_search.page(LogQuery(text=words[n][:2])),
        "grouped page": lambda store, n: grouped_page(store.log_search, LogQuery(), before=depth(store, n)),
        "live records": lambda store, _: LiveLog(store.log).after(0),
        "timeline of a day": lambda store, _: store.log_stats.timeline(span_edges(Span.DAY, END - 1, UTC)),
        "timeline of 30 days": lambda store, _: store.log_stats.timeline(span_edges(Span.MONTH, END - 1, UTC)),
        "timeline of a client": lambda store, n: store.log_stats.timeline(
            span_edges(Span.MONTH, END - 1, UTC), frozenset({client[n]})
        ),
        "stats of a day": lambda store, n: store.log_stats.summary(END - (n + 1) * 86_400, END - n * 86_400),
        "stats of 30 days": lambda store, _: store.log_stats.summary(),
        "stats of a client": lambda store, n: store.log_stats.summary(clients=frozenset({client[n]})),
    }


def measure(file: Path) -> None:
    """Prints the times of queries."""
    print(f"\n| {QUERIES} queries each, ms | cold median | cold worst | warm median | warm worst |\n|---|---|---|---|---|")
    for name, query in queries(Traffic()).items():
        cold, warm = [], []
        for number in range(QUERIES):
            drop_cache(file)
            with closing(Store.open(f"sqlite:///{file}")) as store:
                for times in (cold, warm):
                    began = time.perf_counter()
                    query(store, number)
                    times.append((time.perf_counter() - began) * 1000)
        print(f"| {name} | {median(cold):.1f} | {max(cold):.1f} | {median(warm):.1f} | {max(warm):.1f} |", flush=True)


def writing(file: Path) -> None:
    """Prints what a decision costs to write."""
    traffic = Traffic()
    records = list(traffic.rows(20_000, END, 0.0002))
    with closing(Store.open(f"sqlite:///{file}")) as store:
        began, wall = time.process_time(), time.perf_counter()
        for part in batched(records, BATCH):
            store.log.write(part)
        cpu_us = (time.process_time() - began) / len(records) * 1e6
        print(
            f"| write, batches of {BATCH} | {cpu_us:.1f} | {(time.perf_counter() - wall) / (len(records) / BATCH) * 1000:.1f} |"
        )
        for name, step in (("count", store.log_counter.step), ("index", store.log_indexer.step)):
            done, cpu_s, longest_s = follow(step)
            print(f"| {name} | {cpu_s / done * 1e6:.1f} | {longest_s * 1000:.1f} |", flush=True)


def main() -> int:
    """Prints the tables."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as name:
        file = Path(sys.argv[2] if len(sys.argv) > 2 else name) / "log.sqlite3"
        if not file.exists():
            build(file, rows)
        print("| decisions | CPU µs each | longest step or mean batch, ms |\n|---|---|---|")
        with closing(Store.open(f"sqlite:///{file}")) as store:
            for job, step in (("count all", store.log_counter.step), ("index all", store.log_indexer.step)):
                done, cpu_s, longest_s = follow(step)
                if done:
                    print(f"| {job} ({done:,}) | {cpu_s / done * 1e6:.1f} | {longest_s * 1000:.1f} |", flush=True)
        writing(file)
        print(f"\n{file.stat().st_size / 1e6:,.0f} MB, {file.stat().st_size / rows:.0f} bytes for each decision")
        measure(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
