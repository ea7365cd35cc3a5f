"""Rows of all tables, out of one database and into another."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, insert, select

from gatewayfilter.errors import BackupError
from gatewayfilter.model import (
    Account,
    Client,
    EntryKind,
    Group,
    LearnedEntry,
    ListAction,
    Matcher,
    MatcherKind,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    Role,
    WebSession,
)
from gatewayfilter.store import Store
from gatewayfilter.store.backup import BACKED_UP, LEFT_OUT, Part
from gatewayfilter.store.backup.older_schema import at_this_schema, check_schema
from gatewayfilter.store.sql.database import Area
from gatewayfilter.store.sql.schema import DECISIONS, HEAD, METADATA, REVIEW_STEPS, REVIEW_TASKS

ALL = frozenset(Part)
STATE = frozenset({Part.STATE})


class Lines:
    """The rows of a backup in memory."""

    def __init__(self, content: Mapping[str, Sequence[bytes]]) -> None:
        self.content = dict(content)

    @classmethod
    def of(cls, store: Store, parts: frozenset[Part] = ALL) -> "Lines":
        with store.backup.snapshot(parts) as rows:
            return cls({name: list(rows.lines(name)) for name in rows.tables()})

    def tables(self) -> list[str]:
        return list(self.content)

    def lines(self, table: str) -> Iterator[bytes]:
        return iter(self.content[table])


def put_policies(store: Store, *items: PolicyItem) -> None:
    def edit(_: PolicySet) -> list[tuple[PolicyItem, bool]]:
        return [(item, True) for item in items]

    store.policies.change(edit, 1.0)


def fill(store: Store) -> None:
    for host in ("b.test", "a.test", "ü.test"):
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, host, comment="it's \u202e", expires_at=5.5)
    store.lists.remove_rule(1)
    store.lists.add_rule(ListAction.ALLOW, EntryKind.HOST, "c.test", scope="client:Zoë")
    store.lists.put_learned([learned(f"l{number}.test/") for number in range(1200)])
    put_policies(
        store,
        Policy("Ü"),
        Policy("a"),
        Policy("B"),
        Group("kids", "a"),
        Client("Zoë", (Matcher(MatcherKind.ADDRESS, "192.0.2.7"),), "kids"),
        Pause(PauseScope.ALL, "", 4e9),
    )
    rows: dict[Any, dict[str, Any]] = {
        table: {column.name: sample(column) for column in table.columns}
        for table in (item.table for item in BACKED_UP)
        if table.name not in {"policy_items", "manual_rules", "learned_entries"}
    }
    with store._database.write(Area.REVIEWS) as connection:
        for table, row in rows.items():
            connection.execute(insert(table), row)


KNOWN = {
    "review_tasks.state": "open",
    "review_tasks.kind": "page",
    "unblock_requests.state": "denied",
    "unblock_requests.rule_ids": [1, 41],
    "bypass_links.kind": "domain",
    "bypass_links.rule_ids": [41],
    "accounts.role": "viewer",
    "accounts.recovery": ["00ff"],
    "accounts.networks": ["192.0.2.7"],
    "api_tokens.scope": "read",
}
"""Values that are none of any text."""


def sample(column: Any) -> Any:
    if column.name in {"score_breakdown", "decided_at"}:
        return None
    if (known := KNOWN.get(f"{column.table.name}.{column.name}")) is not None:
        return known
    match column.type.python_type.__name__ if not isinstance(column.type, JSON) else "json":
        case "int":
            return 41
        case "float":
            return 0.1 + 0.2
        case "bool":
            return True
        case "bytes":
            return md5(column.name.encode()).digest()[: column.type.length or 16]
        case "json":
            return {"ü": [1, 2.5, None, "x"]}
    return ("ü'\n" + column.name)[: column.type.length or 100]


def learned(key: str, category: str = "adult") -> LearnedEntry:
    return LearnedEntry(key, ListAction.BLOCK, category, f"https://{key}", "", 1.25, 2e9, 0.5)


@pytest.fixture
def target(store_url: str, empty_database: Path, tmp_path: Path) -> Iterator[Store]:
    """A second database: of the other kind where there is a server."""
    del store_url
    opened = Store.open(f"sqlite:///{shutil.copy(empty_database, tmp_path / 'target.sqlite3')}")
    yield opened
    opened.close()


def test_each_table_is_backed_up_or_left_out_with_a_reason() -> None:
    backed_up = {item.table.name for item in BACKED_UP}
    assert backed_up | set(LEFT_OUT) == set(METADATA.tables)
    assert not backed_up & set(LEFT_OUT)
    assert all(len(reason) > 10 for reason in LEFT_OUT.values())


def test_json_columns_that_may_be_null_store_null() -> None:
    """A restored row has no JSON null where SQL has NULL."""
    for item in BACKED_UP:
        for column in item.table.columns:
            if isinstance(column.type, JSON) and column.nullable:
                assert column.type.none_as_null, column


def test_rows_go_to_another_database_and_back(store: Store, target: Store, tmp_path: Path) -> None:
    fill(store)
    first = Lines.of(store)
    assert all(first.content.values())
    with target.backup.replace(first, tmp_path) as changes:
        assert {change.name: change.added for change in changes} == {name: len(rows) for name, rows in first.content.items()}
    assert Lines.of(target).content == first.content
    assert target.lists.rules() == store.lists.rules()
    assert target.policies.read() == store.policies.read()
    with store.backup.replace(Lines({name: [] for name in first.content}), tmp_path) as changes:
        assert all(change.removed == len(first.content[change.name]) for change in changes)
    assert store.lists.rules() == []
    with store.backup.replace(Lines.of(target), tmp_path):
        pass
    assert Lines.of(store).content == first.content
    assert all((c.added, c.changed, c.removed) == (0, 0, 0) for c in store.backup.compare(first))


def test_numbers_go_on_after_the_restored_ones(store: Store, target: Store, tmp_path: Path) -> None:
    fill(store)
    with target.backup.replace(Lines.of(store), tmp_path):
        pass
    with store.backup.replace(Lines.of(target), tmp_path):
        pass
    taken = {rule.rule_id for rule in store.lists.rules()}
    assert store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "new.test").rule_id == max(taken) + 1
    with store._database.write(Area.LOG) as connection:
        row = {column.name: sample(column) for column in DECISIONS.columns if column.name != "id"}
        assert connection.execute(insert(DECISIONS), row).inserted_primary_key == (42,)


def test_references_stay(store: Store, target: Store, tmp_path: Path) -> None:
    fill(store)
    with target.backup.replace(Lines.of(store), tmp_path):
        pass
    with target._database.read() as connection:
        assert connection.scalar(select(REVIEW_TASKS.c.group_id)) == connection.scalar(select(REVIEW_TASKS.c.id)) == 41
        assert connection.scalar(select(REVIEW_STEPS.c.task_id)) == 41


def test_a_restore_stands_in_the_feed(store: Store, target: Store, tmp_path: Path) -> None:
    fill(store)
    target.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "before.test")  # has number 1
    target.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "before2.test")  # has a number of the backup
    target.lists.put_learned([learned("l0.test/", "gambling"), learned("old.test/")])
    put_policies(target, Policy("old"))
    last = target.feed.last_seq()
    with target.backup.replace(Lines.of(store), tmp_path):
        pass
    steps = []
    while found := target.feed.read(last):
        steps += found
        last = found[-1].seq
    rules: dict[int, str] = {1: "before.test", 2: "before2.test"}
    entries: dict[str, str] = {"l0.test/": "gambling", "old.test/": "adult"}
    policies = PolicySet.of([Policy("old")])
    for change in steps:
        added = change.kind.value.endswith(("added", "put"))
        if change.manual is not None:
            assert added or rules.pop(change.manual.rule_id) == change.manual.pattern
            if added:
                assert change.manual.rule_id not in rules
                rules[change.manual.rule_id] = change.manual.pattern
        elif change.learned is not None:
            assert added or entries.pop(change.learned.key) == change.learned.category
            if added:
                entries[change.learned.key] = change.learned.category
        elif change.policy is not None:
            policies = policies.changed([(change.policy, added)])
    assert rules == {rule.rule_id: rule.pattern for rule in target.lists.rules()}
    assert entries == {f"l{number}.test/": "adult" for number in range(1200)}
    assert policies == store.policies.read()


def test_a_failure_leaves_the_old_state(store: Store, target: Store, tmp_path: Path) -> None:
    fill(store)
    before = Lines.of(store)
    target.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "x.test")
    other = Lines.of(target)
    other.content["decisions"] = [b"{}\n"]
    with pytest.raises(BackupError), store.backup.replace(other, tmp_path):
        pass
    assert Lines.of(store).content == before.content
    other.content["decisions"] = []
    with pytest.raises(ZeroDivisionError), store.backup.replace(other, tmp_path):
        raise ZeroDivisionError
    assert Lines.of(store).content == before.content
    assert list(tmp_path.glob("tmp*")) == []


def test_a_restore_of_accounts_ends_all_sessions(store: Store, target: Store, tmp_path: Path) -> None:
    """The number of an account may be another person's in the backup."""
    fill(store)
    session = WebSession(b"d" * 32, target.accounts.add(Account(0, "ada", Role.ADMIN)).account_id, "c", 1.0, 1.0, 9e9, "", "")
    target.sessions.add(session)
    with target.backup.replace(Lines.of(target), tmp_path):
        pass
    assert target.sessions.find(session.digest) is not None
    with target.backup.replace(Lines.of(store), tmp_path):
        pass
    assert target.sessions.find(session.digest) is None


