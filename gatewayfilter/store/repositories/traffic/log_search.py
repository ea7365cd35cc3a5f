"""Search in the decision log: pages of records, the newest first, each found within a bounded time.

Records that the index does not cover yet are compared one by one; then the index is searched from its newest end. What is found
is compared with the query, because the index holds less than the records. A page ends when it is full or its time is over, and
names the id where the next one goes on. So that a slow disk does not prolong it, a statement reads a span of ids that is fitted
to the time left, and few records at once.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import batched
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, bindparam, literal_column, or_, select, text
from sqlalchemy.exc import DBAPIError

from gatewayfilter.model import LogPage, LogQuery, LogRecord, searched_part
from gatewayfilter.model.log_query import SHORTEST_TEXT, USER_PREFIX
from gatewayfilter.store.repositories.traffic.log_rows import RECORD, TERMS, numbered, progress
from gatewayfilter.store.repositories.traffic.log_spans import id_spans
from gatewayfilter.store.repositories.traffic.log_terms import match_of
from gatewayfilter.store.repositories.traffic.log_terms_table import SEARCHED_URL, has_terms
from gatewayfilter.store.sql.database import Database
from gatewayfilter.store.sql.schema import DECISIONS

PAGE_S: Final = 0.15
"""Time after which a page ends, full or not."""
_SCANNED: Final = 500
_FOUND: Final = 200
_READ: Final = 20
"""Records that one statement reads by their ids: each may be on a page of its own of a file that is not in memory."""
_FIRST_SPAN: Final = 50_000
_LEAST_SPAN: Final = 10_000
_FASTEST_GROWTH: Final = 8
_SAFE_SHARE: Final = 0.5
"""Of the time left, for the next statement: what it reads may be farther from memory."""
_SAMPLED: Final = 200
_QUERY_CANCELED: Final = "57014"
"""PostgreSQL's code for a statement that reached `statement_timeout`."""
_POSTGRES_NEWEST: Final = 20_000
"""Newest ids that PostgreSQL reads in their order before it uses the indexes, which it does not read in that order."""

_COLUMNS = DECISIONS.c
_BELOW = (
    RECORD.where(_COLUMNS.id <= bindparam("top"), _COLUMNS.id >= bindparam("low"))
    .order_by(_COLUMNS.id.desc())
    .limit(bindparam("most"))
)
_BY_ID = RECORD.where(_COLUMNS.id.in_(bindparam("ids", expanding=True))).order_by(_COLUMNS.id.desc())
_MATCH = text(
    "SELECT rowid FROM log_terms WHERE log_terms MATCH :terms AND rowid <= :top AND rowid >= :low ORDER BY rowid DESC LIMIT :most"
)
_SAMPLE = select(_COLUMNS.url).order_by(_COLUMNS.id.desc()).limit(_SAMPLED)
_AT = select(_COLUMNS.at).where(_COLUMNS.id >= bindparam("number")).order_by(_COLUMNS.id).limit(1)


type Candidates = Iterator[tuple[list[tuple[int, LogRecord]], int]]
"""Records that may fulfil a query, and the id down to which none is missing, in descending order."""


class _Budget:
    """The time of a page.

    Args:
        clock: seconds.
        budget_s: from now on.
    """

    def __init__(self, clock: Callable[[], float], budget_s: float) -> None:
        self.now = clock
        self._deadline = clock() + budget_s

    def left_s(self) -> float:
        """Returns the seconds that are left, 0 for none."""
        return max(0.0, self._deadline - self.now())


