"""Exchanges the short way and the long way: the same bytes, hooks and records, whatever is asked, answered, changed or waits."""

import asyncio
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from mitmproxy import http

from gatewayfilter.model import Action, Reason, Request, RequestChange, ResponseChange, Verdict
from gatewayfilter.proxy.mitm.early_response import stream_of
from gatewayfilter.proxy.mitm.fastpath import exchange as short_exchange
from gatewayfilter.proxy.mitm.fastpath import tls_path
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream
from tests.proxy.conftest import StartGateway
from tests.proxy.mitm.http.test_http1_shapes import END, OK, RawOrigin
from tests.proxy.proxy_fakes import Gateway

BLOCKED = Verdict(Action.BLOCK, Reason.MANUAL_BLOCK)
HOOKS = ("requestheaders", "request", "responseheaders", "response", "error")


@dataclass
class Listener:
    """Notes hooks and what they see; one of them waits, or does something."""

    waits: str = ""
    acts: Callable[[str, http.HTTPFlow], None] | None = None
    seen: list[tuple[object, ...]] = field(default_factory=list)

    def _called(self, name: str, flow: http.HTTPFlow) -> Any:
        request, response = flow.request, flow.response
        self.seen.append((
            name, flow.live, request.method, request.host, request.port, request.path, request.headers.fields,
            request.raw_content,
            request.timestamp_end is None, flow.server_conn.address,
            response and (response.status_code, response.headers.fields),
            response and (response.raw_content, response.timestamp_end is None), flow.error and flow.error.msg,
        ))  # fmt: skip
        if self.acts is not None:
            self.acts(name, flow)

        async def later() -> None:
            await asyncio.sleep(0)

        return later() if name == self.waits else None

    def __getattr__(self, name: str) -> Any:
        if name in HOOKS:
            return lambda flow: self._called(name, flow)
        raise AttributeError(name)


@dataclass
class Outcome:
    """All that an observer sees of some exchanges."""

    client: bytes
    origin: bytes
    connections: int
    hooks: list[tuple[object, ...]]
    records: list[tuple[str, str, str]]
    counters: dict[str, int]
    short: int


