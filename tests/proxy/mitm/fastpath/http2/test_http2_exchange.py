"""Streams of HTTP/2 frame by frame: the fast path and the layers of h2 and mitmproxy say the same, whatever comes."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.mitm.http import frame_budget
from gatewayfilter.proxy.mitm.http.http2_bounds import BoundedHttp2Server
from tests.proxy.layer_drivers import HOOKS, Watcher
from tests.proxy.mitm.fastpath.http2.frame_script import OK, WINDOW, BothWays, Http2Driver, Peer, Script, ask, raw, read, walk
from tests.proxy.mitm.fastpath.test_fastpath_fuzz import DEEDS


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
    monkeypatch.setattr(frame_budget, "CALLS_A_SECOND", 0.0)
    monkeypatch.setattr(frame_budget, "MOST_CALLS", 50)
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
