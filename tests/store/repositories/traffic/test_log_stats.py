"""Counts per hour and day: what is summed is what a count of all records gives, in both databases."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from sqlalchemy import delete

import gatewayfilter.store.repositories.traffic.log_counts as log_counts_module
import gatewayfilter.store.repositories.traffic.log_stats as log_stats_module
import gatewayfilter.store.repositories.traffic.log_timeline as log_timeline_module
from gatewayfilter.model import LogBucket, LogDimension, LogRecord, client_of, host_of
from gatewayfilter.store import Store
from gatewayfilter.store.sql.database import Area
from gatewayfilter.store.sql.schema import LOG_COUNTS

BEGIN = 1_000_000 // 86_400 * 86_400.0
DAY = 86_400.0


def record(at: float, number: int = 0) -> LogRecord:
    action, reason, source, category = (
        ("block", "blacklist", "ut1", "gambling") if number % 4 == 0 else ("allow", "unknown", "", "")
    )
    user = "kim" if number % 5 == 0 else ""
    url = f"http://h{number % 11}.example/"
    return LogRecord(at, f"192.0.2.{number % 3}", "GET", url, "document", action, reason, source, "r", category, 5, user)


def days(count: int = 400) -> list[LogRecord]:
    """Records over five days and a half, one in some twenty minutes."""
    return [record(BEGIN + 7_000 + number * 1_200, number) for number in range(count)]


def follow(store: Store) -> None:
    while store.log_counter.step():
        pass


def names(records: list[LogRecord], dimension: LogDimension) -> dict[str, tuple[int, int]]:
    names_of: dict[LogDimension, Callable[[LogRecord], str]] = {
        LogDimension.CLIENT: client_of,
        LogDimension.HOST: lambda one: host_of(one.url),
        LogDimension.CATEGORY: lambda one: one.category,
        LogDimension.SOURCE: lambda one: one.source_list,
        LogDimension.REASON: lambda one: one.reason,
    }
    of = names_of[dimension]
    every, blocked = Counter(of(one) for one in records), Counter(of(one) for one in records if one.action == "block")
    return {name: (number, blocked[name]) for name, number in every.items() if name}


def by_start(records: list[LogRecord], period_s: int) -> dict[float, tuple[int, int]]:
    every = Counter(one.at // period_s * period_s for one in records)
    blocked = Counter(one.at // period_s * period_s for one in records if one.action == "block")
    return {start: (number, blocked[start]) for start, number in every.items()}


def assert_counts(store: Store, records: list[LogRecord], since: float | None = None, until: float | None = None) -> None:
    found = store.log_stats.summary(since, until)
    assert found.decisions == len(records)
    assert found.blocked == sum(one.action == "block" for one in records)
    assert {hour.start: (hour.decisions, hour.blocked) for hour in found.hours} == by_start(records, 3_600)
    for dimension in LogDimension:
        assert {one.name: (one.decisions, one.blocked) for one in found.tops.get(dimension, ())} == names(records, dimension)


@pytest.mark.parametrize("counted", [0, 200, 400])
def test_the_sums_are_those_of_all_records(counted: int, store: Store) -> None:
    records = days()
    store.log.write(records[:counted])
    follow(store)
    store.log.write(records[counted:])
    assert_counts(store, records)
    for since, until in ((BEGIN + DAY, BEGIN + 3 * DAY), (BEGIN + 5 * 3_600, BEGIN + 2 * DAY + 7_200), (BEGIN + 2 * DAY, None)):
        assert_counts(store, [one for one in records if since <= one.at < (until or 9e9)], since, until)


@pytest.mark.parametrize(
    ("since", "until", "by_days"),
    [
        (None, None, True),  # nothing was decided before the first hour, or after the last one
        (BEGIN + DAY, None, True),
        (BEGIN, BEGIN + 9 * DAY, True),
        (BEGIN, BEGIN + 3 * DAY, True),
        (BEGIN + DAY, BEGIN + 2 * DAY, True),
        (BEGIN + 5 * 3_600, None, False),
        (BEGIN, BEGIN + DAY + 3_600, False),
    ],
)
def test_days_that_hold_no_other_decisions_are_read_as_days(
    since: float | None, until: float | None, *, by_days: bool, store: Store
) -> None:
    records = days()
    store.log.write(records)
    follow(store)
    whole = [one for one in records if (since or 0) <= one.at < (until or 9e9)]
    assert_counts(store, whole, since, until)
    drop_hours_of_hosts(store)
    hosts = {one.name: one.decisions for one in store.log_stats.summary(since, until).tops[LogDimension.HOST]}
    assert (hosts == {name: number for name, (number, _) in names(whole, LogDimension.HOST).items()}) == by_days


def test_days_of_which_the_hours_were_removed_are_counted(store: Store) -> None:
    records = days()
    store.log.write(records)
    follow(store)
    with store._database.write(Area.LOG_COUNTS) as connection:
        connection.execute(delete(LOG_COUNTS).where(LOG_COUNTS.c.period_s == 3_600))
    for since, until in ((BEGIN + DAY, BEGIN + 2 * DAY), (BEGIN + DAY, BEGIN + 4 * DAY)):
        mine = names([one for one in records if since <= one.at < until], LogDimension.HOST)
        found = store.log_stats.tops(since, until, dimensions=[LogDimension.HOST])[LogDimension.HOST]
        assert {one.name: (one.decisions, one.blocked) for one in found} == mine


def drop_hours_of_hosts(store: Store) -> None:
    """Leaves only days of hosts, so that what is read of them is seen."""
    with store.log_stats._database.write(Area.LOG_COUNTS) as connection:
        connection.execute(delete(LOG_COUNTS).where(LOG_COUNTS.c.period_s == 3_600, LOG_COUNTS.c.dimension == LogDimension.HOST))


def test_the_names_alone_are_those_of_the_summary(store: Store) -> None:
    records = days()
    store.log.write(records[:250])
    follow(store)
    store.log.write(records[250:])
    for clients in (None, frozenset({"user:kim"})):
        span = (BEGIN + 5 * 3_600, BEGIN + 3 * DAY)
        assert store.log_stats.tops(*span, clients) == store.log_stats.summary(*span, clients).tops
    found = store.log_stats.tops(BEGIN, 9e9, top=2, dimensions=[LogDimension.HOST])
    assert [len(counts) for counts in found.values()] == [2]
    assert store.log_stats.tops(9e9, 9.1e9) == {}


def test_the_sums_of_a_client(store: Store) -> None:
    records = days()
    store.log.write(records[:250])
    follow(store)
    store.log.write(records[250:])
    for client in ("user:kim", "192.0.2.1"):
        found = store.log_stats.summary(clients=frozenset({client}))
        mine = [one for one in records if client_of(one) == client]
        assert {hour.start: (hour.decisions, hour.blocked) for hour in found.hours} == by_start(mine, 3_600)
        assert (found.decisions, found.blocked) == (len(mine), sum(one.action == "block" for one in mine))
        assert {one.name: (one.decisions, one.blocked) for one in found.tops[LogDimension.HOST]} == names(mine, LogDimension.HOST)
        assert [one.name for one in found.tops[LogDimension.CLIENT]] == [client]


@pytest.mark.parametrize("counted", [0, 200, 400])
def test_the_sums_of_many_hours_are_those_of_days(counted: int, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stats_module, "_MOST_HOURS", 20)
    records = days()
    store.log.write(records[:counted])
    follow(store)
    store.log.write(records[counted:])
    since, until = BEGIN + 5 * 3_600, BEGIN + 4 * DAY + 7_200
    for clients in (None, frozenset({"user:kim"})):
        mine = [one for one in records if clients is None or client_of(one) in clients]
        found = store.log_stats.summary(since, until, clients)
        if counted:
            mine = [one for one in mine if BEGIN <= one.at < BEGIN + 5 * DAY]
            assert {hour.start: (hour.decisions, hour.blocked) for hour in found.hours} == by_start(mine, 86_400)
            assert (found.since, found.until) == (BEGIN, BEGIN + 5 * DAY)
        else:
            assert (found.since, found.until) == (since, until)


def test_an_empty_log_and_an_empty_span(store: Store) -> None:
    assert store.log_stats.summary().since is None
    store.log.write(days(10))
    follow(store)
    assert store.log_stats.summary(since=9e9).decisions == 0
    assert store.log_stats.summary(since=BEGIN + DAY, until=BEGIN).decisions == 0


@pytest.mark.parametrize("counted", [True, False])
def test_a_purge_takes_its_part_off_the_sums(counted: bool, store: Store) -> None:  # noqa: FBT001
    records = days()
    store.log.write(records)
    if counted:
        follow(store)
    edge = BEGIN + 2 * DAY + 5_000
    store.log.purge(edge)
    left = [one for one in records if one.at >= edge]
    assert_counts(store, left)
    follow(store)
    assert_counts(store, left)
    store.log.purge_clients(frozenset({"192.0.2.1", "user:kim"}))
    left = [one for one in left if one.client != "192.0.2.1" and one.user != "kim"]
    assert_counts(store, left)
    assert store.log_stats.summary(clients=frozenset({"user:kim"})).decisions == 0
    assert {one.client for one in store.log_stats.clients()} == {"192.0.2.0", "192.0.2.2"}


def test_rows_that_leave_for_their_size_stay_counted(store: Store) -> None:
    records = days()
    store.log.write(records)
    follow(store)
    store.log.shrink(0)
    assert store.log.tail(1) == []
    assert_counts(store, records)


def test_a_flood_of_hosts_is_bounded_and_the_sum_stays(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_counts_module, "MOST_NAMES", 100)
    monkeypatch.setattr(log_counts_module, "MOST_OF_CLIENTS", 100)
    often = [record(BEGIN)._replace(url="http://often.example/")] * 50
    for part in range(5):
        flood = [record(BEGIN)._replace(url=f"http://x{part}-{number}.example/") for number in range(200)]
        store.log.write([*often, *flood])
        follow(store)
    found = store.log_stats.summary(top=1_000)
    hosts = {one.name: one.decisions for one in found.tops[LogDimension.HOST]}
    assert found.decisions == 1_250
    assert sum(hosts.values()) == 1_250
    assert hosts["often.example"] == 250
    assert len(hosts) <= 600
    assert hosts[""] > 0


def test_times_beyond_the_calendar_are_counted(store: Store) -> None:
    store.log.write([record(at) for at in (-5.0, 0.0, 1e9, 1e18)])
    follow(store)
    assert store.log_stats.summary().decisions == 4


def test_a_large_backlog_is_reported(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_timeline_module, "MOST_UNCOUNTED", 100)
    store.log.write(days(150))
    assert (store.log_stats.summary().decisions, store.log_stats.summary().uncounted) == (0, 150)
    assert store.log_counter.step() == 150
    assert (store.log_stats.summary().decisions, store.log_stats.summary().uncounted) == (150, 0)


def buckets(records: list[LogRecord], edges: list[float]) -> list[LogBucket]:
    """The parts of a timeline, by comparison with each record; hours count where they begin."""
    found = []
    for begin, end in pairwise(edges):
        mine = [one for one in records if begin <= one.at // 3_600 * 3_600 < end]
        blocked = sum(one.action == "block" for one in mine)
        unknown = sum(one.reason == "unknown" for one in mine)
        learned = sum(one.reason == "learned" for one in mine)
        found.append(LogBucket(begin, len(mine) - blocked - unknown, blocked, unknown, learned))
    return found


EDGES = [
    [BEGIN + number * DAY for number in range(8)],
    [BEGIN + 2 * DAY + number * 3_600 for number in range(25)],
    [BEGIN + 7_200 + number * 21_600 for number in range(12)],
    [BEGIN + 1_800 + number * DAY / 2 for number in range(12)],
    [BEGIN - 9 * DAY, BEGIN - DAY],
]


@pytest.mark.parametrize("counted", [0, 200, 400])
def test_a_timeline_counts_what_a_comparison_with_all_records_counts(counted: int, store: Store) -> None:
    records = [one._replace(reason="learned") if number % 6 == 0 else one for number, one in enumerate(days())]
    records = [one._replace(reason="whitelist") if number % 7 == 0 else one for number, one in enumerate(records)]
    store.log.write(records[:counted])
    follow(store)
    store.log.write(records[counted:])
    for edges in EDGES:
        found = store.log_stats.timeline(edges)
        assert list(found.buckets) == buckets(records, edges)
        assert (found.until, found.uncounted) == (edges[-1], 0)
        mine = [one for one in records if client_of(one) in {"user:kim", "192.0.2.1"}]
        of_two = store.log_stats.timeline(edges, frozenset({"user:kim", "192.0.2.1"}))
        assert list(of_two.buckets) == buckets(mine, edges)
        assert sum(one.decisions for one in store.log_stats.timeline(edges, frozenset()).buckets) == 0


def test_a_timeline_of_years_is_made_of_days(store: Store) -> None:
    records = [record(BEGIN + number * 50_000, number) for number in range(200)]
    store.log.write(records[:150])
    follow(store)
    store.log.write(records[150:])
    edges = [BEGIN + number * DAY for number in range(130)]
    assert list(store.log_stats.timeline(edges).buckets) == buckets(records, edges)


@pytest.mark.parametrize(("most", "moments"), [(3, {BEGIN, BEGIN + DAY}), (4, {BEGIN + 3_600, BEGIN + DAY + 7_200})])
def test_hours_of_many_clients_are_read_as_days(
    most: int, moments: set[float], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.log.write([record(BEGIN + 3_600, 1), record(BEGIN + DAY + 7_200, 2)])
    follow(store)
    monkeypatch.setattr(log_timeline_module, "MOST_READ", most)
    edges = [BEGIN + number * 3_600 for number in range(49)]
    found = store.log_stats.timeline(edges, frozenset({"192.0.2.1", "192.0.2.2"}))  # two hours of two clients
    assert {one.start for one in found.buckets if one.decisions} == moments


def test_a_timeline_of_the_longest_span_in_hours(store: Store) -> None:
    store.log.write([record(BEGIN + 3_600, 1)])
    follow(store)
    for hours, start in ((log_timeline_module.MOST_HOURS, BEGIN + 3_600), (log_timeline_module.MOST_HOURS + 1, BEGIN)):
        edges = [BEGIN, BEGIN + 3_600, BEGIN + hours * 3_600]
        for clients in (None, frozenset({"192.0.2.1"})):
            assert [one.start for one in store.log_stats.timeline(edges, clients).buckets if one.decisions] == [start]


def test_a_day_counts_whole_and_an_hour_where_it_begins(store: Store) -> None:
    store.log.write([record(BEGIN + 100, 1), record(BEGIN + 3_700, 1)])
    follow(store)
    for clients in (None, frozenset({"192.0.2.1"})):
        hours = store.log_stats.timeline([BEGIN + 1_800, BEGIN + DAY], clients)
        days_ = store.log_stats.timeline([BEGIN + 1_800, BEGIN + 50 * DAY], clients)
        assert [one.decisions for one in (*hours.buckets, *days_.buckets)] == [1, 2]


def test_as_many_edges_as_there_may_be(store: Store) -> None:
    assert len(store.log_stats.timeline([float(number) for number in range(2_001)]).buckets) == 2_000
    with pytest.raises(ValueError, match="ascending"):
        store.log_stats.timeline([float(number) for number in range(2_002)])


@pytest.mark.parametrize("edges", [[], [1.0], [2.0, 1.0], [1.0, 1.0], list(range(5_000))])
def test_edges_of_a_timeline_ascend(edges: list[float], store: Store) -> None:
    with pytest.raises(ValueError, match="ascending"):
        store.log_stats.timeline(edges)


def test_newest_decisions_are_counted_for_a_bounded_time(store: Store) -> None:
    store.log.write(days(2_000))
    times = iter(range(1_000))
    with store._database.read() as connection:
        counts, left = log_timeline_module.fresh_counts(connection, lambda: next(times) * 0.04)
    assert 0 < sum(number for key, number in counts.items() if key[:2] == (3_600, LogDimension.CLIENT)) < 2_000
    assert left > 0


@pytest.mark.parametrize("written", [0, 1, 501])
def test_when_all_are_counted_nothing_is_read_any_more(written: int, store: Store) -> None:
    store.log.write(days(written))
    times = iter([7.0] * (1 + -(-written // 500)))  # it begins, and before each part
    with store._database.read() as connection:
        counts, left = log_timeline_module.fresh_counts(connection, lambda: next(times))
    assert (sum(number for key, number in counts.items() if key[:2] == (3_600, LogDimension.CLIENT)), left) == (written, 0)


def test_clients_with_their_first_and_newest_decision(store: Store) -> None:
    store.log.write([record(BEGIN, 1), record(BEGIN + 9_000, 1), record(BEGIN + 5_000, 2)])
    follow(store)
    store.log.write([record(BEGIN + 20_000, 5), record(BEGIN + 30_000, 2)])
    assert {one.client: (one.first_at, one.last_at) for one in store.log_stats.clients()} == {
        "192.0.2.1": (BEGIN, BEGIN + 9_000),
        "192.0.2.2": (BEGIN + 5_000, BEGIN + 32_400),
        "user:kim": (BEGIN + 18_000, BEGIN + 21_600),
    }


def test_two_processes_count_nothing_twice(open_store: object) -> None:
    first, second = open_store(), open_store()  # type: ignore[operator]
    first.log.write(days())
    while first.log_counter.step() or second.log_counter.step():
        pass
    assert first.log_stats.summary().decisions == 400
