"""The log as rows of a file, and its removal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import client_of
from gatewayfilter.use_cases.traffic.log_clients import LogClients

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.config import Settings
    from gatewayfilter.model import LogQuery
    from gatewayfilter.store import Store

COLUMNS: Final = (
    "id", "time", "at", "client", "client_name", "user", "method", "url", "resource_type", "action", "reason", "source_list",
    "rule", "category", "elapsed_us",
)  # fmt: skip
_PAGE: Final = 1000


def exported_rows(store: Store, query: LogQuery, clients: LogClients) -> Iterator[dict[str, Any]]:
    """Yields the decisions that fulfil a query, newest first, as plain values by `COLUMNS`; read page by page.

    Args:
        store: with the log.
        query: the conditions.
        clients: for their names.
    """
    before: int | None = None
    while True:
        page = store.log_search.page(query, _PAGE, before=before)
        for number, record in page.records:
            name = clients.name(client_of(record))
            row = {**record._asdict(), "id": number, "client_name": name, "time": _iso(record.at)}
            yield {column: row[column] for column in COLUMNS}
        before = page.before
        if before is None:
            return


def purge_log(store: Store, settings: Settings, before: float | None, client: str) -> int:
    """Removes decisions for good, with all that is counted and indexed of them. Returns their number.

    Args:
        store: with the log.
        settings: of the state folder.
        before: Unix seconds; only older ones, `None` for all of the client.
        client: only of this one: its name, an address, or `user:NAME`; `""` for all.

    Raises:
        PolicyError: neither is named, or there is no such client.
    """
    if client:
        return store.log.purge_clients(LogClients(store, settings).named(client), before)
    if before is None:
        raise PolicyError("name a time or a client")
    return store.log.purge(before)


def _iso(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return ""
