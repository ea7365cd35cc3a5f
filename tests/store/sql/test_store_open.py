"""Opening: made, migrated, quick at the head, and one clear sentence for everything that cannot be opened."""

import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

import gatewayfilter.store.sql.schema_version as schema_version_module
from gatewayfilter.errors import StoreError
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.store import SchemaStatus, Store, faults_of, schema_status, upgrade
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import HEAD, METADATA

MIGRATIONS = Path(schema_version_module.__file__).parents[1] / "migrations"


def schema_of(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql NOT NULL AND name NOT IN ('alembic_version', 'sqlite_sequence')"
        )
        # Of a table that was renamed SQLite writes the name in quotes.
        return sorted((name, " ".join(sql.replace('"', "").split()).replace(" ,", ",").replace(" )", ")")) for name, sql in rows)


def test_a_new_database_is_made_private_and_in_wal_mode(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite3"
    url = f"sqlite:///{path}"
    assert schema_status(url) == SchemaStatus("", HEAD)
    assert not path.exists()
    with closing(Store.open(url)) as store:
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example")
        files = sorted(tmp_path.iterdir())
        assert [file.name for file in files] == ["new.sqlite3", "new.sqlite3-shm", "new.sqlite3-wal"]
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert schema_status(url) == SchemaStatus(HEAD, HEAD)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_migration_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("alembic").setLevel(logging.NOTSET)
    with caplog.at_level(logging.INFO):
        Store.open(f"sqlite:///{tmp_path}/new.sqlite3").close()
    assert caplog.records == []


def test_every_connection_is_set_up(sqlite_url: str) -> None:
    with closing(Database.from_url(sqlite_url)) as database, database.read() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 5000}


def test_what_was_written_is_there_after_opening_again(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        rule = store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example")
    with closing(Store.open(sqlite_url)) as store:
        assert store.lists.rules() == [rule]


def test_the_migrations_make_what_the_schema_declares(empty_database: Path, tmp_path: Path) -> None:
    declared = tmp_path / "declared.sqlite3"
    engine = create_engine(f"sqlite:///{declared}")
    METADATA.create_all(engine)
    engine.dispose()
    assert schema_of(empty_database) == schema_of(declared)
    engine = create_engine(f"sqlite:///{empty_database}")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    engine.dispose()


def test_there_is_one_newest_migration_and_it_is_the_head() -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_heads() == [HEAD]


def test_migrations_go_down_and_up_again(sqlite_url: str, tmp_path: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with closing(Database.from_url(sqlite_url)) as database, database.write(Area.SCHEMA) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert schema_of(tmp_path / "gatewayfilter.sqlite3") == []
    assert schema_status(sqlite_url) == SchemaStatus("", HEAD)
    upgrade(sqlite_url)
    assert schema_status(sqlite_url) == SchemaStatus(HEAD, HEAD)


def test_a_migration_that_fails_leaves_nothing_half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrations = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
    first = migrations / "versions" / "rev_0001_foundations.py"
    first.write_text(first.read_text().replace("def downgrade", "    op.execute('nonsense')\n\n\ndef downgrade"))
    monkeypatch.setattr(schema_version_module, "_MIGRATIONS", migrations)
    path = tmp_path / "half.sqlite3"
    with pytest.raises(StoreError, match="syntax error"):
        Store.open(f"sqlite:///{path}")
    assert schema_of(path) == []


def test_a_database_at_the_head_opens_without_alembic(sqlite_url: str) -> None:
    code = (
        "import sys; from gatewayfilter.store import Store; Store.open(sys.argv[1]).close(); assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, sqlite_url], check=True, timeout=60)


@pytest.mark.slow
def test_many_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.sqlite3'}"
    code = (
        "import sys; from gatewayfilter.store import Store; print(flush=True); input(); "
        "Store.open(sys.argv[1], busy_timeout_s=60.0).close()"
    )
    command = [sys.executable, "-c", code, url]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert schema_status(url).current == HEAD


def test_threads_share_one_store(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, f"h{number}.example"), range(100)))
        assert len(store.lists.rules()) == len(store.feed.read(0)) == 100


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", "store.url is not the URL of a database"),
        ("nonsense", "store.url is not the URL of a database"),
        ("/var/lib/x.sqlite3", "store.url is not the URL of a database"),
        ("sqlite://", "a file that processes share"),
        ("sqlite:///:memory:", "a file that processes share"),
        ("sqlite:///x.sqlite3?mode=ro&uri=true", "without options"),
        ("sqlite://host/x.sqlite3", "store.url is not the URL of a database"),
        ("mysql://user:secret@db.example/x", "mysql is not supported: use sqlite:///FILE or postgresql"),
        ("postgresql+asyncpg://user:secret@db.example/x", r"postgresql\+asyncpg is not supported"),
        ("postgresql+psycopg://db.example:port/x", "store.url is not the URL of a database"),
    ],
)
def test_a_url_that_cannot_be_used_gives_one_sentence(url: str, sentence: str) -> None:
    for attempt in (Store.open, schema_status, upgrade):
        with pytest.raises(StoreError, match=sentence) as caught:
            attempt(url)
        assert "secret" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match="needs the Python package psycopg"):
        Store.open("postgresql+psycopg://user:secret@db.example/x")