def test_a_snapshot_is_one_state(store: Store, open_store: Callable[[], Store]) -> None:
    fill(store)
    rules = len(store.lists.rules())
    with store.backup.snapshot(STATE) as rows:
        policies = list(rows.lines("policy_items"))
        open_store().lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "later.test")
        assert len(list(rows.lines("manual_rules"))) == rules
        assert len(policies) == 6
    assert len(store.lists.rules()) == rules + 1


def _edited(line: bytes, **values: Any) -> bytes:
    return json.dumps(json.loads(line) | values).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "edit"),
    [
        ("manual_rules", {"id": "1"}),
        ("manual_rules", {"id": True}),
        ("manual_rules", {"id": 2**63}),
        ("manual_rules", {"id": None}),
        ("manual_rules", {"pattern": "other.test"}),
        ("manual_rules", {"pattern": "a\0b"}),
        ("manual_rules", {"pattern": "\ud800"}),
        ("manual_rules", {"action": "explode"}),
        ("manual_rules", {"action": "x" * 9}),
        ("manual_rules", {"identity": "!!"}),
        ("manual_rules", {"identity": "ü"}),
        ("manual_rules", {"identity": "QQ=="}),
        ("manual_rules", {"expires_at": float("nan")}),
        ("manual_rules", {"expires_at": "soon"}),
        ("manual_rules", {"enabled": 1}),
        ("manual_rules", {"further": 1}),
        ("learned_entries", {"key": "other.test/"}),
        ("learned_entries", {"certainty": [1]}),
        ("policy_items", {"record": None}),
        ("policy_items", {"record": {"kind": "client"}}),
        ("policy_items", {"record": [1]}),
        ("policy_items", {"record": {"kind": "pause", "name": "x", "scope": "all", "target": "", "until": "x"}}),
        ("policy_items", {"name": "zzz"}),
        ("review_tasks", {"classification": {"a": "\0"}}),
        ("review_tasks", {"state": "x"}),
        ("review_tasks", {"kind": "x"}),
        ("unblock_requests", {"state": "x"}),
        ("unblock_requests", {"rule_ids": 7}),
        ("unblock_requests", {"until": float("inf")}),
        ("bypass_links", {"kind": "x"}),
        ("bypass_links", {"rule_ids": ["1"]}),
        ("bypass_links", {"until": 1e300}),
        ("accounts", {"role": "owner"}),
        ("accounts", {"recovery": [1]}),
        ("accounts", {"networks": "192.0.2.7"}),
        ("api_tokens", {"scope": "all"}),
    ],
)
def test_rows_that_cannot_be_used(table: str, edit: dict[str, Any], sqlite_url: str, tmp_path: Path) -> None:
    store = Store.open(sqlite_url)
    fill(store)
    lines = Lines.of(store)
    lines.content[table] = [*lines.content[table][:-1], _edited(lines.content[table][-1], **edit)]
    before = Lines.of(store).content
    with pytest.raises(BackupError, match="cannot be used"):
        store.backup.compare(lines)
    with pytest.raises(BackupError), store.backup.replace(lines, tmp_path):
        pass
    assert Lines.of(store).content == before
    store.close()


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"1" * 10_000, b"null"])
def test_lines_that_are_no_rows(line: bytes, sqlite_url: str) -> None:
    store = Store.open(sqlite_url)
    with pytest.raises(BackupError):
        store.backup.compare(Lines({"manual_rules": [line]}))
    store.close()


