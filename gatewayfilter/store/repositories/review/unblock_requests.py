"""Requests of users to unblock pages, and their decisions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.engine import Row

from gatewayfilter.interfaces import RequestState, UnblockChanges, UnblockRequest
from gatewayfilter.model import ManualRule
from gatewayfilter.renamed_codes import current_code
from gatewayfilter.store.repositories.lists import SqlListStore
from gatewayfilter.store.repositories.review.bypass_links import (
    ERASED_URL,
    SqlBypassLinks,
    end_of_rules,
    newest_version,
    next_version,
)
from gatewayfilter.store.repositories.review.notifications import add_notification
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.prepared_query import PreparedQuery
from gatewayfilter.store.sql.schema import BYPASS_LINKS, UNBLOCK_REQUESTS
from gatewayfilter.urls import digest_of

MOST_OPEN: Final = 1000
"""Open requests of all clients; further ones are dropped."""

MOST_OF_CLIENT: Final = 5
"""Open requests of a client."""

MOST_A_DAY: Final = 20
"""New requests of a client in 24 hours."""

MOST_DECIDED: Final = 5000
"""Decided requests that are kept; the oldest are deleted."""

AGAIN_AFTER_S: Final = 3600.0
"""A page whose request was decided may be requested again after so long."""

LONGEST_COMMENT: Final = 300

_DAY_S: Final = 86_400.0
_BEFORE_ALL: Final = -1
"""The version after which all that are kept have changed."""
_COLUMNS = UNBLOCK_REQUESTS.c
_OPEN = _COLUMNS.state == RequestState.OPEN.value
_NAMED = _COLUMNS.url != ERASED_URL
_OF_PAGE = select(UNBLOCK_REQUESTS).where(_COLUMNS.digest == bindparam("of")).order_by(_COLUMNS.id.desc()).limit(1)
_OF_CLIENT = (_COLUMNS.client_name == bindparam("name")) & ((_COLUMNS.client_name != "") | (_COLUMNS.client == bindparam("by")))
_COUNT_OPEN = select(func.count()).where(_OPEN)
_COUNT_OF_DAY = select(func.count()).where(_OF_CLIENT, _COLUMNS.at > bindparam("since"))
_CHANGED = select(UNBLOCK_REQUESTS).where(_COLUMNS.version > bindparam("after")).order_by(_COLUMNS.version)
_OTHER = (
    f"SELECT 1 FROM (SELECT max(version) AS newest FROM (SELECT max({_COLUMNS.version.name}) AS version "  # noqa: S608  names of ours
    f"FROM {UNBLOCK_REQUESTS.name} UNION ALL SELECT max({BYPASS_LINKS.c.version.name}) FROM {BYPASS_LINKS.name}) AS each_of) "
    "AS both_of WHERE newest <> ?"
)

type Check = Callable[[Sequence[UnblockRequest]], None]


class SqlUnblockRequests:
    """Implements `interfaces.UnblockRequests`: one open row per URL and client. Decided ones are kept as a history."""

    def __init__(self, database: Database, lists: SqlListStore, links: SqlBypassLinks) -> None:
        self._database = database
        self._lists = lists
        self._links = links
        self._other = PreparedQuery(database, _OTHER)
        self._counted: tuple[int, int] | None = None

    def ask(self, requests: Sequence[UnblockRequest]) -> int:
        """Records requests; a repeated one is counted, one beyond the limits dropped. Returns the number of new ones.

        The comment of a repeated request is added to the earlier one, which stays.
        """
        new = 0
        with self._database.write(Area.UNBLOCK) as connection:
            for request in requests:
                digest = digest_of(f"{request.who} {request.url}")
                row = connection.execute(_OF_PAGE, {"of": digest}).one_or_none()
                before = None if row is None else _request(row)
                if before is not None and before.state is RequestState.OPEN:
                    _repeat(connection, before, request)
                elif (before is None or _is_over(before, request.at)) and _may_ask(connection, request):
                    _insert(connection, request, digest)
                    new += 1
            if new:
                _prune(connection)
        return new

    def open_requests(self, limit: int = MOST_OPEN) -> list[UnblockRequest]:
        """Returns the open requests, the newest first."""
        return self._select(_OPEN, limit)

    def open_count(self) -> int:
        """Returns the number of open requests. Some 15 µs while none has changed since the last call."""
        counted = self._counted
        if counted is None or not self._other.has_none(counted[0]):
            with self._database.read() as connection:
                version = newest_version(connection)  # before the count: what comes meanwhile is counted again next time
                counted = self._counted = version, connection.execute(_COUNT_OPEN).scalar_one()
        return counted[1]

    def requests(self, limit: int = MOST_OPEN) -> list[UnblockRequest]:
        """Returns open and decided requests, the newest first; none of an erased client."""
        return self._select(_NAMED, limit)

    def find(self, request_id: int) -> UnblockRequest | None:
        """Returns the request with a number, `None` when there is none."""
        return next(iter(self._of_ids([request_id])), None)

    def decided(self, limit: int, before: int = 0) -> list[UnblockRequest]:
        """Returns requests that are no longer open, by falling number, with numbers below `before`; 0 for the newest.

        Those of an erased client are left out.
        """
        older = ~_OPEN & _NAMED
        if before:
            older &= _COLUMNS.id < before
        with self._database.read() as connection:
            wanted = select(UNBLOCK_REQUESTS).where(older).order_by(_COLUMNS.id.desc()).limit(limit)
            return [_request(row) for row in connection.execute(wanted)]

    def changes(self, after: int) -> UnblockChanges:
        """Returns the requests and links that changed after a version; -1 for all that are kept. Some 15 µs for none.

        A restore may bring older versions back: then it returns all that are kept.
        """
        if after > _BEFORE_ALL and self._other.has_none(after):
            return UnblockChanges(after)
        with self._database.read() as connection:
            newest = newest_version(connection)  # before the rows: what comes while they are read is read again next time
            whole = after > newest
            since = _BEFORE_ALL if whole else after
            rows = connection.execute(_CHANGED, {"after": since}).all()
        return UnblockChanges(newest, [_request(row) for row in rows], self._links.changed(since), whole)

    def redeem(self, link_ids: Sequence[int], now: float) -> int:
        """Makes the rules of links that were opened, if they are still good. Returns the number of links that were."""
        return sum(self._links.redeem(link_id, now) for link_id in link_ids)

    def approve(
        self,
        request_ids: Sequence[int],
        rules: Sequence[ManualRule],
        *,
        scope: str,
        until: float | None,
        word: str,
        now: float,
        check: Check | None = None,
    ) -> list[UnblockRequest]:
        """Approves requests and adds their rules, in one transaction. Returns the requests as they are then.

        An approval that is in force already is replaced; its rules are removed. `check` is called in the transaction with the
        requests as they were; nothing is written when it raises.
        """
        with self._database.together(Area.LISTS):
            self._take_back(request_ids, now, check)
            rule_ids = tuple(self._lists.put_rule(rule).rule_id for rule in rules)
            decision = {"state": RequestState.APPROVED, "scope": scope, "until": until, "word": word, "rule_ids": list(rule_ids)}
            return self._decide(request_ids, decision, now)

    def deny(self, request_ids: Sequence[int], *, word: str, now: float, check: Check | None = None) -> list[UnblockRequest]:
        """Denies requests; the rules of an approval are removed. Returns the requests as they are then; `check` as `approve`."""
        with self._database.together(Area.LISTS):
            self._take_back(request_ids, now, check)
            decision = {"state": RequestState.DENIED, "scope": "", "until": None, "word": word, "rule_ids": None}
            return self._decide(request_ids, decision, now)

    def reopen(self, request_ids: Sequence[int], *, now: float, check: Check | None = None) -> list[UnblockRequest]:
        """Makes decided requests open again; the rules of an approval are removed. Returns them; `check` as `approve`."""
        with self._database.together(Area.LISTS):
            self._take_back(request_ids, now, check)
            decision = {"state": RequestState.OPEN, "scope": "", "until": None, "word": "", "rule_ids": None}
            return self._decide(request_ids, decision, None)

    def complete(self, request_id: int) -> UnblockRequest | None:
        """Closes an open request, and others for the same page. Returns it, `None` when there was none."""
        with self._database.write(Area.UNBLOCK) as connection:
            row = connection.execute(select(UNBLOCK_REQUESTS).where(_COLUMNS.id == request_id, _OPEN)).one_or_none()
            if row is None:
                return None
            values = {"state": RequestState.CLOSED.value, "version": next_version(connection)}
            connection.execute(update(UNBLOCK_REQUESTS).where(_COLUMNS.url == row.url, _OPEN).values(**values))
        return replace(_request(row), state=RequestState.CLOSED)

    def _select(self, condition: Any, limit: int) -> list[UnblockRequest]:
        wanted = select(UNBLOCK_REQUESTS).where(condition).order_by(_COLUMNS.at.desc(), _COLUMNS.id.desc()).limit(limit)
        with self._database.read() as connection:
            return [_request(row) for row in connection.execute(wanted)]

    def _of_ids(self, request_ids: Sequence[int]) -> list[UnblockRequest]:
        return self._select(_COLUMNS.id.in_(request_ids), len(request_ids))

    def _take_back(self, request_ids: Sequence[int], now: float, check: Check | None) -> None:
        """Removes the rules of approvals; one that others share gets the end of the last of those."""
        before = self._of_ids(request_ids)
        if check is not None:
            check(before)
        going = [rule_id for request in before for rule_id in request.rule_ids]
        if not going:
            return
        staying = self._select((_COLUMNS.state == RequestState.APPROVED.value) & _COLUMNS.id.not_in(request_ids), MOST_DECIDED)
        links = self._links.in_force(now)
        for rule_id in dict.fromkeys(going):
            ends = [request.until for request in staying if rule_id in request.rule_ids]
            self._lists.shorten_rule(rule_id, [*ends, *(end_of_rules(link) for link in links if rule_id in link.rule_ids)], now)

    def _decide(self, request_ids: Sequence[int], decision: dict[str, Any], now: float | None) -> list[UnblockRequest]:
        with self._database.write(Area.UNBLOCK) as connection:
            values = decision | {"state": decision["state"].value, "decided_at": now, "version": next_version(connection)}
            connection.execute(update(UNBLOCK_REQUESTS).where(_COLUMNS.id.in_(request_ids)).values(**values))
        return self._of_ids(request_ids)


def _is_over(before: UnblockRequest, now: float) -> bool:
    """Returns whether a page may be requested again after its decision."""
    ended = before.state is RequestState.APPROVED and before.until is not None and before.until <= now
    return ended or before.state is RequestState.CLOSED or abs(now - before.at) >= AGAIN_AFTER_S


def _may_ask(connection: Connection, request: UnblockRequest) -> bool:
    by = {"name": request.client_name, "by": request.client}
    return (
        connection.execute(_COUNT_OPEN.where(_OF_CLIENT), by).scalar_one() < MOST_OF_CLIENT
        and connection.execute(_COUNT_OF_DAY, {**by, "since": request.at - _DAY_S}).scalar_one() < MOST_A_DAY
        and connection.execute(_COUNT_OPEN).scalar_one() < MOST_OPEN
    )


def _insert(connection: Connection, request: UnblockRequest, digest: bytes) -> None:
    facts = {
        "url": request.url,
        "client": request.client,
        "client_name": request.client_name,
        "reason": request.reason,
        "source_list": request.source_list,
        "rule": request.rule,
        "category": request.category,
        "comment": request.comment,
    }
    values = {**facts, "digest": digest, "at": request.at, "times": request.times, "version": next_version(connection)}
    found = connection.execute(insert(UNBLOCK_REQUESTS).returning(_COLUMNS.id), values).scalar_one()
    add_notification(connection, "request", f"request {found}", request.at, {"request": found, **facts})


def _repeat(connection: Connection, before: UnblockRequest, request: UnblockRequest) -> None:
    comment = before.comment
    if request.comment and request.comment not in comment:
        comment = f"{comment} / {request.comment}"[:LONGEST_COMMENT] if comment else request.comment
    connection.execute(
        update(UNBLOCK_REQUESTS)
        .where(_COLUMNS.id == before.request_id)
        .values(at=request.at, comment=comment, times=_COLUMNS.times + 1, version=next_version(connection))
    )


def _prune(connection: Connection) -> None:
    oldest = select(_COLUMNS.id).where(~_OPEN).order_by(_COLUMNS.id.desc()).offset(MOST_DECIDED).limit(1)
    if (last := connection.scalar(oldest)) is not None:
        connection.execute(delete(UNBLOCK_REQUESTS).where(~_OPEN, _COLUMNS.id <= last))


def _request(row: Row[tuple[object, ...]]) -> UnblockRequest:
    return UnblockRequest(
        url=row.url,
        client=row.client,
        reason=current_code(row.reason),
        source_list=row.source_list,
        rule=row.rule,
        category=row.category,
        comment=row.comment,
        at=row.at,
        times=row.times,
        request_id=row.id,
        client_name=row.client_name,
        state=RequestState(row.state),
        decided_at=row.decided_at,
        word=row.word,
        until=row.until,
        scope=row.scope,
        rule_ids=tuple(row.rule_ids or ()),
    )
