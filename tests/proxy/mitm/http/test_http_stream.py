"""Steps of a stream that are replaced, however they are: the fast path must not pass them by."""

import asyncio

import pytest
from mitmproxy import http
from mitmproxy.proxy import layer

from gatewayfilter.proxy.mitm.early_response import stream_of
from gatewayfilter.proxy.mitm.http.http_stream import StreamOverride
from tests.proxy.conftest import StartGateway
from tests.proxy.mitm.http.test_http1_shapes import OK, RawOrigin
from tests.proxy.proxy_fakes import Gateway


class Marked(StreamOverride):
    """Adds a field to a response whose body is streamed."""

    def start_response_stream(self) -> layer.CommandGenerator[None]:
        response = self._stream.flow.response
        assert response is not None
        response.headers["x-marked"] = "1"
        return super().start_response_stream()


class Overriding:
    """An addon that overrides the streams of requests for `/marked`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        if flow.request.path == "/marked":
            stream = stream_of(flow, self._gateway.master._proxyserver.connections[flow.client_conn.id])
            assert stream is not None
            stream.override = Marked(stream)


@pytest.mark.parametrize("fast_path", [True, False])
async def test_an_override_is_used_on_both_paths(*, fast_path: bool, start_gateway: StartGateway) -> None:
    async with start_gateway(fast_path=fast_path) as gateway, RawOrigin(OK).running() as origin, asyncio.timeout(10):
        gateway.master.addons.add(Overriding(gateway))
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        for path in (b"plain", b"marked", b"plain", b"marked"):
            writer.write(b"GET http://127.0.0.1:%d/%b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % (origin.port, path))
            head = await reader.readuntil(b"\r\n\r\nok")
            assert (b"x-marked: 1" in head) == (path == b"marked")
        writer.close()