def test_rows_in_another_order_or_twice(sqlite_url: str) -> None:
    store = Store.open(sqlite_url)
    fill(store)
    rows = Lines.of(store).content["manual_rules"]
    for bad in ([rows[1], rows[0]], [rows[0], rows[0]]):
        with pytest.raises(BackupError, match="order"):
            store.backup.compare(Lines({"manual_rules": bad}))
    store.close()


def test_policies_that_do_not_fit_together(sqlite_url: str) -> None:
    store = Store.open(sqlite_url)
    fill(store)
    rows = [row for row in Lines.of(store).content["policy_items"] if b'"group"' not in row[:40] or b"Zo" in row]
    rows = [row for row in rows if json.loads(row)["kind"] != "group"]
    with pytest.raises(BackupError, match="fit together"):
        store.backup.compare(Lines({"policy_items": rows}))
    store.close()


def test_rows_of_an_earlier_schema(sqlite_url: str, tmp_path: Path) -> None:
    store = Store.open(sqlite_url)
    fill(store)
    now = Lines.of(store).content
    old = {name: list(now[name]) for name in ("manual_rules", "learned_entries", "review_tasks")}
    old["manual_rules"] = [_without(line, "scope") for line in old["manual_rules"] if not json.loads(line)["scope"]]
    old["learned_entries"] = [_without(line, "certainty") for line in old["learned_entries"]]
    old["review_tasks"] = [_without(line, "doubtful") for line in old["review_tasks"]]
    check_schema("0013")
    with at_this_schema(Lines(old), "0013", tmp_path) as rows, store.backup.replace(rows, tmp_path) as changes:
        assert {change.name: change.removed for change in changes} == {
            "manual_rules": 1,
            "learned_entries": 0,
            "review_tasks": 0,
        }
        with closing(sqlite3.connect(tmp_path / "earlier.sqlite3")) as earlier:
            assert earlier.execute("SELECT score_breakdown IS NULL FROM review_tasks").fetchall() == [(1,)], "and no JSON null"
    assert [rule.pattern for rule in store.lists.rules()] == ["a.test", "ü.test"]
    assert Lines.of(store).content["policy_items"] == now["policy_items"]
    assert json.loads(Lines.of(store).content["learned_entries"][0])["certainty"] is None
    assert not list(tmp_path.glob("earlier*"))
    with pytest.raises(BackupError), at_this_schema(Lines(now), "0013", tmp_path):
        pass
    assert not list(tmp_path.glob("earlier*"))
    store.close()


def _without(line: bytes, name: str) -> bytes:
    record = json.loads(line)
    del record[name]
    return json.dumps(record).encode()


def test_newer_schemas_are_refused() -> None:
    check_schema(HEAD)
    for schema in ("9999", "", "../x"):
        with pytest.raises(BackupError, match="newer"):
            check_schema(schema)
