"""What is noted on a connection to an origin so that the keep-alive pool (shared_origins.py) may take it later."""

from dataclasses import dataclass
from typing import Final

from mitmproxy import http
from mitmproxy.connection import Server
from mitmproxy.proxy.layers.http import HttpLayer
from OpenSSL import SSL

from gatewayfilter.proxy.mitm.upstream import set_on

type Key = tuple[tuple[str, int] | None, str | None, tuple[bytes, ...]]
"""Address, verified name (`None` without TLS), offered protocols."""

UNBOUND_SCHEMES: Final = frozenset({b"basic", b"bearer", b"digest"})
"""`Authorization` schemes of single requests. NTLM and Negotiate log a whole connection in, others are not known."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """The TLS state of a connection that another client's connection had.

    Attributes:
        before: the connection as the other client's layers had it.
        made: of OpenSSL, after its handshake; `None` without TLS.
        peer: whose certificate was checked (tls_config.py).
        verified_at: when the certificate was checked, monotonic seconds.
        opened_at: when the connection was made, monotonic seconds.
    """

    before: Server
    made: SSL.Connection | None
    peer: tuple[object, ...]
    verified_at: float
    opened_at: float


@dataclass(slots=True)
class Sharing:
    """What the pool needs of a connection that is opened for a request.

    Attributes:
        http_layer: has the layers of the connection; `None` when the pool has taken it, which keeps no client's layers alive.
        may_adopt: the request may be sent again if an idle connection turns out to be closed.
        key: what another connection must equal to be shared; `None` where the pool is off.
        bound: the connection belongs to its client.
        adopted: the connection was taken from the pool.
        opened_at: when it was made, monotonic seconds.
    """

    http_layer: HttpLayer | None
    may_adopt: bool
    key: Key | None = None
    bound: bool = False
    adopted: Adopted | None = None
    opened_at: float = 0.0


def sharing_of(server: object) -> Sharing | None:
    """Returns what was noted on a connection."""
    found = getattr(server, "sharing", None)
    return found if isinstance(found, Sharing) else None


def note_sharing(server: Server, sharing: Sharing) -> None:
    """Notes it on a connection that is about to be opened."""
    set_on(server, "sharing", sharing)


def binds(request: http.Request) -> bool:
    """Returns whether a request may log its connection in, or change what is spoken on it.

    The next request on it would be its user's, or part of what an origin takes for a tunnel, whatever it answered.
    """
    if "upgrade" in request.headers:
        return True
    for value in request.headers.get_all("authorization"):
        if value.partition(" ")[0].lower().encode("utf-8", "surrogateescape") not in UNBOUND_SCHEMES:
            return True
    return False
