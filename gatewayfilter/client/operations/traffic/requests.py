"""The API of requests. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class LinkPage(TypedDict):
    """A page of links."""

    items: list[LinkModel]
    next: int | None


class LinkModel(TypedDict):
    """A bypass link."""

    id: int
    state: str
    url: str
    pattern: str
    scope: str
    until: float
    once: bool
    request: int
    address: NotRequired[str]


class NewLinkModel(TypedDict):
    """A new link; name for whom it is."""

    client: NotRequired[str]
    group: NotRequired[str]
    everybody: NotRequired[bool]
    site: NotRequired[bool | None]
    seconds: NotRequired[float]
    once: NotRequired[bool]
    url: str


class RequestPage(TypedDict):
    """A page of requests."""

    items: list[RequestModel]
    next: int | None


class RequestModel(TypedDict):
    """A request to unblock a page."""

    id: int
    state: str
    url: str
    client: str
    client_name: str
    comment: str
    at: float
    times: int
    reason: str
    source_list: str
    rule: str
    category: str
    site: str
    whole_site: bool
    evidence: list[EvidenceModel]
    review: int
    decided_at: float | None
    word: str
    until: float | None
    scope: str
    rules: list[int]


class EvidenceModel(TypedDict):
    """A word that counts for the page's category."""

    word: str
    weight: float


class ApprovalModel(TypedDict):
    """How a request is approved."""

    client: NotRequired[str]
    group: NotRequired[str]
    everybody: NotRequired[bool]
    site: NotRequired[bool | None]
    seconds: NotRequired[float | None]
    once: NotRequired[bool]
    word: NotRequired[str]


class DenialModel(TypedDict):
    """How a request is denied."""

    word: NotRequired[str]


class LinkTermsModel(TypedDict):
    """What a bypass link allows."""

    client: NotRequired[str]
    group: NotRequired[str]
    everybody: NotRequired[bool]
    site: NotRequired[bool | None]
    seconds: NotRequired[float]
    once: NotRequired[bool]


class RequestsApi:
    """Operations of requests."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_links(self, *, after: int | None = None, limit: int | None = None) -> Answer[LinkPage]:
        """Returns links, the newest first."""
        return self._transport.send(Call("GET", "/api/v1/bypass-links", query={"after": after, "limit": limit}))

    def add_link(self, body: NewLinkModel) -> Answer[LinkModel]:
        """Makes a link for any page."""
        return self._transport.send(Call("POST", "/api/v1/bypass-links", body=body))

    def revoke_link(self, number: int) -> Answer[LinkModel]:
        """Revokes a link: what it unblocked is blocked within a second."""
        return self._transport.send(Call("DELETE", "/api/v1/bypass-links/{number}", parameters={"number": number}))

    def list_requests(
        self, *, state: Literal["open", "decided"] | None = None, after: int | None = None, limit: int | None = None
    ) -> Answer[RequestPage]:
        """Returns requests, the newest first."""
        return self._transport.send(Call("GET", "/api/v1/requests", query={"state": state, "after": after, "limit": limit}))

    def get_request(self, number: int) -> Answer[RequestModel]:
        """Returns a request, and what blocked its page."""
        return self._transport.send(Call("GET", "/api/v1/requests/{number}", parameters={"number": number}))

    def approve_request(self, number: int, body: ApprovalModel, *, if_match: str = "") -> Answer[RequestModel]:
        """Approves a request: the page opens within a second, for the device that asked unless another is named."""
        return self._transport.send(
            Call(
                "POST",
                "/api/v1/requests/{number}/approve",
                parameters={"number": number},
                headers={"if-match": if_match},
                body=body,
            )
        )

    def deny_request(self, number: int, body: DenialModel, *, if_match: str = "") -> Answer[RequestModel]:
        """Denies a request, or withdraws its approval: the page is blocked within a second."""
        return self._transport.send(
            Call(
                "POST", "/api/v1/requests/{number}/deny", parameters={"number": number}, headers={"if-match": if_match}, body=body
            )
        )

    def reopen_request(self, number: int, *, if_match: str = "") -> Answer[RequestModel]:
        """Takes the answer to a request back: it waits again, and what an approval allowed is blocked within a second."""
        return self._transport.send(
            Call("POST", "/api/v1/requests/{number}/reopen", parameters={"number": number}, headers={"if-match": if_match})
        )

    def link_request(self, number: int, body: LinkTermsModel, *, if_match: str = "") -> Answer[LinkModel]:
        """Approves a request by a signed link, to be sent to the user."""
        return self._transport.send(
            Call(
                "POST", "/api/v1/requests/{number}/link", parameters={"number": number}, headers={"if-match": if_match}, body=body
            )
        )
