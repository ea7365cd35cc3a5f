"""Clients, groups, policies, schedules and pauses. Each change and its steps in the feed are one transaction."""

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, delete, insert, select

from gatewayfilter.model import (
    ChangeKind,
    Client,
    Group,
    Pause,
    PolicyItem,
    PolicySet,
    Spent,
    from_record,
    key_of_client,
    kind_of_item,
    to_record,
)
from gatewayfilter.store.repositories.change_feed import append_changes
from gatewayfilter.store.repositories.rule_rows import move_rules, remove_rules_of
from gatewayfilter.store.repositories.traffic.quota_usage import rename_usage
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import LIST_CHANGES, POLICY_ITEMS
from gatewayfilter.store.sql.sqlite_file import FileMark

_COLUMNS = POLICY_ITEMS.c
_SELECT = select(_COLUMNS.record).order_by(_COLUMNS.kind, _COLUMNS.name)
_INSERT = insert(POLICY_ITEMS)
_LAST_STEP = select(LIST_CHANGES.c.seq, LIST_CHANGES.c.kind, LIST_CHANGES.c.payload).order_by(LIST_CHANGES.c.seq.desc()).limit(1)


class SqlPolicyStore:
    """Implements `interfaces.PolicyStore`.

    What was read is kept until the feed goes on, or has another last step of the same number, as a database may have that was
    restored: reading 500 clients takes 6 ms, asking the feed 0.2.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: tuple[tuple[list[object], FileMark | None], PolicySet] | None = None

    def read(self) -> PolicySet:
        """Returns all items."""
        with self._database.read() as connection:
            last = connection.execute(_LAST_STEP).one_or_none()
            if last is None or self._database.joined:  # the step of a transaction may be taken back, and its number used again
                return _read(connection)
            mark = [*last], self._database.file_mark()
            kept = self._kept
            if kept is None or kept[0] != mark:
                # The items may be newer than the step; then the next read finds another step.
                kept = self._kept = mark, _read(connection)
            return kept[1]

    def change(self, edit: Callable[[PolicySet], Sequence[tuple[PolicyItem, bool]]], now: float) -> PolicySet:
        """Changes items in one transaction, and forgets pauses and used quotas that have ended. Returns the set afterwards.

        With a client or a group its manual rules are removed.

        Args:
            edit: returns the steps for the items as they are: pairs of an item and whether it is put (else removed). It may
                raise `PolicyError`.
            now: Unix seconds.

        Raises:
            PolicyError: the items would be inconsistent; nothing was changed.
        """
        with self._database.write(Area.LISTS) as connection:
            before = _read(connection)
            steps = list(edit(before))
            passing: list[Pause | Spent] = [*before.pauses.values(), *before.spent.values()]
            ended = [item for item in passing if item.until <= now]
            touched = {(kind_of_item(item), item.name) for item, _ in steps}
            steps += [(item, False) for item in ended if (kind_of_item(item), item.name) not in touched]
            after = before.changed(steps).checked()
            _take(connection, steps)
            return after

    def rename_client(self, name: str, renamed: str) -> PolicySet:
        """Gives a client another name, with its rules, its pause and its use of quotas. Returns the set afterwards.

        Raises:
            PolicyError: there is no such client, or the name is taken; nothing was changed.
        """
        with self._database.write(Area.LISTS) as connection:
            before = _read(connection)
            steps = before.with_client_renamed(name, renamed)
            after = before.changed(steps).checked()
            move_rules(connection, f"client:{name}", f"client:{renamed}")
            rename_usage(connection, key_of_client(name), key_of_client(renamed))
            _take(connection, steps)
            return after

    def rename_group(self, name: str, renamed: str) -> PolicySet:
        """Gives a group another name, with its clients, its rules and its pause. Returns the set afterwards.

        Raises:
            PolicyError: there is no such group, it is `default`, or the name is taken; nothing was changed.
        """
        with self._database.write(Area.LISTS) as connection:
            before = _read(connection)
            steps = before.with_group_renamed(name, renamed)
            after = before.changed(steps).checked()
            move_rules(connection, f"group:{name}", f"group:{renamed}")
            _take(connection, steps)
            return after


def _take(connection: Connection, steps: Sequence[tuple[PolicyItem, bool]]) -> None:
    """Writes steps and adds them to the feed."""
    for item, is_put in steps:
        _write(connection, item, put=is_put)
    kinds = {True: ChangeKind.POLICY_PUT, False: ChangeKind.POLICY_REMOVED}
    append_changes(connection, [(kinds[is_put], item) for item, is_put in steps])


def _read(connection: Connection) -> PolicySet:
    return PolicySet.of(from_record(record) for (record,) in connection.execute(_SELECT))


def _write(connection: Connection, item: PolicyItem, *, put: bool) -> None:
    kind = kind_of_item(item)
    connection.execute(delete(POLICY_ITEMS).where(_COLUMNS.kind == kind, _COLUMNS.name == item.name))
    if put:
        connection.execute(_INSERT, {"kind": kind, "name": item.name, "record": to_record(item)})
    elif isinstance(item, Client | Group):
        remove_rules_of(connection, f"{kind}:{item.name}")
