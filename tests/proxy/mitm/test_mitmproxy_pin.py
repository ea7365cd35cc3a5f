"""What proxy/ relies on inside mitmproxy. When this fails, read the named modules again before the pin is moved."""

import ast
import hashlib
import importlib
import inspect

import mitmproxy.version
from h2 import frame_buffer
from mitmproxy import addonmanager, certs, http
from mitmproxy.proxy import layer, mode_servers, server
from mitmproxy.proxy.layers import http as layers_http
from mitmproxy.proxy.layers.http import HttpLayer, HttpStream, _http1
from mitmproxy.proxy.layers.http._http1 import Http1Server

EVENT_TO_CHILD = "b552ce0a547bbf0bf2c96cd6b004e1e0b8e59d3837c995f4fa4bc5e3310b2738"
PASSTHROUGH = "a6df32aba1ae251a3857c0ea097d8315c6c5871a7704cb4cbb8314f4ea700f36"
"""Of the code that http_layer.py does the work of."""


SHORT_EXCHANGE = "97b04eed28c103471bba083a32d2310ddfdcc8e2e864af1ff9d454c11b843619"
SHORT_WAYS = "93ec3276a98eb67c6366cc1336769089530179269655938baa7e5f196b76388d"
DIRECT_READING = "38ebbbced632f602e0dca4ced0aaba4e6ce37d74726de51f6932609efa4b9dd7"
"""Of the code that direct_reader.py, exchange.py and tls_path.py with their parts do the work of."""


NEXT_LAYER = "5bac5296a4c19ec9004be7b7a00d9e4cc99c1debba6ef2fa75b1770d64f7dfd4"
UPGRADES = "3e7d126005ba4f16f3f31bdf911a9be9758920c97bb5003889db83a98180a682"
"""Of the code that next_layer.py and raw_tunnels.py stand in for, and of that which makes other layers without asking them."""


def digest(*functions: str) -> str:
    """Returns the SHA-256 of the sources of methods, from their files: the classes may have ours by now."""
    found = hashlib.sha256()
    for name in functions:
        module, _, path = name.partition(":")
        tree = ast.parse(text := inspect.getsource(importlib.import_module(module)))
        node: ast.AST = tree
        for part in path.split("."):
            node = next(one for one in ast.iter_child_nodes(node) if getattr(one, "name", "") == part)
        found.update((ast.get_source_segment(text, node) or "").encode())
    return found.hexdigest()


def test_version() -> None:
    assert mitmproxy.version.VERSION == "12.2.3", (
        "proxy/ replaces parts of mitmproxy: check proxy/mitm/, listener/connection_deadlines.py, listener/listener.py and "
        "master.py against the new version, run "
        "scripts/bench/bench_proxy.py, then change this line"
    )


def test_what_the_second_try_replaces() -> None:
    source = inspect.getsource(HttpStream.make_server_connection)
    assert "self.context.server = self.flow.server_conn = connection\n            return True" in source
    closed = inspect.getsource(_http1.Http1Client.read_headers).partition("elif isinstance(event, events.ConnectionClosed):")[2]
    assert '"server closed connection"' in closed


def test_what_dispatch_replaces() -> None:
    assert "self.master.addons.handle_lifecycle(hook)" in inspect.getsource(mode_servers.ProxyConnectionHandler.handle_hook)
    assert "self.layer.handle_event(event)" in inspect.getsource(server.ConnectionHandler.server_event)
    assert set(inspect.signature(addonmanager.AddonManager.handle_lifecycle).parameters) == {"self", "event"}


def test_what_the_early_answer_replaces() -> None:
    source = inspect.getsource(HttpStream.state_wait_for_request_headers)
    assert "if self.flow.request.stream and not event.end_stream:\n            yield from self.start_request_stream()" in source
    assert "yield from self.client_state(event)" in inspect.getsource(HttpStream._handle_event)