def dangle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "missing" / "x.sqlite3")


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def overwrite(path: Path) -> None:
    path.write_bytes(b"this is a text file, not a database\n" * 500)


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 3 // 4096 * 4096)


def scribble(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def make_foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE moz_places (id INTEGER)")


def make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


def drop_a_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE frontier")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (dangle, "cannot be (made|opened)"),
        (make_folder, "cannot be opened"),
        (overwrite, "is not a database: `gatewayfilter db repair` moves it away"),
        (cut_off, "is damaged: `gatewayfilter db repair` moves it away"),
        (scribble, "is damaged: `gatewayfilter db repair` moves it away"),
        (make_foreign, "belongs to another program"),
        (make_newer, "has schema 9999, newer than this program's"),
        (drop_a_table, "no such table: frontier"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_file_that_cannot_be_used_gives_one_sentence_that_names_it(
    sqlite_url: str, tmp_path: Path, damage: object, sentence: str
) -> None:
    path = tmp_path / "gatewayfilter.sqlite3"
    assert callable(damage)
    damage(path)
    with pytest.raises(StoreError, match=sentence) as caught:
        Store.open(sqlite_url)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_wrong_in_a_file_is_named(sqlite_url: str, tmp_path: Path) -> None:
    assert faults_of(sqlite_url) == faults_of(f"sqlite:///{tmp_path}/none.sqlite3") == []
    assert not (tmp_path / "none.sqlite3").exists()
    assert faults_of("postgresql+psycopg://nobody@127.0.0.1:1/none") == []
    with closing(sqlite3.connect(tmp_path / "gatewayfilter.sqlite3")) as connection, connection:
        connection.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TABLE children (parent REFERENCES parents (id), name)")
        connection.execute("INSERT INTO children VALUES (7, NULL)")
    missing = "a row of children refers to one that is missing"
    assert faults_of(sqlite_url) == [missing]
    with closing(sqlite3.connect(tmp_path / "gatewayfilter.sqlite3")) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'name)', 'name NOT NULL)') WHERE name = 'children'")
    assert faults_of(sqlite_url) == ["NULL value in children.name", missing]


def test_a_path_that_no_system_knows_gives_one_sentence() -> None:
    with pytest.raises(StoreError, match="null"):
        Store.open("sqlite:////tmp/a\0b")


def test_a_missing_folder_gives_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file or directory"):
        Store.open(f"sqlite:///{tmp_path / 'missing' / 'x.sqlite3'}")


def test_damage_found_later_is_a_store_error_too(sqlite_url: str, tmp_path: Path) -> None:
    with closing(Store.open(sqlite_url)) as store:
        overwrite(tmp_path / "gatewayfilter.sqlite3")
        with pytest.raises(StoreError, match=r"is (damaged|not a database)"):
            store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example")


def test_another_writer_is_waited_for_and_then_named(sqlite_url: str, tmp_path: Path) -> None:
    with (
        closing(Store.open(sqlite_url, busy_timeout_s=0.05)) as store,
        closing(sqlite3.connect(tmp_path / "gatewayfilter.sqlite3", isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by another program"):
            store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example")
        assert store.lists.rules() == []  # reading goes on
        other.execute("ROLLBACK")
        assert store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example")


def write_until_it_fails(database: Database, pragma: str) -> None:
    with database.write(Area.LISTS) as connection:
        connection.exec_driver_sql("INSERT INTO list_changes (kind, payload) VALUES ('x', '{}')")
        connection.exec_driver_sql(f"PRAGMA {pragma}")
        connection.exec_driver_sql("INSERT INTO list_changes (kind, payload) VALUES ('x', ?)", ("x" * 100_000,))


@pytest.mark.parametrize(
    ("pragma", "sentence"),
    [("max_page_count = 1", "cannot grow: the disk is full"), ("query_only = ON", "cannot be written: check the owner")],
)
def test_a_write_that_fails_leaves_nothing_behind(sqlite_url: str, pragma: str, sentence: str) -> None:
    with closing(Database.from_url(sqlite_url)) as database:
        with pytest.raises(StoreError, match=sentence):
            write_until_it_fails(database, pragma)
        with database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM list_changes").scalar() == 0


def test_text_that_cannot_be_stored_gives_one_sentence(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        with pytest.raises(StoreError, match="broken character"):
            store.lists.add_rule(ListAction.BLOCK, EntryKind.REGEX, "a\ud800b")
        assert store.lists.rules() == []
        assert store.feed.read(0) == []


def test_a_database_is_opened_for_reading_without_writing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'f.sqlite3'}"
    Store.open(url).close()
    with sqlite3.connect(tmp_path / "f.sqlite3", isolation_level=None) as writer:
        writer.execute("BEGIN IMMEDIATE")
        store = Store.open(url, busy_timeout_s=0.01)  # a full disk refuses a write as another's lock does
        assert store.feed.last_seq() == 0
        store.close()
