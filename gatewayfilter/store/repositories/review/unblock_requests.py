"""Requests of users to unblock pages."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.engine import Row

from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.renamed_codes import current_code
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import UNBLOCK_REQUESTS
from gatewayfilter.urls import digest_of

MOST_OPEN: Final = 1000
"""Any user with a block page may send requests: beyond this number the oldest are deleted."""

MOST_OF_CLIENT: Final = 100
"""Maximum of open requests per client: its new ones replace its own oldest, not those of others."""

_COLUMNS = UNBLOCK_REQUESTS.c
_COUNT_OF_CLIENT = select(func.count()).where(_COLUMNS.client == bindparam("by"))
_AGAIN = (
    update(UNBLOCK_REQUESTS)
    .where(_COLUMNS.digest == bindparam("of"))
    .values(at=bindparam("now"), comment=bindparam("says"), times=_COLUMNS.times + 1)
)
_OLDEST_OF_CLIENT = (
    select(_COLUMNS.id)
    .where(_COLUMNS.client == bindparam("by"))
    .order_by(_COLUMNS.at.desc(), _COLUMNS.id.desc())
    .offset(bindparam("most"))
)
_SURPLUS = select(_COLUMNS.id).order_by(_COLUMNS.at.desc()).offset(MOST_OPEN)


class SqlUnblockRequests:
    """Implements `interfaces.UnblockRequests`: one row per URL and client."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, requests: Sequence[UnblockRequest]) -> int:
        """Records requests; a repeated one is counted. Returns the number of new ones."""
        new = 0
        with self._database.write(Area.UNBLOCK) as connection:
            for request in requests:
                digest = digest_of(f"{request.client} {request.url}")
                if connection.execute(_AGAIN, {"of": digest, "now": request.at, "says": request.comment}).rowcount:
                    continue
                new += 1
                connection.execute(
                    insert(UNBLOCK_REQUESTS),
                    {
                        "digest": digest,
                        "url": request.url,
                        "client": request.client,
                        "reason": request.reason,
                        "source_list": request.source_list,
                        "rule": request.rule,
                        "category": request.category,
                        "comment": request.comment,
                        "at": request.at,
                        "times": request.times,
                    },
                )
                if (connection.scalar(_COUNT_OF_CLIENT, {"by": request.client}) or 0) > MOST_OF_CLIENT:
                    surplus = list(connection.scalars(_OLDEST_OF_CLIENT, {"by": request.client, "most": MOST_OF_CLIENT}))
                    connection.execute(delete(UNBLOCK_REQUESTS).where(_COLUMNS.id.in_(surplus)))
            if new and (connection.scalar(select(func.count()).select_from(UNBLOCK_REQUESTS)) or 0) > MOST_OPEN:
                surplus = list(connection.scalars(_SURPLUS))
                connection.execute(delete(UNBLOCK_REQUESTS).where(_COLUMNS.id.in_(surplus)))
        return new

    def open_requests(self, limit: int = MOST_OPEN) -> list[UnblockRequest]:
        """Returns the open requests, the newest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(UNBLOCK_REQUESTS).order_by(_COLUMNS.at.desc(), _COLUMNS.id.desc()).limit(limit))
            return [_request(row) for row in rows]

    def complete(self, request_id: int) -> UnblockRequest | None:
        """Removes a request, and others for the same page. Returns it, `None` when there was none."""
        with self._database.write(Area.UNBLOCK) as connection:
            row = connection.execute(select(UNBLOCK_REQUESTS).where(_COLUMNS.id == request_id)).one_or_none()
            if row is None:
                return None
            connection.execute(delete(UNBLOCK_REQUESTS).where(_COLUMNS.url == row.url))
        return _request(row)


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
    )
