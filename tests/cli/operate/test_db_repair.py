"""`db check` and `db repair`: a damaged database is found and made again from the snapshot."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.processes.supervision.run_lock import RunLock
from gatewayfilter.store.backup.upgrade_copies import copy_before_upgrade

type Cli = Callable[..., Any]


def test_a_newer_database_needs_a_newer_program(cli: Cli, state: Path) -> None:
    cli("list", "add", "a.example")
    with closing(sqlite3.connect(state / "gatewayfilter.sqlite3")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    shown = cli("db", "status")
    assert shown.code == 1
    assert "newer than this program's" in shown.out
    assert "update GatewayFilter\n" in shown.out
    assert "db upgrade" not in shown.out
    assert "no copy in" in cli("db", "rollback").complains()


def test_a_newer_database_is_set_back_to_the_copy_before_its_upgrade(cli: Cli, state: Path) -> None:
    cli("list", "add", "first.example")
    copy = copy_before_upgrade(state / "gatewayfilter.sqlite3")
    cli("list", "add", "second.example")
    assert "is not newer" in cli("db", "rollback").complains()
    with closing(sqlite3.connect(state / "gatewayfilter.sqlite3")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with RunLock(state):
        assert "another GatewayFilter" in cli("db", "rollback").complains()
    done = cli("db", "rollback", "--json")
    assert done.json["copy"] == str(copy)
    assert Path(done.json["moved_to"]).exists()
    shown = cli("list", "show").out
    assert "first.example" in shown
    assert "second.example" not in shown


@pytest.mark.parametrize("damage", ["no database", "pages", "empty", "missing"])
def test_a_backup_is_restored_over_a_damaged_state(cli: Cli, state: Path, tmp_path: Path, damage: str) -> None:
    """Refused with one sentence that leads to the way, or done."""
    cli("list", "add", "kept.example")
    backup = tmp_path / "b.gfbackup"
    assert cli("backup", backup).code == 0
    cli("list", "add", "later.example")
    database = state / "gatewayfilter.sqlite3"
    for log in state.glob("gatewayfilter.sqlite3-*"):
        log.unlink()
    content = database.read_bytes()
    database.write_bytes(
        {"no database": b"x" * len(content), "pages": content[:5000] + b"\xff" * (len(content) - 5000)}.get(damage, b"")
    )
    if damage == "missing":
        database.unlink()
    if damage in {"no database", "pages"}:
        before = database.read_bytes()
        assert "`gatewayfilter db repair` moves it away" in cli("restore", backup).complains()
        assert database.read_bytes() == before
        assert cli("db", "repair").code == 0
    assert cli("restore", backup).code == 0
    assert [rule["pattern"] for rule in cli("list", "show", "--json").json] == [".kept.example"]
    assert cli("db", "check").code == 0


def test_a_damaged_database_is_made_again_from_the_snapshot(cli: Cli, state: Path) -> None:
    cli("list", "add", "--block", "first.example", "--comment", "why")
    cli("client", "add", "tablet", "--address", "192.0.2.7")
    assert cli("publish").code == 0
    cli("list", "add", "--block", "later.example")
    assert cli("db", "check").out == "The database is whole.\n"
    assert "is not damaged" in cli("db", "repair").complains()
    database = state / "gatewayfilter.sqlite3"
    damaged = bytearray(database.read_bytes())
    damaged[5000:] = b"\xff" * (len(damaged) - 5000)
    database.write_bytes(damaged)
    found = cli("db", "check", "--json")
    assert found.code == 1
    assert found.json["faults"]
    with RunLock(state):
        assert "another GatewayFilter" in cli("db", "repair").complains()
    done = cli("db", "repair", "--json").json
    assert done["manual_rules"] == 1
    assert Path(done["moved_to"]).read_bytes() == bytes(damaged)
    assert cli("db", "check").code == 0
    (rule,) = cli("list", "show", "--json").json
    assert (rule["pattern"], rule["comment"]) == (".first.example", "why")
    assert [client["name"] for client in cli("client", "list", "--json").json] == ["tablet"]
    cli("list", "add", "--block", "next.example")
    assert cli("check", "http://next.example/").code == 1


@pytest.mark.parametrize("side_files", [True, False])
def test_a_missing_database_comes_back_with_peoples_rules(cli: Cli, state: Path, *, side_files: bool) -> None:
    cli("list", "add", "--block", "first.example")
    assert cli("publish").code == 0
    database = state / "gatewayfilter.sqlite3"
    database.unlink()
    if side_files:
        database.with_name(f"{database.name}-wal").write_bytes(b"of another database")
    (rule,) = cli("list", "show", "--json").json
    assert rule["pattern"] == ".first.example"
    assert cli("db", "check").code == 0
