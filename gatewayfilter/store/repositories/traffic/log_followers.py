"""Followers of the decision log outside of the database: what they have read is stored with the log, by name."""

from collections.abc import Sequence

from sqlalchemy import func, select

from gatewayfilter.model import LogRecord
from gatewayfilter.store.repositories.traffic.log_rows import newest_settled, records_after, set_progress
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import DECISIONS, LOG_PROGRESS

_OLDEST = select(func.min(DECISIONS.c.id))


class SqlLogFollowers:
    """Implements `interfaces.LogFollowers`. Positions are rows of `log_progress`, so that they fit the log beside them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def position(self, name: str) -> int | None:
        """Returns the id up to which a follower has read, `None` for one that has not begun."""
        with self._database.read() as connection:
            found = connection.scalar(select(LOG_PROGRESS.c.up_to).where(LOG_PROGRESS.c.name == name))
        return None if found is None else int(found)

    def bounds(self) -> tuple[int, int]:
        """Returns the oldest id that is kept, and the newest below which no record can still appear; zeros for an empty log."""
        newest = newest_settled(self._database)
        with self._database.read() as connection:
            return connection.scalar(_OLDEST) or 0, newest

    def after(self, position: int, up_to: int, most: int) -> Sequence[tuple[int, LogRecord]]:
        """Returns the oldest records with `position < id <= up_to`, each with its id."""
        with self._database.read() as connection:
            return records_after(connection, position, up_to, most)

    def move(self, name: str, up_to: int) -> None:
        """Stores the id up to which a follower has read."""
        with self._database.write(Area.LOG_COUNTS) as connection:
            set_progress(self._database, connection, name, up_to)
