"""The change feed: changes of manual rules, learned entries and policy items, in order, for the workers' overlays."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, func, insert, select

from gatewayfilter.model import (
    Change,
    ChangeKind,
    EntryKind,
    LearnedEntry,
    ListAction,
    ManualRule,
    PolicyItem,
    from_record,
    to_record,
)
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.prepared_query import PreparedQuery
from gatewayfilter.store.sql.schema import LIST_CHANGES

_MANUAL_FIELDS = tuple(field.name for field in fields(ManualRule))
_LEARNED_FIELDS = tuple(field.name for field in fields(LearnedEntry))
_MANUAL_KINDS = frozenset({ChangeKind.MANUAL_ADDED, ChangeKind.MANUAL_REMOVED})
_POLICY_KINDS = frozenset({ChangeKind.POLICY_PUT, ChangeKind.POLICY_REMOVED})

_COLUMNS = LIST_CHANGES.c
_READ = (
    select(_COLUMNS.seq, _COLUMNS.kind, _COLUMNS.payload)
    .where(_COLUMNS.seq > bindparam("after"))
    .order_by(_COLUMNS.seq)
    .limit(bindparam("most"))
)
_NEWER = f"SELECT 1 FROM {LIST_CHANGES.name} WHERE {_COLUMNS.seq.name} > ? LIMIT 1"  # noqa: S608  names of ours
_LAST = select(func.max(_COLUMNS.seq))
_FIRST = select(func.min(_COLUMNS.seq))
_STEP = select(_COLUMNS.kind, _COLUMNS.payload).where(_COLUMNS.seq == bindparam("seq"))
_LEARNED_BETWEEN = (
    # For a removed entry only its key is needed: reading the rest of it would take most of the time.
    select(
        _COLUMNS.payload["key"].as_string(),
        case((_COLUMNS.kind == ChangeKind.LEARNED_ADDED.value, _COLUMNS.payload)),
    )
    .where(
        _COLUMNS.seq > bindparam("after"),
        _COLUMNS.seq <= bindparam("up_to"),
        _COLUMNS.kind.in_([ChangeKind.LEARNED_ADDED.value, ChangeKind.LEARNED_REMOVED.value]),
    )
    .order_by(_COLUMNS.seq)
)
_PAGE = 10_000
"""Rows that the driver fetches at once."""

_INSERT = insert(LIST_CHANGES)
_GAP = 1_000_000
"""More steps than a feed holds that no snapshot contains."""
_MARK_BYTES = 16


class SqlChangeFeed:
    """Implements `interfaces.ChangeFeed` and `interfaces.PublisherFeed`.

    Steps are numbered in the order of their commits (`Area.LISTS` admits one writer at a time); numbers may be skipped but are
    never reused. The newest step is never compacted away, so `last_seq` does not go back.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._newer = PreparedQuery(database, _NEWER)
        self._idle = False

    def last_seq(self) -> int:
        """Returns the newest sequence number, 0 for none."""
        with self._database.read() as connection:
            return connection.scalar(_LAST) or 0

    def read(self, after: int, limit: int = 1000) -> list[Change]:
        """Returns the changes with `seq > after`, in order. Polled by every worker: one read at the end of an index.

        Repeated polls with an empty result cost some 15 µs each.
        """
        if self._idle and self._newer.has_none(after):
            return []
        with self._database.read() as connection:
            rows = connection.execute(_READ, {"after": after, "most": limit}).all()
        self._idle = not rows
        return [_change(seq, ChangeKind(kind), payload) for seq, kind, payload in rows]

    def learned_between(self, after: int, up_to: int) -> dict[str, LearnedEntry | None]:
        """Returns the net changes of learned entries: key → current entry, `None` when removed. About 2 µs for a removed one."""
        changed: dict[str, LearnedEntry | None] = {}
        with self._database.read() as connection:
            rows = connection.execute(_LEARNED_BETWEEN, {"after": after, "up_to": up_to}, execution_options={"yield_per": _PAGE})
            for page in rows.partitions():
                changed.update((key, None if payload is None else _learned_entry(payload)) for key, payload in page)
        return changed

    def begin_after(self, seq: int) -> None:
        """Lets the numbers of a feed in SQLite go on far above those of another one, and forgets its steps so far.

        For a database that takes the place of a lost one: processes that follow the lost one have read at most its last step,
        which is not known. PostgreSQL's feeds are not changed.
        """
        if not self._database.path:
            return
        with self._database.write(Area.LISTS) as connection:
            first = max(seq, connection.scalar(_LAST) or 0) + _GAP
            connection.execute(delete(LIST_CHANGES))
            # A step of a rule that never was: it changes nothing, and holds the number.
            rule = ManualRule(0, ListAction.ALLOW, EntryKind.HOST, "none.invalid")
            row = {"seq": first, "kind": ChangeKind.MANUAL_REMOVED.value, "payload": _payload(rule)}
            connection.execute(_INSERT, row)

    def mark(self, seq: int) -> str:
        """Returns a text that identifies a step, `""` when there is none; for 0 that of a feed with no deleted steps."""
        with self._database.read() as connection:
            if seq == 0:
                return "0" if (connection.scalar(_FIRST) or 1) == 1 else ""
            row = connection.execute(_STEP, {"seq": seq}).one_or_none()
        if row is None:
            return ""
        return blake2b(json.dumps([seq, *row], sort_keys=True).encode(), digest_size=_MARK_BYTES).hexdigest()


def append_changes(connection: Connection, changes: Iterable[tuple[ChangeKind, ManualRule | LearnedEntry | PolicyItem]]) -> None:
    """Adds steps to the feed, in the transaction of the change itself (`Area.LISTS`)."""
    rows = [{"kind": kind.value, "payload": _payload(entry)} for kind, entry in changes]
    if rows:
        connection.execute(_INSERT, rows)


def _payload(entry: ManualRule | LearnedEntry | PolicyItem) -> dict[str, object]:
    if not isinstance(entry, ManualRule | LearnedEntry):
        return to_record(entry)
    names = _MANUAL_FIELDS if isinstance(entry, ManualRule) else _LEARNED_FIELDS
    return {name: getattr(entry, name) for name in names}


def _change(seq: int, kind: ChangeKind, payload: Mapping[str, Any]) -> Change:
    if kind in _POLICY_KINDS:
        return Change(seq, kind, policy=from_record(payload))
    action = ListAction(payload["action"])
    if kind in _MANUAL_KINDS:
        # Steps from before rules had `enabled`: rules of a group were stored and not applied.
        enabled = payload.get("enabled", not payload["group"])
        rule = ManualRule(**{**payload, "action": action, "kind": EntryKind(payload["kind"]), "enabled": enabled})
        return Change(seq, kind, manual=rule)
    return Change(seq, kind, learned=_learned_entry(payload))


def _learned_entry(payload: Mapping[str, Any]) -> LearnedEntry:
    return LearnedEntry(**{**payload, "action": ListAction(payload["action"])})
