"""Heartbeats of crawlers: a crawler without a recent heartbeat counts as dead."""

from sqlalchemy import bindparam, delete, insert, select, update

from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import CRAWLERS

_COLUMNS = CRAWLERS.c
_BEAT = update(CRAWLERS).where(_COLUMNS.name == bindparam("of")).values(seen_at=bindparam("now"))
_ALIVE = select(_COLUMNS.name).where(_COLUMNS.seen_at >= bindparam("since")).order_by(_COLUMNS.name)
_FORGET = delete(CRAWLERS).where(_COLUMNS.seen_at < bindparam("before"))
_LEAVE = delete(CRAWLERS).where(_COLUMNS.name == bindparam("of"))
_KEEP_S = 86_400.0


class SqlCrawlers:
    """Implements `interfaces.Crawlers`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(self, name: str, now: float) -> None:
        """Records the heartbeat of a crawler (Unix seconds)."""
        with self._database.write(Area.CRAWLERS) as connection:
            if not connection.execute(_BEAT, {"of": name, "now": now}).rowcount:
                connection.execute(_FORGET, {"before": now - _KEEP_S})
                connection.execute(insert(CRAWLERS), {"name": name, "seen_at": now})

    def alive(self, since: float) -> list[str]:
        """Returns the names of those with a heartbeat since then (Unix seconds), in order."""
        with self._database.read() as connection:
            return list(connection.scalars(_ALIVE, {"since": since}))

    def leave(self, name: str) -> bool:
        """Removes a crawler that ends. Returns False when it was not registered."""
        with self._database.write(Area.CRAWLERS) as connection:
            return bool(connection.execute(_LEAVE, {"of": name}).rowcount)
