"""A state folder as large as the dashboard must bear: decisions with their counts and index, a snapshot, clients, reviews.

Rows, counts and index terms are those of the product, written in larger transactions than it may use beside a proxy. The
decisions of one day are drawn, and repeated for the other 29: drawing them costs more than writing them.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import batched
from pathlib import Path
from typing import Any, Final

from bench_log import COLUMNS, Traffic
from bench_publish import write_domains

from gatewayfilter import wiring
from gatewayfilter.config import Settings, load
from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import (
    Classification,
    Client,
    EntryKind,
    Evidence,
    Group,
    LearnedEntry,
    ListAction,
    LogRecord,
    ManualRule,
    Matcher,
    MatcherKind,
    Policy,
    PolicyItem,
    ReviewKind,
    ReviewTask,
    Schedule,
    ScheduleEffect,
    Window,
)
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.traffic.log_counts import Key, add_counts, count_records
from gatewayfilter.store.repositories.traffic.log_rows import COUNTS, TERMS, set_progress
from gatewayfilter.store.repositories.traffic.log_terms import terms_of
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.urls import parse_url

DAYS: Final = 30
DAY_S: Final = 86_400
SPAN_S: Final = DAYS * DAY_S
CLIENTS: Final = 500
GROUPS: Final = 20
LEARNED: Final = 200_000
RULES: Final = 2_000
REVIEWS: Final = 500
REQUESTS: Final = 40
_ZONE: Final = "Europe/Berlin"
_HASH_BYTES: Final = 256 << 20
"""Of FTS5's terms in memory: fewer segments to merge later. The index has its own default again afterwards."""
_DEFAULT_HASH_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Day:
    """The decisions of a day, their rows of `log_counts`, and the index terms of each."""

    records: Sequence[LogRecord]
    counts: Counter[Key]
    terms: Sequence[str]


def build_state(state: Path, decisions: int, entries: int) -> None:
    """Fills an empty state folder, whose newest decision is of now. 10 million decisions take some 8 minutes of CPU."""
    settings = load(options={"data_dir": state}).settings
    wiring.prepare_data_dir(settings)
    with closing(wiring.open_store(settings)) as store:
        _people(store)
        _reviews(store)
        _lists(settings, store, entries)
        for _ in range(2):  # makes the table of the index
            store.log.write(list(Traffic(CLIENTS).rows(1, time.time() - SPAN_S, 0.0)))
            _follow(store)
    fill_log(state / "gatewayfilter.sqlite3", decisions, time.time())
    with closing(wiring.open_store(settings)) as store:
        _follow(store)