class SqlLogSearch:
    """Implements `interfaces.LogSearch`."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock

    def page(self, query: LogQuery, limit: int = 50, *, before: int | None = None, budget_s: float = PAGE_S) -> LogPage:
        """Returns the newest records that fulfil a query.

        Args:
            query: the conditions.
            limit: the most records.
            before: only records with a lower id, for the page after another.
            budget_s: time after which the page ends.

        Raises:
            StoreError: the database refuses.
        """
        budget = _Budget(self._clock, budget_s)
        query = _storable(query)
        with self._database.read() as connection:
            spans = id_spans(connection, query, before)
            if not spans:
                return LogPage(())
            found, reached = self._search(connection, query, limit, spans, budget)
            low = spans[-1][0]
            if reached <= low:
                return LogPage(tuple(found), None, connection.scalar(_AT, {"number": low}))
            at = connection.scalar(_AT, {"number": reached})
            return LogPage(tuple(found), reached, at, timed_out=len(found) < limit)

    def _search(
        self, connection: Connection, query: LogQuery, limit: int, spans: list[tuple[int, int]], budget: _Budget
    ) -> tuple[list[tuple[int, LogRecord]], int]:
        """Returns what was found, and the id down to which all is looked at."""
        found: list[tuple[int, LogRecord]] = []
        reached = spans[0][1]
        for bounds in spans:
            for rows, reached in self._candidates(connection, query, bounds, budget):
                for number, record in rows:
                    if query.matches(record):
                        found.append((number, record))
                        if len(found) == limit:
                            return found, number
                if not budget.left_s():
                    return found, reached
            if reached > bounds[0]:  # a statement was cancelled at the end of the time
                break
        return found, reached

    def _candidates(self, connection: Connection, query: LogQuery, bounds: tuple[int, int], budget: _Budget) -> Candidates:
        low, top = bounds
        if not self._database.path:
            yield from _from_postgres(connection, query, bounds, budget)
            return
        terms = match_of(query, list(connection.scalars(_SAMPLE)) if query.text else ())
        indexed = progress(connection, TERMS) if terms and has_terms(connection) else low - 1
        yield from _scan(connection, max(low, indexed + 1), top)
        if indexed >= low:
            yield from _from_terms(connection, terms, (low, min(top, indexed)), budget)


def _from_terms(connection: Connection, terms: str, bounds: tuple[int, int], budget: _Budget) -> Candidates:
    low, top = bounds
    span = _FIRST_SPAN
    while top >= low:
        edge, begun = max(low, top - span), budget.now()
        ids = list(connection.scalars(_MATCH, {"terms": terms, "top": top, "low": edge, "most": _FOUND}))
        down_to = ids[-1] if len(ids) == _FOUND else edge
        took_s = budget.now() - begun
        if not ids:
            yield [], down_to
        for part in batched(ids, _READ):
            rows = [numbered(row) for row in connection.execute(_BY_ID, {"ids": part})]
            yield rows, down_to if part[-1] == ids[-1] else part[-1]
        span = _fitted_span(top - down_to, took_s, budget.left_s())
        top = down_to - 1


def _fitted_span(covered: int, took_s: float, left_s: float) -> int:
    """Returns for how many ids the time left suffices, after a statement over `covered` ids."""
    fitting = covered * left_s * _SAFE_SHARE / max(took_s, 1e-6)
    return int(min(max(fitting, _LEAST_SPAN), max(covered, _LEAST_SPAN) * _FASTEST_GROWTH))


def _from_postgres(connection: Connection, query: LogQuery, bounds: tuple[int, int], budget: _Budget) -> Candidates:
    low, top = bounds
    conditions = _conditions(query)
    if not conditions:
        yield from _scan(connection, low, top)
        return
    edge = max(low, top - _POSTGRES_NEWEST + 1)
    newest = RECORD.where(and_(*conditions, _COLUMNS.id.between(edge, top))).order_by(_COLUMNS.id.desc())
    yield [numbered(row) for row in connection.execute(newest)], edge
    top = edge - 1
    by_index = (_COLUMNS.id + literal_column("0")).desc()  # keeps the planner from reading all rows in the order of ids
    while top >= low:
        older = RECORD.where(and_(*conditions, _COLUMNS.id.between(low, top))).order_by(by_index).limit(_FOUND)
        try:
            connection.execute(text(f"SET LOCAL statement_timeout = {int(budget.left_s() * 1000) + 1}"))
            rows = [numbered(row) for row in connection.execute(older)]
            connection.execute(text("SET LOCAL statement_timeout = DEFAULT"))
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", "") != _QUERY_CANCELED:
                raise
            connection.rollback()
            return
        top = rows[-1][0] if len(rows) == _FOUND else low
        yield rows, top
        top -= 1


def _scan(connection: Connection, low: int, top: int) -> Iterator[tuple[list[tuple[int, LogRecord]], int]]:
    while top >= low:
        rows = [numbered(row) for row in connection.execute(_BELOW, {"top": top, "low": low, "most": _SCANNED})]
        down_to = rows[-1][0] if len(rows) == _SCANNED else low
        yield rows, down_to
        top = down_to - 1


def _conditions(query: LogQuery) -> list[ColumnElement[bool]]:
    """Returns the conditions that PostgreSQL tests itself."""
    found: list[ColumnElement[bool]] = []
    if len(part := searched_part(query.text)) >= SHORTEST_TEXT:
        found.append(literal_column(SEARCHED_URL).contains(part, autoescape=True))
    if query.host:
        found.append(literal_column(SEARCHED_URL).contains(query.host.lower(), autoescape=True))
    for column, value in (
        (_COLUMNS.action, query.action),
        (_COLUMNS.reason, query.reason),
        (_COLUMNS.category, query.category),
        (_COLUMNS.source_list, query.source_list),
    ):
        if value:
            found.append(column == value)
    if query.clients is not None:
        users = [client.removeprefix(USER_PREFIX) for client in query.clients if client.startswith(USER_PREFIX)]
        addresses = [client for client in query.clients if not client.startswith(USER_PREFIX)]
        found.append(or_(_COLUMNS.client.in_(addresses), and_(_COLUMNS.user_name != "", _COLUMNS.user_name.in_(users))))
    return found


def _storable(query: LogQuery) -> LogQuery:
    """Returns a query without what no database accepts: lone surrogates of a terminal, and NUL."""
    texts = {name: getattr(query, name) for name in ("text", "action", "reason", "category", "source_list", "host")}
    return replace(query, **{name: value.encode(errors="replace").decode().replace("\0", "?") for name, value in texts.items()})
