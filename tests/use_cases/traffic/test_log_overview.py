"""The overview: spans of local time, and tables that agree with the timeline."""

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store
from gatewayfilter.use_cases.traffic.log_overview import LogShare, Span, make_overview, span_edges

BERLIN = ZoneInfo("Europe/Berlin")


class Names:
    def shown(self, client: str) -> str:
        return "kim" if client in {"192.0.2.1", "192.0.2.2"} else client


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"sqlite:///{tmp_path / 'a.sqlite3'}")


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Beirut"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("day", ["2025-03-30", "2025-10-26", "2018-11-04", "2025-04-06", "2025-06-15"])
@pytest.mark.parametrize(("span", "parts"), [(Span.DAY, 24), (Span.WEEK, 28), (Span.MONTH, 30)])
def test_edges_ascend_in_every_zone(zone: str, day: str, span: Span, parts: int) -> None:
    for hour in (0, 1, 2, 3, 12, 23):
        now = datetime.fromisoformat(day).replace(hour=hour, minute=30, tzinfo=ZoneInfo(zone)).timestamp()
        edges = span_edges(span, now, ZoneInfo(zone))
        assert len(edges) == parts + 1
        assert all(one < other for one, other in pairwise(edges))
        assert edges[0] < now < edges[-1]


def test_a_week_begins_at_a_local_midnight_though_the_clocks_change() -> None:
    edges = span_edges(Span.WEEK, datetime(2025, 4, 2, 15, tzinfo=BERLIN).timestamp(), BERLIN)
    assert datetime.fromtimestamp(edges[0], BERLIN).isoformat() == "2025-03-27T00:00:00+01:00"
    assert datetime.fromtimestamp(edges[-1], BERLIN).isoformat() == "2025-04-03T00:00:00+02:00"
    assert {(other - one) / 3_600 for one, other in pairwise(edges)} == {5.0, 6.0}


def test_tables_and_timeline(store: Store) -> None:
    now = datetime(2025, 5, 10, 12, tzinfo=UTC).timestamp()
    records = []
    for number in range(600):
        blocked = number % 3 == 0
        action, reason, source, category = (
            ("block", "blacklist", "ut1", "gambling")
            if blocked
            else ("allow", "unknown" if number % 3 == 1 else "whitelist", "", "")
        )
        host = f"h{number % 5}.example"
        client = f"192.0.2.{number % 4}"
        records.append(
            LogRecord(now - number * 3_600, client, "GET", f"http://{host}/", "document", action, reason, source, "", category)
        )
    store.log.write(records)
    while store.log_counter.step():
        pass
    found = make_overview(store.log_stats, Names(), Span.WEEK, now, UTC)
    mine = [one for one in records if found.since <= one.at < found.until]
    assert len(mine) == 157
    assert (found.decisions, found.blocked) == (len(mine), sum(one.action == "block" for one in mine))
    assert sum(one.decisions for one in found.clients) == len(mine)
    kim = next(one for one in found.clients if one.name == "kim")
    assert kim.decisions == sum(one.client in {"192.0.2.1", "192.0.2.2"} for one in mine)
    assert found.categories == (LogShare("gambling", found.blocked, found.blocked),)
    assert found.categories[0].blocked_share == 1.0
    assert LogShare("", 0, 0).blocked_share == 0.0
    assert found.lists[0].name == "ut1"
    assert [one.blocked for one in found.sites] == sorted((one.blocked for one in found.sites), reverse=True)
    one = make_overview(store.log_stats, Names(), Span.DAY, now, UTC, only=frozenset({"192.0.2.3"}), top=1)
    mine = [each for each in records if each.client == "192.0.2.3" and one.since <= each.at < one.until]
    assert (one.decisions, len(one.sites)) == (len(mine), 1)
    assert [each.name for each in one.clients] == ["192.0.2.3"]


def test_an_empty_log(store: Store) -> None:
    found = make_overview(store.log_stats, Names(), Span.MONTH, 1.7e9, UTC)
    assert (found.decisions, found.clients, len(found.timeline.buckets)) == (0, (), 30)


def test_the_last_hour_is_part_of_the_day(store: Store) -> None:
    now = datetime(2025, 5, 10, 12, 30, tzinfo=UTC).timestamp()
    store.log.write([LogRecord(now - 60, "192.0.2.9", "GET", "http://a.example/", "document", "block", "blacklist", "ut1")])
    while store.log_counter.step():
        pass
    found = make_overview(store.log_stats, Names(), Span.DAY, now, UTC)
    assert (found.until, found.decisions, [one.name for one in found.clients]) == (now + 1_800, 1, ["192.0.2.9"])
