"""ICAP requests and answers byte for byte, with every bound of theirs; no socket."""

import asyncio

import pytest

from gatewayfilter.integration.icap import answers
from gatewayfilter.integration.icap.messages import LONGEST_HEAD, ChunkedBody, HttpHead, IcapError, IcapRequest, read_request
from gatewayfilter.interfaces import InternalAnswer

GET = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: 1\r\nx: 2\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def reader_of(data: bytes, *, ends: bool = True) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=LONGEST_HEAD)
    reader.feed_data(data)
    if ends:
        reader.feed_eof()
    return reader


def icap(fields: str, heads: bytes = b"", first: str = "REQMOD icap://i/reqmod ICAP/1.0") -> bytes:
    return f"{first}\r\n{fields}\r\n".encode() + heads


async def read(data: bytes) -> IcapRequest:
    found = await read_request(reader_of(data))
    assert found is not None
    return found


async def status_of(data: bytes) -> int:
    with pytest.raises(IcapError) as refused:
        await read_request(reader_of(data))
    return refused.value.status


async def test_a_request_is_read_with_its_heads() -> None:
    encapsulated = f"Encapsulated: req-hdr=0, res-hdr={len(GET)}, res-body={len(GET + OK)}\r\n"
    found = await read(icap(f"Host: i\r\nAllow: 204 , 206\r\nPreview: 10\r\n{encapsulated}", GET + OK))
    request = HttpHead(GET, ("GET", "http://a.test/", "HTTP/1.1"), {"host": "a.test", "x": "1, 2"})
    response = HttpHead(OK, ("HTTP/1.1", "200", "OK"), {"content-type": "text/html"})
    assert (found.method, found.service, found.request, found.response) == ("REQMOD", "reqmod", request, response)
    assert (found.has_body, found.preview, found.allow, found.keeps_alive) == (True, 10, frozenset({"204", "206"}), True)
    assert found.fields["host"] == "i"


@pytest.mark.parametrize(
    ("first", "fields", "method", "service", "body", "preview", "keeps"),
    [
        ("options icap://i/a/b/ ICAP/1.0", "", "OPTIONS", "a/b", False, None, True),
        ("OPTIONS /reqmod ICAP/1.0", "Connection: Close\r\n", "OPTIONS", "reqmod", False, None, False),
        ("OPTIONS icaps://i/x ICAP/1.0", "Encapsulated: null-body=0\r\nPreview: 7\r\n", "OPTIONS", "x", False, None, True),
        ("OPTIONS icap://i ICAP/1.0", "Encapsulated: opt-body=0\r\nPreview: 0\r\n", "OPTIONS", "", True, 0, True),
        ("X icap://i/y ICAP/1.0", "Encapsulated: req-body=0\r\nPreview: 123456789\r\n", "X", "y", True, 123_456_789, True),
    ],
)
async def test_what_a_request_may_be(
    first: str, fields: str, method: str, service: str, preview: int | None, *, body: bool, keeps: bool
) -> None:
    found = await read(icap(fields, first=first))
    assert (found.method, found.service, found.has_body, found.preview, found.keeps_alive) == (
        method,
        service,
        body,
        preview,
        keeps,
    )
    assert (found.request, found.response) == (None, None)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (icap("", first="REQMOD icap://i/ ICAP/1.0 more"), 400),
        (icap("", first="R(Q icap://i/ ICAP/1.0"), 400),
        (icap("", first="REQMOD icap://i/"), 400),
        (icap("", first="REQMOD icap://i/ ICAP/1.1"), 505),
        (icap("", first="OPTIONS http://i/x ICAP/1.0"), 400),
        (icap("", first="OPTIONS icap://[/x ICAP/1.0"), 400),
        (icap(""), 400),
        (icap("Preview: 1234567890\r\nEncapsulated: req-body=0\r\n"), 400),
        (icap("Preview: x\r\nEncapsulated: req-body=0\r\n"), 400),
        (icap("Encapsulated: req-body=1\r\n", b"x"), 400),
        (icap("Encapsulated: req-hdr=0\r\n"), 400),
        (icap("Encapsulated: req-hdr=0, req-hdr=9, null-body=9\r\n", GET), 400),
        (icap("Encapsulated: req-hdr=0, res-hdr=60, null-body=50\r\n", GET + OK), 400),
        (icap("Encapsulated: other=0\r\n"), 400),
        (icap("Encapsulated: req-body=x\r\n"), 400),
        (icap("Encapsulated: req-body=00000000\r\n"), 400),
        (icap("Encapsulated: req-hdr=0, null-body=262145\r\n", b"x" * 262_145), 400),
        (icap("Encapsulated: null-body=0, req-body=0\r\n"), 400),
        (icap("no field\r\nEncapsulated: null-body=0\r\n"), 400),
        (icap("a b: c\r\nEncapsulated: null-body=0\r\n"), 400),
        (icap("a: b\0\r\nEncapsulated: null-body=0\r\n"), 400),
        (icap("a: b\rc\r\nEncapsulated: null-body=0\r\n"), 400),
        (icap("a: b\nc\r\nEncapsulated: null-body=0\r\n"), 400),
        (icap("a: b\r\n" * 500 + "Encapsulated: null-body=0\r\n"), 400),
        (icap("Encapsulated: req-hdr=0, null-body=22\r\n", b"GET\r\nHost: a\r\nX: yz\r\n\r\n"[:22]), 400),
        (icap("Encapsulated: req-hdr=0, null-body=5\r\n", b"GET\r\n"), 400),
        (b"x" * (LONGEST_HEAD + 2) + b"\r\n\r\n", 400),
    ],
)
async def test_what_no_request_may_be(data: bytes, status: int) -> None:
    assert await status_of(data) == status


