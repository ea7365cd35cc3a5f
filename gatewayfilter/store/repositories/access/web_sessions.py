"""Sessions of browsers."""

from typing import Any, Final

from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import Row

from gatewayfilter.model import Account, WebSession
from gatewayfilter.store.repositories.access.accounts import account_of
from gatewayfilter.store.repositories.access.stored_text import storable
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import ACCOUNTS, WEB_SESSIONS

MOST_OF_ACCOUNT: Final = 30
"""Sessions of an account; the ones that were used least recently end."""

_LONGEST_AGENT: Final = 300
_COLUMNS = WEB_SESSIONS.c
_FIELDS = ("digest", "account_id", "csrf", "created_at", "seen_at", "expires_at", "network", "agent")
_SESSION = tuple(_COLUMNS[name].label(f"session_{name}") for name in _FIELDS)
_WITH_ACCOUNT = select(ACCOUNTS, *_SESSION).join(WEB_SESSIONS, _COLUMNS.account_id == ACCOUNTS.c.id)


class SqlWebSessions:
    """The sessions. Whether one is still good is decided by `use_cases.access.sessions`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session: WebSession) -> None:
        """Adds a session, and ends those of its account in excess of the limit."""
        values = {name: getattr(session, name) for name in _FIELDS} | {"agent": storable(session.agent, _LONGEST_AGENT)}
        with self._database.write(Area.ACCESS) as connection:
            connection.execute(insert(WEB_SESSIONS), values)
            of_account = select(_COLUMNS.digest).where(_COLUMNS.account_id == session.account_id)
            surplus = connection.scalars(of_account.order_by(_COLUMNS.seen_at.desc()).offset(MOST_OF_ACCOUNT)).all()
            if surplus:
                connection.execute(delete(WEB_SESSIONS).where(_COLUMNS.digest.in_(surplus)))

    def find(self, digest: bytes) -> tuple[Account, WebSession] | None:
        """Returns a session and its account."""
        with self._database.read() as connection:
            row = connection.execute(_WITH_ACCOUNT.where(_COLUMNS.digest == digest)).one_or_none()
        if row is None:
            return None
        values = row._asdict()
        session = WebSession(*(values[f"session_{name}"] for name in _FIELDS))
        return account_of(values), _plain(session)

    def of_account(self, account_id: int) -> list[WebSession]:
        """Returns the sessions of an account, the one used last first."""
        wanted = select(WEB_SESSIONS).where(_COLUMNS.account_id == account_id).order_by(_COLUMNS.seen_at.desc())
        with self._database.read() as connection:
            return [_session(row) for row in connection.execute(wanted)]

    def touch(self, digest: bytes, now: float) -> None:
        """Notes a request in a session."""
        with self._database.write(Area.ACCESS) as connection:
            connection.execute(update(WEB_SESSIONS).where(_COLUMNS.digest == digest).values(seen_at=now))

    def remove(self, digest: bytes) -> bool:
        """Ends a session. Returns False when there was none."""
        with self._database.write(Area.ACCESS) as connection:
            return connection.execute(delete(WEB_SESSIONS).where(_COLUMNS.digest == digest)).rowcount > 0

    def remove_of(self, account_id: int, *, but: bytes = b"") -> int:
        """Ends the sessions of an account except the one with this digest. Returns their number."""
        condition = (_COLUMNS.account_id == account_id) & (_COLUMNS.digest != but)
        with self._database.write(Area.ACCESS) as connection:
            return connection.execute(delete(WEB_SESSIONS).where(condition)).rowcount

    def sweep(self, now: float, seen_before: float) -> int:
        """Deletes the sessions that have expired, or were last used before a time. Returns their number."""
        over = (_COLUMNS.expires_at <= now) | (_COLUMNS.seen_at <= seen_before)
        with self._database.write(Area.ACCESS) as connection:
            return connection.execute(delete(WEB_SESSIONS).where(over)).rowcount


def _session(row: Row[Any]) -> WebSession:
    return _plain(WebSession(*(getattr(row, name) for name in _FIELDS)))


def _plain(session: WebSession) -> WebSession:
    return WebSession(bytes(session.digest), *(getattr(session, name) for name in _FIELDS[1:]))
