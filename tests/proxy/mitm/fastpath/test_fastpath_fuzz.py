"""Whatever client and origin say, in whatever pieces, and whatever hooks do: the short way and mitmproxy's own do the same."""

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from mitmproxy import http

from gatewayfilter.config import CrawlSettings, ProxySettings, Settings
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.mitm.fastpath import exchange, tls_path
from tests.proxy.layer_drivers import HOOKS, Driver, Watcher
from tests.proxy.proxy_fakes import Gateway

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

type Step = tuple[Any, ...]


async def _later() -> None:
    return


def _wait(_: http.HTTPFlow) -> Awaitable[None]:
    return _later()


def _kill(flow: http.HTTPFlow) -> None:
    if flow.killable:
        flow.kill()


def _respond(flow: http.HTTPFlow) -> None:
    flow.request.stream = False  # mitmproxy takes no response to a request that is streamed
    flow.response = http.Response.make(200, b"us")


def _close(flow: http.HTTPFlow) -> None:
    if flow.response is None or flow.response.timestamp_end is None:  # later, mitmproxy has or has not looked, as the bytes came
        (flow.response or flow.request).headers["connection"] = "close"


def _keep(flow: http.HTTPFlow) -> None:
    if flow.response is not None:
        flow.response.stream = False


def _shout(flow: http.HTTPFlow) -> None:
    if flow.response is not None:
        flow.response.stream = bytes.upper


def _add(flow: http.HTTPFlow) -> None:
    (flow.response or flow.request).headers["x-added"] = "1"


def _capitals(flow: http.HTTPFlow) -> None:
    (flow.response or flow.request).headers["X-Added"] = "1"


