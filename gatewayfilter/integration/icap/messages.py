"""ICAP requests: their heads, the HTTP heads that they encapsulate, and their chunked bodies. All parts are bounded.

Source: RFC 3507 §4.3 (heads), §4.4 (encapsulation), §4.5 (preview).
"""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

LONGEST_HEAD: Final = 65_536
MOST_ENCAPSULATED: Final = 262_144
"""Bytes of the HTTP heads of a request."""
_MOST_FIELDS: Final = 500
_PIECE: Final = 65_536
_LARGEST_CHUNK: Final = 1 << 31
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PARTS: Final = frozenset({"req-hdr", "res-hdr", "req-body", "res-body", "opt-body", "null-body"})
_BODIES: Final = frozenset({"req-body", "res-body", "opt-body"})
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*((?:;[^\r\n]*)?)\r?\n")


class IcapError(Exception):
    """A request that cannot be served.

    Attributes:
        status: of the answer.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class HttpHead:
    """An encapsulated HTTP head.

    Attributes:
        raw: as it came, with its empty line.
        start: its request or status line, in three words.
        fields: lower-case name → value; those of repeated ones are joined by commas, as receivers read them.
    """

    raw: bytes
    start: tuple[str, str, str]
    fields: dict[str, str]


@dataclass(frozen=True, slots=True)
class IcapRequest:
    """An ICAP request whose heads have arrived.

    Attributes:
        method: `OPTIONS`, `REQMOD`, `RESPMOD`, or what else was sent.
        service: path of its address, without slashes.
        fields: lower-case name → value.
        request, response: the HTTP heads, `None` where there is none.
        has_body: a chunked body follows.
        preview: bytes of the preview, `None` without one.
    """

    method: str
    service: str
    fields: dict[str, str]
    request: HttpHead | None = None
    response: HttpHead | None = None
    has_body: bool = False
    preview: int | None = None
    allow: frozenset[str] = field(default_factory=frozenset)

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection stays open after the answer."""
        return self.fields.get("connection", "").lower() != "close"


async def read_request(reader: asyncio.StreamReader) -> IcapRequest | None:
    """Reads a request up to its body; `None` at the end of the connection.

    Raises:
        IcapError: it is malformed or too long.
        ConnectionError: the connection broke within it.
    """
    head = await _head(reader)
    if head is None:
        return None
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]):
        raise IcapError(400, "no ICAP request line")
    if words[2] != "ICAP/1.0":
        raise IcapError(505, "another version than ICAP/1.0")
    fields = _fields(lines[1:-2])
    method, service = words[0].upper(), _service(words[1])
    parts = _encapsulated(fields.get("encapsulated", ""), method)
    sections: dict[str, HttpHead] = {}
    if parts:
        data = await _exactly(reader, parts[-1][1])
        ends = [offset for _, offset in parts[1:]]
        for (name, begin), end in zip(parts, ends, strict=False):
            sections[name] = _http_head(data[begin:end])
    has_body = bool(parts) and parts[-1][0] in _BODIES
    preview = fields.get("preview", "")
    if preview and not (preview.isdigit() and len(preview) < 10):
        raise IcapError(400, "Preview is no number")
    allow = frozenset(word.strip() for word in fields.get("allow", "").split(","))
    return IcapRequest(
        method,
        service,
        fields,
        sections.get("req-hdr"),
        sections.get("res-hdr"),
        has_body,
        int(preview) if preview and has_body else None,
        allow,
    )


class ChunkedBody:
    """The chunked body of a request, read piece by piece.

    Attributes:
        ended: the body is complete; after a preview it may go on by `go_on`.
        is_whole: a preview that ended with `ieof` was all of the body.
    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._left = 0
        self.ended = False
        self.is_whole = False

    async def piece(self) -> bytes:
        """Returns at most 64 KiB, `b""` at the end of the body or its preview.

        Raises:
            IcapError: it is malformed.
            ConnectionError: the connection broke within it.
        """
        if self.ended:
            return b""
        if not self._left:
            self._left = await self._next_chunk()
            if not self._left:
                return b""
        data = await _exactly(self._reader, min(self._left, _PIECE))
        self._left -= len(data)
        if not self._left and (await _line(self._reader)).strip(b"\r\n"):
            raise IcapError(400, "a chunk is longer than its size")
        return data

    def go_on(self) -> None:
        """Begins with what follows a preview, after `100 Continue`."""
        self.ended = False

    async def _next_chunk(self) -> int:
        """Returns the size of the next chunk, 0 for the last one."""
        found = _CHUNK_SIZE.fullmatch(await _line(self._reader))
        if found is None or int(found[1], 16) >= _LARGEST_CHUNK:
            raise IcapError(400, "no size of a chunk")
        if size := int(found[1], 16):
            return size
        self.ended, self.is_whole = True, b"ieof" in found[2]
        for _ in range(_MOST_FIELDS):
            if not (await _line(self._reader)).strip(b"\r\n"):
                return 0
        raise IcapError(400, "too many trailers")


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise ConnectionResetError("a head without its end") from error
        return None
    except asyncio.LimitOverrunError:
        raise IcapError(400, "a head of more than 65,536 bytes") from None


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError("a body without its end") from error
    except asyncio.LimitOverrunError:
        raise IcapError(400, "a line of more than 65,536 bytes") from None


async def _exactly(reader: asyncio.StreamReader, size: int) -> bytes:
    try:
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError("a body without its end") from error


def _fields(lines: list[str]) -> dict[str, str]:
    if len(lines) > _MOST_FIELDS:
        raise IcapError(400, "too many fields")
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name) or "\n" in value or "\r" in value or "\0" in value:
            raise IcapError(400, "a malformed field")
        name, value = name.lower(), value.strip(" \t")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def _service(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        raise IcapError(400, "no address") from None
    if parts.scheme not in {"icap", "icaps", ""}:
        raise IcapError(400, "no icap address")
    return parts.path.strip("/")


def _encapsulated(text: str, method: str) -> list[tuple[str, int]]:
    if not text:
        if method == "OPTIONS":
            return []
        raise IcapError(400, "no Encapsulated")
    parts: list[tuple[str, int]] = []
    for item in text.split(","):
        name, _, offset = item.strip().partition("=")
        if name not in _PARTS or not offset.isdigit() or len(offset) > 7 or int(offset) > MOST_ENCAPSULATED:
            raise IcapError(400, "a malformed Encapsulated")
        if (parts and (int(offset) < parts[-1][1] or not parts[-1][0].endswith("-hdr"))) or name in dict(parts):
            raise IcapError(400, "a malformed Encapsulated")
        parts.append((name, int(offset)))
    if parts[0][1] != 0 or parts[-1][0].endswith("-hdr"):
        raise IcapError(400, "a malformed Encapsulated")
    return parts


def _http_head(raw: bytes) -> HttpHead:
    text = raw.decode("latin-1")
    if not text.endswith("\r\n\r\n"):
        raise IcapError(400, "an HTTP head without its end")
    lines = text[:-4].split("\r\n")
    words = lines[0].split(" ", 2)
    if len(words) == 1:
        raise IcapError(400, "no HTTP start line")
    return HttpHead(raw, (words[0], words[1], words[2] if len(words) > 2 else ""), _fields(lines[1:]))
