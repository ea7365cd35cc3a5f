"""The ids in which records of a time are looked for."""

from collections.abc import Sequence

import pytest

from gatewayfilter.model import LogQuery, LogRecord
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.traffic import log_spans

HOUR = 3_600.0


def fill(store: Store, times: Sequence[float], *, counted: bool = True) -> None:
    store.log.write([LogRecord(at, "192.0.2.1", "GET", "http://a/", "document", "allow", "unknown") for at in times])
    while counted and store.log_counter.step():
        pass


def spans(
    store: Store, since: float | None = None, until: float | None = None, before: int | None = None
) -> list[tuple[int, int]]:
    with store._database.read() as connection:
        return log_spans.id_spans(connection, LogQuery(since=since, until=until), before)


TIMES = [HOUR + 1, HOUR + 2, HOUR + 3, 2 * HOUR + 1, 2 * HOUR + 2, 2 * HOUR + 3, 2 * HOUR + 4, 3 * HOUR + 1]


@pytest.mark.parametrize(
    ("since", "until", "before", "found"),
    [
        (None, None, None, [(1, 8)]),
        (None, None, 8, [(1, 7)]),
        (None, None, 1, []),
        (2 * HOUR, None, None, [(4, 8)]),
        (2 * HOUR + 3, None, None, [(4, 8)]),
        (2 * HOUR, None, 6, [(4, 5)]),
        (9 * HOUR, None, None, []),
        (1.5 * HOUR, 1.9 * HOUR, None, []),
        (None, 2 * HOUR, None, [(1, 3)]),
        (None, 2 * HOUR + 3, None, [(1, 5)]),
        (None, 2 * HOUR + 1, None, [(1, 3)]),
        (2 * HOUR, 2 * HOUR + 3, None, [(4, 5)]),
        (2 * HOUR + 2, 2 * HOUR + 4, None, [(4, 6)]),
        (2 * HOUR + 2, 2 * HOUR + 2, None, []),
        (None, 9 * HOUR, None, [(1, 8)]),
        (None, HOUR, None, []),
    ],
)
def test_records_of_a_time_are_looked_for_in_its_hours(
    since: float | None, until: float | None, before: int | None, found: list[tuple[int, int]], store: Store
) -> None:
    fill(store, TIMES)
    assert spans(store, since, until, before) == found


def test_what_is_not_counted_is_looked_at_first_and_an_empty_log_not_at_all(store: Store) -> None:
    assert spans(store) == spans(store, HOUR) == []
    fill(store, TIMES)
    fill(store, [5 * HOUR, 6 * HOUR], counted=False)
    assert spans(store, 2 * HOUR, 3 * HOUR) == [(9, 10), (4, 7)]
    assert spans(store, 2 * HOUR, 3 * HOUR, 10) == [(9, 9), (4, 7)]
    store.log.purge(2 * HOUR + 2)
    assert spans(store) == [(5, 10)]


def test_of_an_hour_that_begins_at_the_end_of_a_span_nothing_is_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_spans, "_MOST_IN_HOUR", 2)
    fill(store, TIMES)
    assert spans(store, None, 2 * HOUR) == [(1, 3)]
    assert spans(store, 2 * HOUR, 2 * HOUR) == []


@pytest.mark.parametrize(("most", "found"), [(3, [(4, 5)]), (2, [(4, 7)])])
def test_of_an_hour_with_many_records_all_are_looked_at(
    most: int, found: list[tuple[int, int]], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_spans, "_MOST_IN_HOUR", most)
    fill(store, TIMES)
    assert spans(store, 2 * HOUR, 2 * HOUR + 3) == found
