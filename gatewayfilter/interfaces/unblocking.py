"""Stored records of unblocking: users' requests to unblock pages, and bypass links."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gatewayfilter.model import EntryKind


class RequestState(StrEnum):
    """The state of a request to unblock a page. `closed`: a review decided the page."""

    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class UnblockRequest:
    """A user's request on the block page to unblock a page.

    Attributes:
        url: canonical text of the blocked URL.
        client: address of the device, as `log.hash_clients` writes it.
        comment: of the user, bounded.
        at: Unix seconds of the newest request; `times` the number of requests.
        request_id: the database's number, 0 before it has one.
        client_name: name of the client (`gatewayfilter client`), `""` where it is not recognized.
        state: whether it is decided.
        decided_at: Unix seconds, `None` while it is open.
        word: what the operator answers to the user.
        until: Unix seconds until which an approval lasts, `None` for ever.
        scope: whom an approval is for: `client:NAME`, `group:NAME`, or `""` for everybody.
        rule_ids: the manual rules of an approval.
    """

    url: str
    client: str
    reason: str
    source_list: str
    rule: str
    category: str
    comment: str
    at: float
    times: int = 1
    request_id: int = 0
    client_name: str = ""
    state: RequestState = RequestState.OPEN
    decided_at: float | None = None
    word: str = ""
    until: float | None = None
    scope: str = ""
    rule_ids: tuple[int, ...] = ()

    @property
    def who(self) -> str:
        """What limits and answers are bound to: the client's name, or its address where it has none."""
        return self.client_name or self.client


@dataclass(frozen=True, slots=True)
class BypassLink:
    """A signed link that unblocks a page or site for some clients when it is opened.

    Attributes:
        url: canonical text of the page that it leads to.
        kind, pattern: of the manual rule that it makes.
        scope: whom it is for: `client:NAME`, `group:NAME`, or `""` for everybody.
        until: Unix seconds at which it ends.
        once: it works for one visit.
        created_at: Unix seconds.
        request_id: the request that it answers, 0 for none.
        link_id: the database's number, 0 before it has one.
        used_at, revoked_at: Unix seconds, `None` if it was not.
        rule_ids: the manual rules that it made.
    """

    url: str
    kind: EntryKind
    pattern: str
    scope: str
    until: float
    once: bool
    created_at: float
    request_id: int = 0
    link_id: int = 0
    used_at: float | None = None
    revoked_at: float | None = None
    rule_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class UnblockChanges:
    """What changed since a version of the store.

    Attributes:
        version: the newest.
        whole: these are all that there are, in place of what was read before: the store was restored.
    """

    version: int
    requests: Sequence[UnblockRequest] = ()
    links: Sequence[BypassLink] = ()
    whole: bool = False


class UnblockRequestStore(Protocol):
    """What a proxy worker needs of the store of requests and links."""

    def ask(self, requests: Sequence[UnblockRequest]) -> int:
        """Records requests; a repeated one is counted, one beyond the limits dropped. Returns the number of new ones."""
        ...

    def redeem(self, link_ids: Sequence[int], now: float) -> int:
        """Makes the rules of links that were opened, if they are still good. Returns the number of links that were."""
        ...

    def changes(self, after: int) -> UnblockChanges:
        """Returns the requests and links that changed after a version; -1 for all that are kept."""
        ...


class UnblockRequests(UnblockRequestStore, Protocol):
    """The requests to unblock pages, of which one per URL and client is open; bounded."""

    def open_requests(self, limit: int = 1000) -> list[UnblockRequest]:
        """Returns the open requests, the newest first."""
        ...

    def open_count(self) -> int:
        """Returns the number of open requests."""
        ...

    def complete(self, request_id: int) -> UnblockRequest | None:
        """Closes an open request, and others for the same page. Returns it, `None` when there was none."""
        ...


@dataclass(frozen=True, slots=True)
class RecognizedClient:
    """A client as policies recognize it.

    Attributes:
        name: `""` for one that is not recognized.
        scopes: of manual rules and links for it, `""` for everybody among them.
        requests: whether its policy lets it request pages.
    """

    name: str = ""
    scopes: tuple[str, ...] = ("",)
    requests: bool = True


class RecognizeClient(Protocol):
    """Recognizes clients by address and proxy user."""

    def recognize(self, address: str, user: str = "") -> RecognizedClient:
        """Returns the client; never raises."""
        ...
