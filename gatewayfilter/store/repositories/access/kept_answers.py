"""Answers to requests with an idempotency key, for their repetition."""

from typing import Final

from sqlalchemy import delete, insert, select, update

from gatewayfilter.model import KeptAnswer
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.row_bound import trim
from gatewayfilter.store.sql.schema import IDEMPOTENCY

KEPT_S: Final = 86_400.0
"""How long an answer is kept."""

MOST_KEPT: Final = 5_000
LARGEST_BODY: Final = 65_536
"""Bytes; larger answers are not kept, and their request is not repeated either."""

_UNANSWERED_S: Final = 600.0
"""After so long a request without an answer counts as lost, and may be repeated."""

_COLUMNS = IDEMPOTENCY.c


class SqlKeptAnswers:
    """The answers, by a digest of who asked and of the key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, digest: bytes, request_digest: bytes, now: float) -> KeptAnswer | None:
        """Claims a key. Returns `None` when it is new, otherwise what is kept for it."""
        with self._database.write(Area.ACCESS) as connection:
            lost = (_COLUMNS.status == 0) & (_COLUMNS.at <= now - _UNANSWERED_S)
            connection.execute(delete(IDEMPOTENCY).where((_COLUMNS.at <= now - KEPT_S) | lost))
            row = connection.execute(select(IDEMPOTENCY).where(_COLUMNS.digest == digest)).one_or_none()
            if row is not None:
                headers = tuple((name, value) for name, value in row.headers)
                body = None if row.body is None else bytes(row.body)
                return KeptAnswer(bytes(row.request_digest), row.status, headers, body)
            values = {"digest": digest, "request_digest": request_digest, "status": 0, "headers": [], "body": b"", "at": now}
            connection.execute(insert(IDEMPOTENCY), values)
            trim(connection, IDEMPOTENCY, _COLUMNS.at, MOST_KEPT)
        return None

    def finish(self, digest: bytes, answer: KeptAnswer) -> None:
        """Keeps the answer of a claimed key."""
        body = answer.body if answer.body is not None and len(answer.body) <= LARGEST_BODY else None
        values = {"status": answer.status, "headers": [list(pair) for pair in answer.headers], "body": body}
        with self._database.write(Area.ACCESS) as connection:
            connection.execute(update(IDEMPOTENCY).where(_COLUMNS.digest == digest).values(**values))

    def abandon(self, digest: bytes) -> None:
        """Gives a claimed key back: nothing was done."""
        with self._database.write(Area.ACCESS) as connection:
            connection.execute(delete(IDEMPOTENCY).where(_COLUMNS.digest == digest, _COLUMNS.status == 0))
