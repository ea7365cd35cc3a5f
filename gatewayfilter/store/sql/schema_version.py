"""The schema version of a database, and its migration to the one of this program. Imports alembic only when needed."""

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from gatewayfilter.errors import StoreError
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import HEAD, METADATA

_MIGRATIONS = Path(__file__).parents[1] / "migrations"
_INTEGRITY = text("PRAGMA integrity_check(20)")
_FOREIGN_KEYS = text("PRAGMA foreign_key_check")
_VERSION = text("SELECT version_num FROM alembic_version")
_LOOK = f"SELECT {', '.join(f'EXISTS (SELECT 1 FROM {name})' for name in METADATA.tables)}"  # noqa: S608  names of the schema
"""Looks at every table in one statement: composing one for each took a program 20 ms each time that it opened its database."""


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """Schema versions.

    Attributes:
        current: of the database, `""` for an empty or missing one.
        head: of this program.
    """

    current: str
    head: str

    @property
    def is_newer(self) -> bool:
        """Whether the database is of a later version of the program."""
        return bool(self.current) and self.current not in known_schemas()


def schema_status(url: str) -> SchemaStatus:
    """Returns the versions; the database is neither created nor changed.

    Raises:
        StoreError: it cannot be read, or is another program's.
    """
    with closing(Database.from_url(url)) as database:
        if database.path and not database.path.exists():
            return SchemaStatus("", HEAD)
        with database.read() as connection:
            return SchemaStatus(_current(connection, database), HEAD)


def faults_of(url: str) -> list[str]:
    """Returns what SQLite finds wrong in its file, a line each; nothing for a missing file, and for PostgreSQL.

    Raises:
        StoreError: it cannot be read at all.
    """
    with closing(Database.from_url(url)) as database:
        if database.path is None or not database.path.exists():
            return []
        with database.read() as connection:
            found = [str(line) for (line,) in connection.execute(_INTEGRITY)]
            found += [f"a row of {row[0]} refers to one that is missing" for row in connection.execute(_FOREIGN_KEYS)]
    return [line for line in found if line != "ok"]


def upgrade(url: str) -> None:
    """Creates the database, or migrates it to the schema of this program.

    Raises:
        StoreError: it cannot be opened, belongs to another program, or has a newer schema than this program.
    """
    with closing(Database.from_url(url)) as database:
        bring_to_head(database)


def bring_to_head(database: Database, before_upgrade: Callable[[], None] | None = None) -> None:
    """Creates or migrates the database when needed; quick when it is current. Safe for concurrent processes.

    Args:
        database: the database.
        before_upgrade: called before an existing database is migrated; if it raises, the database is unchanged.

    Raises:
        StoreError: as `upgrade`.
    """
    database.make_file()
    with database.read() as connection:
        current = _current(connection, database)
        if current == HEAD:
            # A truncated file keeps its first pages: look at every table now rather than fail in the middle of the work.
            connection.exec_driver_sql(_LOOK).one()
            return
    if current and before_upgrade is not None:
        before_upgrade()
    with database.write(Area.SCHEMA) as connection:
        current = _current(connection, database)  # another process may have been faster
        if current != HEAD:
            _migrate(connection, database, current)


def _current(connection: Connection, database: Database) -> str:
    tables = set(inspect(connection).get_table_names())
    if "alembic_version" in tables:
        return str(connection.scalar(_VERSION) or "")
    if tables:
        raise StoreError(f"the database {database.name} belongs to another program: name an empty or new one in store.url")
    return ""


def known_schemas() -> frozenset[str]:
    """Returns the schema versions that this program can read: its own and all earlier ones."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415  as in `_migrate`

    return frozenset(revision.revision for revision in ScriptDirectory(str(_MIGRATIONS)).walk_revisions())


def bring_to(database: Database, schema: str) -> None:
    """Migrates a database, made when it is not there, to a schema version that is not newer than this program's.

    Raises:
        StoreError: as `upgrade`.
    """
    database.make_file()
    with database.write(Area.SCHEMA) as connection:
        _migrate(connection, database, _current(connection, database), schema)


def _migrate(connection: Connection, database: Database, current: str, target: str = HEAD) -> None:
    # 0.3 s of imports that an up-to-date database does not pay
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    if current and current not in known_schemas():
        raise StoreError(
            f"the database {database.name} has schema {current}, newer than this program's {HEAD}: update GatewayFilter, "
            "or go back to the copy that was made before its upgrade: gatewayfilter db rollback"
        )
    logging.getLogger("alembic").setLevel(logging.WARNING)  # its INFO lines are not useful in our log
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, target)
