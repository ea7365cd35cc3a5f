"""What follows from a request alone, kept on a client's connection for the next one where that is the same again.

Clients that poll send the same head many times over one connection. What was read from it then holds again where everything is
equal that it was read from, and only there. Verdicts are not kept: each request is decided, counted and logged anew.
"""

from dataclasses import dataclass
from typing import Any, Final

from mitmproxy import http

from gatewayfilter.proxy.request.header_fields import Fields

LONGEST_KEPT: Final = 2_048
"""Bytes of a head that is kept while its connection is open."""
_ATTRIBUTE: Final = "gatewayfilter_repeated"


@dataclass(slots=True, eq=False)
class RepeatedRequest:
    """The last request of a connection whose head was read by the fast path.

    Attributes:
        head: as it came.
        fields, host, port, method, scheme, authority, path: of it.
        read_from: what `read_as` was read from, `None` while nothing was.
        read_as: the request as the filter reads it.
        sent_from: what `sent` was made of, `None` while nothing was.
        sent: the head as it goes to an origin.
    """

    head: bytes
    fields: Fields
    host: str
    port: int
    method: bytes
    scheme: bytes
    authority: bytes
    path: bytes
    read_from: tuple[object, ...] | None = None
    read_as: Any = None
    sent_from: tuple[object, ...] | None = None
    sent: bytes = b""


def note_repeated(request: http.Request, repeated: RepeatedRequest) -> None:
    """Notes on a request what is kept of it."""
    vars(request)[_ATTRIBUTE] = repeated


def repeated_of(request: http.Request) -> RepeatedRequest | None:
    """Returns what is kept of a request, `None` for nothing."""
    found: RepeatedRequest | None = request.__dict__.get(_ATTRIBUTE)
    return found
