"""Interfaces of the proxy: verdicts, changes to traffic, internal pages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gatewayfilter.model import (
    Enforcement,
    Explanation,
    HostVerdict,
    LogDetail,
    QuotasUsed,
    Request,
    RequestChange,
    ResponseChange,
    Verdict,
)
from gatewayfilter.urls import Url


class Decide(Protocol):
    """The decision on a request, for the proxy, `check` and `match`. Pure: no I/O, no lock."""

    def decide(self, request: Request) -> Verdict:
        """Returns the verdict; never raises for any request that could be built."""
        ...

    def explain(self, request: Request) -> Explanation:
        """Returns every decider's answer and the verdict of `decide`."""
        ...


class DecideHost(Protocol):
    """The decision on a connection, when only the host name is known. Pure: no I/O, no lock."""

    def decide_host(self, host: str, client: str = "", user: str = "") -> HostVerdict:
        """Returns deny, splice or intercept for a host name or address literal; never raises."""
        ...

    def policy_mark(self) -> tuple[int, ...] | None:
        """Returns a value that changes whenever policies of clients may decide otherwise, `None` while there are none."""
        ...


class DecideTraffic(Decide, DecideHost, Protocol):
    """The decision on requests and connections."""

    def enforced_address(self, host: str, client: str, user: str = "") -> str:
        """Returns the host or address where connections to a host have to end for a client, `""` for its own addresses."""
        ...


class DecideReusably(DecideTraffic, Protocol):
    """Decisions whose answers other proxies may reuse."""

    def decision_mark(self) -> tuple[object, ...]:
        """Returns a value that differs from those before whenever lists, rules, policies or approvals may decide otherwise."""
        ...


class LogDetails(Protocol):
    """What the log keeps of the requests of single clients. Pure: no I/O, no lock."""

    @property
    def varies_log(self) -> bool:
        """Whether `log_detail` may return anything for any client; cheap, as it is read for every record."""
        ...

    def log_detail(self, client: str, user: str = "") -> LogDetail | None:
        """Returns what the log keeps of a client's requests, `None` for what `log.privacy` says."""
        ...


class CountQuotas(Protocol):
    """The quotas that requests use. Pure: no I/O, no lock."""

    def has_quotas(self) -> bool:
        """Returns whether there are any."""
        ...

    def quotas_used(self, request: Request, verdict: Verdict, *, own: bool) -> QuotasUsed | None:
        """Returns the quotas that an allowed request uses, `None` for none; never raises.

        Args:
            request: the request.
            verdict: allows it.
            own: the request is the user's own doing; of others only those for what is played count.
        """
        ...


class ChangeTraffic(Protocol):
    """The changes to allowed requests and their responses by Adblock modifiers and policies. Pure: no I/O, no lock."""

    def enforced(self, request: Request) -> Enforcement | None:
        """Returns what the client's policy changes in a request, whatever rules allow it; `None` for nothing."""
        ...

    def change_request(self, request: Request) -> RequestChange | None:
        """Returns the changes to a request before it is sent, `None` for none."""
        ...

    def change_response(
        self, request: Request, status: int, headers: Mapping[str, str], address: str = ""
    ) -> ResponseChange | None:
        """Returns the changes to a response, `None` for none.

        Args:
            request: the request.
            status: HTTP status.
            headers: of the response, lower-case names.
            address: of the server that answers, `""` when unknown.
        """
        ...


@dataclass(frozen=True, slots=True)
class InternalRequest:
    """A request for an internal page of the filter.

    Attributes:
        url: the requested URL.
        method: upper case.
        headers: lower-case name → value, the first of repeated ones.
        client: address of the requesting device, `""` when unknown.
        local: local address and port of the connection; in transparent mode its original destination.
    """

    url: Url
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    client: str = ""
    local: tuple[str, int] = ("", 0)


@dataclass(frozen=True, slots=True)
class InternalAnswer:
    """The response of an internal page: status, headers (lower-case names) and body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class InternalPages(Protocol):
    """The internal pages, which the filter serves instead of an origin. Pure: no I/O, no lock."""

    def answers(self, url: Url) -> bool:
        """Returns whether this URL is an internal page; cheap, as it is called for every request, before any decision."""
        ...

    def respond(self, request: InternalRequest) -> InternalAnswer:
        """Returns the response to a request for which `answers` is true."""
        ...
