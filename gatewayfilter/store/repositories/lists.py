"""Manual rules and learned entries. Each change and its step in the feed are one transaction."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import md5
from itertools import batched, chain
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from gatewayfilter.model import ChangeKind, EntryKind, LearnedEntry, ListAction, ManualRule
from gatewayfilter.store.repositories.change_feed import append_changes
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import LEARNED_ENTRIES, LIST_CHANGES, MANUAL_RULES
from gatewayfilter.urls import digest_of

_CHUNK = 500
"""Maximum rows per statement; SQLite may be built with a limit of 999 parameters."""

_RULES = MANUAL_RULES.c
_RULE_COLUMNS = (
    _RULES.id,
    _RULES.action,
    _RULES.kind,
    _RULES.pattern,
    _RULES.comment,
    _RULES.group_name,
    _RULES.expires_at,
    _RULES.enabled,
    _RULES.scope,
)
_SELECT_RULES = select(*_RULE_COLUMNS).order_by(_RULES.id)
_SELECT_IDENTITIES = select(_RULES.identity, *_RULE_COLUMNS).where(_RULES.identity.in_(bindparam("identities", expanding=True)))
_UPDATE_RULE = (
    update(MANUAL_RULES)
    .where(_RULES.id == bindparam("rule_id"))
    .values(
        action=bindparam("new_action"),
        comment=bindparam("new_comment"),
        expires_at=bindparam("new_expires_at"),
        enabled=bindparam("new_enabled"),
    )
)

_LEARNED = LEARNED_ENTRIES.c
_LEARNED_COLUMNS = (
    _LEARNED.key,
    _LEARNED.action,
    _LEARNED.category,
    _LEARNED.url,
    _LEARNED.detail,
    _LEARNED.created_at,
    _LEARNED.expires_at,
    _LEARNED.certainty,
)
_SELECT_LEARNED = select(*_LEARNED_COLUMNS)
_FIND_LEARNED = _SELECT_LEARNED.where(_LEARNED.digest.in_(bindparam("digests", expanding=True)))
_DELETE_LEARNED = delete(LEARNED_ENTRIES).where(_LEARNED.digest.in_(bindparam("digests", expanding=True)))
_INSERT_LEARNED = insert(LEARNED_ENTRIES)
_PAGE_OF_LEARNED = (
    select(_LEARNED.digest, *_LEARNED_COLUMNS)
    .where(_LEARNED.digest > bindparam("after"))
    .order_by(_LEARNED.digest)
    .limit(bindparam("most"))
)
_EXPIRED = _SELECT_LEARNED.where(_LEARNED.expires_at <= bindparam("now")).order_by(_LEARNED.expires_at).limit(bindparam("most"))

_COUNT_LEARNED = select(func.count()).select_from(LEARNED_ENTRIES)
_FIRST_TO_EXPIRE = _SELECT_LEARNED.order_by(_LEARNED.expires_at).limit(bindparam("most"))

_CHANGES = LIST_CHANGES.c
_COMPACT = delete(LIST_CHANGES).where(
    _CHANGES.seq <= bindparam("up_to"), _CHANGES.seq < select(func.max(_CHANGES.seq)).scalar_subquery()
)


class SqlListStore:
    """Implements `interfaces.ListStore`.

    The feed represents a replacement as the removal of the old entry and the addition of the new one, in this order; a rule keeps
    its number. So an overlay needs no third kind of step, and the old one in a snapshot (an entry of another category, a rule
    with another action) is covered by the removal.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_rule(
        self,
        action: ListAction,
        kind: EntryKind,
        pattern: str,
        *,
        comment: str = "",
        group: str = "",
        expires_at: float | None = None,
        enabled: bool = True,
        scope: str = "",
    ) -> ManualRule:
        """Adds a manual rule, or replaces the one with the same kind, pattern, group and scope.

        Adding an identical rule is no change.
        """
        wanted = ManualRule(0, action, kind, pattern, comment, group, expires_at, enabled, scope)
        identity = identity_of(wanted)
        with self._database.write(Area.LISTS) as connection:
            _merge_rules(connection, {identity: wanted})
            return _rule(_rules_by_identity(connection, [identity])[identity])

    def put_rule(self, rule: ManualRule) -> ManualRule:
        """Adds a manual rule (its `rule_id` does not count), or replaces the one of its kind, pattern, group and scope.

        Where that one does the same and ends later, it is kept as it is.
        """
        identity = identity_of(rule)
        with self._database.write(Area.LISTS) as connection:
            found = _rules_by_identity(connection, [identity])
            before = _rule(found[identity]) if identity in found else None
            if before is None or not _outlasts(before, rule):
                _merge_rules(connection, {identity: rule})
            return _rule(_rules_by_identity(connection, [identity])[identity])

    def remove_ended(self, group: str, now: float) -> int:
        """Removes the rules of a group that have ended. Returns their number."""
        with self._database.write(Area.LISTS) as connection:
            ended = (_RULES.group_name == group) & (_RULES.expires_at <= now)
            gone = [_rule(row) for row in connection.execute(_SELECT_RULES.where(ended))]
            if gone:
                connection.execute(delete(MANUAL_RULES).where(ended))
                append_changes(connection, [(ChangeKind.MANUAL_REMOVED, rule) for rule in gone])
        return len(gone)

    def add_rules(self, rules: Sequence[ManualRule]) -> int:
        """Adds many at once (their `rule_id` does not count), in one transaction. Returns the number of new or changed ones.

        Of several with the same kind, pattern, group and scope the last one counts.
        """
        wanted = {identity_of(rule): rule for rule in rules}
        with self._database.write(Area.LISTS) as connection:
            return sum(_merge_rules(connection, dict(chunk)) for chunk in batched(wanted.items(), _CHUNK))

    def switch_rules(self, rule_ids: Sequence[int], *, enabled: bool) -> int:
        """Switches rules on or off, in one transaction. Returns the number of changed ones."""
        with self._database.write(Area.LISTS) as connection:
            return sum(_switch(connection, chunk, enabled=enabled) for chunk in batched(dict.fromkeys(rule_ids), _CHUNK))

    def remove_rule(self, rule_id: int) -> bool:
        """Removes a rule. Returns False when there was none."""
        with self._database.write(Area.LISTS) as connection:
            row = connection.execute(select(*_RULE_COLUMNS).where(_RULES.id == rule_id)).one_or_none()
            if row is None:
                return False
            connection.execute(delete(MANUAL_RULES).where(_RULES.id == rule_id))
            append_changes(connection, [(ChangeKind.MANUAL_REMOVED, _rule(row))])
            return True

    def rules(self) -> list[ManualRule]:
        """Returns all rules, oldest first."""
        with self._database.read() as connection:
            return [_rule(row) for row in connection.execute(_SELECT_RULES)]

    def put_learned(
        self, entries: Sequence[LearnedEntry], *, unless: Callable[[LearnedEntry], bool] = lambda _: False
    ) -> list[LearnedEntry]:
        """Adds or replaces learned entries by key; of several with the same key the last one counts.

        Args:
            entries: the learned entries.
            unless: called with each existing entry; True keeps it in place of the new one.

        Returns:
            The kept entries.
        """
        wanted = {digest_of(entry.key): entry for entry in entries}
        if not wanted:
            return []
        staying: list[LearnedEntry] = []
        with self._database.write(Area.LISTS) as connection:
            for chunk in batched(wanted.items(), _CHUNK):
                staying += _put_learned(connection, dict(chunk), unless)
        return staying

    def remove_learned(self, keys: Sequence[str]) -> int:
        """Removes learned entries. Returns the number removed."""
        if not keys:
            return 0
        with self._database.write(Area.LISTS) as connection:
            return sum(_remove_learned(connection, _digests(chunk)) for chunk in batched(keys, _CHUNK))

    def learned(self) -> Iterator[LearnedEntry]:
        """Yields all learned entries, expired ones included.

        Read page by page, so that no long read prevents a checkpoint of SQLite's log: concurrent changes may be included or not.
        For an exact state read `last_seq` of the feed first and replay the changes after it.
        """
        after = b""
        while True:
            with self._database.read() as connection:
                rows = connection.execute(_PAGE_OF_LEARNED, {"after": after, "most": 2 * _CHUNK}).all()
            if not rows:
                return
            for _, *values in rows:
                yield _learned_entry(values)
            after = rows[-1].digest

    def find_learned(self, keys: Sequence[str]) -> list[LearnedEntry]:
        """Returns the entries with these keys."""
        if not keys:
            return []
        with self._database.read() as connection:
            return [entry for chunk in batched(keys, _CHUNK) for entry in _find_learned(connection, _digests(chunk))]

    def expired_learned(self, now: float, limit: int = 1000) -> list[LearnedEntry]:
        """Returns expired entries, the longest expired first."""
        with self._database.read() as connection:
            return [_learned_entry(row) for row in connection.execute(_EXPIRED, {"now": now, "most": limit})]

    def surplus_learned(self, most: int, limit: int = 1000) -> list[LearnedEntry]:
        """Returns the entries in excess of `most`, at most `limit`: those that expire first."""
        with self._database.read() as connection:
            surplus = (connection.scalar(_COUNT_LEARNED) or 0) - most
            if surplus <= 0:
                return []
            return [_learned_entry(row) for row in connection.execute(_FIRST_TO_EXPIRE, {"most": min(surplus, limit)})]

    def compact_feed(self, up_to: int) -> int:
        """Deletes feed steps with `seq <= up_to`, which a published snapshot includes. Returns their number.

        The newest step of all stays: it holds the sequence number.
        """
        with self._database.write(Area.LISTS) as connection:
            return connection.execute(_COMPACT, {"up_to": up_to}).rowcount


