"""The fast path of a response: its head in one step, each part of its body in another (exchange.py)."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

from h11._readers import ContentLengthReader
from mitmproxy import http
from mitmproxy.net.http import http1
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.http._events import ResponseHeaders
from mitmproxy.proxy.layers.http._hooks import HttpResponseHeadersHook, HttpResponseHook
from mitmproxy.proxy.layers.http._http1 import make_body_reader

from gatewayfilter.proxy.mitm.fastpath.http1_heads import CHUNKED, keeps_open, read_response
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.steps import Commands, CompletedHooks, Sent, Step, process
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream
from gatewayfilter.proxy.mitm.http.upload_flow import AHEAD
from gatewayfilter.proxy.request.header_fields import Fields

_assemble: Final[Callable[[http.Response], bytes]] = http1.assemble_response_head


def _waiting(http_layer: FastHttpLayer, client: GatewayHttp1Client) -> tuple[GatewayHttpStream, GatewayHttp1Server] | None:
    """Returns stream and connection of the client that waits for a response, when its request is complete and both are plain."""
    stream = http_layer.streams.get(client.stream_id)  # type: ignore[arg-type]
    server = http_layer.connections.get(http_layer.context.client)
    if (
        type(stream) is not GatewayHttpStream
        or type(server) is not GatewayHttp1Server
        or stream._paused is not None  # noqa: SLF001
        or server._paused is not None  # noqa: SLF001
        or server.stream_id != client.stream_id
        or server.buf._data  # noqa: SLF001  its truth is two calls
        or stream.flow.request.data.http_version != b"HTTP/1.1"
        or stream.client_state != stream.state_done
        or server.state != server.wait
    ):
        return None
    return stream, server


def take_response(http_layer: FastHttpLayer, client: GatewayHttp1Client, data: bytes) -> Sent | Commands | None:
    """Handles the beginning of a response. Returns what follows, or `None` when nothing was done."""
    waiting = _waiting(http_layer, client)
    head, end, body = data.partition(b"\r\n\r\n")
    if waiting is None or not end:
        return None
    stream, server = waiting
    flow, hooks = stream.flow, http_layer.hooks
    read = read_response(head, flow.request.data.method)
    if read is None or stream.server_state != stream.state_wait_for_response_headers or http_layer.keeps_bodies:
        return None
    response, size = read
    if size != CHUNKED and len(body) > size:
        return None
    client.response = flow.response = response
    fields = response.data.headers.fields
    waits = hooks.call("responseheaders", flow)
    if waits is not None or flow.response is not response or flow.error is not None or not _streams_on(stream, fields):
        came = ResponseHeaders(server.stream_id, flow.response, end_stream=size == 0)
        steps: list[Step] = [(client, _body_of(client, body, size)), (stream, stream.handle_event(came))]
        return http_layer.run_steps(steps, CompletedHooks(hooks, flow, HttpResponseHeadersHook, waits=waits))
    if size == 0:
        response.data.content = b""
        return _Exchange(http_layer, stream, server, client).finish([], streamed=False)
    server.response = response
    stream.server_state = stream.state_stream_response_body
    head = _assemble(response)
    if size != CHUNKED:
        stream.plain_response = fields
        client.body_reader = ContentLengthReader(size)
        client.state = client.read_body
        return _Exchange(http_layer, stream, server, client).go_on([head], body)
    completed = commands.SendData(server.conn, head)
    steps = [(client, _body_of(client, body, size))]
    return chain((completed,), http_layer.run_steps(steps, CompletedHooks(hooks, flow, waits=None)))


def _streams_on(stream: GatewayHttpStream, before: Fields) -> bool:
    """Returns whether a response is streamed by mitmproxy's own steps, and its end is still clear."""
    response = stream.flow.response
    assert response is not None
    plain = response.data.headers.fields is before
    return bool(response.stream) and stream.override is None and (plain or _ends_clearly(stream.flow.request, response))


def _ends_clearly(request: http.Request, response: http.Response) -> bool:
    """Returns whether the fields of a response leave the connection open, and tell where its body ends."""
    try:
        return keeps_open(response.data.headers.fields) and http1.expected_http_body_size(request, response) != -1
    except ValueError:
        return False


def _body_of(client: GatewayHttp1Client, body: bytes, size: int) -> Commands:
    """Does what `Http1Client.read_headers` does after the head of a response."""
    client.buf += body
    client.body_reader = make_body_reader(None if size == CHUNKED else size)
    client.state = client.read_body
    yield from client.read_body(events.DataReceived(client.conn, b""))


