"""Log records as lines for people, and as objects for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import plain, print_json_line, say
from gatewayfilter.model import LogRecord, client_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatewayfilter.use_cases.traffic.log_clients import LogClients

_LONGEST_URL: Final = 160


def as_object(number: int, record: LogRecord, clients: LogClients) -> dict[str, Any]:
    """Returns a record with its id and the name of its client, for JSON."""
    return {"id": number, **plain(record._asdict()), "client_name": clients.name(client_of(record))}


def print_records(records: Iterable[tuple[int, LogRecord]], clients: LogClients, *, json: bool, full: bool = False) -> None:
    """Prints records in their order.

    Args:
        records: pairs of id and record.
        clients: for their names.
        json: one object a line.
        full: URLs as long as they are.
    """
    for number, record in records:
        if json:
            print_json_line(as_object(number, record, clients))
        else:
            say(_line(record, clients, full=full))


def _line(record: LogRecord, clients: LogClients, *, full: bool) -> str:
    why = ": ".join(part for part in (record.source_list, record.rule) if part)
    category = f" [{record.category}]" if record.category else ""
    url = record.url if full or len(record.url) <= _LONGEST_URL else f"{record.url[:_LONGEST_URL]}…"
    what = " ".join(part for part in (record.action.upper(), record.method, url, record.resource_type) if part)
    return f"{show_moment(record.at)} {_who(record, clients)} {what} {record.reason}{category}{f' ({why})' if why else ''}"


def _who(record: LogRecord, clients: LogClients) -> str:
    name = clients.name(client_of(record)) or (record.user and f"user {record.user}")
    return f"{name} ({record.client})" if name and record.client else name or record.client or "-"
