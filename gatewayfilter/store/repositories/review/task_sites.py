"""The number of pages that a crawl task has queued, by site: the breadth of its strategy, across restarts and crawlers."""

from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.row_bound import trim
from gatewayfilter.store.sql.schema import TASK_SITES
from gatewayfilter.urls import digest_of

KEEP_S: Final = 400 * 86_400.0
"""Longer than usual periods; a site without new pages for this long starts from 0 again."""

MOST_KEPT: Final = 200_000
"""Maximum of sites, those with the latest periods: the links of one page can name any number of them."""
_SWEEP_AFTER: Final = 1000

_COLUMNS = TASK_SITES.c
_OURS = _COLUMNS.digest == bindparam("of")
_FIND = select(_COLUMNS.pages, _COLUMNS.since).where(_OURS)
_COUNT = update(TASK_SITES).where(_OURS).values(pages=bindparam("now_pages"), since=bindparam("now_since"))
_FORGET = delete(TASK_SITES).where(_COLUMNS.since < bindparam("before"))
_TOTALS = select(_COLUMNS.task, func.sum(_COLUMNS.pages).label("pages")).group_by(_COLUMNS.task)
_FORGET_TASK = delete(TASK_SITES).where(_COLUMNS.task == bindparam("of"))


class SqlTaskSites:
    """Implements `interfaces.TaskSites`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._trim_in = 0

    def take(self, task: str, site: str, wanted: int, limit: int, now: float, period_s: float) -> int:
        """Takes up to `wanted` pages from the rest of a site's `limit` in this period. Returns the number granted."""
        digest = digest_of(f"{task}\n{site}")
        with self._database.write(Area.FRONTIER) as connection:
            row = connection.execute(_FIND, {"of": digest}).one_or_none()
            over = row is None or now - row.since >= period_s
            used, since = (0, now) if row is None or over else (row.pages, row.since)
            got = max(min(wanted, limit - used), 0)
            if row is None:
                self._make_room(connection, now)
                values = {"digest": digest, "task": task, "site": site, "pages": got, "since": since}
                connection.execute(insert(TASK_SITES), values)
            elif got or over:
                connection.execute(_COUNT, {"of": digest, "now_pages": used + got, "now_since": since})
        return got

    def _make_room(self, connection: Connection, now: float) -> None:
        connection.execute(_FORGET, {"before": now - KEEP_S})
        if self._trim_in <= 0:
            trim(connection, TASK_SITES, _COLUMNS.since, MOST_KEPT)
            self._trim_in = _SWEEP_AFTER
        self._trim_in -= 1

    def totals(self) -> dict[str, int]:
        """Returns the number of pages that each task has queued, of all sites, in their periods."""
        with self._database.read() as connection:
            return {row.task: row.pages for row in connection.execute(_TOTALS)}

    def forget(self, task: str) -> int:
        """Resets the counts of all sites of a task to 0. Returns the number of sites."""
        with self._database.write(Area.FRONTIER) as connection:
            return connection.execute(_FORGET_TASK, {"of": task}).rowcount