async def test_a_head_of_one_word_is_none() -> None:
    head = b"GET\r\nHost: a\r\n\r\n"
    assert await status_of(icap(f"Encapsulated: req-hdr=0, null-body={len(head)}\r\n", head)) == 400
    two = b"GET /\r\n\r\n"
    found = await read(icap(f"Encapsulated: req-hdr=0, null-body={len(two)}\r\n", two))
    assert found.request == HttpHead(two, ("GET", "/", ""), {})


async def test_as_much_as_there_may_be() -> None:
    many = await read(icap("a: b\r\n" * 499 + "Encapsulated: null-body=0\r\n"))
    assert many.fields["a"].count("b") == 499
    large = GET[:-2] + b"y: " + b"z" * (262_144 - len(GET) - 5) + b"\r\n\r\n"
    assert len(large) == 262_144
    found = await read(icap("Encapsulated: req-hdr=0, null-body=262144\r\n", large))
    assert found.request is not None
    assert found.request.raw == large
    same = await read(icap("Encapsulated: req-hdr=0, null-body=0000009\r\n", b"GET /\r\n\r\n"))
    assert same.request is not None


async def test_connections_end_between_requests_and_break_within() -> None:
    assert await read_request(reader_of(b"")) is None
    assert await read_request(reader_of(b"\r\n")) is None
    for cut in (b"REQMOD", icap("Encapsulated: req-hdr=0, null-body=9\r\n", b"GET /\r\n\r")):
        with pytest.raises(ConnectionResetError):
            await read_request(reader_of(cut))


async def pieces(data: bytes) -> tuple[list[bytes], ChunkedBody, bytes]:
    reader = reader_of(data)
    body = ChunkedBody(reader)
    found = []
    while piece := await body.piece():
        found.append(piece)
    assert await body.piece() == b""
    return found, body, await reader.read()


@pytest.mark.parametrize(
    ("data", "found", "whole", "left"),
    [
        (b"0\r\n\r\nNEXT", [], False, b"NEXT"),
        (b"3\r\nabc\r\n0\r\n\r\n", [b"abc"], False, b""),
        (b"3;x=y\r\nabc\r\n00 ; ieof\r\n\r\nNEXT", [b"abc"], True, b"NEXT"),
        (b"1\na\n2\nbc\n0\n\n", [b"a", b"bc"], False, b""),
        (b"A\r\n0123456789\r\n0\r\nt: 1\r\nu: 2\r\n\r\n", [b"0123456789"], False, b""),
        (b"10001\r\n" + b"x" * 65_537 + b"\r\n0\r\n\r\n", [b"x" * 65_536, b"x"], False, b""),
        (b"0\r\n" + b"t: 1\r\n" * 499 + b"\r\nN", [], False, b"N"),
    ],
)
async def test_a_body_is_read_in_pieces(data: bytes, found: list[bytes], left: bytes, *, whole: bool) -> None:
    got, body, rest = await pieces(data)
    assert (got, body.ended, body.is_whole, rest) == (found, True, whole, left)


