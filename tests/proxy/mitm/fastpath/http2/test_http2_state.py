"""What both ways leave of a connection: h2's streams, windows and numbers, and the streams of the layers."""

import asyncio
from collections.abc import Callable
from typing import Any

import hpack
import pytest
from mitmproxy.connection import Server

from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.mitm.fastpath.http2.request import take_request
from gatewayfilter.proxy.mitm.fastpath.http2.response import Responses
from gatewayfilter.proxy.mitm.fastpath.steps import behind
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Client
from tests.case_tables import all_cases
from tests.proxy.mitm.fastpath.http2.frame_script import OK, WINDOW, BothWays, Http2Driver, Script, ask, raw, read

LARGEST = 16_384
"""Bytes of the largest frame that is taken."""


def parts(driver: Http2Driver) -> tuple[Any, Any, PatientHttp2Client]:
    """Returns the HTTP layer, and both sides of it."""
    top: Any = driver._top
    layer = getattr(top, "top", top)
    (client,) = (one for one in map(behind, layer.connections.values()) if isinstance(one, PatientHttp2Client))
    return layer, layer.connections[layer.context.client], client


def state_of(side: Any) -> dict[str, object]:
    """Returns what h2 has noted of one side."""
    connection = side.h2_conn
    windows = connection._inbound_flow_control_window_manager
    open_streams = connection.open_inbound_streams, connection.open_outbound_streams  # h2 forgets those that have ended
    return {
        "connection": (connection.state_machine.state, open_streams),
        "numbers": (connection.highest_inbound_stream_id, connection.highest_outbound_stream_id),
        "windows": (connection.outbound_flow_control_window, windows.current_window_size, windows._bytes_processed),
        "streams": {number: _of_stream(one) for number, one in connection.streams.items()},
        "closed": dict(connection._closed_streams),
        "waiting": {number: [len(part.data) for part in parts] for number, parts in connection.stream_buffers.items() if parts},
    }


def _of_stream(one: Any) -> tuple[object, ...]:
    machine, window = one.state_machine, one._inbound_window_manager
    return (
        (machine.state, machine.client, machine.stream_closed_by),
        [bool(heads) for heads in (machine.headers_sent, machine.headers_received, machine.trailers_received)],
        (one.outbound_flow_control_window, window.current_window_size, window._bytes_processed, one.max_outbound_frame_size),
        (one.request_method, one._authority, one._expected_content_length, one._actual_content_length),
    )


def states(runner: asyncio.Runner, master: LeanMaster, script: Script) -> list[tuple[Any, ...]]:
    """Returns what is left after each step: what h2 has noted, the layer's streams, those of both sides, and their numbers."""

    async def walk() -> list[tuple[Any, ...]]:
        driver, found = Http2Driver(master), list[tuple[Any, ...]]()
        for place, (who, said) in enumerate(script.steps):
            driver.data(int(who == "origin"), said)  # type: ignore[arg-type]
            if place > 1:
                layer, server, client = parts(driver)
                noted = state_of(server), state_of(client), dict(client.our_stream_id), dict(client.their_stream_id)
                found.append((noted, sorted(layer.streams), dict(client.streams), dict(server.streams)))
        return found

    return runner.run(walk())


def ended_by_data(script: Script) -> None:
    script.exchange(3)


def ended_by_head(script: Script) -> None:
    script.exchange(3, answer=[(b":status", b"204")], body=b"")


def ended_by_an_empty_part(script: Script) -> None:
    script.says("client", script.client.head(3, ask()))
    script.says("origin", script.origin.head(3, OK, end=False))
    script.says("origin", script.origin.data(3, b"ok"))
    script.says("origin", script.origin.data(3, b"", end=True))


def asked_for_the_head(script: Script) -> None:
    script.says("client", script.client.head(3, ask(b"/page", b"HEAD")))
    script.says("origin", script.origin.head(3, OK, end=False))
    script.says("origin", script.origin.data(3, b"", end=True))
    script.exchange(5, ask(b"/page", b"HEAD"), OK, b"")


def in_large_parts(script: Script) -> None:
    script.says("client", script.client.head(3, ask()))
    script.says("origin", script.origin.head(3, OK[:1], end=False))
    for place in range(10):
        script.says("origin", script.origin.data(3, bytes(LARGEST), end=place == 9))
    script.says("client", raw(8, 0, 0, (200_000).to_bytes(4)))
    script.says("client", raw(8, 0, 3, (60_000).to_bytes(4)))
    script.says("client", raw(8, 0, 3, (200_000).to_bytes(4)))


def in_pieces(script: Script) -> None:
    script.says("client", script.client.head(3, ask()))
    frames = script.origin.head(3, OK[:1], end=False) + script.origin.data(3, bytes(LARGEST))
    frames += script.origin.data(3, b"end", end=True)
    at = len(frames) - LARGEST - 21
    for begin, end in ((0, at), (at, at + 1), (at + 1, at + 9), (at + 9, at + 20), (at + 20, len(frames) - 3)):
        script.says("origin", frames[begin:end])
    script.says("origin", frames[-3:])


