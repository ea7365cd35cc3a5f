"""Streams of HTTP/2 frame by frame: the fast path and the layers of h2 and mitmproxy say the same, whatever comes."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from gatewayfilter.config import CrawlSettings, ProxySettings, Settings
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.mitm.fastpath import tls_path
from gatewayfilter.proxy.mitm.fastpath.http2 import exchange
from gatewayfilter.proxy.mitm.fastpath.http2.exchange import Taken
from gatewayfilter.proxy.mitm.http import http2_bounds
from gatewayfilter.proxy.mitm.http.http2_bounds import BoundedHttp2Server
from tests.proxy.layer_drivers import HOOKS, Watcher
from tests.proxy.mitm.fastpath.http2.frame_script import ACK, PREFACE, SETTINGS, Fields, Http2Driver, Peer, raw, read
from tests.proxy.mitm.fastpath.test_fastpath_fuzz import DEEDS
from tests.proxy.proxy_fakes import Gateway

OK: Fields = [(b":status", b"200"), (b"content-type", b"text/plain"), (b"content-length", b"2")]


def ask(path: bytes = b"/page", method: bytes = b"GET", *more: tuple[bytes, bytes], drop: bytes = b"") -> Fields:
    """Returns the fields of a request."""
    pseudo = [(b":method", method), (b":authority", b"a.example"), (b":scheme", b"https"), (b":path", path)]
    return [one for one in (*pseudo, (b"accept", b"text/html"), (b"user-agent", b"test"), *more) if one[0] != drop]


@dataclass
class Script:
    """What client and origin say in turn. Each end has its own table of fields."""

    client: Peer = field(default_factory=Peer)
    origin: Peer = field(default_factory=Peer)
    steps: list[tuple[object, ...]] = field(default_factory=list)

    @classmethod
    def begun(cls) -> "Script":
        """Returns one that has opened both connections by a first exchange, on stream 1."""
        made = cls()
        made.says("client", PREFACE + SETTINGS + made.client.head(1, ask()))
        made.says("origin", SETTINGS + ACK)
        made.says("client", ACK)
        made.says("origin", made.origin.head(1, OK, end=False) + made.origin.data(1, b"ok", end=True))
        return made

    def says(self, who: str, *frames: bytes) -> None:
        self.steps.append((who, b"".join(frames)))

    def exchange(self, number: int, fields: Fields | None = None, answer: Fields | None = None, body: bytes = b"ok") -> None:
        """Adds a request and its answer."""
        self.says("client", self.client.head(number, fields or ask()))
        head = self.origin.head(number, answer or OK, end=not body)
        self.says("origin", head, self.origin.data(number, body, end=True) if body else b"")


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def masters(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> list[LeanMaster]:
    """One with and one without the fast path."""

    async def make(folder: Path, *, fast_path: bool) -> LeanMaster:
        chosen = ProxySettings.model_validate({"listen": "127.0.0.1:0", "fast_path": fast_path})
        whole = Settings(data_dir=folder, proxy=chosen, crawl=CrawlSettings())
        return LeanMaster(whole, Gateway().addon(chosen, whole))

    folder = tmp_path_factory.mktemp("http2")
    return [runner.run(make(folder, fast_path=fast_path)) for fast_path in (True, False)]


def walk(driver: Http2Driver, watcher: Watcher, steps: list[tuple[Any, ...]]) -> list[object]:
    """Takes the steps. Returns all that can be seen after each."""
    seen: list[object] = []
    for kind, *what in [*steps, ("finish",)]:
        if kind == "client":
            driver.data(0, what[0])
        elif kind == "origin":
            driver.data(1, what[0])
        elif kind == "release":
            driver.release()
        elif kind == "finish":
            driver.finish()
        else:
            driver.end(int(kind == "origin-ends"))
        # h2 reads all frames of a read before mitmproxy handles the first: hooks of several streams take turns then.
        hooks = sorted(watcher.seen, key=lambda one: str(one[5]))
        seen.append(([read(bytes(sent)) for sent in driver.sent], list(driver.ends), hooks))
    return seen


@pytest.fixture
def both_ways(
    masters: list[LeanMaster], runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Callable[[Script], tuple[list[Any], int]]:
    """Returns what runs a script both ways, compares, and returns what was seen last and how much was left to h2."""
    caplog.set_level(logging.CRITICAL)
    counted = {"short": 0}

    def counting(take: Callable[..., Taken | None]) -> Callable[..., Taken | None]:
        def count(*arguments: Any) -> Taken | None:
            found = take(*arguments)
            counted["short"] += found is not None and found.slow is None and not found.rest
            return found

        return count

    monkeypatch.setattr(tls_path, "take_from_client", counting(exchange.take_from_client))
    monkeypatch.setattr(tls_path, "take_from_origin", counting(exchange.take_from_origin))

    async def seen(master: LeanMaster, steps: list[tuple[Any, ...]]) -> list[Any]:
        watcher = Watcher(DEEDS)
        master.addons.add(watcher)
        try:
            return walk(Http2Driver(master), watcher, steps)
        finally:
            master.addons.remove(watcher)

    def run(script: Script) -> tuple[list[Any], int]:
        counted["short"] = 0
        ours, theirs = [runner.run(seen(master, script.steps)) for master in masters]
        for place, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            assert mine == other, f"after step {place}"
        return ours[-1], counted["short"]

    return run


type BothWays = Callable[[Script], tuple[list[Any], int]]

REQUESTS: dict[str, tuple[Fields, bool]] = {
    "plain": (ask(), True),
    "head": (ask(b"/page", b"HEAD"), True),
    "query": (ask(b"/a?b=c&d=%20#e"), True),
    "cookies": (ask(b"/page", b"GET", (b"cookie", b"a=b"), (b"cookie", b"c=d")), True),
    "credentials": (ask(b"/page", b"GET", (b"authorization", b"Basic YTpi")), True),
    "another-host": ([(b":authority", b"b.example:8443"), *ask(drop=b":authority")], True),
    "empty-value": (ask(b"/page", b"GET", (b"x-a", b"")), True),
    "long": (ask(b"/page", b"GET", (b"x-a", b"a" * 17_000)), False),
    "post": (ask(b"/page", b"POST"), False),
    "connect": (ask(b"/page", b"CONNECT"), False),
    "no-authority": (ask(drop=b":authority"), False),
    "host-too": (ask(b"/page", b"GET", (b"host", b"a.example")), False),
    "host-alone": (ask(b"/page", b"GET", (b"host", b"a.example"), drop=b":authority"), False),
    "hosts-differ": (ask(b"/page", b"GET", (b"host", b"b.example")), False),
    "bad-authority": ([(b":authority", b"a b\n"), *ask(drop=b":authority")], False),
    "plain-scheme": ([(b":scheme", b"http"), *ask(drop=b":scheme")], False),
    "no-path": (ask(drop=b":path"), False),
    "empty-path": (ask(b""), False),
    "path-of-another-form": (ask(b"http://b.example/"), False),
    "blank-in-path": (ask(b"/a b HTTP/1.1\tx"), False),
    "break-in-path": (ask(b"/a\r\nx: y"), False),
    "two-paths": ([(b":path", b"/other"), *ask()], False),
    "pseudo-later": ([*ask(drop=b":path"), (b":path", b"/page")], False),
    "another-pseudo": ([(b":protocol", b"websocket"), *ask()], False),
    "upper-case": (ask(b"/page", b"GET", (b"X-A", b"b")), False),
    "empty-name": (ask(b"/page", b"GET", (b"", b"b")), False),
    "colon": (ask(b"/page", b"GET", (b"x:y", b"b")), False),
    "break-in-name": (ask(b"/page", b"GET", (b"x\ny", b"b")), False),
    "break": (ask(b"/page", b"GET", (b"x-a", b"b\r\nhost: c.example")), False),
    "line-feed-last": (ask(b"/page", b"GET", (b"x-a", b"b\n")), False),
    "nul": (ask(b"/page", b"GET", (b"x-a", b"b\0")), False),
    "blank-first": (ask(b"/page", b"GET", (b"x-a", b" b")), False),
    "blank-last": (ask(b"/page", b"GET", (b"x-a", b"b\t")), False),
    "connection": (ask(b"/page", b"GET", (b"connection", b"close")), False),
    "keep-alive": (ask(b"/page", b"GET", (b"keep-alive", b"1")), False),
    "chunked": (ask(b"/page", b"GET", (b"transfer-encoding", b"chunked")), False),
    "te": (ask(b"/page", b"GET", (b"te", b"trailers")), False),
    "te-other": (ask(b"/page", b"GET", (b"te", b"gzip")), False),
    "upgrade": (ask(b"/page", b"GET", (b"upgrade", b"h2c")), False),
    "length": (ask(b"/page", b"GET", (b"content-length", b"5")), False),
    "no-length": (ask(b"/page", b"GET", (b"content-length", b"0")), False),
    "expect": (ask(b"/page", b"GET", (b"expect", b"100-continue")), False),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_any_request(name: str, both_ways: BothWays) -> None:
    fields, short = REQUESTS[name]
    script = Script.begun()
    script.exchange(3, fields, body=b"" if name == "head" else b"ok")
    script.exchange(5)  # the tables of fields are as they would be
    (sent, *_), taken = both_ways(script)
    if short:
        assert taken >= 4
        assert [frame[1] for frame in sent[0] if frame[0] == "head"] == [1, 3, 5]


RESPONSES: dict[str, tuple[Fields, list[bytes], bool]] = {
    "plain": (OK, [b"ok"], True),
    "no-length": ([(b":status", b"200")], [b"a", b"b" * 9000, b"c"], True),
    "no-body": ([(b":status", b"204")], [], True),
    "not-modified": ([(b":status", b"304"), (b"etag", b'"x"'), (b"content-length", b"7")], [], True),
    "missing": ([(b":status", b"404"), (b"content-length", b"0")], [], True),
    "cookies": ([*OK, (b"set-cookie", b"a=b"), (b"set-cookie", b"c=d")], [b"ok"], True),
    "too-long": (OK, [b"okay"], False),
    "too-short": (OK, [b"o"], False),
    "length-without-body": (OK, [], True),
    "two-lengths": ([*OK, (b"content-length", b"3")], [b"ok"], False),
    "bad-length": ([(b":status", b"200"), (b"content-length", b"+2")], [b"ok"], False),
    "no-number": ([(b":status", b"200"), (b"content-length", b"x")], [b"ok"], False),
    "interim": ([(b":status", b"103"), (b"link", b"</x>")], [], False),
    "switch": ([(b":status", b"101")], [b"ok"], False),
    "bad-status": ([(b":status", b"2x0")], [b"ok"], False),
    "no-status": ([(b"content-type", b"text/plain")], [b"ok"], False),
    "two-statuses": ([(b":status", b"200"), (b":status", b"404")], [b"ok"], False),
    "status-later": ([(b"a", b"b"), (b":status", b"200")], [b"ok"], False),
    "of-requests": ([(b":status", b"200"), (b":path", b"/")], [b"ok"], False),
    "upper-case": ([*OK, (b"X-A", b"b")], [b"ok"], False),
    "break": ([*OK, (b"x-a", b"b\r\nset-cookie: c")], [b"ok"], False),
    "connection": ([*OK, (b"connection", b"close")], [b"ok"], False),
    "chunked": ([(b":status", b"200"), (b"transfer-encoding", b"chunked")], [b"ok"], False),
    "alt-svc": ([*OK, (b"alt-svc", b'h3=":443"')], [b"ok"], True),
    "page": ([(b":status", b"200"), (b"content-type", b"text/html")], [b"<p>", b"ok"], True),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_any_response(name: str, both_ways: BothWays) -> None:
    fields, bodies, short = RESPONSES[name]
    script = Script.begun()
    for number in (3, 5):
        script.says("client", script.client.head(number, ask()))
        script.says("origin", script.origin.head(number, fields, end=not bodies))
        for place, body in enumerate(bodies):
            script.says("origin", script.origin.data(number, body, end=place == len(bodies) - 1))
    (sent, *_), taken = both_ways(script)
    if short:
        assert taken >= 2 * (2 + len(bodies))
        assert {frame[1] for frame in sent[0] if frame[0] in {"head", "data"} and frame[3]} == {1, 3, 5}


def both(who: str, *frames: Callable[[Peer], bytes]) -> Callable[[Script], None]:
    """Returns what lets one end say something while stream 3 is under way, and its body has begun."""

    def add(script: Script) -> None:
        script.says("client", script.client.head(3, ask()))
        script.says("origin", script.origin.head(3, OK[:1], end=False), script.origin.data(3, b"begun"))
        peer = script.client if who == "client" else script.origin
        script.says(who, *(make(peer) for make in frames))
        script.says("origin", script.origin.data(3, b"end", end=True))
        script.exchange(5)

    return add


def fixed(frame: bytes) -> Callable[[Peer], bytes]:
    return lambda _: frame


WINDOW = (100_000).to_bytes(4)
ODD: dict[str, Callable[[Script], None]] = {
    "client-ping": both("client", fixed(raw(6, 0, 0, b"12345678"))),
    "client-short-ping": both("client", fixed(raw(6, 0, 0, b"1234"))),
    "client-resets": both("client", fixed(raw(3, 0, 3, b"\0\0\0\x08"))),
    "client-resets-idle": both("client", fixed(raw(3, 0, 7, b"\0\0\0\x08"))),
    "client-resets-ended": both("client", fixed(raw(3, 0, 1, b"\0\0\0\x08"))),
    "client-goes": both("client", fixed(raw(7, 0, 0, bytes(8)))),
    "client-window": both("client", fixed(raw(8, 0, 0, WINDOW)), fixed(raw(8, 0, 3, WINDOW))),
    "client-window-of-ended": both("client", fixed(raw(8, 0, 1, WINDOW))),
    "client-window-of-idle": both("client", fixed(raw(8, 0, 9, WINDOW))),
    "client-window-zero": both("client", fixed(raw(8, 0, 0, bytes(4)))),
    "client-window-zero-of-stream": both("client", fixed(raw(8, 0, 3, bytes(4)))),
    "client-window-too-large": both("client", fixed(raw(8, 0, 0, b"\x7f\xff\xff\xff"))),
    "client-window-of-stream-too-large": both("client", fixed(raw(8, 0, 3, b"\x7f\xff\xff\xff"))),
    "client-window-short": both("client", fixed(raw(8, 0, 0, b"\0\0\1"))),
    "client-window-high-bit": both("client", fixed(raw(8, 0, 0, b"\x80\0\0\1"))),
    "client-data-after-end": both("client", fixed(raw(0, 0, 3, b"x"))),
    "client-head-after-end": both("client", lambda peer: peer.head(3, ask())),
    "client-stream-too-low": both("client", lambda peer: peer.head(1, ask())),
    "client-even-stream": both("client", lambda peer: peer.head(4, ask())),
    "client-stream-zero": both("client", lambda peer: peer.head(0, ask())),
    "client-trailers-first": both(
        "client", lambda peer: peer.head(7, ask(), end=False), lambda peer: peer.head(7, [(b"x", b"y")])
    ),
    "client-two-frames": both("client", lambda peer: peer.head(7, ask(), cut=5)),
    "client-broken-head": both("client", lambda peer: peer.head(7, ask(), cut=5)[:-4]),
    "client-continuation": both("client", fixed(raw(9, 4, 3, b""))),
    "client-padded": both("client", lambda peer: peer.head(7, ask(), flags=8, before=b"\0")),
    "client-priority": both("client", lambda peer: peer.head(7, ask(), flags=32, before=b"\x80\0\0\0\xff")),
    "client-priority-of-itself": both("client", lambda peer: peer.head(7, ask(), flags=32, before=b"\0\0\0\7\xff")),
    "client-bad-block": both("client", fixed(raw(1, 5, 7, b"\x80"))),
    "client-unknown-frame": both("client", fixed(raw(99, 1, 7, b"what"))),
    "client-too-long-frame": both("client", fixed(raw(0, 0, 3, bytes(17_000)))),
    "client-settings": both("client", fixed(raw(4, 0, 0, b"\0\4\0\0\0\x0a"))),
    "client-small-frames-and-table": both("client", fixed(raw(4, 0, 0, b"\0\1\0\0\0\0\0\5\0\0\x40\0"))),
    "client-pushes": both("client", fixed(raw(5, 4, 3, b"\0\0\0\2\x82"))),
    "client-reserved-bit": both("client", lambda peer: _reserved(peer.head(7, ask()))),
    "origin-ping": both("origin", fixed(raw(6, 0, 0, b"12345678"))),
    "origin-resets": both("origin", fixed(raw(3, 0, 3, b"\0\0\0\x02"))),
    "origin-goes": both("origin", fixed(raw(7, 0, 0, bytes(8)))),
    "origin-window": both("origin", fixed(raw(8, 0, 0, WINDOW)), fixed(raw(8, 0, 3, WINDOW))),
    "origin-empty-data": both("origin", fixed(raw(0, 0, 3, b""))),
    "origin-empty-end": both("origin", fixed(raw(0, 1, 3, b""))),
    "origin-padded": both("origin", fixed(raw(0, 8, 3, b"\3abc\0\0\0"))),
    "origin-bad-padding": both("origin", fixed(raw(0, 8, 3, b"\x09abc\0\0\0"))),
    "origin-data-of-idle": both("origin", fixed(raw(0, 0, 9, b"x"))),
    "origin-data-of-ended": both("origin", fixed(raw(0, 0, 1, b"x"))),
    "origin-data-of-zero": both("origin", fixed(raw(0, 0, 0, b"x"))),
    "origin-trailers": both("origin", lambda peer: peer.head(3, [(b"x-sum", b"1")])),
    "origin-trailers-without-end": both("origin", lambda peer: peer.head(3, [(b"x-sum", b"1")], end=False)),
    "origin-opens-stream": both("origin", lambda peer: peer.head(2, OK)),
    "origin-pushes": both("origin", fixed(raw(5, 4, 3, b"\0\0\0\2\x82"))),
    "origin-bad-block": both("origin", fixed(raw(1, 4, 3, b"\x80"))),
    "origin-settings": both("origin", fixed(raw(4, 0, 0, b"\0\3\0\0\0\1"))),
    "origin-unknown-frame": both("origin", fixed(raw(99, 0, 3, b"what"))),
}


def _reserved(frames: bytes) -> bytes:
    return frames[:5] + bytes([frames[5] | 0x80]) + frames[6:]


@pytest.mark.parametrize("name", ODD)
def test_any_frame_meanwhile(name: str, both_ways: BothWays) -> None:
    script = Script.begun()
    ODD[name](script)
    _, taken = both_ways(script)
    assert taken >= 2


@pytest.mark.parametrize("who", ["client", "origin"])
def test_an_early_end(who: str, both_ways: BothWays) -> None:
    script = Script.begun()
    for number in (3, 5):
        script.says("client", script.client.head(number, ask()))
    script.says("origin", script.origin.head(3, OK[:1], end=False), script.origin.data(3, b"begun"))
    script.steps.append((f"{who}-ends",))
    (_, _, hooks), taken = both_ways(script)
    assert taken >= 3
    assert [one[0] for one in hooks if one[-1]].count("error") == 2


def test_pieces_of_any_size(both_ways: BothWays) -> None:
    script = Script.begun()
    body = bytes(range(256)) * 40
    numbers = {3: 500, 5: 4_000, 7: 9_000, 9: len(body)}
    for number, size in numbers.items():
        script.says("client", script.client.head(number, ask()))
        frames = script.origin.head(number, OK[:2], end=False)
        frames += b"".join(script.origin.data(number, body[at : at + 5_000]) for at in range(0, len(body), 5_000))
        frames += script.origin.data(number, b"", end=True)
        places = [*(range(30) if number == 9 else [0]), *range(30, len(frames), size), len(frames)]
        for begin, end in pairwise(places):
            script.says("origin", frames[begin:end])
    (sent, *_), _ = both_ways(script)
    for number in numbers:
        assert b"".join(frame[2] for frame in sent[0] if frame[:2] == ("data", number)) == body


def test_many_streams_at_once(both_ways: BothWays) -> None:
    script = Script.begun()
    numbers = range(3, 3 + 2 * 120, 2)
    script.says("client", *(script.client.head(number, ask(b"/%d" % number)) for number in numbers[:90]))
    for number in reversed(numbers[:90]):
        script.says("origin", script.origin.head(number, OK, end=False), script.origin.data(number, b"ok", end=True))
    script.says("client", *(script.client.head(number, ask(b"/%d" % number)) for number in numbers[90:]))
    (sent, *_), _ = both_ways(script)
    assert sum(frame[0] == "head" for frame in sent[1]) > 90


def test_more_streams_than_are_taken(both_ways: BothWays) -> None:
    script = Script.begun()
    numbers = range(3, 3 + 2 * 101, 2)
    script.says("client", *(script.client.head(number, ask(b"/%d" % number)) for number in numbers[:100]))
    script.says("client", script.client.head(numbers[100], ask()))
    (sent, *_), taken = both_ways(script)
    assert taken
    assert sent[0][-1][0] == "goaway"


def test_a_window_that_is_used_up(both_ways: BothWays) -> None:
    script = Script.begun()
    script.says("client", script.client.head(3, ask()))
    script.says("client", script.client.head(5, ask()))
    script.says("origin", script.origin.head(3, OK[:1], end=False), script.origin.head(5, OK[:1], end=False))
    for _ in range(40):
        script.says("origin", script.origin.data(3, bytes(10_000)), script.origin.data(5, bytes(300)))
    script.says("origin", script.origin.data(3, b"", end=True))
    for _ in range(50):
        script.says("client", raw(8, 0, 0, WINDOW))  # one by one: h2 opens all windows of a read before it sends
        script.says("client", raw(8, 0, 3, (9_000).to_bytes(4)))
    script.says("client", raw(8, 0, 3, (400_000).to_bytes(4)))
    script.says("origin", script.origin.data(5, b"", end=True))
    script.exchange(7)
    (sent, *_), taken = both_ways(script)
    assert taken > 10
    for number, size in ((3, 400_000), (5, 12_000)):
        assert sum(len(frame[2]) for frame in sent[0] if frame[:2] == ("data", number)) == size
        assert [frame[1] for frame in sent[0] if frame[0] == "data" and frame[3]].count(number) == 1


def test_more_than_the_window_that_was_given(both_ways: BothWays) -> None:
    script = Script.begun()
    script.says("client", raw(8, 0, 0, b"\x7f\0\0\0"), script.client.head(3, ask()), raw(8, 0, 3, b"\x7f\0\0\0"))
    script.says("origin", script.origin.head(3, OK[:1], end=False))
    script.says("origin", *(script.origin.data(3, bytes(16_384)) for _ in range(64)))
    (sent, *_), _ = both_ways(script)
    assert any(frame[0] == "window" for frame in sent[1][3:])


@pytest.mark.parametrize("deed", sorted(DEEDS))
@pytest.mark.parametrize("hook", HOOKS[:4])
def test_what_hooks_do(deed: str, hook: str, both_ways: BothWays) -> None:
    script = Script.begun()
    script.exchange(3, ask(f"/{deed}-{hook}".encode()))
    script.steps.append(("release",))
    script.exchange(5, ask(f"/{deed}-{hook}".encode()), [(b":status", b"204")], b"")
    script.steps.append(("release",))
    script.exchange(7)
    _, taken = both_ways(script)
    assert taken


@pytest.mark.parametrize("path", [b"/blocked", b"/unknown", b"/raise"])
def test_what_the_filter_does(path: bytes, both_ways: BothWays) -> None:
    script = Script.begun()
    script.exchange(3, ask(path))
    script.exchange(5)
    both_ways(script)


def test_a_flood_of_resets_ends_the_connection(
    masters: list[LeanMaster], runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http2_bounds, "_CALLS_A_SECOND", 0.0)
    monkeypatch.setattr(http2_bounds, "_MOST_CALLS", 50)
    monkeypatch.setattr(BoundedHttp2Server, "_calls_left", 50)
    script = Script.begun()

    async def flooded() -> list[tuple[object, ...]]:
        driver = Http2Driver(masters[0])
        walk(driver, Watcher(DEEDS), script.steps)
        for number in range(3, 3 + 2 * 60, 2):
            driver.data(0, script.client.head(number, ask()))
            driver.data(0, raw(3, 0, number, b"\0\0\0\x08"))
        return read(bytes(driver.sent[0]))

    *_, last = runner.run(flooded())
    assert (last[0], last[2]) == ("goaway", 11)


NUMBERS = st.sampled_from([3, 3, 5, 5, 7, 9, 1, 2, 0])
FIELDS_ASKED = st.sampled_from([REQUESTS[name][0] for name in REQUESTS])
PATHS = st.builds(lambda deed, hook: ask(f"/{deed}-{hook}".encode()), st.sampled_from(sorted(DEEDS)), st.sampled_from(HOOKS))
FIELDS_ANSWERED = st.sampled_from([found[0] for found in RESPONSES.values()])
RAW = st.one_of(
    st.builds(raw, st.sampled_from([0, 3, 4, 6, 7, 8, 9, 5, 2, 99]), st.sampled_from([0, 1, 4, 5, 8]), NUMBERS, st.sampled_from(
        [b"", b"\0\0\0\1", b"\0\0\0\x08", WINDOW, b"12345678", b"\0\3\0\0\0\1", b"\0\4\0\0\0\1", b"x" * 20])),
    st.binary(max_size=20),
)  # fmt: skip
ACTS = st.one_of(
    *[st.tuples(st.just("ask"), st.none(), st.one_of(st.just(ask()), st.just(ask()), PATHS, FIELDS_ASKED), st.just(True))] * 3,
    st.tuples(st.just("ask"), NUMBERS, FIELDS_ASKED, st.booleans()),
    *[st.tuples(st.just("answer"), NUMBERS, st.one_of(st.just(OK[:2]), FIELDS_ANSWERED), st.booleans())] * 3,
    *[st.tuples(st.just("body"), NUMBERS, st.sampled_from([b"ok", b"", b"x" * 20_000]), st.booleans())] * 3,
    st.tuples(st.sampled_from(["client", "origin"]), RAW),
    st.tuples(st.just("client"), st.builds(lambda number: raw(8, 0, number, WINDOW), NUMBERS)),
    *[st.tuples(st.just("whole"), NUMBERS, st.sampled_from([b"ok", b"", b"x" * 9_000]))] * 3,
    st.tuples(st.just("asks"), st.integers(2, 3)),
    st.sampled_from([("release",), ("release",), ("client-ends",), ("origin-ends",), ("cut",)]),
)


def scripted(acts: list[tuple[Any, ...]]) -> Script:
    """Returns the script of what was drawn: `cut` lets what was said last come in two parts.

    Several frames come in one read only where none but the first can be wrong: h2 tells nothing of what came in a read before an
    error, and the fast path handles frame by frame, as if each came by itself.
    """
    script = Script.begun()
    following = 3
    for act, *what in acts:
        if act == "ask":
            number, fields, end = what
            script.says("client", script.client.head(following if number is None else number, fields, end=end))
            following += 2 * (number is None)
        elif act == "asks":
            numbers = range(following, following + 2 * what[0], 2)
            script.says("client", *(script.client.head(one, ask(b"/%d" % one)) for one in numbers))
            following = numbers.stop
        elif act == "answer":
            script.says("origin", script.origin.head(what[0], what[1], end=what[2]))
        elif act == "whole":
            script.says("origin", script.origin.head(what[0], OK[:2], end=False), script.origin.data(what[0], what[1], end=True))
        elif act == "body":
            script.says("origin", script.origin.data(what[0], what[1][:16_384], end=what[2]))
        elif act == "cut":
            kind, *last = script.steps.pop()
            data = last[0] if last else b""
            half = len(data) // 2 if isinstance(data, bytes) else 0
            script.steps += [(kind, data[:half]), (kind, data[half:])] if half else [(kind, *last)]  # type: ignore[index]
        else:
            script.steps.append((act, *what))
    return script


@pytest.mark.slow
def test_both_ways_are_one(both_ways: BothWays) -> None:
    short = 0

    @settings(max_examples=700, deadline=None, suppress_health_check=list(HealthCheck), phases=set(Phase) - {Phase.explain})
    @given(acts=st.lists(ACTS, min_size=3, max_size=16))
    def every(acts: list[tuple[Any, ...]]) -> None:
        nonlocal short
        script = scripted(acts)
        note(f"{script.steps}")
        short += both_ways(script)[1]

    every()
    assert short > 700  # else nothing was compared