async def test_a_fault_is_told_in_a_sentence_and_a_new_body_has_not_ended() -> None:
    with pytest.raises(IcapError, match=r"^another version than ICAP/1\.0$"):
        await read_request(reader_of(icap("", first="REQMOD icap://i/ ICAP/2.0")))
    body = ChunkedBody(reader_of(b""))
    assert (body.ended, body.is_whole) == (False, False)


async def test_a_body_goes_on_behind_its_preview() -> None:
    body = ChunkedBody(reader_of(b"1\r\na\r\n0\r\n\r\n1\r\nb\r\n0; ieof\r\n\r\n"))
    assert [await body.piece(), await body.piece(), await body.piece()] == [b"a", b"", b""]
    body.go_on()
    assert [await body.piece(), await body.piece(), body.is_whole] == [b"b", b"", True]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"x\r\n", IcapError),
        (b"\r\n", IcapError),
        (b"80000000\r\n", IcapError),
        (b"000000001\r\na\r\n", IcapError),
        (b"1\r\nabc\r\n", IcapError),
        (b"0\r\n" + b"t: 1\r\n" * 500 + b"\r\n", IcapError),
        (b"1" * 70_000 + b"\n", IcapError),
        (b"", ConnectionResetError),
        (b"5\r\nabc", ConnectionResetError),
        (b"3\r\nabc", ConnectionResetError),
        (b"7fffffff\r\nabc", ConnectionResetError),
        (b"0\r\n", ConnectionResetError),
    ],
)
async def test_a_body_that_is_malformed_or_cut(data: bytes, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        await pieces(data)


def test_answers_are_the_bytes_of_the_standard() -> None:
    assert answers.head(204, "t", "null-body=0") == b'ICAP/1.0 204 No Content\r\nISTag: "t"\r\nEncapsulated: null-body=0\r\n\r\n'
    assert answers.head(404, "t", "null-body=0", "A: b", closes=True) == (
        b'ICAP/1.0 404 Service Not Found\r\nISTag: "t"\r\nEncapsulated: null-body=0\r\nA: b\r\nConnection: close\r\n\r\n'
    )
    assert answers.options("t", "RESPMOD", 4_096, 64) == (
        b'ICAP/1.0 200 OK\r\nISTag: "t"\r\nEncapsulated: null-body=0\r\nMethods: RESPMOD\r\nService: GatewayFilter\r\n'
        b"Allow: 204, 206\r\nPreview: 4096\r\nTransfer-Preview: *\r\nMax-Connections: 64\r\nOptions-TTL: 60\r\n\r\n"
    )
    http = HttpHead(OK, ("HTTP/1.1", "200", "OK"), {})
    assert answers.unchanged_head(206, "t", http, "res", has_body=True) == (
        f'ICAP/1.0 206 Partial Content\r\nISTag: "t"\r\nEncapsulated: res-hdr=0, res-body={len(OK)}\r\n\r\n'.encode() + OK
    )
    assert f"Encapsulated: req-hdr=0, null-body={len(OK)}".encode() in answers.unchanged_head(
        200, "t", http, "req", has_body=False
    )
    assert answers.chunk(b"x" * 17) == b"11\r\n" + b"x" * 17 + b"\r\n"


@pytest.mark.parametrize(
    ("answer", "first", "body"),
    [
        (InternalAnswer(403, {"A": "b", "Content-Length": "9"}, b"page"), b"HTTP/1.1 403 Forbidden", b"4\r\npage\r\n0\r\n\r\n"),
        (InternalAnswer(299, {"A": "b"}, b""), b"HTTP/1.1 299 Answer", b""),
    ],
)
def test_a_page_of_ours_in_place_of_a_message(answer: InternalAnswer, first: bytes, body: bytes) -> None:
    http = first + b"\r\nA: b\r\ncontent-length: %d\r\n\r\n" % len(answer.content)
    kind = b"res-body" if body else b"null-body"
    head = b'ICAP/1.0 200 OK\r\nISTag: "t"\r\nEncapsulated: res-hdr=0, %b=%d\r\n' % (kind, len(http))
    assert answers.page("t", answer, closes=False) == head + b"\r\n" + http + body
    assert answers.page("t", answer, closes=True) == head + b"Connection: close\r\n\r\n" + http + body