DEEDS = {
    "wait": _wait, "kill": _kill, "respond": _respond, "close": _close, "keep": _keep, "shout": _shout, "add": _add,
    "capitals": _capitals,
}  # fmt: skip
PATHS = st.one_of(
    st.sampled_from(
        [b"/page"] * 3 + [b"/", b"/blocked", b"/unknown", b"/raise", b"/a?b=c#d", b"//x", b"/\xc3\xa9", b"*", b"/a b"]
    ),
    st.builds(lambda deed, hook: f"/{deed}-{hook}".encode(), st.sampled_from(sorted(DEEDS)), st.sampled_from(HOOKS)),
)
REQUEST_FIELDS = st.sampled_from([
    b"Host: a.example", b"Host: b.example", b"Host:", b"Host : a.example", b"Accept: text/html", b"Connection: keep-alive",
    b"Connection: close", b"Proxy-Connection: keep-alive", b"Content-Length: 0", b"Content-Length: 3", b"content-length: 3, 3",
    b"Content-Length: +3", b"Content-Length: 0x3", b"Transfer-Encoding: chunked", b"Transfer-Encoding: Chunked",
    b"Transfer-Encoding:\x0bchunked", b"transfer-encoding: gzip, chunked", b"Transfer-Encoding: identity", b" folded: x", b"\tx",
    b"bad field: x", b"X: a\rY: b", b"X: \x00", b"X: \xff", b": x", b"x", b"Expect: 100-continue", b"Upgrade: websocket",
    b"Upgrade: h2c", b"Sec-Fetch-Dest: document", b"Range: bytes=0-1", b"Te: trailers", b"Cookie: a=b", b"Authorization: x",
])  # fmt: skip
BODIES = st.sampled_from([
    b"", b"", b"", b"abc", b"3\r\nabc\r\n0\r\n\r\n", b"3;x=y\r\nabc\r\n0\r\nx-t: 1\r\n\r\n", b"3\nabc\n0\n\n",
    b"ffffffffffffffff\r\n", b"0\r\n\r\n", b"\r\n",
])  # fmt: skip
METHODS = st.sampled_from([b"GET", b"GET", b"GET", b"HEAD", b"OPTIONS", b"DELETE", b"POST", b"get", b"PUT", b"TRACE"])
VERSIONS = st.sampled_from([b"HTTP/1.1"] * 6 + [b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.1 "])
ENDS = st.sampled_from([b"\r\n"] * 8 + [b"\n"])
TARGETS = st.sampled_from([b"http://a.example"] * 5 + [b"http://b.example", b"http://a.example:8080", b""])


def _request(method: bytes, target: bytes, path: bytes, version: bytes, fields: list[bytes], end: bytes, body: bytes) -> bytes:
    return end.join([b"%b %b%b %b" % (method, target, path, version), *fields, b"", b""]) + body


PLAIN_REQUESTS = st.builds(
    lambda method, path: b"%b http://a.example%b HTTP/1.1\r\nHost: a.example\r\n\r\n" % (method, path),
    st.sampled_from([b"GET", b"GET", b"HEAD"]), PATHS,
)  # fmt: skip
ODD_REQUESTS = st.builds(_request, METHODS, TARGETS, PATHS, VERSIONS, st.lists(REQUEST_FIELDS, max_size=4), ENDS, BODIES)
STATUSES = st.sampled_from([
    b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK", b"HTTP/1.1 200", b"HTTP/1.1 204 No Content", b"HTTP/1.1 304 Not",
    b"HTTP/1.1 404 Not Found", b"HTTP/1.1 100 Continue", b"HTTP/1.1 103 Early Hints", b"HTTP/1.1 101 Switching Protocols",
    b"HTTP/1.0 200 OK", b"HTTP/1.1 abc", b"ICY 200 OK", b"HTTP/1.1 200 a\tb", b"HTTP/1.1 599 x",
])  # fmt: skip
RESPONSE_FIELDS = st.sampled_from([
    b"Content-Length: 0", b"Content-Length: 2", b"Content-Length: 2", b"Content-Length: 5", b"content-length: 2, 2",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", b"transfer-encoding: gzip", b"Connection: close",
    b"Connection: keep-alive", b"Connection: Upgrade", b"Upgrade: websocket", b"Content-Type: text/html", b'Alt-Svc: h3=":443"',
    b"Set-Cookie: a=b", b"Link: </x>", b"X: a\rY: b", b"X: \x00", b"bad field: x", b" fold", b"X:  \x0b ", b"Content-Length:",
])  # fmt: skip
ANSWERS = st.one_of(
    st.sampled_from([
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n" + b"x" * 300,
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ]),
    st.builds(
        lambda status, fields, end, body: end.join([status, *fields, b"", b""]) + body,
        STATUSES, st.lists(RESPONSE_FIELDS, max_size=4), ENDS,
        st.sampled_from([b"", b"ok", b"okokok", b"zz\r\n", b"2\r\nok\r\n0\r\n\r\n", b"2\r\nok\r\n0\r\nx-t: 1\r\n\r\n"]),
    ),
)  # fmt: skip


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in pairwise(marks)]


def _said(kind: str, what: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[Step]]:
    pieces = st.builds(_cut, what, st.lists(st.integers(0, 500), max_size=2))
    return pieces.map(lambda cut: [(kind, piece) for piece in cut])


def _whole(kind: str, what: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[Step]]:
    return what.map(lambda data: [(kind, data)])


PLAIN_ANSWERS = st.sampled_from([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"HTTP/1.1 204 No Content\r\n\r\n"])
RELEASES = st.integers(0, 2).map(lambda count: [("release",)] * count)
EXCHANGES = st.builds(
    lambda *parts: [step for part in parts for step in part],
    st.one_of(*[_whole("client", PLAIN_REQUESTS)] * 4, _said("client", ODD_REQUESTS)),
    RELEASES,
    st.one_of(_whole("origin", PLAIN_ANSWERS), _said("origin", ANSWERS), _said("origin", ANSWERS)),
    RELEASES,
)
"""A request and its answer: without them nothing would ever be plain."""
AGAIN = st.builds(lambda steps, times: steps * times, EXCHANGES, st.integers(2, 4))
"""The same request over one connection, which is read once where it may be (request/repeated_request.py)."""
SURPRISES = st.one_of(
    _said("client", PLAIN_REQUESTS),
    _said("client", ODD_REQUESTS),
    _said("client", st.builds(bytes.__add__, PLAIN_REQUESTS, PLAIN_REQUESTS)),
    _said("origin", ANSWERS),
    st.sampled_from([[("release",)], [("origin-ends", False)], [("origin-ends", True)], [("client-ends", True)]]),
)
BEGINNING: list[Step] = [
    ("client", b"GET http://a.example/page HTTP/1.1\r\nHost: a.example\r\n\r\n"),
    ("origin", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
]
"""Opens the connection to the origin."""
STEPS = st.lists(st.one_of(EXCHANGES, EXCHANGES, AGAIN, SURPRISES), min_size=1, max_size=8).map(
    lambda groups: BEGINNING + [step for group in groups for step in group]
)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def masters(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[LeanMaster]]:
    """One with and one without the fast path, for each mode."""

    async def make(mode: str, folder: Path, *, fast_path: bool) -> LeanMaster:
        chosen = ProxySettings.model_validate({"listen": "127.0.0.1:0", "mode": mode, "fast_path": fast_path})
        whole = Settings(data_dir=folder, proxy=chosen, crawl=CrawlSettings())
        return LeanMaster(whole, Gateway().addon(chosen, whole))

    folder = tmp_path_factory.mktemp("fuzz")
    return {
        mode: [runner.run(make(mode, folder, fast_path=fast_path)) for fast_path in (True, False)]
        for mode in ("regular", "upstream:http://parent.example:3128")
    }


def walk(driver: Driver, watcher: Watcher, steps: list[Step]) -> list[object]:
    """Takes the steps; returns all that can be seen after each."""
    seen: list[object] = []
    for kind, *what in steps:
        newest = len(driver.connections) - 1
        if kind == "client":
            driver.data(0, what[0])
        elif kind == "client-ends":
            driver.end(0, half=what[0])
        elif kind == "release":
            driver.release()
        elif newest and kind == "origin":
            driver.data(newest, what[0])
        elif newest:
            driver.end(newest, half=what[0])
        seen.append(([bytes(sent) for sent in driver.sent], list(driver.ends), list(watcher.seen)))
    driver.finish()
    seen.append(([bytes(sent) for sent in driver.sent], list(driver.ends), list(watcher.seen)))
    return seen


def taken(steps: list[Step], master: LeanMaster, mode: str) -> list[object]:
    """Returns what is seen of steps on one of the paths."""
    watcher = Watcher(DEEDS)
    master.addons.add(watcher)
    try:
        return walk(Driver(master, mode), watcher, steps)
    finally:
        master.addons.remove(watcher)


async def differ(steps: list[Step], masters: list[LeanMaster], mode: str) -> None:
    note(f"{steps}")
    seen = zip(*[taken(steps, master, mode) for master in masters], strict=True)
    for place, (ours, theirs) in enumerate(seen):
        assert ours == theirs, f"after step {place}"


def test_both_ways_are_one(
    masters: dict[str, list[LeanMaster]],
    runner: asyncio.Runner,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    short = 0
    take = exchange.take

    def count(*arguments: Any) -> Any:
        nonlocal short
        found = take(*arguments)
        short += type(found) is list
        return found

    monkeypatch.setattr(tls_path, "take", count)
    caplog.set_level(logging.CRITICAL)

    @settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck), phases=set(Phase) - {Phase.explain})
    @given(steps=STEPS, mode=st.sampled_from(sorted(masters)))
    def every(steps: list[Step], mode: str) -> None:
        runner.run(differ(steps, masters[mode], mode))

    every()
    assert short > 300  # else nothing was compared
