"""Restored rows of the lists and policies as model objects: checked, and appended to the change feed for running workers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Table

from gatewayfilter.errors import BackupError, GatewayFilterError
from gatewayfilter.model import (
    ChangeKind,
    EntryKind,
    LearnedEntry,
    ListAction,
    ManualRule,
    PolicyItem,
    PolicySet,
    from_record,
    kind_of_item,
)
from gatewayfilter.store.repositories.rule_rows import identity_of
from gatewayfilter.store.sql.schema import LEARNED_ENTRIES, MANUAL_RULES, POLICY_ITEMS
from gatewayfilter.urls import digest_of

type Entry = ManualRule | LearnedEntry | PolicyItem

_KINDS: Mapping[Table, tuple[ChangeKind, ChangeKind]] = {
    MANUAL_RULES: (ChangeKind.MANUAL_REMOVED, ChangeKind.MANUAL_ADDED),
    LEARNED_ENTRIES: (ChangeKind.LEARNED_REMOVED, ChangeKind.LEARNED_ADDED),
    POLICY_ITEMS: (ChangeKind.POLICY_REMOVED, ChangeKind.POLICY_PUT),
}


def in_feed(table: Table) -> bool:
    """Returns whether changes of a table stand in the change feed."""
    return table in _KINDS


def step(table: Table, row: Mapping[str, Any], *, put: bool) -> tuple[ChangeKind, Entry]:
    """Returns the step of the feed for a row that is removed or put.

    Raises:
        BackupError: the row is none of a list or policy.
    """
    return _KINDS[table][put], entry_of(table, row)


def entry_of(table: Table, row: Mapping[str, Any]) -> Entry:
    """Returns the manual rule, learned entry or policy item of a row.

    Raises:
        BackupError: the row contradicts itself, or holds a value that this program does not have.
    """
    return _read(table, _READERS[table], row)


def _read[T](table: Table, reader: Callable[[Mapping[str, Any]], T], row: Mapping[str, Any]) -> T:
    try:
        return reader(row)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, GatewayFilterError) as error:
        raise BackupError(f"the backup cannot be used: a row of {table.name} holds what this program cannot read") from error


def check_policies(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of `POLICY_ITEMS` unchanged, and checks at their end that they fit together.

    Raises:
        BackupError: an item cannot be read, or refers to one that is missing.
    """
    items: list[PolicyItem] = []
    for row in rows:
        items.append(_read(POLICY_ITEMS, _policy_item, row))
        yield row
    try:
        PolicySet.of(items).checked()
    except (GatewayFilterError, ValueError, TypeError) as error:
        raise BackupError(f"the backup cannot be used: its policies do not fit together: {error}") from error


def _rule(row: Mapping[str, Any]) -> ManualRule:
    rule = ManualRule(
        row["id"],
        ListAction(row["action"]),
        EntryKind(row["kind"]),
        row["pattern"],
        row["comment"],
        row["group_name"],
        row["expires_at"],
        row["enabled"],
        row["scope"],
    )
    if identity_of(rule) != row["identity"]:
        raise ValueError("identity")
    return rule


def _learned(row: Mapping[str, Any]) -> LearnedEntry:
    if digest_of(row["key"]) != row["digest"]:
        raise ValueError("digest")
    return LearnedEntry(
        row["key"],
        ListAction(row["action"]),
        row["category"],
        row["url"],
        row["detail"],
        row["created_at"],
        row["expires_at"],
        row["certainty"],
    )


def _policy_item(row: Mapping[str, Any]) -> PolicyItem:
    item = from_record(row["record"])
    if (kind_of_item(item), item.name) != (row["kind"], row["name"]):
        raise ValueError("name")
    return item


_READERS: Mapping[Table, Callable[[Mapping[str, Any]], Entry]] = {
    MANUAL_RULES: _rule,
    LEARNED_ENTRIES: _learned,
    POLICY_ITEMS: _policy_item,
}
