"""How many pages each extraction rule has read, and when the last one."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import bindparam, case, delete, func, insert, select, update

from gatewayfilter.interfaces import RuleMatches
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import RULE_MATCHES

MOST_RULES: Final = 5000
"""Names that are kept; beyond, those whose last page is the longest ago are removed."""
_COLUMNS = RULE_MATCHES.c
_ADD = (
    update(RULE_MATCHES)
    .where(_COLUMNS.name == bindparam("of"))
    .values(
        pages=_COLUMNS.pages + bindparam("more"),
        empty=_COLUMNS.empty + bindparam("more_empty"),
        last_at=case((bindparam("at") > _COLUMNS.last_at, bindparam("at")), else_=_COLUMNS.last_at),  # clocks differ
    )
)


class SqlRuleMatches:
    """The counts of all crawlers that share the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, counts: Mapping[str, RuleMatches]) -> None:
        """Adds what was counted, by name of the rule, in one transaction.

        Raises:
            StoreError: the database refuses; nothing was added.
        """
        with self._database.write(Area.CRAWLERS) as connection:
            for name, more in counts.items():
                values = {"of": name, "more": more.pages, "more_empty": more.empty, "at": more.last_at}
                if not connection.execute(_ADD, values).rowcount:
                    row = {"name": name, "pages": more.pages, "empty": more.empty, "last_at": more.last_at}
                    connection.execute(insert(RULE_MATCHES), row)
            count = connection.execute(select(func.count()).select_from(RULE_MATCHES)).scalar_one()
            if surplus := max(count - MOST_RULES, 0):
                oldest = select(_COLUMNS.name).order_by(_COLUMNS.last_at, _COLUMNS.name).limit(surplus)
                connection.execute(delete(RULE_MATCHES).where(_COLUMNS.name.in_(oldest)))

    def all(self) -> dict[str, RuleMatches]:
        """Returns the counts by name of the rule.

        Raises:
            StoreError: the database refuses.
        """
        with self._database.read() as connection:
            rows = connection.execute(select(_COLUMNS.name, _COLUMNS.pages, _COLUMNS.empty, _COLUMNS.last_at))
            return {row.name: RuleMatches(row.pages, row.empty, row.last_at) for row in rows}
