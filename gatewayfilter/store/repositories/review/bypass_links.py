"""Bypass links: what each unblocks for whom, and whether it was used or revoked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.engine import Row

from gatewayfilter.interfaces import BypassLink, RequestState
from gatewayfilter.model import APPROVED, EntryKind, ListAction, ManualRule
from gatewayfilter.store.repositories.lists import SqlListStore
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import BYPASS_LINKS, UNBLOCK_REQUESTS

VISIT_S: Final = 300.0
"""How long the visit of a link that works once may take."""

ERASED_URL: Final = "http://erased.invalid/"
"""Stands in rows that were emptied when their client was erased, which are not listed."""

_KEPT_S: Final = 30 * 86_400.0
"""How long a link is kept after its end."""

_COLUMNS = BYPASS_LINKS.c
_ALL = select(BYPASS_LINKS).order_by(_COLUMNS.id.desc())
_CHANGED = select(BYPASS_LINKS).where(_COLUMNS.version > bindparam("after")).order_by(_COLUMNS.version)


class SqlBypassLinks:
    """The bypass links. A link is opened by at most one redemption if it works once, whatever worker it reaches."""

    def __init__(self, database: Database, lists: SqlListStore) -> None:
        self._database = database
        self._lists = lists

    def add(self, link: BypassLink) -> BypassLink:
        """Stores a link, and deletes those that ended a month ago. Returns it with its number."""
        with self._database.write(Area.UNBLOCK) as connection:
            connection.execute(delete(BYPASS_LINKS).where(_COLUMNS.until < link.created_at - _KEPT_S))
            values = {
                "url": link.url,
                "kind": link.kind.value,
                "pattern": link.pattern,
                "scope": link.scope,
                "until": link.until,
                "once": link.once,
                "created_at": link.created_at,
                "request_id": link.request_id,
                "version": next_version(connection),
            }
            number = connection.execute(insert(BYPASS_LINKS).returning(_COLUMNS.id), values).scalar_one()
            return _link(connection.execute(_ALL.where(_COLUMNS.id == number)).one())

    def links(self, limit: int = 1000) -> list[BypassLink]:
        """Returns links, the newest first; none of an erased client."""
        with self._database.read() as connection:
            return [_link(row) for row in connection.execute(_ALL.where(_COLUMNS.url != ERASED_URL).limit(limit))]

    def in_force(self, now: float) -> list[BypassLink]:
        """Returns the links that have made rules and have neither ended nor been revoked."""
        running = (_COLUMNS.until > now) & _COLUMNS.revoked_at.is_(None) & _COLUMNS.used_at.is_not(None)
        with self._database.read() as connection:
            return [_link(row) for row in connection.execute(_ALL.where(running))]

    def changed(self, after: int) -> list[BypassLink]:
        """Returns the links that changed after a version."""
        with self._database.read() as connection:
            return [_link(row) for row in connection.execute(_CHANGED, {"after": after})]

    def revoke(self, link_id: int, now: float) -> BypassLink | None:
        """Revokes a link, and removes the rules that it made. Returns it, `None` when there is none."""
        with self._database.together(Area.LISTS):
            link = self._find(link_id)
            if link is None:
                return None
            self._update(link_id, revoked_at=now)
            others = self.in_force(now)
            for rule_id in link.rule_ids:
                ends = [
                    *_approved_until(self._database, rule_id),
                    *(end_of_rules(one) for one in others if rule_id in one.rule_ids),
                ]
                self._lists.shorten_rule(rule_id, ends, now)
            return self._find(link_id)

    def redeem(self, link_id: int, now: float) -> bool:
        """Makes the rule of a link. Returns False when it has ended, is revoked, or works once and was used."""
        with self._database.together(Area.LISTS):
            link = self._find(link_id)
            if link is None or link.revoked_at is not None or now >= link.until or (link.once and link.used_at is not None):
                return False
            until = end_of_rules(replace(link, used_at=now))
            rule_ids = [self._lists.put_rule(rule).rule_id for rule in _rules(link, until)]
            self._update(link_id, used_at=now, rule_ids=rule_ids)
        return True

    def _find(self, link_id: int) -> BypassLink | None:
        with self._database.read() as connection:
            row = connection.execute(_ALL.where(_COLUMNS.id == link_id)).one_or_none()
        return None if row is None else _link(row)

    def _update(self, link_id: int, **values: object) -> None:
        with self._database.write(Area.UNBLOCK) as connection:
            changed = values | {"version": next_version(connection)}
            connection.execute(update(BYPASS_LINKS).where(_COLUMNS.id == link_id).values(**changed))


def end_of_rules(link: BypassLink) -> float:
    """Returns when the rules of a link that was used end, in Unix seconds."""
    return min(link.until, link.used_at + VISIT_S) if link.once and link.used_at is not None else link.until


def _approved_until(database: Database, rule_id: int) -> list[float | None]:
    """Returns the ends of the approvals of requests that a rule is part of."""
    columns = UNBLOCK_REQUESTS.c
    with database.read() as connection:
        rows = connection.execute(select(columns.until, columns.rule_ids).where(columns.state == RequestState.APPROVED.value))
        return [until for until, rule_ids in rows if rule_id in (rule_ids or ())]


def next_version(connection: Connection) -> int:
    """Returns the version of the next change of requests or links, in its transaction (`Area.UNBLOCK`)."""
    return newest_version(connection) + 1


def newest_version(connection: Connection) -> int:
    """Returns the version of the newest change of the requests and links that are kept, 0 without any."""
    return max(connection.scalar(select(func.max(table.c.version))) or 0 for table in (UNBLOCK_REQUESTS, BYPASS_LINKS))


def _rules(link: BypassLink, until: float) -> Sequence[ManualRule]:
    comment = f"link {link.link_id}"
    return [ManualRule(0, ListAction.ALLOW, link.kind, link.pattern, comment, APPROVED, until, scope=link.scope)]


def _link(row: Row[tuple[object, ...]]) -> BypassLink:
    return BypassLink(
        url=row.url,
        kind=EntryKind(row.kind),
        pattern=row.pattern,
        scope=row.scope,
        until=row.until,
        once=row.once,
        created_at=row.created_at,
        request_id=row.request_id,
        link_id=row.id,
        used_at=row.used_at,
        revoked_at=row.revoked_at,
        rule_ids=tuple(row.rule_ids or ()),
    )
