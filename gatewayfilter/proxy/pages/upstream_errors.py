"""Faults of requests that were allowed and failed: read from mitmproxy's errors, shown on the error page."""

from enum import StrEnum


class Fault(StrEnum):
    """What went wrong. The code stands in the answer's `x-gatewayfilter` header."""

    BAD_REQUEST = "bad-request"
    HEADERS_TOO_LARGE = "headers-too-large"
    VERSION = "http-version"
    NAME = "name-not-found"
    REFUSED = "connection-refused"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    CERTIFICATE = "certificate"
    TLS = "tls"
    BAD_ANSWER = "bad-answer"
    INTERNAL_ADDRESS = "internal-address"

    @property
    def status(self) -> int:
        """The HTTP status of the answer."""
        return _STATUS.get(self, 502)


_STATUS = {
    Fault.BAD_REQUEST: 400,
    Fault.INTERNAL_ADDRESS: 403,
    Fault.HEADERS_TOO_LARGE: 431,
    Fault.VERSION: 505,
    Fault.TIMEOUT: 504,
}

INTERNAL_MESSAGE = "internal address refused (proxy.allow_networks)"
"""Of our own guard; without the address, so that clients do not learn what internal names resolve to."""

_SIGNS = (
    (Fault.INTERNAL_ADDRESS, (INTERNAL_MESSAGE,)),
    (Fault.CERTIFICATE, ("certificate verify failed", "hostname mismatch")),
    (Fault.NAME, ("[errno -2]", "[errno -3]", "[errno -5]", "no address associated", "name or service not known", "not a name")),
    (Fault.REFUSED, ("[errno 111]",)),
    (Fault.TIMEOUT, ("[errno 110]", "timed out")),
    (Fault.UNREACHABLE, ("[errno 101]", "[errno 113]", "[errno 99]", "[errno 22]", "upstream proxy")),
    (Fault.TLS, ("tls", "ssl", "connection closed early", "certificate")),
)
"""What the messages of the operating system and of mitmproxy contain, in lower case; the first that fits decides."""


_NOT_THE_ORIGINS = (
    INTERNAL_MESSAGE,
    "Client disconnected",
    "stream reset by client",
    "Connection killed",
    "HTTP/1 protocol error",
    "peer closed",
    "HTTP/2",
)


def read_fault(status: int, message: str) -> Fault:
    """Returns what an error of mitmproxy means.

    Args:
        status: the HTTP status that mitmproxy would answer with.
        message: its text.
    """
    if status < 500:
        return Fault.BAD_REQUEST
    lower = message.lower()
    for fault, signs in _SIGNS:
        if any(sign in lower for sign in signs):
            return fault
    return Fault.BAD_ANSWER


def is_origin_fault(message: str) -> bool:
    """Returns whether an error is the origin's or the way's to it: not one of the client's, nor a refusal of ours."""
    return not message.startswith(_NOT_THE_ORIGINS)
