from typing import Any

import pytest

import gatewayfilter.store.repositories.traffic.decision_log as decision_log_module
from gatewayfilter.interfaces import DecisionLog
from gatewayfilter.model import LogRecord
from gatewayfilter.store.sql.log_size import LogSize, measure_log


def record(at: float, url: str = "http://a.example/") -> LogRecord:
    return LogRecord(at, "192.0.2.1", "GET", url, "document", "block", "blacklist", "ut1-gambling", ".a.example", "gambling", 7)


def times(log: DecisionLog) -> list[float]:
    return [found.at for _, found in log.tail(10_000)]


def test_a_record_comes_back_as_it_was_written(log: DecisionLog) -> None:
    log.write([])
    assert log.tail(10) == []
    first, second = record(1.5), LogRecord(2.5, "", "POST", "http://例え.example/", "other", "allow", "unknown")
    log.write([first, second])
    assert [found for _, found in log.tail(10)] == [first, second]


def test_the_tail_goes_on_where_it_was(log: DecisionLog) -> None:
    log.write([record(float(number)) for number in range(10)])
    newest = log.tail(3)
    assert [found.at for _, found in newest] == [7.0, 8.0, 9.0]
    after = newest[-1][0]
    assert log.tail(3, after) == []
    log.write([record(10.0), record(11.0)])
    assert [found.at for _, found in log.tail(5, after)] == [10.0, 11.0]


@pytest.mark.parametrize(
    ("before", "left"),
    [(0.0, [5.0, 1.0, 9.0, 3.0, 7.0]), (4.0, [5.0, 9.0, 7.0]), (5.0, [5.0, 9.0, 7.0]), (100.0, [])],
)
def test_purge_by_age(log: DecisionLog, before: float, left: list[float]) -> None:
    log.write([record(at) for at in (5.0, 1.0, 9.0, 3.0, 7.0)])
    assert log.purge(before) == 5 - len(left)
    assert times(log) == left


def test_a_log_that_was_empty_is_measured_as_soon_as_it_may_exceed_its_size(
    log: DecisionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_log_module, "_LONGEST_ROW", 100)
    assert log.shrink(100) == 0
    log.write([record(1.0)])
    assert log.shrink(100) == 1


def test_how_much_of_the_log_and_of_its_counts_may_stay(log: DecisionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def measured(_: object, most_bytes: float, kept_bytes: float) -> LogSize:
        asked.append((most_bytes, kept_bytes))
        return LogSize(1, 0)

    monkeypatch.setattr(decision_log_module, "measure_log", measured)
    monkeypatch.setattr(decision_log_module, "trim_counts", lambda _, most: asked.append(most))
    for most_bytes, kept_bytes, counts in ((1e9, 9.5e8, 2_222_222), (2.25e6, 2_137_500.0, 5_000), (2.26e6, 2_147_000.0, 5_022)):
        assert log.shrink(most_bytes) == 0
        assert asked == [(most_bytes, pytest.approx(kept_bytes)), counts]
        asked.clear()


def test_purge_works_in_parts(log: DecisionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_log_module, "_PURGE_CHUNK", 4)
    log.write([record(float(number)) for number in range(20)])
    assert log.purge(8.0) == 8
    assert log.shrink(0) == 12


def test_a_log_within_its_size_stays_whole(log: DecisionLog) -> None:
    log.write([record(float(number)) for number in range(20)])
    assert log.shrink(20 * 4096) == 0
    assert len(times(log)) == 20


def test_an_id_is_never_used_again(log: DecisionLog) -> None:
    log.write([record(1.0)])
    ((first, _),) = log.tail(1)
    log.purge(2.0)
    log.write([record(3.0)])
    assert [found.at for _, found in log.tail(5, after=first)] == [3.0]


@pytest.mark.parametrize(
    ("field", "odd", "kept"),
    [
        ("url", "http://a.example/\udc80\0é", "http://a.example/??é"),
        ("client", "\0", "?"),
        ("category", "\ud800", "?"),
        ("rule", "例\0え", "例?え"),
    ],
)
def test_one_odd_request_does_not_cost_the_batch(log: DecisionLog, field: str, odd: str, kept: str) -> None:
    log.write([record(1.0), record(2.0)._replace(**{field: odd}), record(3.0, "http://例え.example/")])  # type: ignore[arg-type]
    expected = [record(1.0), record(2.0)._replace(**{field: kept}), record(3.0, "http://例え.example/")]  # type: ignore[arg-type]
    assert [found for _, found in log.tail(5)] == expected


def test_a_log_just_within_its_size_is_measured_again_as_soon_as_it_may_exceed_it(
    log: DecisionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[float] = []
    measure = measure_log

    def counted(connection: Any, most_bytes: float, keep_bytes: float) -> Any:
        found = measure(connection, most_bytes, keep_bytes)
        measured.append(found.size_bytes)
        return found

    monkeypatch.setattr(decision_log_module, "measure_log", counted)
    monkeypatch.setattr(decision_log_module, "_LONGEST_ROW", 100)
    log.write([record(float(number)) for number in range(100)])
    log.shrink(1e9)
    (size,) = measured
    for most_bytes, rows in ((size + 1_000, 10), (size + 100, 1), (size, 0)):
        measured.clear()
        assert log.shrink(most_bytes) == 0
        assert len(measured) == 1
        log.shrink(most_bytes)
        assert len(measured) == (1 if rows else 2), most_bytes
    measured.clear()
    assert log.shrink(size - 1) > 0
    left = len(times(log))
    assert left < 100
    assert log.shrink(size - 1) == 0
    assert len(measured) == 1, "there is room again"