def remove_rules_of(connection: Connection, scope: str) -> None:
    """Removes the manual rules of a scope, in the transaction in which its clients are removed (`Area.LISTS`)."""
    gone = [_rule(row) for row in connection.execute(_SELECT_RULES.where(_RULES.scope == scope))]
    if gone:
        connection.execute(delete(MANUAL_RULES).where(_RULES.scope == scope))
        append_changes(connection, [(ChangeKind.MANUAL_REMOVED, rule) for rule in gone])


def move_rules(connection: Connection, scope: str, other: str) -> None:
    """Gives the manual rules of a scope to another one, in the transaction in which its client is renamed (`Area.LISTS`)."""
    rules = [_rule(row) for row in connection.execute(_SELECT_RULES.where(_RULES.scope == scope))]
    if rules:
        remove_rules_of(connection, scope)
        moved = [replace(rule, scope=other) for rule in rules]
        _merge_rules(connection, {identity_of(rule): rule for rule in moved})


def identity_of(rule: ManualRule) -> bytes:
    """Returns what identifies a rule: 16 bytes of its kind, group, pattern and scope."""
    parts = (rule.kind.value, rule.group, rule.pattern, *([rule.scope] if rule.scope else []))
    return md5("\0".join(parts).encode(errors="surrogatepass"), usedforsecurity=False).digest()


