"""Rows of the log as templates show them: who, what, the outcome, and the addresses that a row leads to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from gatewayfilter.model import LogRecord, PolicySet, client_of
from gatewayfilter.urls import registrable_domain
from gatewayfilter.use_cases.traffic.log_clients import LogClients
from gatewayfilter.use_cases.traffic.log_groups import LogGroup

LOG: Final = "/log"
_ICON: Final = "device"
_LONGEST_SHOWN: Final = 500


@dataclass(frozen=True, slots=True)
class LogRow:
    """A line of the log: a decision, or several of a client at a site.

    Attributes:
        number: id of the decision that stands for it.
        device: name of the client, or what is logged of it.
        address: as logged.
        icon: of the device.
        host, rest: of the URL, with what stands after it.
        whom: whom an action on this row is for, as `log_actions.act_on_url` takes it.
        decisions, blocked: numbers of those it stands for.
        more: address with all of them, `""` for one alone.
    """

    number: int
    at: float
    device: str
    address: str
    icon: str
    host: str
    rest: str
    url: str
    method: str
    action: str
    reason: str
    source_list: str
    rule: str
    category: str
    whom: str
    decisions: int = 1
    blocked: int = 0
    more: str = ""

    @property
    def why(self) -> str:
        """Address of the explanation."""
        return f"{LOG}/{self.number}/why"

    @property
    def device_log(self) -> str:
        """Address of the log of its client."""
        return log_url(client=self.device)

    @property
    def site_log(self) -> str:
        """Address of the log of its site."""
        return log_url(site=registrable_domain(self.host) or self.host) if self.host else LOG

    @property
    def subject(self) -> str:
        """What it is about, for screen readers."""
        return f"{self.host}, {self.device}"


class LogRows:
    """Makes rows.

    Args:
        clients: names of the clients.
        policies: with their icons.
    """

    def __init__(self, clients: LogClients, policies: PolicySet) -> None:
        self._clients = clients
        self._policies = policies

    def row(self, number: int, record: LogRecord) -> LogRow:
        """Returns the row of a decision."""
        address = client_of(record)
        name = self._clients.name(address)
        client = self._policies.clients.get(name)
        after = record.url.partition("://")[2] or record.url
        host = after.partition("/")[0].partition("?")[0]
        return LogRow(
            number,
            record.at,
            name or address,
            address,
            client.icon if client is not None and client.icon else _ICON,
            host,
            after[len(host) :][:_LONGEST_SHOWN],
            record.url,
            record.method,
            record.action,
            record.reason,
            record.source_list,
            record.rule,
            record.category,
            f"client:{name}" if name else f"device:{address}" if address else "",
            blocked=int(record.action == "block"),
        )

    def rows(self, records: Iterable[tuple[int, LogRecord]]) -> list[LogRow]:
        """Returns the rows of decisions."""
        return [self.row(number, record) for number, record in records]

    def group(self, group: LogGroup, conditions: Mapping[str, str], minute: str, end: str) -> LogRow:
        """Returns the row of a group.

        Args:
            group: the group.
            conditions: of the page.
            minute: when the group begins, as a condition of the log.
            end: when it ends, likewise.
        """
        row = self.row(group.shown_id, group.shown)
        given = {**conditions, "client": row.device, "site": group.site, "since": minute, "until": end, "view": "all"}
        return LogRow(
            **{name: getattr(row, name) for name in LogRow.__slots__ if name not in {"decisions", "blocked", "more"}},
            decisions=group.decisions,
            blocked=group.blocked,
            more=log_url(**given) if group.decisions > 1 and group.site else "",
        )


def log_url(**conditions: str) -> str:
    """Returns the address of the log with these conditions; empty ones are left out."""
    given = {name: value for name, value in conditions.items() if value}
    return f"{LOG}?{urlencode(given)}" if given else LOG
