"""What a restore does beside the rows: numbers that go on, and what is made of the rows."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store
from gatewayfilter.store.backup import Part, sql_backup
from gatewayfilter.store.sql.database import Area
from gatewayfilter.store.sql.schema import LEARNED_ENTRIES, MANUAL_RULES


class Rows:
    """The decisions of a backup."""

    def __init__(self, rows: Sequence[bytes]) -> None:
        self._rows = rows

    def tables(self) -> list[str]:
        return ["decisions"]

    def lines(self, table: str) -> Iterator[bytes]:
        assert table == "decisions"
        return iter(self._rows)


class Server:
    """A connection to PostgreSQL: keeps what it is told, and answers with what it was given."""

    def __init__(self, *answers: Any, dialect: str = "postgresql") -> None:
        self.dialect = SimpleNamespace(name=dialect)
        self.told: list[str] = []
        self._answers = list(answers)

    def scalar(self, statement: Any, values: Any = None) -> Any:
        del statement, values
        return self._answers.pop(0)

    def execute(self, statement: Any) -> None:
        self.told.append(str(statement.compile(compile_kwargs={"literal_binds": True})))


@pytest.mark.parametrize(
    ("answers", "goes_to"),
    [
        (("manual_rules_id_seq", 7, 3), 7),
        (("manual_rules_id_seq", 7, None), 7),
        (("manual_rules_id_seq", 1, None), 1),
        (("manual_rules_id_seq", 7, 7), None),
        (("manual_rules_id_seq", 7, 9), None),
        (("manual_rules_id_seq", 0, None), None),
        (("manual_rules_id_seq", None), None),
        ((None, 7), None),
    ],
)
def test_a_server_numbers_on_behind_the_restored_rows_and_never_goes_back(answers: tuple[Any, ...], goes_to: int | None) -> None:
    server = Server(*answers)
    sql_backup._advance_numbers(server, MANUAL_RULES)  # type: ignore[arg-type]
    assert server.told == ([f"SELECT setval('manual_rules_id_seq', {goes_to}) AS setval_1"] if goes_to else [])
    for other, table in ((Server(dialect="sqlite"), MANUAL_RULES), (Server(), LEARNED_ENTRIES)):
        sql_backup._advance_numbers(other, table)  # type: ignore[arg-type]
        assert other.told == []


def test_a_restore_takes_the_locks_in_the_order_of_all_others(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Area] = []
    with closing(Store.open(sqlite_url)) as store:
        write = store._database.write

        def noting(area: Area) -> Any:
            taken.append(area)
            return write(area)

        monkeypatch.setattr(store._database, "write", noting)
        with store.backup.replace(Rows([]), tmp_path):
            pass
    assert taken[0] is Area.VERDICTS
    assert [*dict.fromkeys(taken)] == [
        Area.VERDICTS, Area.REVIEWS, Area.FINGERPRINTS, Area.LISTS, Area.UNBLOCK, Area.ACCESS, Area.LOG, Area.LOG_COUNTS,
    ]  # fmt: skip


def test_what_is_made_of_the_log_goes_with_any_change_of_it(sqlite_url: str, tmp_path: Path) -> None:
    records = [LogRecord(float(number), "", "GET", "http://a/", "document", "allow", "unknown") for number in range(3)]
    with closing(Store.open(sqlite_url)) as store:
        store.log.write(records)
        with store.backup.snapshot(frozenset({Part.LOG})) as snapshot:
            lines = list(snapshot.lines("decisions"))
        edited = json.dumps(json.loads(lines[0]) | {"url": "http://b/"}).encode()
        added = json.dumps(json.loads(lines[0]) | {"id": 9}).encode()
        for rows in (lines[1:], [edited, *lines[1:]], [*lines, added], [*lines[1:], added]):
            while store.log_counter.step():
                pass
            assert store.log_stats.covered()[0] == 3
            with store.backup.replace(Rows(rows), tmp_path):
                pass
            assert store.log_stats.covered()[0] == 0
            with store.backup.replace(Rows(lines), tmp_path):
                pass
        while store.log_counter.step():
            pass
        with store.backup.replace(Rows(lines), tmp_path):
            pass
        assert store.log_stats.covered()[0] == 3, "nothing was changed"
