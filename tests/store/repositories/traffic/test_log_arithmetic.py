"""The arithmetic of the log: counts, spans, sizes and shares at their edges, and what PostgreSQL alone is asked."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError

from gatewayfilter.errors import StoreError
from gatewayfilter.model import LogCount, LogDimension, LogQuery, LogRecord
from gatewayfilter.renamed_codes import RENAMED_CODES
from gatewayfilter.store.repositories.traffic import log_counts, log_rows, log_search, log_stats, log_terms_table, log_timeline
from gatewayfilter.store.repositories.traffic.log_counts import DAY_S, HOUR_S, count_records, hour_of
from gatewayfilter.store.repositories.traffic.log_rows import ChunkSize, newest_settled, numbered
from gatewayfilter.store.sql import log_size
from gatewayfilter.store.sql.database import Area

RECORD = LogRecord(90_000.0, "192.0.2.1", "GET", "http://a.example/x", "document", "block", "blacklist", "ut1", "r", "ads", 5)


def test_what_a_record_adds_to_the_counts() -> None:
    clientless = RECORD._replace(client="", category="", source_list="", at=-5.0)
    found = count_records([RECORD, RECORD, clientless])
    expected: dict[Any, int] = {}
    for period, start in ((HOUR_S, 90_000), (DAY_S, 86_400)):
        expected[period, LogDimension.CLIENT, start, "", "192.0.2.1", "block"] = 2
        expected[period, LogDimension.CLIENT, 0, "", "", "block"] = 1
        for dimension, name in (
            (LogDimension.REASON, "blacklist"), (LogDimension.HOST, "a.example"), (LogDimension.CATEGORY, "ads"),
            (LogDimension.SOURCE, "ut1"),
        ):  # fmt: skip
            expected[period, dimension, start, "", name, "block"] = 2
            expected[period, dimension, start, "192.0.2.1", name, "block"] = 2
        for dimension, name in ((LogDimension.REASON, "blacklist"), (LogDimension.HOST, "a.example")):
            expected[period, dimension, 0, "", name, "block"] = 1
    assert found == expected
    assert [hour_of(at) for at in (-1.0, 3_599.9, 3_600.0, 7_199.0, 1e18)] == [0, 0, 3_600, 3_600, 253_402_297_200]
    named = count_records([RECORD._replace(user="x" * 300, url=f"http://{'h' * 300}/")])
    assert {len(key[4]) for key in named if key[1] is LogDimension.CLIENT} == {253}
    assert {len(key[3]) for key in named} == {0, 253}


def test_hours_and_devices_of_records() -> None:
    rows = [(4, RECORD), (5, RECORD._replace(at=86_399.0)), (9, RECORD._replace(at=93_599.0)), (11, RECORD._replace(client="a"))]
    assert log_counts._hours_of(rows) == [
        {"start": 82_800, "first_id": 5, "last_id": 5}, {"start": 90_000, "first_id": 4, "last_id": 11},
    ]  # fmt: skip
    assert log_counts._devices_of(rows) == [
        {"client": "192.0.2.1", "first_at": 86_399.0, "last_at": 93_599.0}, {"client": "a", "first_at": 9e4, "last_at": 9e4},
    ]  # fmt: skip
    assert log_counts._buckets_at_risk(count_records([RECORD])) == {
        (period, dimension, start) for period, start in ((HOUR_S, 90_000), (DAY_S, 86_400))
        for dimension in (LogDimension.CLIENT, LogDimension.HOST)
    }  # fmt: skip


def test_the_size_of_a_part_follows_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_rows, "_LONGEST_S", 0.03)
    size = ChunkSize(900)
    assert (size.rows, ChunkSize(100).rows) == (250, 100)
    for took_s, rows in (
        (0.03, 250), (0.0301, 125), (0.04, 62), (0.04, 50), (0.04, 50), (0.01, 50), (0.0099, 100), (0.0, 200), (0.0, 400),
        (0.0, 800), (0.0, 900), (0.0, 900),
    ):  # fmt: skip
        size.fit(took_s)
        assert size.rows == rows, took_s


@pytest.mark.parametrize(
    ("covered", "took_s", "left_s", "span"),
    [
        (50_000, 0.1, 0.2, 50_000), (50_000, 0.1, 0.4, 100_000), (50_000, 0.1, 0.0, 10_000), (50_000, 0.0, 1.0, 400_000),
        (5, 0.0, 1.0, 80_000), (50_000, 0.1, 90.0, 400_000),
    ],
)  # fmt: skip
def test_the_next_part_of_a_search_fits_the_time(covered: int, took_s: float, left_s: float, span: int) -> None:
    assert log_search._fitted_span(covered, took_s, left_s) == span


def test_the_first_names_are_those_that_were_blocked_most() -> None:
    names = {"b": [5, 1], "a": [5, 1], "c": [9, 1], "d": [2, 2], "e": [99, 0]}
    assert log_stats._top(names, 4) == (LogCount("d", 2, 2), LogCount("c", 9, 1), LogCount("a", 5, 1), LogCount("b", 5, 1))


class Edges:
    """A connection to a log with a first and a last hour, and so many between them."""

    def __init__(self, first: int | None, last: int | None, hours: int = 1) -> None:
        self._edges, self._hours = (first, last), hours

    def execute(self, _: Any, span: dict[str, int] | None = None) -> Any:
        if span is not None:
            self.asked = span["begin"], span["end"]
        return SimpleNamespace(one=lambda: self._edges, scalar_one=lambda: self._hours)


def test_a_span_is_of_whole_hours_and_a_long_one_of_whole_days() -> None:
    hour = HOUR_S

    def span(log: Edges, since: float | None, until: float | None, *fresh: int, period: int = HOUR_S) -> Any:
        keys = {(period, LogDimension.REASON, start, "", "x", "allow"): 1 for start in fresh}
        return log_stats._span(log, Counter(keys), since, until)  # type: ignore[arg-type]

    log = Edges(2 * hour, 90 * hour)
    for since, until, found in (
        (None, None, (2, 91)), (0.0, 9e9, (2, 91)), (3.0 * hour, 5.0 * hour, (3, 5)), (3.5 * hour, 5.5 * hour, (3, 6)),
        (91.0 * hour, None, None), (90.0 * hour, None, (90, 91)), (None, 2.0 * hour, None), (5.0 * hour, 5.0 * hour, None),
        (5.0 * hour, 5.1 * hour, (5, 6)),
    ):  # fmt: skip
        assert span(log, since, until) == (found and (found[0] * hour, found[1] * hour)), (since, until)
    assert log.asked == (5 * hour, 6 * hour)
    assert span(Edges(None, None), None, None) is None
    assert span(Edges(None, None), None, None, 7 * hour) == (7 * hour, 8 * hour)
    assert span(Edges(None, None), None, None, 7 * hour, period=DAY_S) is None
    assert span(log, None, None, hour, 99 * hour) == (hour, 100 * hour)
    most = log_stats._MOST_HOURS
    assert span(Edges(2 * hour, 90 * hour, most), None, None) == (2 * hour, 91 * hour)
    assert span(Edges(2 * hour, 90 * hour, most + 1), None, None) == (0, 4 * DAY_S)
    assert span(Edges(DAY_S, 2 * DAY_S - hour, most + 1), None, None) == (DAY_S, 2 * DAY_S)


def test_where_a_decision_counts_in_a_timeline() -> None:
    assert [log_timeline._place(*of) for of in (("unknown", "block"), ("unknown", "allow"), ("whitelist", "allow"))] == [1, 2, 0]
    assert [log_timeline._whole(edge) for edge in (3.0, 3.1, 2.9, -0.5)] == [3, 4, 3, 0]


def test_the_log_is_measured_in_ranges_of_its_ids() -> None:
    many = log_size._ranges(11, 10 + 2 * log_size.STRATA)
    assert (len(many), many[0], many[-1]) == (log_size.STRATA, (2 * log_size.STRATA + 9, 2 * log_size.STRATA + 11), (11, 13))
    text = str(log_size._text_bytes(is_sqlite=False).compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]
    assert text.count("octet_length(") == len(log_size._TEXTS)
    assert text.count(" + ") == len(log_size._TEXTS) - 1


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def sql(statement: Any, *, literal: bool = True) -> str:
    compiled = statement.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": literal})  # type: ignore[no-untyped-call]
    return " ".join(str(compiled).split())


class Server:
    """A database on a server, and its only connection: keeps what it is asked, and answers with what it was given."""

    path = None

    def __init__(self, *answers: Any) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)
        self.rolled_back = False

    def execute(self, statement: Any, values: Any = None) -> Any:
        self.asked.append(sql(statement) if values is None else f"{sql(statement, literal=False)} {values}")
        if self.asked[-1].startswith(("SET ", "CREATE ", "DROP ", "SELECT pg_advisory")):
            return None
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    scalar = scalars = execute

    def rollback(self) -> None:
        self.rolled_back = True

    @contextmanager
    def read(self) -> Iterator["Server"]:
        self.asked.append("read")
        yield self

    @contextmanager
    def write(self, area: Area) -> Iterator["Server"]:
        self.asked.append(f"write {area.name}")
        yield self

    @contextmanager
    def autocommit(self) -> Iterator["Server"]:
        yield self

    def await_writers(self, connection: "Server", area: Area) -> None:
        assert connection is self
        self.asked.append(f"await {area.name}")


def rows(*numbers: int) -> list[tuple[Any, ...]]:
    return [(number, *RECORD) for number in numbers]


class Budget:
    def left_s(self) -> float:
        return 0.05


def searched(server: Server, query: LogQuery, low: int, top: int) -> list[tuple[list[int], int]]:
    found = log_search._from_postgres(server, query, (low, top), Budget())  # type: ignore[arg-type]
    return [([number for number, _ in some], down_to) for some, down_to in found]


def test_a_server_is_asked_for_the_newest_records_and_then_by_its_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "_POSTGRES_NEWEST", 10)
    monkeypatch.setattr(log_search, "_FOUND", 2)
    server = Server(rows(95), rows(80, 70), rows(60))
    assert searched(server, LogQuery(action="block"), 1, 100) == [([95], 91), ([80, 70], 70), ([60], 1)]
    newest, limit, older, default, _, again, _ = server.asked
    assert newest.endswith("WHERE decisions.action = 'block' AND decisions.id BETWEEN 91 AND 100 ORDER BY decisions.id DESC")
    assert (limit, default) == ("SET LOCAL statement_timeout = 51", "SET LOCAL statement_timeout = DEFAULT")
    assert "BETWEEN 1 AND 90 ORDER BY decisions.id + 0 DESC LIMIT 2" in older
    assert "BETWEEN 1 AND 69 " in again
    short = Server(rows(95))
    assert searched(short, LogQuery(action="block"), 91, 100) == [([95], 91)]
    one_more = Server([], [])
    assert searched(one_more, LogQuery(action="block"), 90, 100) == [([], 91), ([], 90)]
    assert "BETWEEN 90 AND 90 " in one_more.asked[2]


def test_a_search_without_a_condition_reads_down_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "_SCANNED", 2)
    server = Server(rows(9, 7), rows(6))
    assert searched(server, LogQuery(text="ab"), 5, 9) == [([9, 7], 7), ([6], 5)]
    assert len(server.asked) == 2
    last = Server(rows(6, 5))
    assert searched(last, LogQuery(), 5, 6) == [([6, 5], 5)]


def test_a_search_that_a_server_cuts_off_ends_and_other_faults_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "_POSTGRES_NEWEST", 1)
    for code in ("57014", "40001"):
        cause = Exception()
        cause.sqlstate = code  # type: ignore[attr-defined]
        server = Server([], DBAPIError("x", None, cause))
        if code == "57014":
            assert searched(server, LogQuery(action="block"), 1, 100) == [([], 100)]
            assert server.rolled_back
        else:
            with pytest.raises(DBAPIError):
                searched(server, LogQuery(action="block"), 1, 100)
            assert not server.rolled_back


def test_conditions_that_a_server_tests_itself() -> None:
    for query, said in (
        (LogQuery(text="AB%c"), "LIKE '%%' || 'ab/%c' || '%%' ESCAPE '/'"),
        (LogQuery(host="A.test"), "LIKE '%%' || 'a.test' || '%%'"),
        (LogQuery(action="x"), "decisions.action = 'x'"), (LogQuery(reason="x"), "decisions.reason = 'x'"),
        (LogQuery(category="x"), "decisions.category = 'x'"), (LogQuery(source_list="x"), "decisions.source_list = 'x'"),
    ):  # fmt: skip
        (condition,) = log_search._conditions(query)
        assert said.replace("%%", "%") in sql(condition).replace("%%", "%")
    (clients,) = log_search._conditions(LogQuery(clients=frozenset({"192.0.2.1", "user:kim"})))
    assert sql(clients) == (
        "decisions.client IN ('192.0.2.1') OR decisions.user_name != '' AND decisions.user_name IN ('kim')"
    )  # fmt: skip
    assert log_search._conditions(LogQuery(text="ab")) == []
    assert len(log_search._conditions(LogQuery(text="abc", host="a", action="b", clients=frozenset()))) == 4


def test_the_newest_record_of_a_server_is_one_that_others_have_written() -> None:
    server = Server(7, None)
    assert (newest_settled(server), newest_settled(server)) == (7, 0)  # type: ignore[arg-type]
    asked = ["write LOG_COUNTS", "await LOG", "SELECT max(decisions.id) AS max_1 FROM decisions"]
    assert server.asked == asked * 2


def test_indexes_that_a_server_lacks_are_made_once(caplog: pytest.LogCaptureFixture) -> None:
    every = list(log_terms_table._POSTGRES_INDEXES)

    class Locked(Server):
        """One in which another process has the lock, or which refuses."""

        lock: Any = True

        def scalar(self, statement: Any, values: Any = None) -> Any:
            assert values == {"area": int(Area.LOG_INDEXES)}
            if isinstance(self.lock, Exception):
                raise self.lock
            return self.lock

    server = Locked(every[2:], every)
    indexer = log_terms_table.SqlLogIndexer(server)  # type: ignore[arg-type]
    assert (indexer.step(), indexer.step()) == (0, 0)
    made = [asked for asked in server.asked if asked.startswith(("CREATE", "DROP", "SELECT pg_advisory_unlock"))]
    assert [asked.split(" ON ")[0].split(" (")[0] for asked in made] == [
        "CREATE EXTENSION IF NOT EXISTS pg_trgm", f"DROP INDEX IF EXISTS {every[0]}",
        f"CREATE INDEX CONCURRENTLY {every[0]}", f"SELECT pg_advisory_unlock(%(area)s) {{'area': {int(Area.LOG_INDEXES)}}}",
        f"DROP INDEX IF EXISTS {every[1]}", f"CREATE INDEX CONCURRENTLY {every[1]}",
        f"SELECT pg_advisory_unlock(%(area)s) {{'area': {int(Area.LOG_INDEXES)}}}",
    ]  # fmt: skip
    gap = Locked([every[0], *every[2:]])
    log_terms_table.SqlLogIndexer(gap).step()  # type: ignore[arg-type]
    assert [asked.split(" ON ")[0] for asked in gap.asked if "INDEX C" in asked] == [f"CREATE INDEX CONCURRENTLY {every[1]}"]
    other = Locked(every[1:])
    other.lock = False
    log_terms_table.SqlLogIndexer(other).step()  # type: ignore[arg-type]
    assert len(other.asked) == 2
    refusing = Locked(every[1:], every[1:])
    refusing.lock = StoreError("no room")
    indexer = log_terms_table.SqlLogIndexer(refusing)  # type: ignore[arg-type]
    indexer.step()
    indexer.step()
    assert [one.getMessage() for one in caplog.records] == [
        f"the log cannot have the index {every[0]}: searches read more (no room)"
    ]  # fmt: skip


def test_a_renamed_reason_is_read_by_its_new_name() -> None:
    old, new = next(iter(RENAMED_CODES.items()))
    assert numbered((3, *RECORD._replace(reason=old))) == (3, RECORD._replace(reason=new))  # type: ignore[arg-type]
    assert numbered((3, *RECORD)) == (3, RECORD)  # type: ignore[arg-type]
