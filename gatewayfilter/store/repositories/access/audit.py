"""The audit log: changes by people and programs, the oldest of which are deleted beyond a limit."""

import json
from typing import Any, Final

from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import Row

from gatewayfilter.model import Actor, AuditEntry, Via
from gatewayfilter.store.repositories.access.stored_text import storable
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import AUDIT

MOST_KEPT: Final = 50_000
"""Entries that are kept: years of a household, months of a school."""

LONGEST_UNDO: Final = 100_000
"""Characters of an inverse; a larger change, as an import, cannot be taken back."""

_LONGEST_NAME: Final = 100
_LONGEST_SUBJECT: Final = 500
_LONGEST_DETAIL: Final = 2_000
_COLUMNS = AUDIT.c


class SqlAudit:
    """The entries, by number."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, entry: AuditEntry) -> int:
        """Adds an entry (its number does not count), joined to a transaction that the thread has. Returns its number."""
        undo = entry.undo if entry.undo is not None and len(json.dumps(entry.undo)) <= LONGEST_UNDO else None
        values = {
            "at": entry.at,
            "who": storable(entry.actor.name, _LONGEST_NAME),
            "via": entry.actor.via.value,
            "via_detail": storable(entry.actor.detail, _LONGEST_NAME),
            "action": entry.action,
            "subject": storable(entry.subject, _LONGEST_SUBJECT),
            "detail": storable(entry.detail, _LONGEST_DETAIL),
            "undo": undo,
            "undone_by": "",
        }
        with self._database.write(Area.ACCESS) as connection:
            number: int = connection.execute(insert(AUDIT).returning(_COLUMNS.id), values).scalar_one()
            connection.execute(delete(AUDIT).where(_COLUMNS.id <= number - MOST_KEPT))
            return number

    def get(self, entry_id: int) -> AuditEntry | None:
        """Returns the entry with a number."""
        with self._database.read() as connection:
            row = connection.execute(select(AUDIT).where(_COLUMNS.id == entry_id)).one_or_none()
        return None if row is None else _entry(row)

    def page(
        self, *, before: int | None = None, limit: int = 100, who: str = "", action: str = "", undoable: bool = False
    ) -> list[AuditEntry]:
        """Returns entries, the newest first.

        Args:
            before: only entries with smaller numbers.
            limit: most entries.
            who: only of this name.
            action: only this code, or codes that begin so if it ends in a dot.
            undoable: only those that can be taken back and were not.
        """
        wanted = select(AUDIT).order_by(_COLUMNS.id.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(_COLUMNS.id < before)
        if who:
            wanted = wanted.where(_COLUMNS.who == who)
        if action:
            wanted = wanted.where(
                _COLUMNS.action.startswith(action, autoescape=True) if action.endswith(".") else _COLUMNS.action == action
            )
        if undoable:
            wanted = wanted.where(_COLUMNS.undo.is_not(None), _COLUMNS.undone_at.is_(None))
        with self._database.read() as connection:
            return [_entry(row) for row in connection.execute(wanted)]

    def mark_undone(self, entry_id: int, at: float, by: str) -> bool:
        """Notes that a change was taken back. Returns False when it was already."""
        standing = (_COLUMNS.id == entry_id) & _COLUMNS.undone_at.is_(None)
        values = {"undone_at": at, "undone_by": storable(by, _LONGEST_NAME)}
        with self._database.write(Area.ACCESS) as connection:
            return connection.execute(update(AUDIT).where(standing).values(**values)).rowcount > 0


def _entry(row: Row[Any]) -> AuditEntry:
    return AuditEntry(
        entry_id=row.id,
        at=row.at,
        actor=Actor(row.who, Via(row.via), row.via_detail),
        action=row.action,
        subject=row.subject,
        detail=row.detail,
        undo=row.undo,
        undone_at=row.undone_at,
        undone_by=row.undone_by,
    )
