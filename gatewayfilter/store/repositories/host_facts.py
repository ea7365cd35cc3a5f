"""Host facts: what verdicts and queue hold about the host of a page, without the page itself."""

from typing import Final

from sqlalchemy import bindparam, func, select

from gatewayfilter.interfaces import HostFacts, Priority
from gatewayfilter.store.sql.database import Database
from gatewayfilter.store.sql.schema import FRONTIER, PAGE_VERDICTS
from gatewayfilter.urls import digest_of

MOST_READ: Final = 2_000
"""Verdicts of a host that are read: some 10 ms. On a host with more, those stored first are counted."""

_V = PAGE_VERDICTS.c
_OF_HOST = (
    select(_V.digest, _V.category, _V.text_digest, _V.path_digest, _V.judged_at)
    .where(_V.host == bindparam("host"))
    .limit(MOST_READ)
    .subquery()
)
_H = _OF_HOST.c
_COUNTS = (
    select(_H.category, func.count(_H.text_digest.distinct()), func.count(_H.path_digest.distinct()))
    .where(
        _H.text_digest.is_not(None),
        _H.path_digest.is_not(None),
        _H.digest != bindparam("page"),
        _H.text_digest != bindparam("text"),
    )
    .group_by(_H.category)
)
_SINCE = select(func.min(_H.judged_at))
_QUEUED = select(FRONTIER.c.priority, FRONTIER.c.task).where(FRONTIER.c.digest == bindparam("page"))


class SqlHostFacts:
    """Implements `interfaces.HostFactStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def facts_of(self, url: str, host: str, text_digest: bytes) -> HostFacts:
        """Returns the facts about a host, without the page of this URL (canonical text) and pages with the same text."""
        page = {"page": digest_of(url)}
        with self._database.read() as connection:
            rows = connection.execute(_COUNTS, {**page, "host": host, "text": text_digest})
            counts = {category: min(texts, paths) for category, texts, paths in rows}
            since = connection.scalar(_SINCE, {"host": host})
            queued = connection.execute(_QUEUED, page).one_or_none()
        harmful = {category: count for category, count in counts.items() if category}
        linked = queued is not None and queued.priority == Priority.LINK and not queued.task
        return HostFacts(harmful, counts.get("", 0), since, linked)
