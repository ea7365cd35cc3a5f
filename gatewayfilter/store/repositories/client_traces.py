"""What the database holds about one client, over all tables, and its erasure.

Rows that others follow by a version (requests, links) are emptied, not deleted: a deleted newest version would be given again,
and its follower would miss it. They are removed with age as any others.
"""

import os
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import batched
from typing import Any, Final

from sqlalchemy import delete, or_, select, update

from gatewayfilter.interfaces import RequestState
from gatewayfilter.model import key_of_client
from gatewayfilter.store.repositories.review.bypass_links import ERASED_URL, next_version
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import BYPASS_LINKS, DEVICES, NOTIFICATIONS, QUOTA_USAGE, UNBLOCK_REQUESTS

_AT_ONCE: Final = 500
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """What a client is stored under.

    Attributes:
        logged: addresses as logged, which may be hashes, and users as `user:NAME`.
        addresses: as they are.
        name: in the policies, `""` where it has none.
    """

    logged: frozenset[str]
    addresses: frozenset[str]
    name: str


class SqlClientTraces:
    """Erases what is stored about a client beside the decision log and the policies."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def erase(self, client: ClientIdentity) -> dict[str, int]:
        """Erases requests, messages, links, minutes of quotas and devices of a client. Returns how many of each."""
        return {
            "requests": self._empty_requests(client),
            "messages": self._delete_messages(client),
            "links": self._empty_links(client),
            "quota_days": self._delete_usage(client),
            "devices": self._delete_devices(client),
        }

    def _empty_requests(self, client: ClientIdentity) -> int:
        rows = UNBLOCK_REQUESTS.c
        which = or_(
            rows.client.in_(client.logged | client.addresses), (rows.client_name == client.name) & (rows.client_name != "")
        )
        with self._database.write(Area.UNBLOCK) as connection:
            found = list(connection.scalars(select(rows.id).where(which, rows.url != ERASED_URL)))
            for number in found:
                empty: dict[str, Any] = {
                    "client": "",
                    "client_name": "",
                    "comment": "",
                    "word": "",
                    "rule": "",
                    "source_list": "",
                }
                empty |= {"url": ERASED_URL, "state": RequestState.CLOSED.value, "scope": "", "digest": os.urandom(_DIGEST_BYTES)}
                connection.execute(
                    update(UNBLOCK_REQUESTS).where(rows.id == number).values(**empty, version=next_version(connection))
                )
        return len(found)

    def _delete_messages(self, client: ClientIdentity) -> int:
        names = client.logged | client.addresses
        with self._database.write(Area.UNBLOCK) as connection:
            found = [
                row.id
                for row in connection.execute(select(NOTIFICATIONS.c.id, NOTIFICATIONS.c.facts))
                if row.facts.get("client") in names or (client.name and row.facts.get("client_name") == client.name)
            ]
            for numbers in batched(found, _AT_ONCE):
                connection.execute(delete(NOTIFICATIONS).where(NOTIFICATIONS.c.id.in_(numbers)))
        return len(found)

    def _empty_links(self, client: ClientIdentity) -> int:
        rows = BYPASS_LINKS.c
        if not client.name:
            return 0
        with self._database.write(Area.UNBLOCK) as connection:
            which = (rows.scope == f"client:{client.name}") & (rows.url != ERASED_URL)
            found = list(connection.scalars(select(rows.id).where(which)))
            for number in found:
                values = {"url": ERASED_URL, "pattern": "erased.invalid", "scope": "", "until": 0.0}
                connection.execute(
                    update(BYPASS_LINKS).where(rows.id == number).values(**values, version=next_version(connection))
                )
        return len(found)

    def _delete_usage(self, client: ClientIdentity) -> int:
        keys = _keys(client.addresses)
        if client.name:
            keys.add(key_of_client(client.name))
        with self._database.write(Area.LISTS) as connection:
            return int(connection.execute(delete(QUOTA_USAGE).where(QUOTA_USAGE.c.client.in_(keys))).rowcount)

    def _delete_devices(self, client: ClientIdentity) -> int:
        with self._database.write(Area.LOG) as connection:
            return int(connection.execute(delete(DEVICES).where(DEVICES.c.address.in_(client.addresses))).rowcount)


def _keys(addresses: AbstractSet[str]) -> set[str]:
    return {key_of_client("", address) for address in addresses}
