"""Grouped pages: each record is in one group, and the pages together hold all of them."""

import random
from collections import Counter
from pathlib import Path

import pytest

import gatewayfilter.use_cases.traffic.log_groups as log_groups_module
from gatewayfilter.model import LogQuery, LogRecord
from gatewayfilter.store import Store
from gatewayfilter.use_cases.traffic.log_groups import LogGroup, grouped_page


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"sqlite:///{tmp_path / 'a.sqlite3'}")


def record(at: float, host: str, client: str = "192.0.2.1", *, path: str = "/", kind: str = "script") -> LogRecord:
    blocked = host.startswith("ads")
    outcome = ("block", "adblock") if blocked else ("allow", "unknown" if path == "/new" else "whitelist")
    return LogRecord(at, client, "GET", f"https://{host}{path}", kind, *outcome)


def test_a_page_and_its_parts_are_one_line(store: Store) -> None:
    begin = 60.0 * 20_000_000
    store.log.write(
        [
            record(begin + 1, "www.shop.example", path="/cart", kind="document"),
            record(begin + 2, "cdn.shop.example"),
            record(begin + 2, "cdn.shop.example", path="/new"),
            record(begin + 3, "ads.other.example"),
            record(begin + 3, "ads.shop.example"),
            record(begin + 4, "www.shop.example", client="192.0.2.2"),
            record(begin + 61, "www.shop.example"),
        ]
    )
    page = grouped_page(store.log_search, LogQuery())
    lines = [(one.client, one.site, one.minute - begin, one.decisions, one.blocked, one.unknown) for one in page.groups]
    assert lines == [
        ("192.0.2.1", "shop.example", 60, 1, 0, 0),
        ("192.0.2.2", "shop.example", 0, 1, 0, 0),
        ("192.0.2.1", "shop.example", 0, 4, 1, 1),
        ("192.0.2.1", "other.example", 0, 1, 1, 0),
    ]
    third = page.groups[2]
    assert (third.shown.url, third.shown_id, third.newest_id, third.oldest_id) == ("https://www.shop.example/cart", 1, 5, 1)
    assert (page.before, page.timed_out) == (None, False)


@pytest.mark.parametrize("query", [LogQuery(), LogQuery(action="block"), LogQuery(clients=frozenset({"user:kim"}))])
def test_pages_hold_every_record_once(query: LogQuery, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(4)
    records = [
        record(1e9 + number / 3, f"{draw.choice(('ads', 'www'))}.s{draw.randrange(9)}.example", f"192.0.2.{draw.randrange(5)}")
        for number in range(1_500)
    ]
    records = [one._replace(user="kim") if number % 9 == 0 else one for number, one in enumerate(records)]
    store.log.write(records)
    monkeypatch.setattr(log_groups_module, "_CHUNK", 40)
    found: list[LogGroup] = []
    before = None
    while True:
        page = grouped_page(store.log_search, query, 10, before=before, budget_s=5.0)
        assert len(page.groups) <= 10
        assert len({(one.client, one.site, one.minute) for one in page.groups}) == len(page.groups)
        found += page.groups
        if page.before is None:
            break
        assert len(page.groups) == 10
        assert before is None or page.before < before
        before = page.before
    wanted = [one for one in records if query.matches(one)]
    assert sum(one.decisions for one in found) == len(wanted)
    assert sum(one.blocked for one in found) == sum(one.action == "block" for one in wanted)
    per_client = Counter[str]()
    for one in found:
        per_client[one.client] += one.decisions
    assert per_client == Counter("user:kim" if one.user else one.client for one in wanted)


def test_one_busy_minute_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.log.write([record(1e9, "www.shop.example")] * 900)
    monkeypatch.setattr(log_groups_module, "_MOST_RECORDS", 400)
    monkeypatch.setattr(log_groups_module, "_CHUNK", 100)
    page = grouped_page(store.log_search, LogQuery())
    assert (page.groups[0].decisions, page.before, page.timed_out) == (400, 501, True)
    rest = grouped_page(store.log_search, LogQuery(), before=page.before)
    assert rest.groups[0].decisions == 400


def test_time_ends_a_page(store: Store) -> None:
    store.log.write([record(1e9, "www.shop.example")] * 900)
    page = grouped_page(store.log_search, LogQuery(), 2, budget_s=0.0)
    assert page.timed_out
    assert page.before is not None
    assert page.groups


@pytest.mark.parametrize(
    "url", ["", "https://", "x" * 5_000, "https://[2001:db8::1]:8443/a", "http://\u202e\x1b[2J/", "a..b...c"]
)
def test_any_text_has_a_site(url: str, store: Store) -> None:
    store.log.write([record(1e9, "a.example")._replace(url=url)])
    assert grouped_page(store.log_search, LogQuery()).groups[0].decisions == 1
