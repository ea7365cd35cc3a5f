"""Clients of HTTP/2 that flood: each flood ends the connection, and leaves the worker as it was."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

import h2.config
import h2.connection
import h2.events
import h2.settings
import hpack
import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    ExtensionFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
)

from gatewayfilter.proxy.mitm.http import frame_budget
from gatewayfilter.proxy.mitm.http.http2_server import _promises_content
from tests.case_tables import all_cases
from tests.proxy.mitm.http.test_http2 import Http2Client
from tests.proxy.proxy_fakes import Gateway, Origin

_CALM = 11
"""ENHANCE_YOUR_CALM (RFC 9113 §7)."""


@pytest.fixture
async def peer(gateway: Gateway, origin: Origin, client_tls: ssl.SSLContext) -> AsyncIterator[Http2Client]:
    client_tls.set_alpn_protocols(["h2"])
    client = await Http2Client.connect(gateway, origin.https, client_tls)
    client._writer.write(client._connection.data_to_send())
    yield client
    client.close()


def _head(path: str = "/blocked", *further: tuple[str, str]) -> bytes:
    fields = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path), *further]
    return hpack.Encoder().encode(fields, huffman=False)


def _reset_flood() -> list[Frame]:
    frames: list[Frame] = []
    for number in range(1, 2 * 2_000, 2):
        frames += [
            HeadersFrame(number, _head(), flags=["END_HEADERS", "END_STREAM"]),
            RstStreamFrame(number, error_code=8),
        ]
    return frames


def _ping_flood() -> list[Frame]:
    return [PingFrame(0, number.to_bytes(8)) for number in range(3_000)]


def _settings_flood() -> list[Frame]:
    return [SettingsFrame(0, {h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 65_535 + number}) for number in range(3_000)]


def _priority_flood() -> list[Frame]:
    return [PriorityFrame(number, stream_weight=16) for number in range(1, 2 * 3_000, 2)]


def _flood_of_unknown_frames() -> list[Frame]:
    return [ExtensionFrame(type=0xBB, stream_id=0, body=b"x") for _ in range(3_000)]


def _flood_of_empty_data() -> list[Frame]:
    return [HeadersFrame(1, _head("/upload"), flags=["END_HEADERS"]), *(DataFrame(1, b"") for _ in range(3_000))]


def _late_flood() -> list[Frame]:
    """h2 answers each frame of a stream that was reset with another reset, without an event."""
    return [*_given_up(1), *(DataFrame(1, b"x") for _ in range(3_000))]


def _late_trailers_flood() -> list[Frame]:
    encoder = hpack.Encoder()
    late = [HeadersFrame(1, encoder.encode([("x", "y")]), flags=["END_HEADERS", "END_STREAM"]) for _ in range(3_000)]
    return [*_given_up(1), *late]


def _given_up(number: int) -> list[Frame]:
    """An upload whose stream is reset after its head."""
    return [HeadersFrame(number, _head("/upload"), flags=["END_HEADERS"]), RstStreamFrame(number, error_code=8)]


def _continuation_flood() -> list[Frame]:
    return [HeadersFrame(1, _head(), flags=[]), *(ContinuationFrame(1, b"\x00\x01x\x01y" * 100) for _ in range(100))]


def _large_frame() -> list[Frame]:
    return [HeadersFrame(1, b"\x00" * 100_000, flags=[])]


def _header_bomb() -> list[Frame]:
    encoder = hpack.Encoder()
    block = encoder.encode(
        [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/"), ("x", "y" * 4_000)]
    )
    return [HeadersFrame(1, block + b"\xbe" * 10_000, flags=["END_HEADERS", "END_STREAM"])]


@pytest.mark.parametrize(
    ("flood", "code"),
    [
        (_reset_flood, _CALM),
        (_ping_flood, _CALM),
        (_settings_flood, _CALM),
        (_priority_flood, _CALM),
        (_flood_of_unknown_frames, None),
        (_flood_of_empty_data, _CALM),
        (_late_flood, _CALM),
        (_late_trailers_flood, _CALM),
        (_continuation_flood, None),
        (_large_frame, None),
        (_header_bomb, None),
    ],
)
async def test_a_flood_ends_the_connection(
    peer: Http2Client,
    gateway: Gateway,
    origin: Origin,
    flood: Callable[[], list[Frame]],
    code: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frame_budget, "CALLS_A_SECOND", 0.0)  # a busy machine takes longer than the budget needs to grow again
    reading = asyncio.create_task(_goodbye(peer))
    await asyncio.sleep(0.05)
    for frame in flood():
        peer._writer.write(frame.serialize())
    async with asyncio.timeout(20):
        said = await reading
    if code is not None:
        assert said == code
    assert gateway.counters["hook_errors"] == 0


async def _goodbye(peer: Http2Client) -> int:
    """Reads until the connection ends. Returns the code of the GOAWAY, 0 for none."""
    data = b""
    try:
        while more := await peer._reader.read(65_536):
            data += more
    except OSError:
        pass
    code = 0
    at = 0
    while at + 9 <= len(data):
        length, kind = int.from_bytes(data[at : at + 3]), data[at + 3]
        if kind == 7:
            code = int.from_bytes(data[at + 13 : at + 17])
        at += 9 + length
    return code


async def test_requests_that_tell_their_priority_are_no_flood(peer: Http2Client) -> None:
    """Browsers tell it with each."""
    peer._connection.increment_flow_control_window(1_000_000_000)
    for _ in range(1_100):
        stream = peer._connection.get_next_available_stream_id()
        head = [(":method", "GET"), (":scheme", "https"), (":authority", peer._authority), (":path", "/blocked")]
        peer._connection.send_headers(stream, head, end_stream=True, priority_weight=200)
        peer._writer.write(peer._connection.data_to_send())
        assert (await peer.answer(stream))[0] == "403"


async def test_a_page_that_is_left_takes_back_what_it_asked_for(peer: Http2Client) -> None:
    """Some hundred resets at once are a browser's."""
    for _ in range(300):
        stream = peer.ask("GET", "/blocked")
        peer._connection.reset_stream(stream, 8)
        peer._writer.write(peer._connection.data_to_send())
    assert (await peer.answer(peer.ask("GET", "/page")))[0] == "200"


async def test_what_was_on_its_way_when_an_upload_was_refused_is_no_flood(peer: Http2Client) -> None:
    stream = peer.ask("POST", "/upload", body=True)
    peer._connection.reset_stream(stream, 8)
    peer._writer.write(peer._connection.data_to_send())
    for _ in range(600):
        peer._writer.write(DataFrame(stream, b"x" * 100).serialize())
    assert (await peer.answer(peer.ask("GET", "/page")))[0] == "200"


@all_cases(
    ("headers", "promised"),
    [
        (None, False),
        ([(b":method", b"GET")], False),
        ([(b"content-length", b"0")], False),
        ([(b":method", b"POST"), (b"content-length", b"5")], True),
    ],
)
def test_which_requests_promise_a_body(headers: list[tuple[bytes, bytes]] | None, *, promised: bool) -> None:
    event = cast("Any", SimpleNamespace(headers=headers))
    assert _promises_content(event) is promised
