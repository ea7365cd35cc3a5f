import pytest
from mitmproxy import http

from gatewayfilter.proxy.request.header_fields import holds_breaks
from gatewayfilter.proxy.request.header_sanitizer import sanitize_response, without_breaks
from tests.case_tables import all_cases
from tests.proxy.mitm.http.test_http1_shapes import OK, RawOrigin, exchange
from tests.proxy.proxy_fakes import Gateway

ODD = [b"a\rY: b", b"a\x00b", b"a\r\n Transfer-Encoding: chunked"]


@all_cases(
    ("value", "mended"),
    [
        (b"a\r\n b", b"a b"),
        (b"a \r\n \t b\r\n c", b"a b c"),
        (b"a\rSet-Cookie: x", b"a Set-Cookie: x"),
        (b"a\x00b", b"a b"),
        (b"plain\tvalue", b"plain\tvalue"),
        (b"", b""),
    ],
)
def test_mended_values(value: bytes, mended: bytes) -> None:
    response = http.Response.make(200, headers=http.Headers([(b"x", b"y"), (b"odd", value)]))
    response.headers.fields = ((b"x", b"y"), (b"odd", value))
    assert holds_breaks(response.headers.fields) is (value != mended)
    sanitize_response(response.data)
    assert response.headers.fields == ((b"x", b"y"), (b"odd", mended))


@all_cases("name", [b"alt-svc", b"Alt-Svc"])
def test_no_response_leads_past_the_filter(name: bytes) -> None:
    response = http.Response.make(200)
    response.headers.fields = ((b"x", b"y"), (name, b'h3=":443"'))
    for _ in range(2):
        sanitize_response(response.data)
        assert [*response.headers.fields] == [(b"x", b"y")]


@all_cases(
    ("status", "left"),
    [
        (200, {b"content-length", b"transfer-encoding"}),
        (304, {b"content-length"}),
        (204, set()),
    ],
)
def test_a_response_without_a_body_announces_none(status: int, left: set[bytes]) -> None:
    response = http.Response.make(status)
    response.headers.fields = ((b"content-length", b"5"), (b"transfer-encoding", b"chunked"))
    sanitize_response(response.data)
    assert {name for name, _ in response.headers.fields} == left


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("first", [False, True])
async def test_a_request_with_one_reaches_nobody(*, value: bytes, first: bool, gateway: Gateway) -> None:
    async with RawOrigin(OK).running() as origin:
        head = b"GET http://127.0.0.1:%d/page HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % (origin.port, origin.port)
        plain = b"" if first else head + b"\r\n"
        got = await exchange(gateway, plain + head + b"X: " + value + b"\r\n\r\n", lambda got: b"</html>" in got)
    assert b"HTTP/1.1 400 " in got
    assert origin.heard.count(b"GET ") == (not first)
    assert b"X: " not in origin.heard


@pytest.mark.parametrize("value", ODD)
async def test_a_response_is_mended(value: bytes, gateway: Gateway) -> None:
    async with RawOrigin(b"HTTP/1.1 200 OK\r\nX: " + value + b"\r\ncontent-length: 2\r\n\r\nok").running() as origin:
        head = b"GET http://127.0.0.1:%d/page HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (origin.port, origin.port)
        for _ in range(2):
            got = await exchange(gateway, head, lambda got: got.endswith(b"ok"))
            head_of, _, body = got.partition(b"\r\n\r\n")
            assert body == b"ok"
            assert not holds_breaks(((b"", head_of.replace(b"\r\n", b"")),))
            assert len(head_of.split(b"\r\n")) == 3


async def test_a_reason_is_mended(gateway: Gateway) -> None:
    async with RawOrigin(b"HTTP/1.1 200 O\rX: y\x00K\r\ncontent-length: 2\r\n\r\nok").running() as origin:
        head = b"GET http://127.0.0.1:%d/page HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (origin.port, origin.port)
        got = await exchange(gateway, head, lambda got: got.endswith(b"ok"))
    assert got.startswith(b"HTTP/1.1 200 O X: y K\r\n")


TRAILERS = (
    b"Host: other.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nAuthorization: x\r\nCookie: x\r\nSet-Cookie: a=b\r\n"
    b"X-Forwarded-For: 1\r\nIf-Match: x\r\nCache-Control: x\r\nContent-Type: text/html\r\nLocation: /x\r\nX-Sum: 7\r\n"
)


