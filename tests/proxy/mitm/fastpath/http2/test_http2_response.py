"""Responses of HTTP/2: both ways say the same of each, and one that does not end as it should leaves nothing behind."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http._http_h2 import BufferedH2Connection

from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.mitm.fastpath.http2 import frames
from gatewayfilter.proxy.mitm.fastpath.steps import behind
from gatewayfilter.proxy.mitm.http import frame_budget
from gatewayfilter.proxy.mitm.http.frame_budget import FrameBudget
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Client
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream
from tests.proxy.mitm.fastpath.http2.frame_script import OK, BothWays, Http2Driver, Script, ask, raw, read
from tests.proxy.mitm.fastpath.http2.message_shapes import RESPONSES


@pytest.fixture(params=[0, 1], ids=["fast", "layers"])
def ways(request: pytest.FixtureRequest, runner: asyncio.Runner, masters: list[LeanMaster]) -> tuple[asyncio.Runner, LeanMaster]:
    """A proxy with the fast path, and one without."""
    return runner, masters[request.param]


def walked(runner: asyncio.Runner, master: LeanMaster, script: Script) -> Http2Driver:
    """Returns the layers after a script."""

    async def walk() -> Http2Driver:
        driver = Http2Driver(master)
        for who, said in script.steps:
            driver.data(int(who == "origin"), said)  # type: ignore[arg-type]
        return driver

    return runner.run(walk())


def owed(driver: Http2Driver) -> int:
    """Returns how much of the origin's window neither came back nor is about to."""
    top: Any = driver._top
    (client,) = (one for one in map(behind, getattr(top, "top", top).connections.values()) if isinstance(one, PatientHttp2Client))
    window: Any = client.h2_conn._inbound_flow_control_window_manager
    return int(window.max_window_size - window.current_window_size - window._bytes_processed)


@pytest.mark.parametrize("how", ["taken", "reset"])
def test_a_download_that_has_ended_keeps_nothing_of_the_window(ways: tuple[asyncio.Runner, LeanMaster], how: str) -> None:
    script = Script.begun()
    script.says("client", script.client.head(3, ask()))
    script.says("origin", script.origin.head(3, OK[:1], end=False))
    for place in range(60):  # the client's window is 65,535 bytes
        script.says("origin", script.origin.data(3, bytes(16_000), end=place == 59))
    assert owed(walked(*ways, script)) > 600_000
    if how == "taken":
        script.says("client", raw(8, 0, 3, (2_000_000).to_bytes(4)), raw(8, 0, 0, (2_000_000).to_bytes(4)))
    else:
        script.says("client", raw(3, 0, 3, b"\0\0\0\x08"))
    assert owed(walked(*ways, script)) == 0