def side_by_side(script: Script) -> None:
    for number in (3, 5, 7):
        script.says("client", script.client.head(number, ask()))
    for number in (7, 3, 5):
        script.says("origin", script.origin.head(number, OK[:1], end=False))
    origin = script.origin
    script.says("origin", origin.data(3, b"abc"), origin.data(5, b"d"), origin.data(3, b"e"), origin.data(5, b"f"))
    script.says("origin", script.origin.data(3, b"", end=True))
    script.says("origin", script.origin.data(7, b"g", end=True))
    script.says("origin", script.origin.data(5, b"h", end=True))


def with_priority(script: Script) -> None:
    script.says("client", script.client.head(3, ask(), flags=32, before=b"\x80\0\0\0\xff"))
    script.says("origin", script.origin.head(3, OK, end=False), script.origin.data(3, b"ok", end=True))


def windows(script: Script) -> None:
    script.says("client", script.client.head(3, ask()))
    for who in ("client", "origin"):
        script.says(who, raw(8, 0, 0, WINDOW))
        script.says(who, raw(8, 0, 3, WINDOW))
    script.says("origin", script.origin.head(3, OK, end=False), script.origin.data(3, b"ok", end=True))


def one_at_a_time(script: Script) -> None:
    """The origin takes one stream at a time."""
    for number in (3, 5, 7, 9):
        script.exchange(number, *((None, [(b":status", b"204")], b"") if number % 4 == 1 else ()))


SHORT: list[Callable[[Script], None]] = [
    ended_by_data, ended_by_head, ended_by_an_empty_part, asked_for_the_head, in_large_parts, in_pieces, side_by_side,
    with_priority, windows, one_at_a_time,
]  # fmt: skip


@pytest.mark.parametrize("add", SHORT)
def test_both_ways_leave_the_same(
    add: Callable[[Script], None], both_ways: BothWays, masters: list[LeanMaster], runner: asyncio.Runner
) -> None:
    script = Script.begun()
    if add is one_at_a_time:
        script.says("origin", raw(4, 0, 0, b"\0\3\0\0\0\1"))
    begun = Script(steps=script.steps[:])
    add(script)
    _, taken = both_ways(script)
    _, before = both_ways(begun)
    assert taken - before == len(script.steps) - len(begun.steps), "all that comes is plain"
    ours, theirs = (states(runner, master, script) for master in masters)
    for place, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        assert mine[:3] == other[:3], f"after step {place + 2}"
    if add is not in_large_parts:  # what ends while the client takes nothing is kept, as by mitmproxy's own code
        assert [list(mine[3]) for mine in ours] == [mine[1] for mine in ours]


@pytest.fixture
def driver(runner: asyncio.Runner, masters: list[LeanMaster]) -> Http2Driver:
    """Layers that have a first exchange behind them, and wait for the response of stream 3, and of 5 whose body has begun."""
    script = Script.begun()
    script.says("client", script.client.head(3, ask()), script.client.head(5, ask()))
    script.says("origin", script.origin.head(5, OK, end=False), script.origin.data(5, b"o"))

    async def begin() -> Http2Driver:
        made = Http2Driver(masters[0])
        for who, said in script.steps:
            made.data(int(who == "origin"), said)  # type: ignore[arg-type]
        return made

    return runner.run(begin())


PLAIN, INTERIM = b"\x88", b"\x48\x03103"
"""Coded fields: of an answer, and of an interim one."""


@all_cases(
    ("number", "block"),
    [(1, PLAIN), (7, PLAIN), (5, PLAIN), (3, b"\x80"), (3, INTERIM), (3, b"")],
)
def test_a_head_that_is_not_plain_is_refused_and_changes_nothing(driver: Http2Driver, number: int, block: bytes) -> None:
    layer, server, client = parts(driver)
    before = state_of(server), state_of(client)
    responses = Responses(layer, server, client)
    assert responses.take_head(number, block, end=True) is False
    assert (responses.sent(), responses.slow) == ([], None)
    assert (state_of(server), state_of(client)) == before


@all_cases(
    ("number", "data", "end"),
    [(1, b"k", True), (7, b"k", True), (3, b"k", True), (5, b"", False), (5, b"", True), (5, b"kk", False), (5, b"kk", True)],
)
def test_a_part_of_a_body_that_is_not_plain_is_refused_and_changes_nothing(
    driver: Http2Driver, number: int, data: bytes, *, end: bool
) -> None:
    layer, server, client = parts(driver)
    before = state_of(server), state_of(client)
    responses = Responses(layer, server, client)
    assert responses.take_data(number, data, end=end) is False
    assert (responses.sent(), responses.slow) == ([], None)
    assert (state_of(server), state_of(client)) == before
    assert [responses.is_plain(one) for one in (1, 3, 5, 7)] == [False, True, True, False]


