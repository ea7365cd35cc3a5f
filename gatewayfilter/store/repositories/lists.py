"""Manual rules and learned entries. Each change and its step in the feed are one transaction."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import batched
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select

from gatewayfilter.interfaces import RuleQuery
from gatewayfilter.model import ChangeKind, EntryKind, LearnedEntry, ListAction, ManualRule
from gatewayfilter.store.repositories.change_feed import append_changes
from gatewayfilter.store.repositories.rule_rows import (
    RULE_COLUMNS,
    RULES,
    SELECT_RULES,
    count_rules,
    edit_rule,
    find_rule,
    identity_of,
    merge_rules,
    outlasts,
    page_of_rules,
    rule_of,
    rules_by_identity,
    switch,
)
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import LEARNED_ENTRIES, LIST_CHANGES, MANUAL_RULES
from gatewayfilter.urls import digest_of

_CHUNK = 500
"""Maximum rows per statement; SQLite may be built with a limit of 999 parameters."""
_PAGE = 1000

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
_LEARNED_KINDS = select(_LEARNED.action, _LEARNED.category, func.count()).group_by(_LEARNED.action, _LEARNED.category)
_LEARNED_IN = (
    _LEARNED.action == bindparam("of_action"),
    _LEARNED.created_at >= bindparam("since"),
    _LEARNED.created_at < bindparam("until"),
)
_COUNT_LEARNED_IN = _COUNT_LEARNED.where(*_LEARNED_IN)
_NEWEST_LEARNED_IN = (
    _SELECT_LEARNED.where(*_LEARNED_IN).order_by(_LEARNED.created_at.desc(), _LEARNED.digest).limit(bindparam("most"))
)
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
            merge_rules(connection, {identity: wanted})
            return rule_of(rules_by_identity(connection, [identity])[identity])

    def put_rule(self, rule: ManualRule) -> ManualRule:
        """Adds a manual rule (its `rule_id` does not count), or replaces the one of its kind, pattern, group and scope.

        Where that one does the same and ends later, it is kept as it is.
        """
        identity = identity_of(rule)
        with self._database.write(Area.LISTS) as connection:
            found = rules_by_identity(connection, [identity])
            before = rule_of(found[identity]) if identity in found else None
            if before is None or not outlasts(before, rule):
                merge_rules(connection, {identity: rule})
            return rule_of(rules_by_identity(connection, [identity])[identity])

    def shorten_rule(self, rule_id: int, ends: Sequence[float | None], now: float) -> None:
        """Gives a rule the last of these ends, `None` for never; removes it where all have passed, or there are none."""
        left = [end for end in ends if end is None or end > now]
        if not left:
            self.remove_rule(rule_id)
            return
        until = None if None in left else max(end for end in left if end is not None)
        with self._database.write(Area.LISTS) as connection:
            row = connection.execute(select(*RULE_COLUMNS).where(RULES.id == rule_id)).one_or_none()
            if row is not None:
                rule = replace(rule_of(row), expires_at=until)
                merge_rules(connection, {identity_of(rule): rule})

    def remove_ended(self, group: str, now: float) -> int:
        """Removes the rules of a group that have ended. Returns their number."""
        with self._database.write(Area.LISTS) as connection:
            ended = (RULES.group_name == group) & (RULES.expires_at <= now)
            gone = [rule_of(row) for row in connection.execute(SELECT_RULES.where(ended))]
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
            return sum(merge_rules(connection, dict(chunk)) for chunk in batched(wanted.items(), _CHUNK))

    def switch_rules(self, rule_ids: Sequence[int], *, enabled: bool) -> int:
        """Switches rules on or off, in one transaction. Returns the number of changed ones."""
        with self._database.write(Area.LISTS) as connection:
            return sum(switch(connection, chunk, enabled=enabled) for chunk in batched(dict.fromkeys(rule_ids), _CHUNK))

    def remove_rule(self, rule_id: int) -> bool:
        """Removes a rule. Returns False when there was none."""
        with self._database.write(Area.LISTS) as connection:
            row = connection.execute(select(*RULE_COLUMNS).where(RULES.id == rule_id)).one_or_none()
            if row is None:
                return False
            connection.execute(delete(MANUAL_RULES).where(RULES.id == rule_id))
            append_changes(connection, [(ChangeKind.MANUAL_REMOVED, rule_of(row))])
            return True

    def rule(self, rule_id: int) -> ManualRule | None:
        """Returns a rule by its number, `None` for none."""
        with self._database.read() as connection:
            return find_rule(connection, rule_id)

    def edit_rule(self, rule_id: int, edit: Callable[[ManualRule], ManualRule]) -> ManualRule | None:
        """Changes everything of a rule but its number, in one transaction; see `interfaces.ListStore`."""
        with self._database.write(Area.LISTS) as connection:
            return edit_rule(connection, rule_id, edit)

    def page_of_rules(self, query: RuleQuery, after: int = 0, limit: int = 100) -> list[ManualRule]:
        """Returns rules that a query names, newest first: those numbered below `after` (0: from the newest)."""
        with self._database.read() as connection:
            return page_of_rules(connection, query, after, limit)

    def count_rules(self, query: RuleQuery) -> int:
        """Returns the number of rules that a query names."""
        with self._database.read() as connection:
            return count_rules(connection, query)

    def rules(self) -> list[ManualRule]:
        """Returns all rules, oldest first."""
        with self._database.read() as connection:
            return [rule_of(row) for row in connection.execute(SELECT_RULES)]

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
                rows = connection.execute(_PAGE_OF_LEARNED, {"after": after, "most": _PAGE}).all()
            if not rows:
                return
            for _, *values in rows:
                yield _learned_entry(values)
            after = rows[-1].digest

    def learned_count(self) -> int:
        """Returns the number of learned entries, expired ones included. Reads no row of them."""
        with self._database.read() as connection:
            return connection.execute(_COUNT_LEARNED).scalar_one()

    def learned_kinds(self) -> dict[tuple[ListAction, str], int]:
        """Returns the number of learned entries of each action and category, expired ones included."""
        with self._database.read() as connection:
            return {(ListAction(action), category): count for action, category, count in connection.execute(_LEARNED_KINDS)}

    def learned_with(self, part: str, most: int | None = None) -> list[LearnedEntry]:
        """Returns learned entries in whose URL a text stands, capitals or not, by their keys.

        The database compares: 0.09 s of CPU for 200,000.

        Args:
            part: the text, without NUL: PostgreSQL refuses that.
            most: entries that are returned, `None` for all: the same ones each time.
        """
        wanted = _SELECT_LEARNED.where(
            or_(_LEARNED.url.icontains(part, autoescape=True), _LEARNED.key.contains(part.lower(), autoescape=True))
        )
        with self._database.read() as connection:
            return [_learned_entry(row) for row in connection.execute(wanted.order_by(_LEARNED.key).limit(most))]

    def blocked_between(self, since: float, until: float, most: int) -> tuple[list[LearnedEntry], int]:
        """Returns the newest learned entries of a time span that block, and the number of all of them.

        Args:
            since: Unix seconds.
            until: Unix seconds, itself not in the span.
            most: entries that are returned.
        """
        span = {"of_action": ListAction.BLOCK.value, "since": since, "until": until}
        with self._database.read() as connection:
            found = [_learned_entry(row) for row in connection.execute(_NEWEST_LEARNED_IN, {**span, "most": most})]
            return found, connection.execute(_COUNT_LEARNED_IN, span).scalar_one()

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
            surplus = max(connection.execute(_COUNT_LEARNED).scalar_one() - most, 0)
            return [_learned_entry(row) for row in connection.execute(_FIRST_TO_EXPIRE, {"most": min(surplus, limit)})]

    def compact_feed(self, up_to: int) -> int:
        """Deletes feed steps with `seq <= up_to`, which a published snapshot includes. Returns their number.

        The newest step of all stays: it holds the sequence number.
        """
        with self._database.write(Area.LISTS) as connection:
            return connection.execute(_COMPACT, {"up_to": up_to}).rowcount


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
