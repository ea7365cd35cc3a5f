"""The check of 101 responses: only a WebSocket handshake may turn an HTTP connection into another protocol.

After a 101 a client and an origin could exchange anything unread. A WebSocket is read frame by frame.

Source: RFC 6455 §4.1 and §4.2; RFC 9110 §7.8.
"""

import re
from base64 import b64encode
from hashlib import sha1
from typing import Final

from mitmproxy import http
from mitmproxy.addons.disable_h2c import DisableH2C

from gatewayfilter.proxy.request.header_fields import has_name

SWITCHING_PROTOCOLS: Final = 101
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY: Final = re.compile(rb"[A-Za-z0-9+/]{22}==")
_VERSION: Final = [b"13"]
_METHODS: Final = frozenset({b"GET", b"HEAD", b"POST"})
"""The usual ones, none of which begins a connection of HTTP/2."""


def is_websocket_answer(request: http.Request | None, response: http.Response) -> bool:
    """Returns whether a 101 completes a WebSocket handshake, and nothing else."""
    if request is None or request.data.method != b"GET" or request.data.http_version != b"HTTP/1.1":
        return False
    keys = _values(request, b"sec-websocket-key")
    return (
        _is_websocket_upgrade(request)
        and _is_websocket_upgrade(response)
        and response.data.http_version == b"HTTP/1.1"
        and _values(request, b"sec-websocket-version") == _VERSION
        and len(keys) == 1
        and _KEY.fullmatch(keys[0]) is not None
        and _values(response, b"sec-websocket-accept") == [_accept(keys[0])]
    )


def _is_websocket_upgrade(message: http.Message) -> bool:
    upgrades = _values(message, b"upgrade")
    options = b",".join(_values(message, b"connection")).lower().split(b",")
    return len(upgrades) == 1 and upgrades[0].lower() == b"websocket" and b"upgrade" in {option.strip() for option in options}


def _accept(key: bytes) -> bytes:
    return b64encode(sha1(key + _GUID).digest())


def _values(message: http.Message, name: bytes) -> list[bytes]:
    return [value.strip() for field, value in message.headers.fields if field.lower() == name]


class PlainRequests(DisableH2C):
    """mitmproxy's addon that refuses HTTP/2 without TLS, which looks closer at what asks for it alone."""

    name = "disableh2c"

    def process_flow(self, flow: http.HTTPFlow) -> None:
        """Removes the request to change to HTTP/2, and ends the flow of a connection that begins with it."""
        data = flow.request.data
        if data.method not in _METHODS or has_name(data.headers.fields, "upgrade"):
            super().process_flow(flow)  # type: ignore[no-untyped-call]