def fill_log(file: Path, decisions: int, end: float) -> None:
    """Adds decisions of 30 days up to `end` (Unix seconds), counted and indexed; rounded up to a multiple of 30."""
    database = Database.from_url(f"sqlite:///{file}")
    with database.read() as connection:
        for pragma in ("synchronous = OFF", "cache_size = -600000", "wal_autocheckpoint = 50000"):
            connection.exec_driver_sql(f"PRAGMA {pragma}")
        newest = connection.exec_driver_sql("SELECT coalesce(max(id), 0) FROM decisions").scalar_one()
    _set_hash(database, _HASH_BYTES)
    size = -(-decisions // DAYS)
    records = list(Traffic(CLIENTS).rows(size, end - SPAN_S, DAY_S / size))
    day = _Day(records, count_records(records), [terms_of(record) for record in records])
    for number in range(DAYS):
        _add(database, day, newest + 1 + number * size, number * DAY_S)
    _set_hash(database, _DEFAULT_HASH_BYTES)
    database.close()


def append_decisions(store: Store, rate: float, seconds: float) -> Iterator[int]:
    """Writes decisions of now at a rate a second, in the batches of a worker. Yields the number written so far."""
    records = list(Traffic(CLIENTS).rows(20_000, 0.0, 0.0))
    begun, written = time.monotonic(), 0
    while (passed := time.monotonic() - begun) < seconds:
        due = int(passed * rate) - written
        if due:
            store.log.write([records[(written + n) % len(records)]._replace(at=time.time()) for n in range(due)])
            written += due
            yield written
        time.sleep(0.1)


def _set_hash(database: Database, size: int) -> None:
    with database.write(Area.LOG_COUNTS) as connection:
        connection.exec_driver_sql("INSERT INTO log_terms (log_terms, rank) VALUES ('hashsize', ?)", (size,))


def _add(database: Database, day: _Day, first: int, later_s: int) -> None:
    """Adds the decisions of a day so many seconds later, numbered from `first`, with counts and terms, in one transaction."""
    rows = [(number, record._replace(at=record.at + later_s)) for number, record in enumerate(day.records, first)]
    counts: Counter[Key] = Counter()
    for (period, dimension, start, client, name, action), number in day.counts.items():
        counts[period, dimension, start + later_s, client, name, action] = number
    with database.write(Area.LOG_COUNTS) as connection:
        into = f"INSERT INTO decisions (id, {COLUMNS}) VALUES ({', '.join('?' * 13)})"
        connection.exec_driver_sql(into, [(number, *record) for number, record in rows])
        add_counts(connection, rows, counts)
        connection.exec_driver_sql("INSERT INTO log_terms (rowid, terms) VALUES (?, ?)", list(enumerate(day.terms, first)))
        for name in (COUNTS, TERMS):
            set_progress(database, connection, name, rows[-1][0])


def _follow(store: Store) -> None:
    for step in (store.log_counter.step, store.log_indexer.step):
        while step():
            pass


def _people(store: Store) -> None:
    """500 clients in groups with policies; each policy has services, categories and a bedtime."""
    items: list[PolicyItem] = []
    for number in range(GROUPS):
        name = f"class {number}"
        items.append(Policy(name, services={"tiktok": True, "roblox": True}, requests={"safesearch": "on"}))
        items.append(Schedule(f"night {number}", name, ScheduleEffect.BLOCK_ALL, (Window(22 * 60, 6 * 60),), _ZONE))
        items.append(Group(name, name))
    for number, address in enumerate(Traffic(CLIENTS).clients):
        matchers = (Matcher(MatcherKind.ADDRESS, address),)
        items.append(Client(f"pupil {number}", matchers, f"class {number % GROUPS}", icon="laptop"))
    store.policies.change(lambda _: [(item, True) for item in items], time.time())


def _reviews(store: Store) -> None:
    text = "welcome to the online casino with free spins and a bonus for new players\n" * 100
    evidence = tuple(Evidence(word, "gambling", 12.0, "main", 0) for word in ("casino", "free spins", "bonus"))
    judged = Classification("gambling", 36.0, 20.0, {"gambling": 36.0}, evidence, "Online casino", certainty=0.97)
    now = time.time()
    for number in range(REVIEWS):
        url = f"http://casino{number}.example/play"
        key = parse_url(url).key
        store.reviews.add(
            ReviewTask(
                0, ReviewKind.PAGE, url, key, "gambling", judged, True, now - number, group_id=number // 5 * 5 + 1, text=text
            )
        )
    clients = Traffic(CLIENTS).clients
    store.unblock.ask(
        [
            UnblockRequest(
                f"http://games{number}.example/", clients[number], "blacklist", "lists", ".games.example", "games", "homework",
                now - number * 60, client_name=f"pupil {number}",
            )
            for number in range(REQUESTS)
        ]
    )  # fmt: skip


def _lists(settings: Settings, store: Store, entries: int) -> None:
    """A source of so many domains, own rules and learned entries, published."""
    text = settings.data_dir / "domains.txt"
    write_domains(text, entries)
    wiring.subscriptions(settings).add(str(text), name="domains", category="gambling")
    text.unlink()
    store.lists.add_rules(
        [
            ManualRule(0, ListAction.BLOCK, EntryKind.DOMAIN, f".rule{number}.example", comment="by hand")
            for number in range(RULES)
        ]
    )
    now = time.time()
    for part in batched(range(LEARNED), 1_000):
        store.lists.put_learned([_learned(number, now) for number in part])
    wiring.publish_now(settings, store)


def _learned(number: int, now: float) -> LearnedEntry:
    key = f"site{number % 20_000}.example/page/{number}"
    detail = "score 42.0 (limit 20.0): casino, betting, roulette"
    return LearnedEntry(key, ListAction.BLOCK, "gambling", f"http://{key}", detail, now, now + 90 * 86_400)


def size_of(folder: Path) -> int:
    """Returns the bytes of the files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def facts(state: Path) -> dict[str, Any]:
    """Returns the numbers of a state folder."""
    settings = load(options={"data_dir": state}).settings
    with closing(wiring.open_store(settings)) as store:
        covered, newest = store.log_stats.covered()
        return {"decisions": newest, "counted": covered, "clients": len(store.policies.read().clients), "bytes": size_of(state)}
