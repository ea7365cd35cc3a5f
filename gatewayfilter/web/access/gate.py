"""The gate of every request: host names, foreign pages, size of the body, header fields of the answer.

A page of the web could send a browser here under a name of its own (DNS rebinding), or by a form. Only names of this filter are
answered, and no change that another site's page sends.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Collection
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatewayfilter.web.errors import API, problem

MAX_BODY: Final = 1 << 20
"""Bytes of a request's body."""
MAX_UPLOAD: Final = 64 << 20
"""Bytes of a request's body on the paths of `uploads`."""
BODY_PAUSE_S: Final = 20.0
"""How long a body may stop on its way."""
_LONGEST_NUMBER: Final = 20
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_FIELDS: Final = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class Gate:
    """ASGI middleware around everything else.

    Args:
        app: what is served.
        names: host names that are answered, without ports; IP addresses always are.
        uploads: beginnings of paths whose bodies may be large, for senders whom `may_upload` accepts.
        may_upload: tells by a request whether its sender may send a large body; it may read the database.
        tls: whether the connection is encrypted.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        names: Collection[str],
        uploads: tuple[str, ...] = (),
        may_upload: Callable[[Request], bool] = lambda _: False,
        tls: bool = False,
    ) -> None:
        self._app = app
        self._names = frozenset(names)
        self._uploads = uploads
        self._may_upload = may_upload
        self._fields = _FIELDS | ({"strict-transport-security": "max-age=31536000"} if tls else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        limit = await self._limit(scope, headers)
        refusal = self._refusal(scope, headers, limit)
        await (refusal or self._app)(scope, _bounded(receive, limit), self._hardened(send))

    def _refusal(self, scope: Scope, headers: Headers, limit: int) -> Response | None:
        host = headers.get("host", "")
        if not self._is_own(host):
            return _refused(scope, 421, "unknown host; web.names adds one")
        if scope["method"] not in _SAFE and not _same_origin(headers, scope["scheme"], host):
            return _refused(scope, 403, "a page of another site sent this")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > _LONGEST_NUMBER or int(length) > limit:
            return _refused(scope, 413, "too large")
        if not _is_utf8(headers.get("content-type", "")):
            return _refused(scope, 415, "text is sent in UTF-8")
        return None

    def _is_own(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name.lower() in self._names
        return True

    async def _limit(self, scope: Scope, headers: Headers) -> int:
        """Returns how many bytes a body may have. Who sends a large one is found out before any of it is read."""
        if scope["method"] in _SAFE or not self._uploads or not scope["path"].startswith(self._uploads):
            return MAX_BODY
        if not self._is_own(headers.get("host", "")):
            return MAX_BODY
        return MAX_UPLOAD if await run_in_threadpool(self._may_upload, Request(scope)) else MAX_BODY

    def _hardened(self, send: Send) -> Send:
        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._fields.items():
                    headers.setdefault(name, value)
            await send(message)

        return hardened


def own_names(listen_host: str, further: Collection[str]) -> frozenset[str]:
    """Returns the host names of the dashboard."""
    machine = socket.gethostname().lower()
    return frozenset({"localhost", listen_host.lower(), machine, machine.partition(".")[0], f"{machine}.local", *further})


def _bounded(receive: Receive, limit: int) -> Receive:
    """Returns what receives a body of this size at most, which does not stop on its way; then the sender counts as gone."""
    left, is_whole = limit, False

    async def bounded() -> Message:
        nonlocal left, is_whole
        try:
            async with asyncio.timeout(None if is_whole else BODY_PAUSE_S):
                message = await receive()
        except TimeoutError:
            return {"type": "http.disconnect"}
        is_whole = not message.get("more_body", False)
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return bounded


def _refused(scope: Scope, status: int, detail: str) -> Response:
    return problem(status, detail) if scope["path"].startswith(API) else PlainTextResponse(f"{detail}\n", status)


def _is_utf8(content_type: str) -> bool:
    """Returns whether a body is in UTF-8, or of no named encoding.

    The names of others reach Python's codecs, some of which take quadratic time (`punycode`), or make text that cannot be
    encoded (`raw_unicode_escape`).
    """
    _, found, rest = content_type.lower().partition("charset")
    return not found or rest.lstrip(' \t*="').startswith(("utf-8", "utf8"))


def _same_origin(headers: Headers, scheme: str, host: str) -> bool:
    site = headers.get("sec-fetch-site", "")
    if site and site not in {"same-origin", "none"}:
        return False
    origin = headers.get("origin")
    return origin is None or origin == f"{scheme}://{host}"
