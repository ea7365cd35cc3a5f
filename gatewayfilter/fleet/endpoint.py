"""The endpoint of a publisher, an ASGI application: `GET /manifest`, `GET /blobs/NAME` with byte ranges, `POST /health`.

Nothing else is served. Each request has the token of a follower; requests, transfers and reports of each follower are bounded. It
reads an export (export.py), which a publication replaces by renames, so that neither waits for the other.
"""

import asyncio
import hashlib
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.export import BLOBS, MANIFEST
from gatewayfilter.fleet.health import LARGEST_REPORT, HealthBoard, read_report
from gatewayfilter.fleet.members import Members
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

type _Message = MutableMapping[str, Any]
type _Receive = Callable[[], Awaitable[_Message]]
type _Send = Callable[[_Message], Awaitable[None]]

_CHUNK: Final = 262_144
_SEND_S: Final = 60.0
"""The longest that a follower may take for a chunk."""
_BODY_S: Final = 10.0
MOST_TRANSFERS: Final = 4
"""Transfers of one follower at once."""
BURST: Final = 600
PER_S: Final = 10.0
"""Requests of one follower: this many at once, and then so many a second. A download has 256 ranges at most."""
_BLOB: Final = re.compile(r"/blobs/([0-9a-f]{64})", re.ASCII)
_RANGE: Final = re.compile(r"bytes=([0-9]{1,15})-([0-9]{1,15})", re.ASCII)


@dataclass(slots=True)
class _Use:
    tokens: float
    at: float
    transfers: int = 0


class FleetEndpoint:
    """The application.

    Args:
        folder: of the export.
        members: the followers.
        board: for their reports.
        counters: `fleet_requests`, `fleet_refused`, `fleet_bytes`, `fleet_reports`.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        folder: Path,
        members: Members,
        board: HealthBoard,
        counters: Counters,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._members = members
        self._board = board
        self._counters = counters
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Serves a request; a fault ends it with 503."""
        if scope["type"] != "http":
            return
        self._counters.add("fleet_requests")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            name = self._members.find(_token(headers))
        except FleetError as error:
            _log.error("%s", error)
            await self._refuse(send, 503)
            return
        if name is None:
            await self._refuse(send, 401)
            return
        use = self._use_of(name)
        if use.tokens < 1 or use.transfers >= MOST_TRANSFERS:
            await self._refuse(send, 429)
            return
        use.tokens -= 1
        use.transfers += 1
        try:
            await self._answer(scope, headers, name, receive, send)
        except (OSError, TimeoutError) as error:  # the server ends the connection: the answer is incomplete
            _log.warning("a transfer to the follower %s was ended: %s", name, str(error) or "it took too long")
        finally:
            use.transfers -= 1

    def transfers(self, name: str) -> int:
        """Returns the number of transfers of a follower under way."""
        use = self._uses.get(name)
        return 0 if use is None else use.transfers

    def _use_of(self, name: str) -> _Use:
        now = self._clock()
        use = self._uses.setdefault(name, _Use(BURST, now))
        use.tokens = min(BURST, use.tokens + (now - use.at) * PER_S)
        use.at = now
        return use

    async def _answer(self, scope: _Message, headers: dict[str, str], name: str, receive: _Receive, send: _Send) -> None:
        path, method = scope["path"], scope["method"]
        if path == "/health":
            await (self._take_report(name, receive, send) if method == "POST" else self._refuse(send, 405))
            return
        blob = _BLOB.fullmatch(path)
        if path != "/manifest" and blob is None:
            await self._refuse(send, 404)
        elif method != "GET":
            await self._refuse(send, 405)
        else:
            place = self._folder / BLOBS / blob[1] if blob else self._folder / MANIFEST
            await self._send_file(place, blob[1] if blob else "", headers, receive, send)

    async def _send_file(self, path: Path, etag: str, headers: dict[str, str], receive: _Receive, send: _Send) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            await self._refuse(send, 404)
            return
        try:
            size = os.fstat(descriptor).st_size
            if not etag:
                content = await asyncio.to_thread(os.pread, descriptor, size, 0)
                etag = hashlib.sha256(content).hexdigest()
            validator = f'"{etag}"'
            if validator in headers.get("if-none-match", ""):
                await _head(send, 304, {"etag": validator})
                await send({"type": "http.response.body", "body": b""})
                return
            asked = _asked_range(headers, size)
            if asked is None:
                await self._refuse(send, 416)
                return
            begin, end, status = asked
            fields = {"etag": validator, "content-length": str(end - begin), "accept-ranges": "bytes"}
            if status == 206:
                fields["content-range"] = f"bytes {begin}-{end - 1}/{size}"
            await _head(send, status, {**fields, "content-type": "application/octet-stream"})
            gone = asyncio.create_task(_until_gone(receive))
            try:
                await self._send_span(descriptor, begin, end, gone, send)
            finally:
                gone.cancel()
        finally:
            os.close(descriptor)

    async def _send_span(self, descriptor: int, begin: int, end: int, gone: asyncio.Task[None], send: _Send) -> None:
        while begin < end and not gone.done():
            chunk = await asyncio.to_thread(os.pread, descriptor, min(_CHUNK, end - begin), begin)
            if not chunk:
                raise OSError("the file was cut short")
            begin += len(chunk)
            async with asyncio.timeout(_SEND_S):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            self._counters.add("fleet_bytes", len(chunk))
        await send({"type": "http.response.body", "body": b""})

    async def _take_report(self, name: str, receive: _Receive, send: _Send) -> None:
        try:
            async with asyncio.timeout(_BODY_S):
                body = await _read_body(receive)
            if body is None:
                await self._refuse(send, 413)
                return
            report = read_report(body)
        except (FleetError, TimeoutError) as error:
            await self._refuse(send, 400 if isinstance(error, FleetError) else 408)
            return
        if not self._board.take(name, report):
            await self._refuse(send, 429)
            return
        self._counters.add("fleet_reports")
        await _head(send, 204, {})
        await send({"type": "http.response.body", "body": b""})

    async def _refuse(self, send: _Send, status: int) -> None:
        self._counters.add("fleet_refused")
        await _head(send, status, {"content-length": "0", **({"www-authenticate": "Bearer"} if status == 401 else {})})
        await send({"type": "http.response.body", "body": b""})


async def _until_gone(receive: _Receive) -> None:
    """Returns when the client is gone: what is sent to it then is lost without an error."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_body(receive: _Receive) -> bytes | None:
    """Returns the body of a request, `None` for one that is too long or was cut."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] != "http.request" or len(body) > LARGEST_REPORT:
            return None
        if not message.get("more_body"):
            return bytes(body)


async def _head(send: _Send, status: int, fields: dict[str, str]) -> None:
    plain = {"cache-control": "no-cache", "x-content-type-options": "nosniff", **fields}
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in plain.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})


def _token(headers: dict[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _asked_range(headers: dict[str, str], size: int) -> tuple[int, int, int] | None:
    """Returns begin, end and status, `None` for a range that the file does not have.

    Ranges of another form are passed over, and the whole file is sent.
    """
    match = _RANGE.fullmatch(headers.get("range", ""))
    if match is None:
        return 0, size, 200
    begin, last = int(match[1]), int(match[2])
    if begin > last or begin >= size:
        return None
    return begin, min(last + 1, size), 206