def test_no_more_streams_are_opened_than_the_origin_takes(both_ways: BothWays) -> None:
    for settings, at_once in ((b"\0\3\0\0\0\1", 1), (b"\0\3\0\0\0\2", 2)):
        script = Script.begun()
        script.says("origin", raw(4, 0, 0, settings))
        for number in (3, 5, 7):
            script.says("client", script.client.head(number, ask(b"/%d" % number)))
        asked = len(script.steps)
        (sent, *_), _ = both_ways(Script(steps=script.steps[:asked]))
        assert sum(frame[0] == "head" for frame in sent[1]) == 1 + at_once
        for number in (3, 5, 7):
            script.says("origin", script.origin.head(number, OK, end=False), script.origin.data(number, b"ok", end=True))
        (sent, *_), _ = both_ways(script)
        assert [frame[1] for frame in sent[0] if frame[0] == "data" and frame[3]] == [1, 3, 5, 7]


def test_a_request_is_taken_while_no_idle_connection_has_to_be_closed(driver: Http2Driver) -> None:
    layer, server, client = parts(driver)
    block = hpack.Encoder().encode(ask())
    for number, others, taken in ((7, 6, True), (9, 7, False)):
        layer.connections |= {
            Server(address=("other.example", port)): None for port in range(others + 2 - len(layer.connections))
        }
        assert len(layer.connections) == others + 2
        before = state_of(server), state_of(client)
        sent = take_request(layer, server, number, block)
        assert (sent is not None) is taken
        assert ((state_of(server), state_of(client)) == before) is not taken


def test_what_a_stream_is_owed_comes_back_with_its_next_part(driver: Http2Driver) -> None:
    layer, server, client = parts(driver)
    client._owed[5] = client.h2_conn.local_settings.initial_window_size // 2
    assert client.owes(5)
    responses = Responses(layer, server, client)
    assert responses.take_data(5, b"k", end=False) is True
    to_client, to_origin = responses.sent()
    assert (to_client.connection, to_origin.connection) == (server.conn, client.conn)
    assert read(to_client.data) == [("data", 5, b"k", False)]
    assert read(to_origin.data) == [("window", 5, 2)], "what came of it, and no more"
    assert not client.owes(5)


@pytest.mark.parametrize(
    ("data", "end", "made", "given"),
    [
        (b"k", False, [b"K"], [b"k"]),
        (b"k", True, [b"K", b"!", b"?"], [b"k", b""]),
        (b"-", False, [], [b"-"]),
        (b"-", True, [b"!", b"?"], [b"-", b""]),
    ],
)
def test_a_part_goes_through_what_a_hook_has_set(
    driver: Http2Driver, data: bytes, made: list[bytes], given: list[bytes], *, end: bool
) -> None:
    layer, server, client = parts(driver)
    seen: list[bytes] = []

    def change(part: bytes) -> bytes | list[bytes]:
        seen.append(part)
        return part.strip(b"-").upper() if part else [b"!", b"?"]

    layer.streams[5].flow.response.stream = change
    responses = Responses(layer, server, client)
    assert responses.take_data(5, data, end=end) is True
    to_client = b"".join(one.data for one in responses.sent() if one.connection is server.conn)
    assert read(to_client) == [("data", 5, piece, False) for piece in made] + [("data", 5, b"", True)] * end
    assert (seen, 5 in layer.streams, responses.slow) == (given, not end, None)


@pytest.mark.parametrize(
    ("deed", "hook", "short"),
    [
        ("add", "responseheaders", True),
        ("add", "response", True),
        ("shout", "responseheaders", True),
        ("capitals", "responseheaders", False),
        ("capitals", "response", False),
        ("keep", "responseheaders", False),
        ("kill", "responseheaders", False),
        ("respond", "responseheaders", False),
        ("respond", "response", False),
        ("wait", "responseheaders", False),
        ("wait", "response", False),
    ],
)
def test_what_a_hook_may_do_with_an_answer_of_the_fast_path(deed: str, hook: str, both_ways: BothWays, *, short: bool) -> None:
    for answer, body in (([(b":status", b"204")], b""), (OK, b"ok")):
        script = Script.begun()
        _, before = both_ways(script)
        script.exchange(3, ask(f"/{deed}-{hook}".encode()), answer, body)
        _, taken = both_ways(script)
        is_sent = body and (deed, hook) == ("capitals", "response")  # it comes too late
        assert taken - before == 1 + bool(short or is_sent)


def test_a_part_on_which_a_hook_fails_is_refused_and_fails_again(driver: Http2Driver) -> None:
    layer, server, client = parts(driver)
    seen: list[bytes] = []

    def fail(data: bytes) -> bytes:
        seen.append(data)
        raise ValueError("no such code")

    layer.streams[5].flow.response.stream = fail
    responses = Responses(layer, server, client)
    assert responses.take_data(5, b"k", end=True) is False
    with pytest.raises(ValueError, match="no such code"):
        layer.streams[5].flow.response.stream(b"k")
    assert seen == [b"k"]