async def exchange(port: int, sent: list[bytes]) -> bytes:
    """Sends each piece after the answers to the one before; returns all that came until the proxy closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    async with asyncio.timeout(10):
        try:
            for piece in sent:
                writer.write(piece)
                for _ in range(piece.count(END)):  # how far later requests come before the end depends on the path
                    got += await answer_to(reader, piece)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            got += getattr(error, "partial", b"")
        with contextlib.suppress(OSError):
            writer.write_eof()
            got += await reader.read()
    writer.close()
    return got


async def answer_to(reader: asyncio.StreamReader, piece: bytes) -> bytes:
    head = await reader.readuntil(END)
    while head.rpartition(b"HTTP/1.1 ")[2].startswith(b"1"):
        head += await reader.readuntil(END)
    length = re.search(rb"content-length: (\d+)", head.lower())
    if piece.startswith(b"HEAD") or head[9:12] in {b"204", b"304"}:
        return head
    if length is not None:
        return head + await reader.readexactly(int(length[1]))
    if b"transfer-encoding: chunked" in head.lower():
        body = b"\r\n"
        while not re.search(rb"\r\n0\r\n([^\r\n]+\r\n)*\r\n$", body):
            body += await reader.readuntil(b"\n")
        return head + body[2:]
    return head + await reader.read()


async def outcome(
    gateway: Gateway, answer: bytes, heads: list[bytes], listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> Outcome:
    taken: list[object] = []
    take = short_exchange.take

    def note(*arguments: Any) -> Any:
        found = take(*arguments)
        taken.append(found)
        return found

    monkeypatch.setattr(tls_path, "take", note)
    gateway.master.addons.add(listener)
    async with RawOrigin(answer).running() as origin:
        sent = [head.replace(b"HOST", b"127.0.0.1:%d" % origin.port) for head in heads]
        port = str(origin.port).encode()
        got = await exchange(gateway.port, sent)
        hooks = eval(repr(listener.seen).replace(str(origin.port), "0"))  # ports differ between runs
        return Outcome(
            got.replace(port, b"PORT"),
            bytes(origin.heard).replace(port, b"PORT"),
            origin.connections,
            hooks,
            [(record.method, record.url.replace(str(origin.port), "PORT"), record.reason) for record in gateway.records],
            dict(gateway.counters.as_dict()),
            sum(type(found) is list for found in taken),
        )


async def both_ways(
    start_gateway: StartGateway,
    monkeypatch: pytest.MonkeyPatch,
    answer: bytes,
    heads: list[bytes],
    prepare: Callable[[Gateway], None] = lambda _: None,
    **listener: Any,
) -> Outcome:
    """Runs exchanges both ways, checks that nobody could tell which was which, and returns what came of the short one."""
    found = []
    for fast_path in (True, False):
        async with start_gateway(fast_path=fast_path) as gateway:
            prepare(gateway)
            with monkeypatch.context() as patch:
                found.append(await outcome(gateway, answer, heads, Listener(**listener), patch))
    quick, slow = found
    assert slow.short == 0
    slow.short = quick.short
    assert quick == slow
    return quick


GET = b"GET http://HOST/page HTTP/1.1\r\nHost: HOST\r\nAccept: text/html\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
ANSWERS = {
    "plain": (OK, 4),
    "no-content": (b"HTTP/1.1 204 No Content\r\n\r\n", 4),
    "not-modified": (b'HTTP/1.1 304 Not Modified\r\netag: "x"\r\ncontent-length: 7\r\n\r\n', 4),
    "empty": (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 4),
    "large": (b"HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n" + b"x" * 300_000, 6),
    "chunked": (CHUNKED + b"2\r\nok\r\n0\r\n\r\n", 2),
    "trailers": (CHUNKED + b"2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n", 2),
    "alt-svc": (b'HTTP/1.1 200 OK\r\nalt-svc: h3=":443"\r\ncontent-length: 2\r\n\r\nok', 4),
    "too-long": (OK + b"further", 0),
    "closes": (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok", 0),
    "until-the-end": (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok", 0),
    "two-lengths": (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok", 0),
    "1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok", 0),
    "interim": (b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + OK, 0),
    "nonsense": (b"nonsense\r\n\r\n", 0),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_any_answer(name: str, start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, least = ANSWERS[name]
    found = await both_ways(start_gateway, monkeypatch, answer, [GET] * 3)
    assert found.short >= least
    assert found.client


REQUESTS = {
    "another-host": (b"GET http://HOST/page HTTP/1.1\r\nHost: other.example\r\n\r\n", 4),
    "keep-alive": (
        b"GET http://HOST/ HTTP/1.1\r\nHost: HOST\r\nConnection: keep-alive\r\nProxy-Connection: keep-alive\r\n\r\n",
        4,
    ),
    "post": (b"POST http://HOST/page HTTP/1.1\r\nHost: HOST\r\ncontent-length: 3\r\n\r\nabc", 2),
    "expects": (b"POST http://HOST/page HTTP/1.1\r\nHost: HOST\r\nExpect: 100-continue\r\ncontent-length: 3\r\n\r\nabc", 0),
    "closes": (b"GET http://HOST/page HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", 0),
    "1.0": (b"GET http://HOST/page HTTP/1.0\r\nHost: HOST\r\n\r\n", 0),
    "two": (GET + GET, 0),
    "origin-form": (b"GET /page HTTP/1.1\r\nHost: HOST\r\n\r\n", 1),
    "blocked": (b"GET http://HOST/blocked HTTP/1.1\r\nHost: HOST\r\n\r\n", 0),
    "unknown": (b"GET http://HOST/unknown HTTP/1.1\r\nHost: HOST\r\n\r\n", 4),
    "fails": (b"GET http://HOST/raise HTTP/1.1\r\nHost: HOST\r\n\r\n", 0),
    "bad-target": (b"GET http://a b/ HTTP/1.1\r\nHost: HOST\r\n\r\n", 0),
    "bad-field": (b"GET http://HOST/page HTTP/1.1\r\nHost: HOST\r\nbad field: x\r\n\r\n", 0),
    "two-hosts": (b"GET http://HOST/page HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n\r\n", 0),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_any_request(name: str, start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    head, least = REQUESTS[name]
    found = await both_ways(start_gateway, monkeypatch, OK, [head] * 3)
    assert found.short >= least


async def test_a_head_without_its_body(start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"HEAD http://HOST/page HTTP/1.1\r\nHost: HOST\r\n\r\n"
    found = await both_ways(start_gateway, monkeypatch, OK.removesuffix(b"ok"), [head] * 3)
    assert found.short == 5


@pytest.mark.parametrize("name", HOOKS[:4])
@pytest.mark.parametrize("answer", [OK, b"HTTP/1.1 204 No Content\r\n\r\n", CHUNKED + b"2\r\nok\r\n0\r\n\r\n"])
async def test_a_hook_that_waits(name: str, answer: bytes, start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await both_ways(start_gateway, monkeypatch, answer, [GET] * 3, waits=name)
    assert found.client.count(b"HTTP/1.1 ") == 3


def kill(flow: http.HTTPFlow) -> None:
    flow.kill()


def respond(flow: http.HTTPFlow) -> None:
    flow.response = http.Response.make(200, b"us")


def close(flow: http.HTTPFlow) -> None:
    message = flow.response or flow.request
    message.headers["connection"] = "close"


def keep(flow: http.HTTPFlow) -> None:
    if flow.response is not None:
        flow.response.stream = False


def shout(flow: http.HTTPFlow) -> None:
    if flow.response is not None:
        flow.response.stream = bytes.upper


def elsewhere(flow: http.HTTPFlow) -> None:
    flow.request.path = "/elsewhere"


def another(flow: http.HTTPFlow) -> None:
    flow.request = flow.request.copy()
    flow.request.path = "/another"


@pytest.mark.parametrize("name", HOOKS[:4])
@pytest.mark.parametrize("does", [kill, respond, close, keep, shout, elsewhere, another])
async def test_a_hook_that_does_something(
    name: str, does: Callable[[http.HTTPFlow], None], start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def acts(hook: str, flow: http.HTTPFlow) -> None:
        if hook == name:
            does(flow)

    await both_ways(start_gateway, monkeypatch, OK, [GET] * 2, acts=acts)


async def test_rules_at_work(start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    page = b"<html><head></head><body>page</body></html>"
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nset-cookie: a=b\r\ncontent-length: %d\r\n\r\n%b" % (len(page), page)
    document = GET.replace(b"\r\n\r\n", b"\r\nSec-Fetch-Dest: document\r\nCookie: a=b\r\n\r\n")

    def prepare(gateway: Gateway) -> None:
        gateway.changes.requests["/page"] = RequestChange(remove_headers=("cookie",))
        gateway.changes.responses["/page"] = ResponseChange(
            remove_headers=("set-cookie",), csp=("script-src 'none'",), style=".ad{display:none!important}"
        )

    found = await both_ways(start_gateway, monkeypatch, answer, [document] * 3, prepare)
    assert found.short == 5
    assert found.client.count(b".ad") == found.client.count(b"0\r\n\r\n") == 3
    assert b"ookie: a=b" not in found.client + found.origin


REPEATED = {
    "again": [GET] * 5,
    "of the same length": [GET, GET, GET.replace(b"/page", b"/pagf"), GET, GET.replace(b"text/html", b"text/htmm"), GET],
    "another host": [GET, GET, GET.replace(b"http://HOST", b"http://127.0.0.2:1"), GET],
    "another Host": [GET, GET.replace(b"Host: HOST", b"Host: nobody.example"), GET],
    "blocked in between": [GET, GET.replace(b"/page", b"/blocked"), GET, GET],
    "a field twice": [GET, GET.replace(b"Accept", b"Host: HOST\r\nAccept"), GET],
    "a body in between": [GET, GET, GET.replace(b"Accept: text/html", b"content-length: 3") + b"abc", GET],
    "a folded line": [GET, GET.replace(b"\r\nAccept", b"\r\n Accept"), GET],
    "two in a piece": [GET, GET + GET, GET],
    "an upgrade": [GET, GET.replace(b"Accept: text/html", b"Connection: upgrade\r\nUpgrade: h2c"), GET],
    "in two pieces": [GET, GET[:40], GET[40:], GET],
    "long": [GET.replace(b"text/html", b"a" * 3000)] * 3,
}


@pytest.mark.parametrize("name", REPEATED)
async def test_requests_that_come_again(name: str, start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    await both_ways(start_gateway, monkeypatch, OK, REPEATED[name])


@pytest.mark.parametrize("does", [elsewhere, another, keep, shout, lambda flow: flow.request.headers.__setitem__("x-added", "1")])
@pytest.mark.parametrize("name", ["requestheaders", "request"])
async def test_a_hook_that_does_something_to_some_of_them(
    name: str, does: Callable[[http.HTTPFlow], None], start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = 0

    def acts(hook: str, flow: http.HTTPFlow) -> None:
        nonlocal called
        called += hook == name
        if hook == name and called % 3 == 0:
            does(flow)

    found = await both_ways(start_gateway, monkeypatch, OK, [GET] * 6, acts=acts)
    assert found.origin.count(b"GET /page") >= 4


async def test_a_request_that_comes_again_is_decided_again(start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(gateway: Gateway) -> None:
        decide, asked = gateway.decide.decide, []

        def changing(request: Request) -> Verdict:
            asked.append(request)
            return BLOCKED if len(asked) == 3 else decide(request)

        monkeypatch.setattr(gateway.decide, "decide", changing)

    found = await both_ways(start_gateway, monkeypatch, OK, [GET] * 4, prepare)
    assert [reason for _, _, reason in found.records] == ["whitelist", "whitelist", "manual-block", "whitelist"]
    assert re.findall(rb"HTTP/1.1 (\d+)", found.client) == [b"200", b"200", b"403", b"200"]
    assert found.origin.count(b"GET /page") == 3
    assert found.counters["requests"] == 4


@pytest.mark.parametrize(("waits", "made"), [("", 1), ("requestheaders", 3), ("response", 3)])
async def test_a_stream_serves_again_where_it_only_took_the_fast_path(
    waits: str, made: int, start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams: list[int] = []
    as_new: list[bool] = []
    begin = GatewayHttpStream.__init__

    def note(self: GatewayHttpStream, context: Any, stream_id: int) -> None:
        streams.append(stream_id)
        begin(self, context, stream_id)

    monkeypatch.setattr(GatewayHttpStream, "__init__", note)
    async with start_gateway(fast_path=True) as gateway:
        connections = gateway.master.addons.get("proxyserver").connections

        def is_as_new(hook: str, flow: http.HTTPFlow) -> None:
            if hook == "requestheaders":
                stream = stream_of(flow, connections[flow.client_conn.id])
                assert stream is not None
                as_new.append(stream.context.server is flow.server_conn and flow.server_conn.address is None)

        # The first one waits for its connection to the origin, and so does not take the fast path alone.
        await outcome(gateway, OK, [GET] * 4, Listener(waits=waits, acts=is_as_new), monkeypatch)
    assert len(streams) == 1 + made
    assert as_new == [True] * 4