def test_what_held_and_replaced_responses_replace() -> None:
    headers = inspect.getsource(HttpStream.state_wait_for_response_headers)
    assert (
        "elif self.flow.response.stream and not event.end_stream:\n            yield from self.start_response_stream()" in headers
    )
    assert "self.server_state = self.state_consume_response_body" in headers
    whole = inspect.getsource(HttpStream.state_consume_response_body)
    assert "self.flow.response.data.content = bytes(self.response_body_buf)" in whole
    assert "yield from self.send_response()" in whole
    streamed = inspect.getsource(HttpStream.state_stream_response_body)
    assert "chunks = self.flow.response.stream(event.data)" in streamed
    assert 'chunks = self.flow.response.stream(b"")' in streamed
    assert "yield HttpResponseHook(self.flow)" in inspect.getsource(HttpStream.send_response)


def test_what_the_connections_replace() -> None:
    source = inspect.getsource(layers_http)
    for name in ("Http1Server(self.context.fork())", "Http2Server(self.context.fork())", "Http1Client(self.context)"):
        assert name in source
    assert 'raise NotImplementedError(f"HTTP trailers are not implemented yet.")' in inspect.getsource(_http1)
    assert "self.state = self.read_headers" in inspect.getsource(Http1Server.start)
    assert "self.body_reader = make_body_reader(expected_body_size)" in inspect.getsource(Http1Server.read_headers)
    assert "make_error_response(400, str(e))" in inspect.getsource(Http1Server.read_headers)
    assert 'b"0\\r\\n\\r\\n"' in inspect.getsource(Http1Server.send)


def test_what_the_origin_connections_replace() -> None:
    source = inspect.getsource(server.ConnectionHandler)
    assert "collections.defaultdict(lambda: asyncio.Semaphore(5))" in source
    assert "async with self.max_conns[command.connection.address]:" in source
    assert "except (OSError, asyncio.CancelledError) as e:" in source
    assert "yield from self.get_connection(command)" in inspect.getsource(layers_http)
    assert "conn = conn.context.layers[-1]" in inspect.getsource(HttpLayer._handle_event)


def test_what_the_http_layer_replaces() -> None:
    source = inspect.getsource(layers_http)  # the class itself has our method once a worker began in this process
    start = source.index("    def event_to_child(")
    original = source[start : source.index("    def make_stream(", start)]
    assert hashlib.sha256(original.encode()).hexdigest() == EVENT_TO_CHILD
    assert hashlib.sha256(inspect.getsource(HttpStream.passthrough).encode()).hexdigest() == PASSTHROUGH
    assert "command.blocking = self" in inspect.getsource(layer.Layer.handle_event)


def test_what_the_short_exchange_replaces() -> None:
    http_1, stream, top = (
        "mitmproxy.proxy.layers.http._http1:",
        "mitmproxy.proxy.layers.http:HttpStream.",
        "mitmproxy.proxy.layers.http:",
    )
    parts = (
        *(http_1 + f"Http1Connection.{name}" for name in ("_handle_event", "read_body", "wait", "mark_done")),
        *(http_1 + f"Http1Server.{name}" for name in ("send", "read_headers", "mark_done")),
        *(http_1 + f"Http1Client.{name}" for name in ("send", "read_headers")),
        *(http_1 + name for name in ("should_make_pipe", "make_body_reader")),
        *(
            stream + name
            for name in (
                "__init__", "_handle_event", "state_wait_for_request_headers", "state_consume_request_body", "flow_done",
                "state_wait_for_response_headers", "start_response_stream", "state_stream_response_body", "send_response",
                "state_consume_response_body", "check_body_size", "check_invalid", "check_killed", "make_server_connection",
            )
        ),
        *(top + name for name in ("validate_request", "GetHttpConnection.connection_spec_matches")),
        *(top + f"HttpLayer.{name}" for name in ("make_stream", "get_connection")),
        *(f"mitmproxy.net.http.http1.read:{name}" for name in (
            "connection_close", "expected_http_body_size", "_read_request_line", "_read_response_line", "_read_headers",
            "read_request_head", "read_response_head",
        )),
        "mitmproxy.net.http.validate:validate_headers",
        "mitmproxy.net.http.url:parse",
        "h11._readers:ContentLengthReader",
    )  # fmt: skip
    assert digest(*parts) == SHORT_EXCHANGE


