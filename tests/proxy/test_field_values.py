import pytest
from mitmproxy import http

from gatewayfilter.proxy.field_values import holds_breaks, unfold
from tests.proxy.proxy_fakes import Gateway
from tests.proxy.test_http1_shapes import OK, RawOrigin, exchange

ODD = [b"a\rY: b", b"a\x00b", b"a\r\n Transfer-Encoding: chunked"]


@pytest.mark.parametrize(
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
def test_unfold(value: bytes, mended: bytes) -> None:
    headers = http.Headers([(b"x", b"y"), (b"odd", value)])
    assert holds_breaks(headers.fields) is (value != mended)
    unfold(headers)
    assert headers.fields == ((b"x", b"y"), (b"odd", mended))


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
