"""Conditions on the decision log as addresses of pages and the API write them."""

from dataclasses import asdict, dataclass, replace
from datetime import tzinfo
from typing import Final, Protocol

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import LogQuery, Reason
from gatewayfilter.renamed_codes import current_code
from gatewayfilter.urls import canonical_host
from gatewayfilter.use_cases.moments import read_moment

OUTCOMES: Final = ("blocked", "allowed", "learned", "unknown")
_LONGEST: Final = 200


class FindClients(Protocol):
    """Finds what is logged of clients, as `log_clients.LogClients` does."""

    def named(self, text: str) -> frozenset[str]:
        """Returns what is logged of a client by name or address; raises `PolicyError` where there is none."""
        ...

    def group(self, name: str) -> frozenset[str]:
        """Returns what is logged of the clients of a group; raises `PolicyError` where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class LogFilters:
    """Conditions, each `""` for none.

    Attributes:
        q: part of the URL.
        outcome: one of `OUTCOMES`; `learned` are blocks by learned entries, `unknown` allowed requests of URLs on no list.
        client: name, address or `user:NAME`.
        site: a host, with those below it.
        list: name of the list that decided.
        since, until: `today`, `20:00`, `7d`, `2030-01-31T18:00`.
    """

    q: str = ""
    outcome: str = ""
    client: str = ""
    group: str = ""
    category: str = ""
    reason: str = ""
    site: str = ""
    list: str = ""
    since: str = ""
    until: str = ""

    @property
    def given(self) -> dict[str, str]:
        """Those that are set, by name."""
        return {name: value for name, value in asdict(self).items() if value}

    def but(self, **changes: str) -> dict[str, str]:
        """Returns those that are set after some of them have other values."""
        return replace(self, **changes).given

    def query(self, clients: FindClients, now: float, zone: tzinfo | None = None) -> LogQuery:
        """Returns the conditions as the store reads them.

        Raises:
            PolicyError: one of them is not understood.
        """
        if any(len(value) > _LONGEST for value in self.given.values()):
            raise PolicyError(f"a condition has more than {_LONGEST} characters")
        if self.outcome and self.outcome not in OUTCOMES:
            raise PolicyError(f"{self.outcome!r} is no outcome: write {', '.join(OUTCOMES)}")
        reason = current_code(self.reason)
        if reason and reason not in set(Reason):
            raise PolicyError(f"{self.reason!r} is no reason; docs/reasons.md lists them")
        action = {"blocked": "block", "learned": "block", "allowed": "allow", "unknown": "allow"}.get(self.outcome, "")
        return LogQuery(
            self.q.strip(),
            read_moment(self.since, now, back=True, zone=zone) if self.since else None,
            read_moment(self.until, now, back=True, zone=zone) if self.until else None,
            self._clients(clients),
            action,
            reason or {"learned": Reason.LEARNED.value, "unknown": Reason.UNKNOWN.value}.get(self.outcome, ""),
            self.category,
            self.list,
            _host(self.site) if self.site else "",
        )

    def _clients(self, clients: FindClients) -> frozenset[str] | None:
        found: frozenset[str] | None = None
        for text, find in ((self.client, clients.named), (self.group, clients.group)):
            if text:
                found = find(text) if found is None else found & find(text)
        return found


def _host(text: str) -> str:
    try:
        return canonical_host(text.strip().removeprefix("*.").removeprefix("."))
    except ValueError as error:
        raise PolicyError(f"{text!r} is no host") from error