class Failing:
    """An add-on whose work on a body fails."""

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Has the body of `/bad` fail."""
        assert flow.response is not None
        if flow.request.path == "/bad":

            def fail(_: bytes) -> bytes:
                raise ValueError

            flow.response.stream = fail


def test_a_body_that_fails_takes_no_other_stream_along(ways: tuple[asyncio.Runner, LeanMaster]) -> None:
    runner, master = ways
    failing = Failing()
    master.addons.add(failing)
    script = Script.begun()
    script.says("client", script.client.head(3, ask()), script.client.head(5, ask(b"/bad")))
    good = [(b":status", b"200"), (b"x-new", b"1")]
    origin = script.origin
    script.says(
        "origin",
        origin.head(3, good, end=False) + origin.data(3, b"ok", end=True),
        origin.head(5, OK[:1], end=False) + origin.data(5, b"zz"),
    )
    script.says("client", script.client.head(7, ask()))
    script.says("origin", origin.head(7, good, end=False), origin.data(7, b"ok", end=True))

    async def walk() -> bytes:
        driver = Http2Driver(master)
        for who, said in script.steps:
            try:
                driver.data(int(who == "origin"), said)  # type: ignore[arg-type]
            except ValueError:
                assert said is script.steps[-3][1]
        return bytes(driver.sent[0])

    try:
        sent = read(runner.run(walk()))
    finally:
        master.addons.remove(failing)
    heads = {frame[1]: frame[2] for frame in sent if frame[0] == "head"}
    assert heads[3] == heads[7] == good


def test_a_body_that_fails_once_is_not_handled_again(ways: tuple[asyncio.Runner, LeanMaster]) -> None:
    runner, master = ways

    class FailsOnce:
        def responseheaders(self, flow: http.HTTPFlow) -> None:
            held = bytearray()

            def hold(data: bytes) -> list[bytes]:
                held.extend(data)
                if not data and not failed:
                    failed.append(1)
                    raise ValueError
                return [] if data else [bytes(held)]

            assert flow.response is not None
            if flow.request.path == "/bad":
                flow.response.stream = hold

    failed: list[int] = []
    failing = FailsOnce()
    master.addons.add(failing)
    script = Script.begun()
    script.says("client", script.client.head(3, ask(b"/bad")))
    script.says("origin", script.origin.head(3, OK[:1], end=False))
    script.says("origin", script.origin.data(3, b"body", end=True))

    async def walk() -> bytes:
        driver = Http2Driver(master)
        for who, said in script.steps[:-1]:
            driver.data(int(who == "origin"), said)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^$"):
            driver.data(1, script.steps[-1][1])  # type: ignore[arg-type]
        return bytes(driver.sent[0])

    try:
        sent = read(runner.run(walk()))
    finally:
        master.addons.remove(failing)
    assert [frame for frame in sent if frame[:2] == ("data", 3)] == []


_FLOODS = {
    "acknowledged settings": raw(4, 1, 0, b""),
    "answered pings": raw(6, 1, 0, b"12345678"),
    "other services": raw(10, 0, 0, b"\0\x11https://a.example" + b'h3=":443"'),
}


@pytest.mark.parametrize("flood", ["interim", "settings", "empty", *_FLOODS])
def test_an_origin_that_says_nothing_at_length_is_left(
    ways: tuple[asyncio.Runner, LeanMaster], flood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_budget, "CALLS_A_SECOND", 0.0)
    monkeypatch.setattr(FrameBudget, "_calls_left", 50)
    script = Script.begun()
    script.says("client", script.client.head(3, ask()))
    script.says("origin", script.origin.head(3, OK[:1], end=False) if flood == "empty" else b"")
    for number in range(60):
        if flood == "interim":
            frame = script.origin.head(3, [(b":status", b"103")], end=False)
        elif flood == "settings":
            frame = raw(4, 0, 0, b"\0\1" + (4_096 if number % 2 else 100).to_bytes(4))
        else:
            frame = _FLOODS.get(flood) or script.origin.data(3, b"")
        script.says("origin", frame)
    driver = walked(*ways, script)
    *_, last = read(bytes(driver.sent[1]))
    assert (last[0], last[2]) == ("goaway", 11)
    answered = [frame for frame in read(bytes(driver.sent[0])) if frame[1] == 3]
    assert answered[-1][0] == "reset" or answered[0][2][0] == (b":status", b"502")  # type: ignore[index]


@pytest.mark.parametrize("pinging", ["client", "origin"])
def test_pings_that_go_with_data_are_not_for_nothing(
    ways: tuple[asyncio.Runner, LeanMaster], pinging: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GRPC sends one in each round trip while data comes."""
    monkeypatch.setattr(frame_budget, "CALLS_A_SECOND", 0.0)
    monkeypatch.setattr(FrameBudget, "_calls_left", 10)
    downloads, ping = pinging == "client", raw(6, 0, 0, b"12345678")
    script = Script.begun()
    script.says("client", script.client.head(3, ask(b"/page", b"GET" if downloads else b"POST"), end=downloads))
    script.says("origin", script.origin.head(3, OK[:1], end=False) if downloads else b"")
    for _ in range(60):
        sender, peer = ("origin", script.origin) if downloads else ("client", script.client)
        script.says(sender, peer.data(3, b"a message"))
        script.says(pinging, ping)
    script.says(pinging, ping * 20)
    driver = walked(*ways, script)
    kinds = [frame[0] for frame in read(bytes(driver.sent[0 if downloads else 1])) if frame[0] in {"ping", "goaway"}]
    assert (kinds[:60], kinds[-1]) == (["ping"] * 60, "goaway")


