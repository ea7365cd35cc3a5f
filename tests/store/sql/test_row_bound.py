"""Each table that pages and their visitors make grow, flooded: it keeps so many rows as it may, and the right ones."""

from collections.abc import Callable

import pytest

from gatewayfilter.interfaces import CrawlRequest, Priority, UnblockRequest, Validators
from gatewayfilter.model import Classification, ContentId, ContentKind, Fingerprint, LearnedEntry, ListAction
from gatewayfilter.store import Store
from gatewayfilter.store.repositories import fingerprints, page_verdicts
from gatewayfilter.store.repositories.crawling import validators
from gatewayfilter.store.repositories.review import task_sites, unblock_requests
from gatewayfilter.store.sql import row_bound
from gatewayfilter.store.sql.schema import FINGERPRINTS, METADATA, PAGE_VALIDATORS, PAGE_VERDICTS, TASK_SITES

HARMLESS = Classification("", 0.0, 20.0)
MOST = 20
SLACK = 5


def _count(store: Store, table: str) -> int:
    with store._database.read() as connection:
        return len(connection.execute(METADATA.tables[table].select()).all())


def _verdict(store: Store, number: int) -> None:
    store.verdicts.record(f"http://a.example/{number}", HARMLESS, float(number))


def _fingerprint(store: Store, number: int) -> None:
    content = ContentId(ContentKind.PAGE, number.to_bytes(16), bytes(16))
    store.fingerprints.put(Fingerprint(content, HARMLESS, "", "1", "http://a.example/", 1.0, 1e9 + number, 0))


def _validator(store: Store, number: int) -> None:
    store.validators.note(f"http://a.example/{number}", Validators("http://a.example/", "e", ""), "1", 1e9 + number)


def _site(store: Store, number: int) -> None:
    store.task_sites.take("task", f"{number}.example", 1, 5, 1e9 + number, 60.0)


@pytest.mark.parametrize(
    ("module", "table", "write", "over"),
    [
        (page_verdicts, PAGE_VERDICTS.name, _verdict, 1),
        (fingerprints, FINGERPRINTS.name, _fingerprint, 1),
        (validators, PAGE_VALIDATORS.name, _validator, 0),
        (task_sites, TASK_SITES.name, _site, 1),
    ],
)
def test_a_flood_of_rows_pushes_the_oldest_out(
    store: Store, monkeypatch: pytest.MonkeyPatch, module: object, table: str, write: Callable[[Store, int], None], over: int
) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", MOST)
    monkeypatch.setattr(module, "_SWEEP_AFTER", SLACK)
    for number in range(3 * MOST):
        write(store, number)
        assert _count(store, table) == (number + 1 if number < MOST else MOST + number % SLACK + over)


def test_of_rows_of_one_moment_no_more_go_than_must(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_verdicts, "MOST_KEPT", MOST)
    for start in range(0, 60, 30):
        store.verdicts._sweep_in = 0
        store.verdicts.record_all({f"http://a.example/{start + number}": HARMLESS for number in range(30)}, 7.0)
    store.verdicts._sweep_in = 0
    store.verdicts.record("http://b.example/", HARMLESS, 8.0)
    assert _count(store, PAGE_VERDICTS.name) == MOST + 1


def test_one_transaction_deletes_a_bounded_number(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_verdicts, "MOST_KEPT", MOST)
    monkeypatch.setattr(row_bound, "_MOST_AT_ONCE", 7)
    store.verdicts.record_all({f"http://a.example/{number}": HARMLESS for number in range(60)}, 7.0)
    store.verdicts._sweep_in = 0
    store.verdicts.record("http://b.example/", HARMLESS, 8.0)
    assert _count(store, PAGE_VERDICTS.name) == 60 - 7 + 1


def test_surplus_learned_entries_are_those_that_expire_first(store: Store) -> None:
    entries = [
        LearnedEntry(f"a.example/{number}", ListAction.ALLOW, "", f"http://a.example/{number}", "", 1.0, 100.0 - number)
        for number in range(10)
    ]
    store.lists.put_learned(entries)
    assert store.lists.surplus_learned(10) == []
    assert [entry.key for entry in store.lists.surplus_learned(7)] == ["a.example/9", "a.example/8", "a.example/7"]
    assert len(store.lists.surplus_learned(0, limit=4)) == 4


def test_a_client_that_asks_for_much_pushes_out_no_requests(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unblock_requests, "MOST_OPEN", 4)

    def ask(client: str, number: int) -> UnblockRequest:
        return UnblockRequest(f"http://a.example/{number}", client, "blacklist", "l", "r", "c", "", float(number))

    store.unblock.ask([ask("quiet", 1)])
    for number in range(2, 40):
        store.unblock.ask([ask("loud", number)])
    left = store.unblock.open_requests()
    assert [(found.client, found.at) for found in left] == [("loud", 4.0), ("loud", 3.0), ("loud", 2.0), ("quiet", 1.0)]


def test_long_urls_are_refused_sooner_than_short_ones(store: Store) -> None:
    store.frontier.max_waiting = 80

    def offers(length: int, first: int) -> list[CrawlRequest]:
        return [
            CrawlRequest(f"http://a.example/{number:06}".ljust(length, "x"), Priority.VISIT)
            for number in range(first, first + 200)
        ]

    assert store.frontier.add(offers(2_048, 0), 1.0) == 20
    assert store.frontier.add(offers(1_024, 1_000), 1.0) == 20
    assert store.frontier.add(offers(200, 2_000), 1.0) == 120