async def test_trailers_leave_what_was_judged_alone(gateway: Gateway) -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + TRAILERS + b"\r\n"
    async with RawOrigin(answer).running() as origin:
        head = b"POST http://127.0.0.1:%d/page HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % (origin.port, origin.port)
        sent = head + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + TRAILERS + b"\r\n"
        got = await exchange(gateway, sent, lambda got: got.lower().endswith(b"7\r\n\r\n"))
    assert got.lower().endswith(b"\r\n0\r\nx-sum: 7\r\n\r\n")
    assert bytes(origin.heard).lower().endswith(b"\r\n0\r\nx-sum: 7\r\n\r\n")


BODILESS = [
    (b"HTTP/1.1 304 Not Modified\r\nETag: x\r\nTransfer-Encoding: chunked\r\n\r\n", [b"HTTP/1.1 304 Not Modified", b"ETag: x"]),
    (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", [b"HTTP/1.1 204 No Content"]),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", [b"HTTP/1.1 304 Not Modified", b"Content-Length: 5"]),
]


@pytest.mark.parametrize(("answer", "left"), BODILESS)
@pytest.mark.parametrize("field", [b"", b"X-Long: " + b"x" * 70_000 + b"\r\n"], ids=["short-way", "long-way"])
async def test_nothing_follows_an_answer_without_a_body(answer: bytes, left: list[bytes], field: bytes, gateway: Gateway) -> None:
    async with RawOrigin(answer).running() as origin:
        head = b"GET http://127.0.0.1:%d/page HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%b\r\n" % (origin.port, origin.port, field)
        got = await exchange(gateway, head + head, lambda got: got.count(b"\r\n\r\n") >= 2)
    first, second, rest = got.split(b"\r\n\r\n")
    assert rest == b""
    assert first.split(b"\r\n") == second.split(b"\r\n") == left


@pytest.mark.parametrize(
    "interim",
    [b"HTTP/1.1 199 Odd", b"HTTP/1.1 104 Upload", b"HTTP/1.0 100 Continue", b"HTTP/1.1  102 P", b"HTTP/1.1 150"],
)
@pytest.mark.parametrize("times", [1, 3])
async def test_interim_answers_are_passed_over(interim: bytes, times: int, gateway: Gateway) -> None:
    async with RawOrigin((interim + b"\r\nX: y\r\n\r\n") * times + OK).running() as origin:
        head = b"GET http://127.0.0.1:%d/page HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (origin.port, origin.port)
        for _ in range(2):
            got = await exchange(gateway, head, lambda got: got.endswith(b"ok"))
            assert got.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    "line",
    [b"HTTP/1.1 +199 X", b"HTTP/1.1 0199 X", b"HTTP/1.1 1000 X", b"HTTP/1.1 99 X", b"HTTP/9.9 200 OK", b"HTTP/2.0 200 OK"],
)
async def test_odd_status_lines_are_no_answer(line: bytes, gateway: Gateway) -> None:
    async with RawOrigin(line + b"\r\ncontent-length: 2\r\n\r\nok").running() as origin:
        head = b"GET http://127.0.0.1:%d/page HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (origin.port, origin.port)
        got = await exchange(gateway, head, lambda got: b"</html>" in got)
    assert got.startswith(b"HTTP/1.1 502 ")


async def test_links_of_hints_are_mended(gateway: Gateway) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\rX: y\x00z\r\n\r\n"
    async with RawOrigin(hints + OK).running() as origin:
        head = b"GET http://127.0.0.1:%d/page HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (origin.port, origin.port)
        got = await exchange(gateway, head, lambda got: got.endswith(b"ok"))
    assert got.startswith(b"HTTP/1.1 103 Early Hints\r\nLink: </a> X: y z\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_many_blanks_take_no_time() -> None:
    """No stopwatch: a search from each blank would not end within the test's time limit."""
    blanks = b" \t" * 120_000
    assert without_breaks(b"a\rb" + blanks + b"x") == b"a b" + blanks + b"x"
    assert without_breaks(b"a" + blanks + b"\r" + blanks + b"x") == b"a x"
