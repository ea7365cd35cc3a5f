"""The bytes that a refused connection gets: what a client may rely on."""

import asyncio
from typing import Any, cast

import pytest
from mitmproxy import platform

from gatewayfilter.model import Reason
from gatewayfilter.proxy.listener.connect_request import ConnectRequest
from gatewayfilter.proxy.listener.original_destination import original_destination
from gatewayfilter.proxy.listener.refusals import BUSY, OVERLOADED, UNRECOGNIZED_NAME, denied, unreachable
from gatewayfilter.proxy.listener.tunnel_writer import AnsweredWriter
from gatewayfilter.proxy.pages.block_page import BlockPages


def parts(answer: bytes) -> tuple[bytes, dict[bytes, bytes], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *fields = head.split(b"\r\n")
    split = [field.split(b": ", 1) for field in fields]
    names = [name.lower() for name, _ in split]
    assert len(set(names)) == len(names)
    return status, {name.lower(): value for name, value in split}, body


def test_a_blocked_host_is_denied_with_its_reason() -> None:
    status, fields, body = parts(denied(Reason.BLACKLIST))
    assert (status, body) == (b"HTTP/1.1 403 Forbidden", b"")
    assert fields[b"x-gatewayfilter"] == b"block; reason=blacklist"
    assert (fields[b"content-length"], fields[b"connection"], fields[b"cache-control"]) == (b"0", b"close", b"no-store")


def test_an_overload_is_told_with_when_to_come_again() -> None:
    status, fields, body = parts(OVERLOADED)
    assert status == b"HTTP/1.1 503 Service Unavailable"
    assert (fields[b"retry-after"], fields[b"content-length"]) == (b"3", b"%d" % len(body))
    assert "过滤器繁忙" in body.decode()
    assert [alert[:2] + alert[5:] for alert in (UNRECOGNIZED_NAME, BUSY)] == [b"\x15\x03\x02\x70", b"\x15\x03\x02\x50"]


@pytest.mark.parametrize("error", [OSError("no route"), TimeoutError("timed out after 30 seconds")])
def test_an_origin_that_cannot_be_reached_gets_a_page_of_its_length(error: OSError, request: pytest.FixtureRequest) -> None:
    asked = cast("ConnectRequest", type("Asked", (), {"host": "bank.example", "accept_language": "zh"})())
    status, fields, body = parts(unreachable(BlockPages(), error, asked))
    assert status.startswith((b"HTTP/1.1 502 ", b"HTTP/1.1 504 "))
    assert (fields[b"content-length"], fields[b"connection"]) == (b"%d" % len(body), b"close")
    assert b"bank.example" in body
    assert b'lang="zh' in body


class Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        pass

    def is_closing(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("first", "written", "aborted"),
    [
        (b"HTTP/1.1 200 Connection established\r\n\r\n", [], False),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", [b"hello"], False),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\npage", [], True),
        (b"HTTP/1.1 2000 x\r\n\r\n", [], False),
        (b"HTTP/1.1 403 200 OK\r\n\r\n", [], True),
        (b"HTTP/2 200 OK\r\n\r\nx", [], True),
        (b"nonsense 200\r\n\r\nx", [], True),
    ],
)
async def test_the_answer_to_a_connect_that_was_answered_is_held_back(
    first: bytes, written: list[bytes], *, aborted: bool
) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    transport = Transport()
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    inner = asyncio.StreamWriter(cast("Any", transport), protocol, reader, loop)
    writer = AnsweredWriter(inner, protocol, reader, loop)
    writer.write(memoryview(first))
    assert (transport.written, transport.aborted) == (written, aborted)
    writer.write(b"HTTP/1.1 502 of the origin\r\n\r\nx")
    assert transport.written == [*written, b"HTTP/1.1 502 of the origin\r\n\r\nx"]


def test_where_a_redirected_connection_led(monkeypatch: pytest.MonkeyPatch) -> None:
    client = cast("Any", object())
    monkeypatch.setattr(platform, "original_addr", lambda _: ("192.0.2.1", "443"))
    assert original_destination(client) == ("192.0.2.1", 443)
    monkeypatch.setattr(platform, "original_addr", None)
    with pytest.raises(OSError, match="does not tell"):
        original_destination(client)