def take_body(http_layer: FastHttpLayer, client: GatewayHttp1Client, data: bytes) -> Sent | Commands | None:
    """Handles a further part of a body whose length is known."""
    reader = client.body_reader
    if type(reader) is not ContentLengthReader or len(data) > reader._remaining or not data:  # noqa: SLF001
        return None
    waiting = _waiting(http_layer, client)
    if waiting is None or http_layer.keeps_bodies:
        return None
    stream, server = waiting
    if stream.server_state != stream.state_stream_response_body or server.response is not stream.flow.response:
        return None
    return _Exchange(http_layer, stream, server, client).go_on([], data)


@dataclass(slots=True)
class _Exchange:
    """The layers that a response of known length passes."""

    http_layer: FastHttpLayer
    stream: GatewayHttpStream
    server: GatewayHttp1Server
    client: GatewayHttp1Client

    def go_on(self, sent: list[bytes], body: bytes) -> Sent | Commands:
        """Passes a part of the body on, and ends the exchange when it is the last one."""
        response = self.stream.flow.response
        assert response is not None
        reader = self.client.body_reader
        assert isinstance(reader, ContentLengthReader)
        reader._remaining -= len(body)  # noqa: SLF001  as it does itself
        if response.stream is True:
            if body:
                sent += self._framed(response, [body])
            if reader._remaining:  # noqa: SLF001
                return self._send(sent)
        else:
            if body:
                sent += self._framed(response, _pieces(response.stream(body)))  # type: ignore[operator]
            if reader._remaining:  # noqa: SLF001
                return self._send(sent)
            sent += self._framed(response, _pieces(response.stream(b"")))  # type: ignore[operator]
        return self.finish(sent, streamed=True)

    def finish(self, sent: list[bytes], *, streamed: bool) -> Sent | Commands:
        """Ends the exchange; both connections are idle afterwards."""
        stream, server, client = self.stream, self.server, self.client
        flow = stream.flow
        response = flow.response
        assert response is not None
        response.timestamp_end = time.time()
        waits = self.http_layer.hooks.call("response", flow)
        if waits is not None or not self._is_done(response, streamed=streamed):
            done = client.mark_done(response=True)
            answer = process(stream, stream.send_response(already_streamed=streamed))
            completed = CompletedHooks(self.http_layer.hooks, flow, HttpResponseHook, waits=waits)
            return chain(self._send(sent), self.http_layer.run_steps([(client, done), (stream, answer)], completed))
        if not streamed:
            sent.append(_assemble(response))
        if flow.request.data.method != b"HEAD" and self._is_chunked(response):
            sent.append(b"0\r\n\r\n")
        stream.server_state = stream.state_done
        flow.live = False
        del self.http_layer.streams[server.stream_id]
        server.request_done = server.response_done = client.request_done = client.response_done = False
        server.request = server.response = client.request = client.response = None
        server.stream_id += 2
        client.stream_id = None
        server.state = server.read_headers
        client.state = client.read_headers
        if AHEAD:
            AHEAD.pop(server.conn, None)  # it waits no more
        if stream.handled or stream.override is not None:
            vars(stream).clear()  # it holds itself in circles, and with it all that the flow has
        else:
            self._spare()
        return self._send(sent)

    def _spare(self) -> None:
        """Keeps the stream, as it was made, for the next request: to make one and to take it apart costs more than a flow."""
        stream = self.stream
        stream.client_state = stream.server_state = stream.state_uninitialized
        stream.plain_request = stream.plain_response = None
        del stream.flow
        self.http_layer.spare = stream

    def _is_done(self, response: http.Response, *, streamed: bool) -> bool:
        flow = self.stream.flow
        request = flow.request
        return (
            flow.error is None
            and flow.response is response
            and not response.data.trailers
            and (streamed or not response.data.content)
            and self._keeps_open(request.data.headers.fields, response.data.headers.fields)
        )

    def _keeps_open(self, asked: Fields, answered: Fields) -> bool:
        stream = self.stream
        return (asked is stream.plain_request or keeps_open(asked)) and (
            answered is stream.plain_response or keeps_open(answered)
        )

    def _is_chunked(self, response: http.Response) -> bool:
        is_plain = response.data.headers.fields is self.stream.plain_response
        return not is_plain and "chunked" in response.headers.get("transfer-encoding", "").lower()

    def _framed(self, response: http.Response, pieces: Iterable[bytes]) -> Iterable[bytes]:
        if self._is_chunked(response):
            return [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
        return pieces

    def _send(self, sent: list[bytes]) -> Sent:
        data = sent[0] if len(sent) == 1 else b"".join(sent)
        return [commands.SendData(self.server.conn, data)] if data else []


def _pieces(of: bytes | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(of, bytes):
        return [of] if of else []
    return of
