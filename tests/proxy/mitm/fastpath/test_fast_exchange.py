"""One exchange over the fast path, step by step: when it is taken, what is sent, and in which state it leaves the layers."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.http import HTTPMode
from mitmproxy.proxy.mode_specs import ProxyMode

from gatewayfilter.proxy.mitm.fastpath import request as fast_request
from gatewayfilter.proxy.mitm.fastpath import response as fast_response
from gatewayfilter.proxy.mitm.fastpath.context import FastPathContext
from gatewayfilter.proxy.mitm.fastpath.exchange import take
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.request import take_request
from gatewayfilter.proxy.mitm.fastpath.response import take_body, take_response
from gatewayfilter.proxy.mitm.http.error_answers import ErrorAnswers
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream
from gatewayfilter.proxy.mitm.http.upload_flow import AHEAD
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.request.repeated_request import repeated_of

GET = b"GET http://site.example/x HTTP/1.1\r\nHost: site.example\r\n\r\n"
SENT = b"GET /x HTTP/1.1\r\nHost: site.example\r\n\r\n"
OPTIONS, ERRORS = Options(), ErrorAnswers(BlockPages())
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


class Layers:
    """The layers of a connection with an idle one to an origin; `hooks` does something in each hook."""

    def __init__(self, mode: HTTPMode = HTTPMode.regular) -> None:
        client = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 8080), state=ConnectionState.OPEN)
        context = FastPathContext(client, OPTIONS)
        self.called: list[str] = []
        self.deeds: dict[str, Callable[[http.HTTPFlow], object]] = {}
        self.adopts: GatewayHttp1Client | None = None
        origins = SimpleNamespace(adopt=lambda layer, flow: self.adopts)
        self.path = SimpleNamespace(hooks=SimpleNamespace(call=self._call), keeps_bodies=False, origins=origins)
        context.fast_path = cast("Any", self.path)
        self.context = context
        self.http = FastHttpLayer(context, mode)
        self.server = GatewayHttp1Server(ERRORS, context)
        list(self.server.handle_event(events.Start()))
        self.http.connections = {client: self.server}
        self.conn = Server(address=("site.example", 80))
        self.conn.state = ConnectionState.OPEN
        self.client = self.origin(self.conn)
        self.http.connections[self.conn] = self.client
        self.slow: list[Any] = []
        self.steps: list[Any] = []
        self.http.run_steps = self._slow  # type: ignore[method-assign]

    def origin(self, conn: Server) -> GatewayHttp1Client:
        context = self.context.fork()
        context.server = conn
        return GatewayHttp1Client.idle(context)

    def _call(self, name: str, flow: http.HTTPFlow) -> Any:
        self.called.append(name)
        return self.deeds[name](flow) if name in self.deeds else None

    def _slow(self, steps: list[Any], completed: Any = None) -> Any:
        self.steps = steps
        self.slow.append(([child for child, _ in steps], completed))
        return iter(())

    @property
    def stream(self) -> GatewayHttpStream:
        (stream,) = self.http.streams.values()
        assert isinstance(stream, GatewayHttpStream)
        return stream

    def asks(self, data: bytes = GET) -> object:
        return sent(take_request(self.http, self.server, data))

    def answers(self, data: bytes) -> object:
        return sent(take_response(self.http, self.client, data))

    def goes_on(self, data: bytes) -> object:
        return sent(take_body(self.http, self.client, data))


def sent(found: Any) -> object:
    """Returns what is sent, `"slow"` where the rest takes the slow path, `None` where nothing was done."""
    if found is None or isinstance(found, list):
        return None if found is None else b"".join(one.data for one in found)
    list(found)
    return "slow"


def streams(flow: http.HTTPFlow) -> None:
    assert flow.response is not None
    flow.response.stream = True


def through(change: Callable[[bytes], Any]) -> Callable[[http.HTTPFlow], None]:
    def deed(flow: http.HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.stream = change

    return deed


@pytest.fixture
def layers() -> Layers:
    made = Layers()
    made.deeds["responseheaders"] = streams
    return made


def test_an_exchange_leaves_both_connections_idle(layers: Layers) -> None:
    assert layers.asks() == SENT
    stream, flow = layers.stream, layers.stream.flow
    assert (stream.context.server, flow.server_conn) == (layers.conn, layers.conn)
    assert (stream.client_state, stream.server_state) == (stream.state_done, stream.state_wait_for_response_headers)
    assert (layers.server.request_done, layers.server.state) == (True, layers.server.wait)
    assert (layers.client.stream_id, layers.client.request, layers.client.request_done) == (1, flow.request, True)
    assert (flow.request.data.content, flow.request.data.timestamp_end is None, flow.request.data.authority) == (b"", False, b"")
    assert (layers.http.streams, layers.server.request) == ({1: stream}, flow.request)
    assert layers.answers(HEAD + b"ab") == HEAD + b"ab"
    assert (layers.server.response, layers.client.response, flow.response) == (flow.response, flow.response, flow.response)
    assert stream.server_state == stream.state_stream_response_body
    assert layers.goes_on(b"c") == b"c"
    AHEAD[layers.context.client] = stream
    assert layers.goes_on(b"d") == b"d"
    assert AHEAD == {}
    assert layers.called == ["requestheaders", "request", "responseheaders", "response"]
    assert flow.response is not None
    assert (flow.live, flow.response.timestamp_end is None, layers.http.streams) == (False, False, {})
    for side in (layers.server, layers.client):
        assert (side.request, side.response, side.request_done, side.response_done) == (None, None, False, False)
        assert side.state == side.read_headers
    assert (layers.server.stream_id, layers.client.stream_id) == (3, None)
    assert layers.http.spare is stream
    assert (stream.client_state, stream.server_state) == (stream.state_uninitialized, stream.state_uninitialized)
    assert (stream.plain_request, stream.plain_response, "flow" in vars(stream)) == (None, None, False)
    assert layers.asks() == SENT
    assert (layers.stream is stream, stream.stream_id, vars(layers.http)["spare"]) == (True, 3, None)


def test_answers_without_a_body(layers: Layers) -> None:
    for answer in (
        b"HTTP/1.1 204 No\r\n\r\n",
        b"HTTP/1.1 304 Not\r\nContent-Length: 9\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ):
        layers.asks()
        flow = layers.stream.flow
        assert layers.answers(answer) == answer
        assert flow.response is not None
        assert (flow.response.data.content, layers.http.streams) == (b"", {})
    layers.asks(GET.replace(b"GET", b"HEAD"))
    assert layers.answers(HEAD) == HEAD
    assert layers.http.streams == {}


def test_a_body_goes_through_what_a_hook_has_set(layers: Layers) -> None:
    seen: list[bytes] = []

    def change(data: bytes) -> Any:
        seen.append(data)
        return data.upper() if data else [b"!", b"?"]

    layers.deeds["responseheaders"] = through(change)
    layers.asks()
    assert layers.answers(HEAD) == HEAD
    assert layers.goes_on(b"ab") == b"AB"
    assert layers.goes_on(b"cd") == b"CD!?"
    assert seen == [b"ab", b"cd", b""]
    layers.deeds["responseheaders"] = through(lambda data: b"")
    layers.asks()
    assert layers.answers(HEAD + b"abcd") == HEAD


def test_a_body_of_another_length_goes_in_chunks(layers: Layers) -> None:
    def change(flow: http.HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.stream = lambda data: [data * 20] if data else []
        del flow.response.headers["content-length"]
        flow.response.headers["transfer-encoding"] = "Chunked"

    layers.deeds["responseheaders"] = change
    for method, end in ((b"GET", b"14\r\n" + b"a" * 20 + b"\r\n" + b"3c\r\n" + b"b" * 60 + b"\r\n0\r\n\r\n"),):
        layers.asks(GET.replace(b"GET", method))
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
        assert layers.answers(HEAD + b"a") == head + end[:26]
        assert layers.goes_on(b"bbb") == end[26:]


def test_a_chunked_answer_takes_the_slow_path_behind_its_head(layers: Layers) -> None:
    layers.asks()
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    found = take_response(layers.http, layers.client, head + b"1\r\na\r\n")
    assert not isinstance(found, list)
    assert found is not None
    (first,) = list(found)
    assert isinstance(first, commands.SendData)
    assert (first.data, first.connection, layers.slow[0][0]) == (head, layers.context.client, [layers.client])
    assert layers.stream.server_state == layers.stream.state_stream_response_body
    assert layers.server.response is layers.stream.flow.response


@pytest.mark.parametrize("hook", ["requestheaders", "request"])
@pytest.mark.parametrize("deed", ["waits", "answers", "fails", "replaces"])
def test_what_a_hook_does_with_a_request_takes_the_slow_path(layers: Layers, hook: str, deed: str) -> None:
    def act(flow: http.HTTPFlow) -> object:
        if deed == "answers":
            flow.response = http.Response.make(200)
        elif deed == "fails":
            flow.error = mitmproxy_flow.Error("x")
        elif deed == "replaces":
            flow.request = http.Request.make("GET", "http://other.example/")
        return object() if deed == "waits" else None

    layers.deeds[hook] = act
    assert layers.asks() == "slow"
    ((children, completed),) = layers.slow
    assert (children, layers.called) == ([layers.server, layers.stream], ["requestheaders", "request"][: 1 + (hook == "request")])
    ran = {"HttpRequestHeadersHook", "HttpRequestHook"} if hook == "request" else {"HttpRequestHeadersHook"}
    assert {kind.__name__ for kind in completed._ran} == ran
    assert (completed._waits is not None) == (deed == "waits")


def add(name: str, value: str) -> Callable[[http.HTTPFlow], None]:
    return lambda flow: flow.request.headers.__setitem__(name, value)


@pytest.mark.parametrize(
    ("deed", "fast"),
    [
        (add("x-a", "b"), True),
        (add("Content-Length", "1"), False),
        (add("expect", "100-continue"), False),
        (add("transfer-encoding", "chunked"), False),
        (add("Upgrade", "websocket"), False),
        (add("authorization", "NTLM x"), False),
        (add("authorization", "Basic x"), True),
        (lambda flow: setattr(flow.request.data, "content", b"x"), False),
        (lambda flow: setattr(flow.request.data, "trailers", http.Headers(a="b")), False),
    ],
)
def test_what_a_hook_adds_to_a_request(layers: Layers, deed: Callable[[http.HTTPFlow], None], *, fast: bool) -> None:
    layers.deeds["request"] = deed
    assert (layers.asks() == "slow") == (not fast)
    assert len(layers.slow) == int(not fast)


def test_which_requests_take_the_fast_path(layers: Layers) -> None:
    assert layers.asks(b"POST" + GET[3:]) is None
    assert layers.asks(GET[:-2]) is None
    assert layers.called == []
    for number in range(6):
        layers.http.connections[Server(address=("other.example", number))] = cast("Any", None)
    assert layers.asks() == SENT
    crowded = Layers()
    for number in range(7):
        crowded.http.connections[Server(address=("other.example", number))] = cast("Any", None)
    assert crowded.asks() is None
    reverse = Layers()
    reverse.context.client.proxy_mode = ProxyMode.parse("reverse:http://site.example")
    assert reverse.asks() is None
    relative = GET.replace(b"http://site.example", b"")
    assert Layers().asks(relative) is None
    upstream = Layers(HTTPMode.upstream)
    upstream.asks()
    assert upstream.stream.flow.request.data.authority == b"site.example"


def test_where_a_redirected_request_leads() -> None:
    relative = GET.replace(b"http://site.example", b"")
    for tls, address, fast in ((False, ("site.example", 80), True), (True, ("site.example", 80), False), (False, None, None)):
        layers = Layers(HTTPMode.transparent)
        layers.context.server.address, layers.context.server.tls = address, tls
        found = layers.asks(relative)
        if fast is None:
            assert (found, layers.called) == (None, [])
            continue
        assert found == (SENT if fast else "slow")
        meant = layers.stream.flow.request.data
        assert (meant.host, meant.port, meant.scheme) == ("site.example", 80, b"https" if tls else b"http")


@pytest.mark.parametrize(
    ("change", "fast"),
    [
        (lambda layers: setattr(layers.client, "_paused", object()), False),
        (lambda layers: setattr(layers.client, "stream_id", 1), False),
        (lambda layers: setattr(layers.client, "request", object()), False),
        (lambda layers: setattr(layers.client, "state", layers.client.read_body), False),
        (lambda layers: layers.client.buf.__iadd__(b"x"), False),
        (lambda layers: layers.http.connections.__setitem__(layers.conn, layers.server), False),
        (lambda layers: layers.http.connections.pop(layers.conn), False),
        (lambda layers: setattr(layers.conn, "state", ConnectionState.CLOSED), False),
        (lambda layers: setattr(layers.conn, "error", "x"), False),
        (lambda layers: layers.http.waiting_for_establishment.__setitem__(layers.conn, []), False),
        (lambda layers: None, True),
    ],
)
def test_which_connection_to_an_origin_is_used(layers: Layers, change: Callable[[Layers], object], *, fast: bool) -> None:
    change(layers)
    assert (layers.asks() == SENT) == fast
    assert layers.called == ["requestheaders", "request"]


def test_a_connection_from_the_pool(layers: Layers) -> None:
    del layers.http.connections[layers.conn]
    layers.adopts = layers.origin(Server(address=("site.example", 80)))
    assert layers.asks() == SENT
    assert layers.stream.context.server is layers.adopts.conn
    without = Layers()
    del without.http.connections[without.conn]
    without.path.origins = cast("Any", None)
    assert without.asks() == "slow"


def test_a_request_that_comes_again_is_not_read_again(layers: Layers, monkeypatch: pytest.MonkeyPatch) -> None:
    layers.asks()
    assert repeated_of(layers.stream.flow.request) is None
    layers.answers(b"HTTP/1.1 204 No\r\n\r\n")
    monkeypatch.setattr(fast_request, "read_head", lambda data: None)
    assembled: list[object] = []
    assemble = fast_request._assemble
    monkeypatch.setattr(fast_request, "_assemble", lambda request: assembled.append(request) or assemble(request))  # type: ignore[func-returns-value]
    for changed, count in ((False, 1), (False, 1), (True, 2), (True, 3)):
        if changed:
            layers.deeds["request"] = lambda flow: setattr(flow.request, "path", f"/{len(assembled)}")
        path = f"/{len(assembled)}".encode() if changed else b"/x"
        assert layers.asks() == SENT.replace(b"/x", path)
        assert len(assembled) == count
        assert repeated_of(layers.stream.flow.request) is layers.server.repeated
        layers.answers(b"HTTP/1.1 204 No\r\n\r\n")
    assert layers.asks(GET.replace(b"/x", b"/other")) is None
    monkeypatch.undo()
    monkeypatch.setattr(fast_request, "LONGEST_KEPT", len(GET))
    for data, kept in ((GET, True), (GET.replace(b"/x", b"/xy"), False)):
        fresh = Layers()
        fresh.asks(data)
        assert (fresh.server.repeated is not None) == kept


@pytest.mark.parametrize(
    "change",
    [
        lambda layers: layers.http.streams.clear(),
        lambda layers: layers.http.connections.pop(layers.context.client),
        lambda layers: setattr(layers.stream, "_paused", object()),
        lambda layers: setattr(layers.server, "_paused", object()),
        lambda layers: setattr(layers.server, "stream_id", 3),
        lambda layers: layers.server.buf.__iadd__(b"x"),
        lambda layers: setattr(layers.stream.flow.request, "http_version", "HTTP/1.0"),
        lambda layers: setattr(layers.stream, "client_state", layers.stream.state_stream_request_body),
        lambda layers: setattr(layers.server, "state", layers.server.read_headers),
        lambda layers: setattr(layers.http, "keeps_bodies", True),
        lambda layers: setattr(layers.stream, "server_state", layers.stream.state_done),
    ],
)
def test_when_nothing_is_done_with_a_response(layers: Layers, change: Callable[[Layers], object]) -> None:
    layers.asks()
    change(layers)
    assert (layers.answers(HEAD + b"ab"), layers.called) == (None, ["requestheaders", "request"])
    other = Layers()
    other.deeds["responseheaders"] = streams
    other.asks()
    other.answers(HEAD + b"ab")
    change(other)
    assert (other.goes_on(b"c"), other.called[-1]) == (None, "responseheaders")


def test_what_of_a_response_is_not_taken(layers: Layers) -> None:
    layers.asks()
    for data in (HEAD[:-1], b"HTTP/1.1 200 OK\r\n\r\n", HEAD + b"abcde", b"HTTP/1.1 103 Hints\r\n\r\n"):
        assert layers.answers(data) is None
    assert layers.answers(HEAD + b"abc") == HEAD + b"abc"
    assert layers.goes_on(b"de") is layers.goes_on(b"") is None
    layers.server.response = None
    assert layers.goes_on(b"d") is None


@pytest.mark.parametrize("deed", ["waits", "replaces", "fails", "keeps", "overrides", "closes", "unclear", "wrong"])
def test_what_a_hook_does_with_a_head_of_a_response_takes_the_slow_path(layers: Layers, deed: str) -> None:
    def act(flow: http.HTTPFlow) -> object:
        streams(flow)
        assert flow.response is not None
        if deed == "replaces":
            flow.response = http.Response.make(200)
        elif deed == "fails":
            flow.error = mitmproxy_flow.Error("x")
        elif deed == "keeps":
            flow.response.stream = False
        elif deed == "overrides":
            layers.stream.override = cast("Any", object())
        elif deed == "closes":
            flow.response.headers["connection"] = "close"
        elif deed == "unclear":
            del flow.response.headers["content-length"]
        elif deed == "wrong":
            flow.response.headers["content-length"] = "x"
        return object() if deed == "waits" else None

    layers.deeds["responseheaders"] = act
    for data, ended in ((HEAD + b"ab", False), (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True)):
        layers.slow.clear()
        layers.asks() if not layers.http.streams else None
        layers.stream.override = None
        layers.server.request_done = True
        assert (layers.answers(data), ended) == ("slow", ended)
        ((children, completed),) = layers.slow
        assert children == [layers.client, layers.stream]
        assert [kind.__name__ for kind in completed._ran] == ["HttpResponseHeadersHook"]
        assert (completed._waits is not None) == (deed == "waits")
        break


def test_a_response_that_takes_the_slow_path_has_its_body_or_none(layers: Layers, monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[Any] = []
    monkeypatch.setattr(GatewayHttpStream, "handle_event", lambda stream, event: iter([came.append(event)]))  # type: ignore[func-returns-value]
    layers.deeds["responseheaders"] = lambda flow: object()
    for data, ended in ((HEAD + b"ab", False), (HEAD.replace(b"4", b"1"), False), (HEAD.replace(b"4", b"0"), True)):
        layers.asks()
        assert layers.answers(data) == "slow"
        assert (came[-1].end_stream, came[-1].stream_id, came[-1].response) == (ended, 1, layers.stream.flow.response)
        layers = Layers()
        layers.deeds["responseheaders"] = lambda flow: object()


@pytest.mark.parametrize("deed", ["waits", "fails", "replaces", "trailers", "closes", "asked to close"])
def test_what_a_hook_does_with_a_whole_response_takes_the_slow_path(layers: Layers, deed: str) -> None:
    def act(flow: http.HTTPFlow) -> object:
        assert flow.response is not None
        if deed == "fails":
            flow.error = mitmproxy_flow.Error("x")
        elif deed == "replaces":
            flow.response = http.Response.make(200)
        elif deed == "trailers":
            flow.response.trailers = http.Headers(a="b")
        elif deed == "closes":
            flow.response.headers["connection"] = "close"
        elif deed == "asked to close":
            flow.request.headers["connection"] = "close"
        return object() if deed == "waits" else None

    layers.deeds["response"] = act
    layers.asks()
    layers.answers(HEAD + b"abc")
    found = take_body(layers.http, layers.client, b"d")
    assert not isinstance(found, list)
    assert found is not None
    assert [one.data for one in found if isinstance(one, commands.SendData)] == [b"d"]
    ((children, completed),) = layers.slow
    assert (children, layers.called[-1]) == ([layers.client, layers.stream], "response")
    assert [kind.__name__ for kind in completed._ran] == ["HttpResponseHook"]
    assert (completed._waits is not None) == (deed == "waits")
    assert layers.client.state == layers.client.read_body
    list(layers.steps[0][1])
    assert layers.client.state == (layers.client.done if "close" in deed else layers.client.read_headers)


def test_a_body_that_a_hook_puts_into_an_empty_response(layers: Layers) -> None:
    def act(flow: http.HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.data.content = b"x"

    layers.deeds["response"] = act
    layers.asks()
    assert layers.answers(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") == "slow"


def test_a_field_that_a_hook_adds_leaves_the_connection_open(layers: Layers) -> None:
    def act(flow: http.HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.headers["x-a"] = "b"
        flow.request.headers["x-a"] = "b"

    layers.deeds["response"] = act
    layers.asks()
    assert layers.answers(HEAD + b"abcd") == HEAD + b"abcd"
    assert layers.slow == []


def test_a_stream_in_which_events_were_handled_is_not_used_again(layers: Layers) -> None:
    for handled in (True, False):
        layers.asks()
        stream = layers.stream
        stream.handled = handled
        layers.answers(HEAD + b"abcd")
        assert (layers.http.spare is stream, vars(stream) == {}) == (not handled, handled)


def test_who_takes_what_comes(layers: Layers, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(handler: Any, data: bytes) -> object:
        return sent(take(layers.http, handler, events.DataReceived(handler.conn, data)))

    layers.server._paused = cast("Any", object())
    assert taken(layers.server, GET) is None
    layers.server._paused = None
    layers.server.buf += b"G"
    assert taken(layers.server, GET) is None
    layers.server.buf.maybe_extract_at_most(1)
    assert taken(layers.server, GET) == SENT
    assert taken(layers.server, GET) is None, "one is under way"
    layers.client.buf += b"H"
    assert taken(layers.client, HEAD) is None
    layers.client.buf.maybe_extract_at_most(1)
    assert taken(layers.client, HEAD) == HEAD
    assert taken(layers.client, b"abcd") == b"abcd"
    layers.client.state = layers.client.done
    assert taken(layers.client, HEAD) is None
    assert sent(take(layers.http, layers.http, events.DataReceived(layers.conn, HEAD))) is None
    pieces = fast_response._pieces
    assert (list(pieces(b"")), list(pieces(b"a")), list(pieces([b"a", b"b"]))) == ([], [b"a"], [b"a", b"b"])
