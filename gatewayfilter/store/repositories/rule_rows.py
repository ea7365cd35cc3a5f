"""Manual rules as rows: statements and steps of the change feed, in the caller's transaction (`Area.LISTS`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import md5
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, or_, select, update

from gatewayfilter.errors import RuleError
from gatewayfilter.interfaces import RuleQuery
from gatewayfilter.model import ChangeKind, EntryKind, ListAction, ManualRule
from gatewayfilter.store.repositories.change_feed import append_changes
from gatewayfilter.store.sql.schema import MANUAL_RULES

RULES = MANUAL_RULES.c
RULE_COLUMNS = (
    RULES.id,
    RULES.action,
    RULES.kind,
    RULES.pattern,
    RULES.comment,
    RULES.group_name,
    RULES.expires_at,
    RULES.enabled,
    RULES.scope,
)
SELECT_RULES = select(*RULE_COLUMNS).order_by(RULES.id)
_SELECT_IDENTITIES = select(RULES.identity, *RULE_COLUMNS).where(RULES.identity.in_(bindparam("identities", expanding=True)))
_UPDATE_RULE = (
    update(MANUAL_RULES)
    .where(RULES.id == bindparam("rule_id"))
    .values(
        action=bindparam("new_action"),
        comment=bindparam("new_comment"),
        expires_at=bindparam("new_expires_at"),
        enabled=bindparam("new_enabled"),
    )
)


def remove_rules_of(connection: Connection, scope: str) -> None:
    """Removes the manual rules of a scope, in the transaction in which its clients are removed (`Area.LISTS`)."""
    gone = [rule_of(row) for row in connection.execute(SELECT_RULES.where(RULES.scope == scope))]
    if gone:
        connection.execute(delete(MANUAL_RULES).where(RULES.scope == scope))
        append_changes(connection, [(ChangeKind.MANUAL_REMOVED, rule) for rule in gone])


def move_rules(connection: Connection, scope: str, other: str) -> None:
    """Gives the manual rules of a scope to another one, in the transaction that renames its client or group (`Area.LISTS`)."""
    rules = [rule_of(row) for row in connection.execute(SELECT_RULES.where(RULES.scope == scope))]
    if rules:
        remove_rules_of(connection, scope)
        moved = [replace(rule, scope=other) for rule in rules]
        merge_rules(connection, {identity_of(rule): rule for rule in moved})


def identity_of(rule: ManualRule) -> bytes:
    """Returns what identifies a rule: 16 bytes of its kind, group, pattern and scope."""
    parts = (rule.kind.value, rule.group, rule.pattern, *([rule.scope] if rule.scope else []))
    return md5("\0".join(parts).encode(errors="surrogatepass"), usedforsecurity=False).digest()


def rules_by_identity(connection: Connection, identities: Sequence[bytes]) -> dict[bytes, Sequence[Any]]:
    """Returns the rows of these identities."""
    rows = connection.execute(_SELECT_IDENTITIES, {"identities": identities})
    return {identity: values for identity, *values in rows}


def merge_rules(connection: Connection, wanted: Mapping[bytes, ManualRule]) -> int:
    """Inserts or updates these rules. Returns the number of new or changed ones."""
    found = {identity: rule_of(values) for identity, values in rules_by_identity(connection, list(wanted)).items()}
    new = {identity: rule for identity, rule in wanted.items() if identity not in found}
    changed = [(old, replace(wanted[identity], rule_id=old.rule_id)) for identity, old in found.items()]
    changed = [(old, rule) for old, rule in changed if old != rule]
    steps: list[tuple[ChangeKind, ManualRule]] = []
    if changed:
        connection.execute(_UPDATE_RULE, [_changed_values(rule) for _, rule in changed])
        for old, rule in changed:
            steps += [(ChangeKind.MANUAL_REMOVED, old), (ChangeKind.MANUAL_ADDED, rule)]
    if new:
        connection.execute(insert(MANUAL_RULES), [_rule_row(identity, rule) for identity, rule in new.items()])
        stored = rules_by_identity(connection, list(new))
        steps += [(ChangeKind.MANUAL_ADDED, rule_of(stored[identity])) for identity in new]
    append_changes(connection, steps)
    return len(new) + len(changed)


def outlasts(before: ManualRule, rule: ManualRule) -> bool:
    """Returns whether a rule does the same as another and ends later."""
    if not before.enabled or before.action is not rule.action:
        return False
    return before.expires_at is None or (rule.expires_at is not None and before.expires_at > rule.expires_at)


def switch(connection: Connection, rule_ids: Sequence[int], *, enabled: bool) -> int:
    """Switches rules on or off. Returns the number of changed ones."""
    rows = connection.execute(SELECT_RULES.where(RULES.id.in_(rule_ids), RULES.enabled != enabled))
    changed = [(old, replace(old, enabled=enabled)) for old in map(rule_of, rows)]
    if changed:
        connection.execute(_UPDATE_RULE, [_changed_values(rule) for _, rule in changed])
        pairs = (((ChangeKind.MANUAL_REMOVED, old), (ChangeKind.MANUAL_ADDED, rule)) for old, rule in changed)
        append_changes(connection, chain.from_iterable(pairs))
    return len(changed)


def rule_of(values: Sequence[Any]) -> ManualRule:
    """Returns a row as a rule."""
    rule_id, action, kind, *rest = values
    return ManualRule(rule_id, ListAction(action), EntryKind(kind), *rest)


def _rule_row(identity: bytes, rule: ManualRule) -> dict[str, object]:
    return {
        "identity": identity,
        "action": rule.action.value,
        "kind": rule.kind.value,
        "pattern": rule.pattern,
        "group_name": rule.group,
        "comment": rule.comment,
        "expires_at": rule.expires_at,
        "enabled": rule.enabled,
        "scope": rule.scope,
    }


def _changed_values(rule: ManualRule) -> dict[str, object]:
    return {
        "rule_id": rule.rule_id,
        "new_action": rule.action.value,
        "new_comment": rule.comment,
        "new_expires_at": rule.expires_at,
        "new_enabled": rule.enabled,
    }


def find_rule(connection: Connection, rule_id: int) -> ManualRule | None:
    """Returns a rule by its number, `None` for none."""
    row = connection.execute(SELECT_RULES.where(RULES.id == rule_id)).one_or_none()
    return None if row is None else rule_of(row)


def edit_rule(connection: Connection, rule_id: int, edit: Callable[[ManualRule], ManualRule]) -> ManualRule | None:
    """Changes everything of a rule but its number.

    Returns:
        The rule as it is now, `None` when there is none of this number.

    Raises:
        RuleError: another rule has this kind, pattern, group and scope.
    """
    before = find_rule(connection, rule_id)
    if before is None:
        return None
    after = replace(edit(before), rule_id=rule_id)
    if after == before:
        return before
    identity = identity_of(after)
    for row in rules_by_identity(connection, [identity]).values():
        if (other := rule_of(row)).rule_id != rule_id:
            raise RuleError(f"rule {other.rule_id} has this pattern, group and scope already")
    connection.execute(update(MANUAL_RULES).where(RULES.id == rule_id).values(_rule_row(identity, after)))
    append_changes(connection, [(ChangeKind.MANUAL_REMOVED, before), (ChangeKind.MANUAL_ADDED, after)])
    return after


def page_of_rules(connection: Connection, query: RuleQuery, after: int, limit: int) -> list[ManualRule]:
    """Returns rules that a query names, newest first: those numbered below `after` (0: from the newest)."""
    conditions = _conditions(query)
    if after:
        conditions.append(RULES.id < after)
    rows = connection.execute(select(*RULE_COLUMNS).where(*conditions).order_by(RULES.id.desc()).limit(limit))
    return [rule_of(row) for row in rows]


def count_rules(connection: Connection, query: RuleQuery) -> int:
    """Returns the number of rules that a query names."""
    return connection.execute(select(func.count()).select_from(MANUAL_RULES).where(*_conditions(query))).scalar_one()


def _conditions(query: RuleQuery) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if query.text:
        columns = (RULES.pattern, RULES.comment, RULES.group_name)
        found.append(or_(*(column.icontains(query.text, autoescape=True) for column in columns)))
    if query.action is not None:
        found.append(RULES.action == query.action.value)
    if query.group is not None:
        found.append(RULES.group_name == query.group)
    if query.scope is not None:
        found.append(RULES.scope == query.scope)
    if query.enabled is not None:
        found.append(RULES.enabled == query.enabled)
    return found