@pytest.mark.parametrize("how", ["interim", "reset"])
def test_an_origin_may_send_hints_and_end_early_for_each_request(
    ways: tuple[asyncio.Runner, LeanMaster], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_budget, "CALLS_A_SECOND", 0.0)
    monkeypatch.setattr(FrameBudget, "_calls_left", 10)
    script = Script.begun()
    for number in range(3, 3 + 2 * 40, 2):
        script.says("client", script.client.head(number, ask(b"/page", b"POST"), end=how == "interim"))
        before = script.origin.head(number, [(b":status", b"103")], end=False) if how == "interim" else b""
        answer = script.origin.head(number, [(b":status", b"204")])
        script.says("origin", before + answer + (raw(3, 0, number, bytes(4)) if how == "reset" else b""))
    sent = walked(*ways, script).sent
    assert len([frame for frame in read(bytes(sent[0])) if frame[0] == "head" and frame[2][0] == (b":status", b"204")]) == 40  # type: ignore[index]
    assert [frame for frame in read(bytes(sent[1])) if frame[0] == "goaway"] == []


def test_windows_of_the_connection_open_no_stream_that_waits_for_its_own(
    ways: tuple[asyncio.Runner, LeanMaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def noting(look: Callable[..., bool | None]) -> Callable[..., bool | None]:
        def note(connection: BufferedH2Connection, number: int, *sent: list[bytes]) -> bool | None:
            looked.append(number)
            return look(connection, number, *sent)

        return note

    monkeypatch.setattr(frames, "_send_waiting", noting(frames._send_waiting))
    monkeypatch.setattr(BufferedH2Connection, "stream_window_updated", noting(BufferedH2Connection.stream_window_updated))
    script = Script.begun()
    script.says("client", raw(4, 0, 0, b"\0\4\0\0\0\0"))
    for number in (3, 5, 7):
        script.says("client", script.client.head(number, ask()))
        script.says("origin", script.origin.head(number, OK, end=False) + script.origin.data(number, b"ok", end=True))
    script.says("client", *[raw(8, 0, 0, b"\0\0\0\1")] * 50)
    opened = len(script.steps)
    script.says("client", *(raw(8, 0, number, b"\0\0\0\2") for number in (3, 5, 7)))
    before = Script(steps=script.steps[:opened])
    walked(*ways, before)
    assert len(looked) <= 2 * 3
    sent = read(bytes(walked(*ways, script).sent[0]))
    assert [frame[1] for frame in sent if frame[0] == "data" and frame[1] != 1] == [3, 5, 7]


def test_no_frame_is_longer_than_the_client_takes_by_now(ways: tuple[asyncio.Runner, LeanMaster]) -> None:
    script = Script.begun()
    wide = raw(4, 0, 0, b"\0\5" + (60_000).to_bytes(4) + b"\0\4" + (1_000).to_bytes(4))
    script.says("client", wide, script.client.head(3, ask()))
    script.says("origin", script.origin.head(3, OK[:1], end=False))
    script.says("origin", script.origin.data(3, bytes(50_000)))
    script.says("client", raw(4, 0, 0, b"\0\5" + (16_384).to_bytes(4)))
    script.says("client", raw(8, 0, 3, (60_000).to_bytes(4)))
    sent = read(bytes(walked(*ways, script).sent[0]))
    assert [frame[1] for frame in sent if frame[0] == "data" and isinstance(frame[2], bytes) and len(frame[2]) > 16_384] == []


def test_an_exchange_that_has_ended_leaves_nothing_for_the_collector(
    runner: asyncio.Runner, masters: list[LeanMaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[GatewayHttpStream]] = []
    begin = GatewayHttpStream.__init__

    def note(self: GatewayHttpStream, context: Context, number: int) -> None:
        made.append(weakref.ref(self))
        begin(self, context, number)

    monkeypatch.setattr(GatewayHttpStream, "__init__", note)
    script = Script.begun()
    script.exchange(3)
    script.exchange(5, answer=[(b":status", b"204")], body=b"")
    script.says("client", script.client.head(7, ask()))
    gc.disable()
    try:
        driver = walked(runner, masters[0], script)
        assert [one() is None for one in made[-3:]] == [True, True, False], "the last one has not ended"
    finally:
        gc.enable()
    assert driver.ends == []


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
