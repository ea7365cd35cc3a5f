"""What the proxy needs: verdicts, changes to traffic, internal pages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gatewayfilter.model import Explanation, HostVerdict, Request, RequestChange, ResponseChange, Verdict
from gatewayfilter.urls import Url


class Decide(Protocol):
    """The decision as the proxy, `check` and `match` use it. Pure: no I/O, no lock."""

    def decide(self, request: Request) -> Verdict:
        """Returns the verdict; never raises for any request that could be built."""
        ...

    def explain(self, request: Request) -> Explanation:
        """Returns every decider's answer and the verdict that `decide` would give."""
        ...


class DecideHost(Protocol):
    """The decision at the first sight of a connection, when only the host's name is known. Pure: no I/O, no lock."""

    def decide_host(self, host: str, client: str = "") -> HostVerdict:
        """Returns deny, splice or intercept for a host name or address literal; never raises."""
        ...


class ChangeTraffic(Protocol):
    """What Adblock modifiers make of requests that are allowed and of their responses. Pure: no I/O, no lock."""

    def change_request(self, request: Request) -> RequestChange | None:
        """Returns what to change before the request goes out, `None` for nothing."""
        ...

    def change_response(
        self, request: Request, status: int, headers: Mapping[str, str], address: str = ""
    ) -> ResponseChange | None:
        """Returns what to change in the response, `None` for nothing.

        Args:
            request: the request.
            status: HTTP status.
            headers: of the response, lower-case names.
            address: of the server that answers, `""` when unknown.
        """
        ...


@dataclass(frozen=True, slots=True)
class InternalRequest:
    """A request for a page of the filter itself.

    Attributes:
        url: the requested URL.
        method: upper case.
        headers: lower-case name → value, the first of repeated ones.
        client: address of the asking device, `""` when unknown.
        local: the address and port of ours that it is connected to; in transparent mode those it wanted to reach.
    """

    url: Url
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    client: str = ""
    local: tuple[str, int] = ("", 0)


@dataclass(frozen=True, slots=True)
class InternalAnswer:
    """A response of the filter itself: status, headers (lower-case names) and body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class InternalPages(Protocol):
    """The filter's own pages, which it answers instead of any origin. Pure: no I/O, no lock."""

    def answers(self, url: Url) -> bool:
        """Returns whether this URL is one of ours; cheap, it is called for every request, before any decision."""
        ...

    def respond(self, request: InternalRequest) -> InternalAnswer:
        """Returns the answer to a request that `answers` took."""
        ...