def test_what_the_short_ways_replace() -> None:
    parts = (
        *(f"mitmproxy.proxy.layer:{name}" for name in ("Layer.handle_event", "Layer.__process", "NextLayer")),
        *(f"mitmproxy.proxy.layers.modes:{name}" for name in ("HttpProxy", "HttpUpstreamProxy", "DestinationKnown.finish_start")),
        *(f"mitmproxy.proxy.tunnel:TunnelLayer.{name}" for name in ("_handle_event", "_handle_command", "event_to_child")),
        *(f"mitmproxy.proxy.layers.tls:TLSLayer.{name}" for name in ("tls_interact", "receive_data", "send_data")),
        "mitmproxy.proxy.layers.tls:ServerTLSLayer.event_to_child",
        "mitmproxy.proxy.layers.http:HttpClient",
        *(f"OpenSSL.SSL:Connection.{name}" for name in ("recv", "bio_read", "bio_write", "sendall")),
    )
    assert digest(*parts) == SHORT_WAYS


def test_what_the_next_layer_replaces() -> None:
    assert digest("mitmproxy.addons.next_layer:NextLayer", "mitmproxy.net.tls:starts_like_tls_record") == NEXT_LAYER
    parts = ("HttpStream.flow_done", "HttpStream.handle_connect", "HttpStream.handle_connect_upstream", "validate_request")
    layers = ("mitmproxy.proxy.layers.tcp:TCPLayer", "mitmproxy.proxy.layers.tls:ClientTLSLayer")
    assert digest(*(f"mitmproxy.proxy.layers.http:{part}" for part in parts), *layers) == UPGRADES
    assert "except exceptions.AddonHalt:" in inspect.getsource(addonmanager.AddonManager.trigger_event)


def test_what_the_deadlines_rely_on() -> None:
    assert 'handler.cancel("timeout")' in inspect.getsource(server.ConnectionHandler.on_timeout)
    source = inspect.getsource(frame_buffer.FrameBuffer)
    for name in ("self._data = bytearray()", "self._preamble_len = ", "self._headers_buffer: "):
        assert name in source


def test_what_direct_reading_replaces() -> None:
    parts = [f"ConnectionHandler.{name}" for name in ("handle_connection", "server_event", "drain_writers", "open_connection")]
    assert digest(*(f"mitmproxy.proxy.server:{part}" for part in parts)) == DIRECT_READING


def test_what_the_listener_replaces() -> None:
    source = inspect.getsource(mode_servers.ServerInstance.handle_stream)
    assert "handler.layer = self.make_top_layer(handler.layer.context)" in source
    assert "self._servers = await self.listen(host, port)" in inspect.getsource(mode_servers.AsyncioServerInstance._start)


def test_what_the_front_door_relies_on() -> None:
    handler = inspect.getsource(server.ConnectionHandler.handle_client)
    assert "self.transports[self.client].handler = handler" in handler  # set after the task was made: bytes must not be there yet
    assert "data = await reader.read(65535)" in inspect.getsource(server.ConnectionHandler.handle_connection)
    assert "platform.original_addr(s)" in inspect.getsource(mode_servers.ServerInstance.handle_stream)
    assert 'b"Connection established"' in inspect.getsource(HttpStream.handle_connect_finish)
    assert "context.options.tcp_timeout" in inspect.getsource(server.ConnectionHandler.__init__)


def test_what_the_certificate_store_replaces() -> None:
    assert "self.expire(entry)" in inspect.getsource(certs.CertStore.get_cert)


def test_what_the_speedups_replace() -> None:
    assert "typecheck.check_option_type" in inspect.getsource(http)
    assert http.Headers._reduce_values(["a", "b"]) == "a, b"