def _rules_by_identity(connection: Connection, identities: Sequence[bytes]) -> dict[bytes, Sequence[Any]]:
    rows = connection.execute(_SELECT_IDENTITIES, {"identities": identities})
    return {identity: values for identity, *values in rows}


def _merge_rules(connection: Connection, wanted: Mapping[bytes, ManualRule]) -> int:
    """Inserts or updates these rules. Returns the number of new or changed ones."""
    found = {identity: _rule(values) for identity, values in _rules_by_identity(connection, list(wanted)).items()}
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
        stored = _rules_by_identity(connection, list(new))
        steps += [(ChangeKind.MANUAL_ADDED, _rule(stored[identity])) for identity in new]
    append_changes(connection, steps)
    return len(new) + len(changed)


def _outlasts(before: ManualRule, rule: ManualRule) -> bool:
    if not before.enabled or before.action is not rule.action:
        return False
    return before.expires_at is None or (rule.expires_at is not None and before.expires_at > rule.expires_at)


def _switch(connection: Connection, rule_ids: Sequence[int], *, enabled: bool) -> int:
    rows = connection.execute(_SELECT_RULES.where(_RULES.id.in_(rule_ids), _RULES.enabled != enabled))
    changed = [(old, replace(old, enabled=enabled)) for old in map(_rule, rows)]
    if changed:
        connection.execute(_UPDATE_RULE, [_changed_values(rule) for _, rule in changed])
        pairs = (((ChangeKind.MANUAL_REMOVED, old), (ChangeKind.MANUAL_ADDED, rule)) for old, rule in changed)
        append_changes(connection, chain.from_iterable(pairs))
    return len(changed)


def _rule(values: Sequence[Any]) -> ManualRule:
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


def _digests(keys: Iterable[str]) -> list[bytes]:
    return [digest_of(key) for key in keys]


def _find_learned(connection: Connection, digests: Sequence[bytes]) -> list[LearnedEntry]:
    return [_learned_entry(row) for row in connection.execute(_FIND_LEARNED, {"digests": digests})]


def _put_learned(
    connection: Connection, wanted: Mapping[bytes, LearnedEntry], unless: Callable[[LearnedEntry], bool]
) -> list[LearnedEntry]:
    """Inserts or updates entries. Returns the existing ones that were kept."""
    known = _find_learned(connection, list(wanted))
    staying = [entry for entry in known if unless(entry)]
    if staying:
        kept = {digest_of(entry.key) for entry in staying}
        wanted = {digest: entry for digest, entry in wanted.items() if digest not in kept}
    leaving = [entry for entry in known if entry not in staying]
    if leaving:
        connection.execute(_DELETE_LEARNED, {"digests": _digests(entry.key for entry in leaving)})
    if wanted:
        connection.execute(_INSERT_LEARNED, [_learned_row(digest, entry) for digest, entry in wanted.items()])
    steps = [(ChangeKind.LEARNED_REMOVED, entry) for entry in leaving]
    append_changes(connection, [*steps, *((ChangeKind.LEARNED_ADDED, entry) for entry in wanted.values())])
    return staying


def _remove_learned(connection: Connection, digests: Sequence[bytes]) -> int:
    leaving = _find_learned(connection, digests)
    if leaving:
        connection.execute(_DELETE_LEARNED, {"digests": digests})
        append_changes(connection, [(ChangeKind.LEARNED_REMOVED, entry) for entry in leaving])
    return len(leaving)


def _learned_entry(values: Sequence[Any]) -> LearnedEntry:
    key, action, *others = values
    return LearnedEntry(key, ListAction(action), *others)


def _learned_row(digest: bytes, entry: LearnedEntry) -> dict[str, object]:
    return {
        "digest": digest,
        "key": entry.key,
        "action": entry.action.value,
        "category": entry.category,
        "url": entry.url,
        "detail": entry.detail,
        "created_at": entry.created_at,
        "expires_at": entry.expires_at,
        "certainty": entry.certainty,
    }
