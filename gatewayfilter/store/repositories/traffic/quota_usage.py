"""The use of quotas: minutes of the day for each client and quota, merged from all workers; and what is used up, in the feed."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, delete, insert, select, update

from gatewayfilter.engine.policies.time_windows import Interval, day_at, zone_of
from gatewayfilter.model import (
    ChangeKind,
    Quota,
    QuotaSum,
    QuotaUse,
    Spent,
    from_record,
    key_of_client,
    kind_of_item,
    to_record,
)
from gatewayfilter.store.repositories.change_feed import append_changes
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import POLICY_ITEMS, QUOTA_USAGE

_ITEMS = POLICY_ITEMS.c
_USAGE = QUOTA_USAGE.c
_SELECT_ITEMS = select(_ITEMS.record).where(_ITEMS.kind.in_(["quota", "spent"]))
_LAST_MINUTE: Final = 1_559
"""Of the longest day: 26 hours, where a zone moves back by two."""
_KEPT_DAYS: Final = 2
_MOST_CLIENTS: Final = 10_000
"""Addresses of one quota and day: those of IPv6 are as many as a device likes. Clients that policies name are not limited."""
_BY_ADDRESS: Final = key_of_client("")


class SqlQuotaUsage:
    """Counts the minutes in which clients use quotas.

    A minute is a bit, so a use that several workers report counts once. In the transaction in which the last minute of a quota is
    written, the quota becomes `Spent` for its client, as a step of the change feed: in force from the end of that minute.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, uses: Sequence[QuotaUse]) -> int:
        """Adds minutes; those of quotas that are gone are ignored. Returns the number of quotas that are now used up."""
        if not uses:
            return 0
        with self._database.write(Area.LISTS) as connection:
            quotas, spent = _items(connection)
            days: dict[tuple[str, str, int], tuple[Interval, set[int]]] = {}
            for use in uses:
                quota = quotas.get(use.quota)
                if quota is not None:
                    day, span = day_at(use.minute * 60.0, zone_of(quota.timezone))
                    minute = int(use.minute * 60 - span.begin) // 60
                    days.setdefault((use.client, use.quota, day), (span, set()))[1].add(min(max(minute, 0), _LAST_MINUTE))
            steps: list[Spent] = []
            for key, (span, minutes) in days.items():
                used = _merge(connection, key, minutes)
                quota = quotas[key[1]]
                if used is None or used.bit_count() < quota.minutes_of(key[2]):
                    continue
                found = Spent(quota.name, key[0], span.begin + 60.0 * used.bit_length(), span.end)
                known = spent.get(found.name)
                if known is None or known.until != found.until:
                    steps.append(found)
            _write(connection, steps)
            return len(steps)

    def sums(self, now: float) -> list[QuotaSum]:
        """Returns what was used on the current day of each quota, by quota and client."""
        with self._database.read() as connection:
            quotas, _ = _items(connection)
            found: list[QuotaSum] = []
            for quota in sorted(quotas.values(), key=lambda quota: quota.name):
                day, _ = day_at(now, zone_of(quota.timezone))
                rows = connection.execute(
                    select(_USAGE.client, _USAGE.minutes)
                    .where(_USAGE.quota == quota.name, _USAGE.day == day)
                    .order_by(_USAGE.client)
                )
                found += [QuotaSum(client, quota.name, _number(minutes).bit_count()) for client, minutes in rows]
            return found


def rename_usage(connection: Connection, client: str, renamed: str) -> None:
    """Gives what a client has used to another one, in the transaction in which it is renamed."""
    connection.execute(delete(QUOTA_USAGE).where(_USAGE.client == renamed))
    connection.execute(update(QUOTA_USAGE).where(_USAGE.client == client).values(client=renamed))


def _items(connection: Connection) -> tuple[dict[str, Quota], dict[str, Spent]]:
    items = [from_record(record) for (record,) in connection.execute(_SELECT_ITEMS)]
    return (
        {item.name: item for item in items if isinstance(item, Quota)},
        {item.name: item for item in items if isinstance(item, Spent)},
    )


def _merge(connection: Connection, key: tuple[str, str, int], minutes: Iterable[int]) -> int | None:
    """Adds minutes to a row, or to a new one. Returns all of its minutes as bits, `None` where there are too many clients."""
    client, quota, day = key
    row = (_USAGE.client == client) & (_USAGE.quota == quota) & (_USAGE.day == day)
    before = connection.scalar(select(_USAGE.minutes).where(row))
    used = _number(before) if before is not None else 0
    for minute in minutes:
        used |= 1 << minute
    data = used.to_bytes((used.bit_length() + 7) // 8, "little")
    if before is not None:
        connection.execute(update(QUOTA_USAGE).where(row).values(minutes=data))
        return used
    of_quota = _USAGE.quota == quota
    connection.execute(delete(QUOTA_USAGE).where(of_quota, _USAGE.day < day - _KEPT_DAYS))
    if client.startswith(_BY_ADDRESS):
        by_address = _USAGE.client.startswith(_BY_ADDRESS)
        same_day = select(_USAGE.client).where(of_quota, _USAGE.day == day, by_address).limit(_MOST_CLIENTS)
        if len(connection.execute(same_day).all()) >= _MOST_CLIENTS:
            return None
    connection.execute(insert(QUOTA_USAGE), {"client": client, "quota": quota, "day": day, "minutes": data})
    return used


def _write(connection: Connection, steps: Sequence[Spent]) -> None:
    for item in steps:
        kind = kind_of_item(item)
        connection.execute(delete(POLICY_ITEMS).where(_ITEMS.kind == kind, _ITEMS.name == item.name))
        connection.execute(insert(POLICY_ITEMS), {"kind": kind, "name": item.name, "record": to_record(item)})
    append_changes(connection, [(ChangeKind.POLICY_PUT, item) for item in steps])


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")
