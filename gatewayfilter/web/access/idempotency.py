"""Idempotency keys: a POST to the API with `Idempotency-Key` is carried out once, and its answer repeated for a day.

Source: [draft-ietf-httpapi-idempotency-key-header]. The key counts for one account, session or token. A repetition with another
request is refused with 422, one while the first is being answered with 409. Answers above 500 are not kept: nothing was done.
"""

import hashlib
import time
from collections.abc import Callable
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatewayfilter.errors import StoreError
from gatewayfilter.model import KeptAnswer
from gatewayfilter.store import Store
from gatewayfilter.web.errors import problem

HEADER: Final = "idempotency-key"
_API: Final = "/api/"
_NOT_KEPT: Final = ("/api/v1/session", "/api/v1/tokens")
"""Their answers have secrets, which are not stored."""
_LONGEST_KEY: Final = 255
_LARGEST_BODY: Final = 65_536
_KEPT_FIELDS: Final = frozenset({"content-type", "location", "etag"})


class Idempotency:
    """ASGI middleware inside the gate.

    Args:
        app: what is served.
        store: keeps answers.
        clock: Unix seconds.
    """

    def __init__(self, app: ASGIApp, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._app = app
        self._store = store
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request, or repeats the answer to it."""
        headers = Headers(scope=scope) if scope["type"] == "http" else None
        path = str(scope.get("path", ""))
        if headers is None or scope["method"] != "POST" or HEADER not in headers or not path.startswith(_API):
            await self._app(scope, receive, send)
            return
        if path.startswith(_NOT_KEPT):
            await self._app(scope, receive, send)
            return
        await self._once(scope, headers, receive, send)

    async def _once(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        key = headers[HEADER]
        if not 1 <= len(key) <= _LONGEST_KEY or not key.isprintable():
            await problem(422, f"{HEADER} has 1 to {_LONGEST_KEY} visible characters")(scope, receive, send)
            return
        body = await _body(receive)
        if body is None:
            await problem(413, f"with {HEADER} a request has at most {_LARGEST_BODY} bytes")(scope, receive, send)
            return
        digest = _digest(headers.get("authorization", ""), headers.get("cookie", ""), key)
        request_digest = _digest(str(scope["path"]), scope.get("query_string", b"").decode("latin-1"), body.decode("latin-1"))
        try:
            kept = await run_in_threadpool(self._store.kept_answers.begin, digest, request_digest, self._clock())
        except StoreError as error:
            await problem(503, str(error))(scope, receive, send)
            return
        if kept is not None:
            await _repeated(kept, request_digest)(scope, receive, send)
            return
        recorder = _Recorder(send)
        try:
            await self._app(scope, _replaying(body, receive), recorder)
        finally:
            await run_in_threadpool(self._keep, digest, recorder.answer(request_digest))

    def _keep(self, digest: bytes, answer: KeptAnswer | None) -> None:
        if answer is None:
            self._store.kept_answers.abandon(digest)
        else:
            self._store.kept_answers.finish(digest, answer)


class _Recorder:
    """Sends an answer on, and holds what is to be kept of it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._status = 0
        self._headers: tuple[tuple[str, str], ...] = ()
        self._body: bytes | None = b""
        self._complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            fields = Headers(raw=message["headers"]).items()
            self._headers = tuple((name, value) for name, value in fields if name in _KEPT_FIELDS)
        elif message["type"] == "http.response.body":
            body = message.get("body", b"")
            self._body = self._body + body if self._body is not None and len(self._body) + len(body) <= _LARGEST_BODY else None
            self._complete = not message.get("more_body", False)
        await self._send(message)

    def answer(self, request_digest: bytes) -> KeptAnswer | None:
        """Returns the answer, `None` when nothing was done, or who asked was not let in."""
        if not self._complete or self._status >= 500 or self._status in {401, 403, 429}:
            return None
        return KeptAnswer(request_digest, self._status, self._headers, self._body)


def _digest(*parts: str) -> bytes:
    made = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        made.update(len(data).to_bytes(8) + data)
    return made.digest()


async def _body(receive: Receive) -> bytes | None:
    """Returns the whole body of a request, `None` when it is too large or the client went away."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += bytes(message.get("body", b""))
        if len(body) > _LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replaying(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replaying() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replaying


def _repeated(kept: KeptAnswer, request_digest: bytes) -> Response:
    if kept.request_digest != request_digest:
        return problem(422, f"this {HEADER} was used for another request")
    if not kept.status:
        return problem(409, "the first request with this key is being answered")
    if kept.body is None:
        return problem(409, "this was done already; its answer was too large to be kept")
    return Response(kept.body, kept.status, {**dict(kept.headers), "idempotency-replayed": "true"})
