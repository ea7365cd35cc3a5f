"""Both ends of HTTP/2 as scripts of frames, and a stack of layers between them, with or without the fast path."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

import hpack
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
)
from hyperframe.frame import WindowUpdateFrame as Window
from mitmproxy.connection import Server
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode

from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.mitm.fastpath.context import FastPathContext
from gatewayfilter.proxy.mitm.fastpath.hook_runner import HookRunner
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from tests.proxy.layer_drivers import Driver, Watcher

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS: Final = SettingsFrame(0).serialize()
ACK: Final = SettingsFrame(0, flags=["ACK"]).serialize()

WINDOW: Final = (100_000).to_bytes(4)
"""A WINDOW_UPDATE."""

type Fields = list[tuple[bytes, bytes]]


class Http2Driver(Driver):
    """The HTTP layer of a tunnel whose client and origin speak HTTP/2."""

    def __init__(self, master: LeanMaster) -> None:
        super().__init__(master, "regular")
        client: Any = self.connections[0]
        client.alpn, client.tls = b"h2", True
        context = Context(client, master.options)
        context.server.address = ("a.example", 443)
        fast_path = master._instance._fast_path
        top: Any = HttpLayer(context, HTTPMode.transparent)
        if fast_path is not None:
            top = HookRunner(FastHttpLayer(FastPathContext.of(context, fast_path), HTTPMode.transparent), fast_path.hooks)
        connections: Any = master._proxyserver.connections
        connections[client.id] = SimpleNamespace(layer=top)
        self._top = top
        self._happens(events.Start())

    def _open(self, command: commands.OpenConnection) -> None:
        assert isinstance(command.connection, Server)
        command.connection.alpn = b"h2"
        super()._open(command)


class Peer:
    """What one end says, with one table of fields."""

    def __init__(self) -> None:
        self._encoder = hpack.Encoder()

    def head(self, number: int, fields: Fields, *, end: bool = True, cut: int = 0, flags: int = 0, before: bytes = b"") -> bytes:
        """Returns the frames of a head.

        Args:
            number: of the stream.
            fields: its fields.
            end: nothing follows.
            cut: bytes of the first frame, where it is more than one.
            flags: further flags.
            before: priority or the length of padding, which a flag announces.
        """
        block = self._encoder.encode(fields)
        begun = bytes([1 * end | flags | (0 if cut else 4)])
        first, rest = (block[:cut], block[cut:]) if cut else (block, b"")
        made = _frame(b"\1", begun, number, before + first)
        return made + _frame(b"\x09", b"\4", number, rest) if cut else made

    def data(self, number: int, body: bytes, *, end: bool = False, flags: int = 0) -> bytes:
        """Returns a frame of a body."""
        return _frame(b"\0", bytes([1 * end | flags]), number, body)


def _frame(kind: bytes, flags: bytes, number: int, body: bytes) -> bytes:
    return len(body).to_bytes(3) + kind + flags + number.to_bytes(4) + body


def raw(kind: int, flags: int, number: int, body: bytes) -> bytes:
    """Returns any frame."""
    return _frame(bytes([kind]), bytes([flags]), number, body)


OK: Fields = [(b":status", b"200"), (b"content-type", b"text/plain"), (b"content-length", b"2")]


def ask(path: bytes = b"/page", method: bytes = b"GET", *more: tuple[bytes, bytes], drop: bytes | None = None) -> Fields:
    """Returns the fields of a request."""
    pseudo = [(b":method", method), (b":authority", b"a.example"), (b":scheme", b"https"), (b":path", path)]
    return [one for one in (*pseudo, (b"accept", b"text/html"), (b"user-agent", b"test"), *more) if one[0] != drop]


@dataclass
class Script:
    """What client and origin say in turn. Each end has its own table of fields."""

    client: Peer = field(default_factory=Peer)
    origin: Peer = field(default_factory=Peer)
    steps: list[tuple[object, ...]] = field(default_factory=list)

    @classmethod
    def begun(cls) -> "Script":
        """Returns one that has opened both connections by a first exchange, on stream 1."""
        made = cls()
        made.says("client", PREFACE + SETTINGS + made.client.head(1, ask()))
        made.says("origin", SETTINGS + ACK)
        made.says("client", ACK)
        made.says("origin", made.origin.head(1, OK, end=False) + made.origin.data(1, b"ok", end=True))
        return made

    def says(self, who: str, *frames: bytes) -> None:
        self.steps.append((who, b"".join(frames)))

    def exchange(self, number: int, fields: Fields | None = None, answer: Fields | None = None, body: bytes = b"ok") -> None:
        """Adds a request and its answer."""
        self.says("client", self.client.head(number, fields or ask()))
        head = self.origin.head(number, answer or OK, end=not body)
        self.says("origin", head, self.origin.data(number, body, end=True) if body else b"")


type BothWays = Callable[[Script], tuple[list[Any], int]]
"""Runs a script with and without the fast path, compares, and returns what was seen last and how many reads took it whole."""


def read(sent: bytes) -> list[tuple[object, ...]]:
    """Returns what frames say, whatever their fields are packed like. The parts of a body are as they are cut."""
    data = sent.removeprefix(PREFACE)
    decoder = hpack.Decoder()
    found: list[tuple[object, ...]] = []
    block, begun = b"", Frame(1)
    while data:
        frame, size = Frame.parse_frame_header(memoryview(data[:9]))
        frame.parse_body(memoryview(data[9 : 9 + size]))
        assert len(data) >= 9 + size
        data = data[9 + size :]
        if isinstance(frame, HeadersFrame):
            block, begun = b"", frame
        if isinstance(frame, HeadersFrame | ContinuationFrame):
            block += frame.data
            if "END_HEADERS" in frame.flags:
                fields = [tuple(field) for field in decoder.decode(block, raw=True)]
                found.append(("head", begun.stream_id, fields, "END_STREAM" in begun.flags))
        else:
            found.append(_said(frame))
    return found


def _said(frame: Frame) -> tuple[object, ...]:
    match frame:
        case DataFrame():
            return "data", frame.stream_id, frame.data, "END_STREAM" in frame.flags
        case Window():
            return "window", frame.stream_id, frame.window_increment
        case RstStreamFrame():
            return "reset", frame.stream_id, frame.error_code
        case GoAwayFrame():
            return "goaway", frame.last_stream_id, frame.error_code
        case PingFrame():
            return "ping", frame.opaque_data, sorted(frame.flags)
        case SettingsFrame():
            return "settings", sorted(frame.settings.items()), sorted(frame.flags)
    raise AssertionError(frame)


def walk(driver: Http2Driver, watcher: Watcher, steps: list[tuple[Any, ...]]) -> list[object]:
    """Takes the steps. Returns all that can be seen after each."""
    seen: list[object] = []
    for kind, *what in [*steps, ("finish",)]:
        if kind == "client":
            driver.data(0, what[0])
        elif kind == "origin":
            driver.data(1, what[0])
        elif kind == "release":
            driver.release()
        elif kind == "finish":
            driver.finish()
        else:
            driver.end(int(kind == "origin-ends"))
        # h2 reads all frames of a read before mitmproxy handles the first: hooks of several streams take turns then.
        hooks = sorted(watcher.seen, key=lambda one: str(one[5]))
        seen.append(([read(bytes(sent)) for sent in driver.sent], list(driver.ends), hooks))
    return seen
