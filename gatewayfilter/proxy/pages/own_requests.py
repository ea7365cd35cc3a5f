"""A worker's view of requests to unblock pages: who asks, the state of each client's own requests, limits, and bypass links.

The view is kept up to date beside the event loop (proxy/sync/unblock_follower.py): nothing here reads the database. The limits
here answer the user at once; those of the store hold for all workers together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gatewayfilter.addresses.client_network import network_of
from gatewayfilter.interfaces import BypassLink, RecognizeClient, RequestState, UnblockChanges, UnblockRequest
from gatewayfilter.model import LinkClaims, Request, is_state_token, link_address, read_link, state_token

MOST_OPEN: Final = 5
"""Open requests of a client."""
MOST_A_DAY: Final = 20
"""New requests of a client in 24 hours; of the clients of an IPv6 /64 network that are not recognized, together."""
AGAIN_AFTER_S: Final = 3600.0
"""A page whose request was decided may be requested again after so long."""
_UNCONFIRMED_S: Final = 60.0
"""How long a request that was passed to the writer may be missing in the store."""
_DAY_S: Final = 86_400.0
_MOST_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Asker:
    """The client of a request, as requests to unblock pages see it.

    Attributes:
        who: what limits and answers are bound to: its name, or its address as it is written down.
        address: as it is written down.
        name: `""` for a client that is not recognized.
        network: what the daily limit is counted by.
        scopes: of rules and links for it.
        may_ask: whether its policy lets it request pages.
    """

    who: str
    address: str
    name: str
    network: str
    scopes: tuple[str, ...]
    may_ask: bool


class OwnRequests:
    """The view of a worker. The event loop reads and notes; one thread takes changes in.

    Args:
        key: signs the addresses of state pages and bypass links.
        recognize: recognizes clients.
        client_of: how a client's address is written down.
        clock: Unix seconds.
    """

    def __init__(
        self, key: bytes, recognize: RecognizeClient, client_of: Callable[[str], str], clock: Callable[[], float]
    ) -> None:
        self._key = key
        self._recognize = recognize
        self._client_of = client_of
        self._clock = clock
        self._newest: dict[str, dict[str, UnblockRequest]] = {}
        self._count = 0
        self._links: dict[int, BypassLink] = {}
        self._link_of: dict[int, int] = {}
        self._asked: dict[str, list[float]] = {}

    def take_in(self, changes: UnblockChanges) -> None:
        """Takes in what changed in the store."""
        if changes.whole:
            self._forget_stored()
        for request in sorted(changes.requests, key=lambda request: request.request_id):
            self._keep(request)
        for link in changes.links:
            self._links[link.link_id] = link
            if link.request_id:
                self._link_of[link.request_id] = link.link_id
        if self._count > _MOST_KEPT:
            requests = [request for of_client in list(self._newest.values()) for request in list(of_client.values())]
            self._newest, self._count = {}, 0
            for request in sorted(requests, key=lambda request: request.at)[-_MOST_KEPT // 2 :]:
                self._keep(request)

    def _forget_stored(self) -> None:
        """Forgets all but the requests that the writer has not stored yet."""
        noted = [request for of_client in list(self._newest.values()) for request in list(of_client.values())]
        self._newest, self._count, self._links, self._link_of = {}, 0, {}, {}
        for request in noted:
            if not request.request_id:
                self._keep(request)

    def _keep(self, request: UnblockRequest) -> None:
        of_client = self._newest.setdefault(request.who, {})
        self._count += request.url not in of_client
        of_client[request.url] = request

    def now(self) -> float:
        """Returns the time in Unix seconds."""
        return self._clock()

    def asker(self, request: Request) -> Asker:
        """Returns the client of a request."""
        found = self._recognize.recognize(request.client, request.user)
        address = self._client_of(request.client)
        who = found.name or address
        return Asker(who, address, found.name, found.name or network_of(request.client), found.scopes, found.requests)

    def state_of(self, asker: Asker, url: str) -> UnblockRequest | None:
        """Returns the newest request of a client for a page, `None` for none."""
        found = self._newest.get(asker.who, {}).get(url)
        if found is None or (found.request_id == 0 and self._clock() - found.at > _UNCONFIRMED_S):
            return None
        return found

    def link_of(self, request: UnblockRequest) -> str:
        """Returns the address of the bypass link that answers a request, `""` without one that still works."""
        link = self._links.get(self._link_of.get(request.request_id, 0))
        if link is None or link.revoked_at is not None or self._clock() >= link.until or (link.once and link.used_at is not None):
            return ""
        return link_address(self._key, LinkClaims(link.link_id, link.url, link.scope, link.until, link.once))

    def refusal(self, asker: Asker, url: str) -> str:
        """Returns the notice for a client that may not request a page now, `""` if it may."""
        now = self._clock()
        if not asker.may_ask:
            return "requests-off"
        own = self.state_of(asker, url)
        if own is not None and own.state is RequestState.OPEN:
            return ""  # the comment may be added to
        if own is not None and own.state is RequestState.DENIED and 0 <= now - own.at < AGAIN_AFTER_S:
            return "denied"
        requests = list(self._newest.get(asker.who, {}).values())
        if sum(found.state is RequestState.OPEN for found in requests) >= MOST_OPEN:
            return "too-many-open"
        times = [at for at in self._asked.get(asker.network, ()) if now - at < _DAY_S]
        stored = sum(now - found.at < _DAY_S for found in requests)
        return "too-many-today" if max(len(times), stored) >= MOST_A_DAY else ""

    def note(self, asker: Asker, request: UnblockRequest) -> None:
        """Notes a request that was passed to the writer."""
        if (own := self.state_of(asker, request.url)) is not None and own.state is RequestState.OPEN:
            return
        self._keep(request)
        if len(self._asked) >= _MOST_KEPT:
            self._asked.clear()
        times = self._asked.setdefault(asker.network, [])
        times.append(request.at)
        del times[:-MOST_A_DAY]

    def token(self, asker: Asker, url: str) -> str:
        """Returns the token of the page that shows the state of a request."""
        return state_token(self._key, asker.who, url, self._clock())

    def is_token(self, token: str, asker: Asker, url: str) -> bool:
        """Returns whether a token is for this client and URL."""
        return is_state_token(self._key, token, asker.who, url, self._clock())

    def read_link(self, token: str, asker: Asker) -> tuple[LinkClaims | None, str]:
        """Returns what a bypass link names, and the notice on why it does not work, `""` if it does."""
        claims = read_link(self._key, token)
        if claims is None:
            return None, "link-invalid"
        link = self._links.get(claims.number)
        if claims.scope not in asker.scopes:
            return claims, "link-other"
        if link is not None and link.revoked_at is not None:
            return claims, "link-revoked"
        if self._clock() >= claims.until:
            return claims, "link-expired"
        return claims, "link-used" if claims.once and link is not None and link.used_at is not None else ""
