"""Notifications of the operator that wait to be sent, and how far each channel is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.engine import Row

from gatewayfilter.interfaces import ChannelState, Notification
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import NOTIFICATIONS, NOTIFY_CHANNELS
from gatewayfilter.urls import digest_of

MOST_KEPT: Final = 2000
"""Notifications that are kept; the oldest are deleted, sent or not."""

_COLUMNS = NOTIFICATIONS.c
_CHANNELS = NOTIFY_CHANNELS.c
_NEWEST = select(func.max(_COLUMNS.id))
_AFTER = select(NOTIFICATIONS).where(_COLUMNS.id > bindparam("after")).order_by(_COLUMNS.id).limit(bindparam("most"))


class SqlNotifications:
    """Implements `interfaces.NotificationStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, event: str, what: str, at: float, facts: Mapping[str, object]) -> bool:
        """Adds a notification; `what` is notified of once. Returns whether it is new."""
        with self._database.write(Area.UNBLOCK) as connection:
            return add_notification(connection, event, what, at, facts)

    def after(self, last_id: int, limit: int) -> list[Notification]:
        """Returns the notifications with a number above this one, the oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(_AFTER, {"after": last_id, "most": limit}).all()
        return [Notification(row.id, row.event, row.at, row.facts) for row in rows]

    def channel(self, name: str, since: float = math.inf) -> ChannelState:
        """Returns the state of a channel; a new one begins with the notifications of this time, by default with the next one."""
        with self._database.write(Area.UNBLOCK) as connection:
            row = connection.execute(select(NOTIFY_CHANNELS).where(_CHANNELS.name == name)).one_or_none()
            if row is not None:
                return _state(row)
            state = ChannelState(connection.scalar(_NEWEST.where(_COLUMNS.at < since)) or 0)
            connection.execute(insert(NOTIFY_CHANNELS), {"name": name, **_values(state)})
            return state

    def put_channel(self, name: str, state: ChannelState) -> None:
        """Stores the state of a channel."""
        with self._database.write(Area.UNBLOCK) as connection:
            connection.execute(update(NOTIFY_CHANNELS).where(_CHANNELS.name == name).values(**_values(state)))

    def channels(self, names: Sequence[str]) -> dict[str, ChannelState]:
        """Returns the state of those of these channels that have one."""
        with self._database.read() as connection:
            rows = connection.execute(select(NOTIFY_CHANNELS).where(_CHANNELS.name.in_(names))).all()
        return {row.name: _state(row) for row in rows}


def add_notification(connection: Connection, event: str, what: str, at: float, facts: Mapping[str, object]) -> bool:
    """Adds a notification in the transaction of what it is about (`Area.UNBLOCK`). Returns whether it is new."""
    identity = digest_of(f"{event} {what}")
    if connection.scalar(select(_COLUMNS.id).where(_COLUMNS.identity == identity)) is not None:
        return False
    values = {"event": event, "identity": identity, "at": at, "facts": dict(facts)}
    number = connection.execute(insert(NOTIFICATIONS).returning(_COLUMNS.id), values).scalar_one()
    connection.execute(delete(NOTIFICATIONS).where(_COLUMNS.id <= number - MOST_KEPT))
    return True


def _values(state: ChannelState) -> dict[str, Any]:
    return asdict(state)


def _state(row: Row[tuple[object, ...]]) -> ChannelState:
    return ChannelState(row.last_id, row.sent_at, row.failures, row.retry_at, row.failing_since, row.error)
