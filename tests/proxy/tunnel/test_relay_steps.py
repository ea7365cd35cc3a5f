"""The relay step by step, over doubles of sockets, clock and poller: what is read, sent, kept, counted and closed."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.proxy.tunnel import poller
from gatewayfilter.proxy.tunnel.kernel_pipes import Pipe
from gatewayfilter.proxy.tunnel.poller import ENDING, GONE, READ, WRITE
from gatewayfilter.proxy.tunnel.relay import Relay, RelayPool
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases

HALF = 131_072
"""A read of so many bytes is a full one."""
BROKEN = ConnectionResetError(errno.ECONNRESET, "reset")
CLIENT, ORIGIN = 11, 22


class End:
    """A socket that gives and takes as it is told."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.comes: list[bytes | OSError] = []
        self.takes: list[int | OSError] = []
        self.sent: list[tuple[bytes, int]] = []
        self.did: list[object] = []

    def fileno(self) -> int:
        return self.number

    def recv_into(self, buffer: bytearray) -> int:
        found = self.comes.pop(0) if self.comes else BlockingIOError()
        if isinstance(found, OSError):
            raise found
        buffer[: len(found)] = found
        return len(found)

    def send(self, data: bytes | memoryview, flags: int = 0) -> int:
        room = self.takes.pop(0) if self.takes else len(data)
        if isinstance(room, OSError):
            raise room
        self.sent.append((bytes(data[:room]), flags))
        return room

    def shutdown(self, how: int) -> None:
        self.did.append(("shutdown", how))

    def setsockopt(self, *what: object) -> None:
        self.did.append(what[1])

    def close(self) -> None:
        self.did.append("closed")


class Watch:
    """A poller that notes what is watched."""

    def __init__(self) -> None:
        self.now = 0.0
        self.watched: dict[int, tuple[int, Callable[[int], None]]] = {}

    def watch(self, descriptor: int, events: int, handler: Callable[[int], None]) -> None:
        self.watched[descriptor] = events, handler

    def forget(self, descriptor: int) -> None:
        self.watched.pop(descriptor, None)

    def drop(self, connection: End) -> None:
        self.watched.pop(connection.number, None)
        connection.close()

    def happens(self, descriptor: int, events: int) -> None:
        self.watched[descriptor][1](events)

    @property
    def events(self) -> dict[int, int]:
        return {descriptor: events for descriptor, (events, _) in self.watched.items()}


@dataclass
class Rig:
    """A pool whose clock and poller stand still, and one relay in it."""

    idle_s: float = 600.0
    at: float = 100.0
    timers: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    cancelled: list[float] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    watch: Watch = field(default_factory=Watch)
    pool: RelayPool = field(init=False)

    def __post_init__(self) -> None:
        def call_later(delay: float, act: Callable[[], None]) -> object:
            self.timers.append((delay, act))
            return SimpleNamespace(cancel=lambda: self.cancelled.append(delay))

        loop = SimpleNamespace(time=lambda: self.at, call_later=call_later, **{poller._ATTRIBUTE: self.watch})
        self.pool = RelayPool(cast("asyncio.AbstractEventLoop", loop), Counters(), idle_s=self.idle_s)

    def start(self, name: str = "one", **given: Any) -> tuple[End, End, Relay]:
        client, origin = given.pop("client", End(CLIENT)), given.pop("origin", End(ORIGIN))
        relay = self.pool.start(client, origin, on_end=lambda: self.ends.append(name), **given)
        return client, origin, relay

    def sweep(self, at: float) -> None:
        self.at = at
        self.timers[-1][1]()


def closed(*ends: End) -> bool:
    return all("closed" in end.did for end in ends)


def was_reset(*ends: End) -> bool:
    return all(end.did == [socket.SO_LINGER, "closed"] for end in ends)


@all_cases(("idle_s", "every_s"), [(600.0, 5.0), (2.0, 2.0)])
def test_it_is_swept_while_there_are_relays(idle_s: float, every_s: float) -> None:
    rig = Rig(idle_s)
    _, _, one = rig.start()
    rig.start("two")
    assert [delay for delay, _ in rig.timers] == [every_s]
    rig.sweep(101.0)
    assert [delay for delay, _ in rig.timers] == [every_s] * 2
    one.end()
    rig.sweep(100.0 + idle_s)
    assert (rig.ends, len(rig.pool), len(rig.timers)) == (["one", "two"], 0, 2)
    rig.start("three")
    assert [delay for delay, _ in rig.timers] == [every_s] * 3


@all_cases(
    ("idle_s", "half_closed", "stays_s", "ends_s"),
    [(600.0, False, 599.9, 600.0), (600.0, True, 59.9, 60.0), (30.0, True, 29.9, 30.0), (30.0, False, 29.9, 30.0)],
)
def test_who_is_silent_for_too_long_is_closed_in_order(
    idle_s: float, stays_s: float, ends_s: float, *, half_closed: bool
) -> None:
    for who in (CLIENT, ORIGIN):
        rig = Rig(idle_s)
        rig.watch.now = 100.0
        client, origin, _ = rig.start()
        if half_closed:
            (client if who == CLIENT else origin).comes = [b""]
            rig.watch.happens(who, READ)
        rig.sweep(100.0 + stays_s)
        assert rig.ends == []
        rig.sweep(100.0 + ends_s)
        assert (rig.ends, closed(client, origin)) == (["one"], True)
        assert socket.SO_LINGER not in client.did + origin.did


def test_each_byte_starts_the_time_again() -> None:
    for who, events in ((CLIENT, READ), (ORIGIN, READ)):
        rig = Rig()
        client, origin, relay = rig.start()
        assert relay.active_at == 100.0
        (client if who == CLIENT else origin).comes = [b"x"]
        rig.watch.now = 500.0
        rig.watch.happens(who, events)
        assert relay.active_at == 500.0
        rig.sweep(1_099.0)
        assert len(rig.pool) == 1


def test_busy_is_who_passed_a_byte_in_the_last_second() -> None:
    rig = Rig()
    assert not rig.pool.busy()
    rig.start()
    rig.at = 101.0
    assert rig.pool.busy()
    rig.at = 101.5
    assert not rig.pool.busy()
    assert rig.pool.busy(1.5)


def test_what_passed_is_counted_once_and_told_only_where_something_did() -> None:
    rig, told = Rig(), []
    client, origin, relay = rig.start(passed=lambda: told.append(rig.pool.counters["spliced_bytes"]))
    rig.sweep(101.0)
    assert told == []
    client.comes, origin.comes = [b"12345"], [b"12"]
    rig.watch.happens(CLIENT, READ)
    rig.watch.happens(ORIGIN, READ)
    rig.sweep(102.0)
    rig.sweep(103.0)
    assert (len(told), rig.pool.counters["spliced_bytes"]) == (1, 7)
    client.comes = [b"x"]
    rig.watch.happens(CLIENT, READ)
    relay.end()
    relay.end()
    assert (len(told), rig.pool.counters["spliced_bytes"], rig.ends) == (2, 8, ["one"])
    assert (client.did, origin.did) == (["closed"], ["closed"])


@all_cases("sweeps", [True, False])
def test_who_may_no_longer_go_on_is_reset(*, sweeps: bool) -> None:
    rig, holds = Rig(), [True]
    one = rig.start(holds=lambda: holds[0])
    two = rig.start("two", holds=lambda: True)
    three = rig.start("three")

    def look() -> None:
        if sweeps:
            rig.sweep(rig.at + 1)
        else:
            rig.pool.review()

    look()
    assert rig.ends == []
    holds[0] = False
    look()
    assert (rig.ends, was_reset(*one[:2]), two[0].did, three[0].did) == (["one"], True, [], [])


def test_a_socket_that_takes_no_option_is_closed_all_the_same() -> None:
    rig = Rig()
    client, origin, relay = rig.start()

    def refuse(*_: object) -> None:
        raise OSError(errno.EBADF, "bad")

    client.setsockopt = refuse  # type: ignore[method-assign]
    relay.break_off()
    assert (client.did, origin.did) == (["closed"], [socket.SO_LINGER, "closed"])


def test_closing_the_pool_ends_all_relays_and_the_sweep() -> None:
    rig = Rig()
    sides = [*rig.start()[:2], *rig.start("two")[:2]]
    idle = Pipe()
    rig.pool.pipes.idle.append(idle)
    rig.pool.close()
    rig.pool.close()
    assert (sorted(rig.ends), closed(*sides), rig.cancelled, len(rig.pool)) == (["one", "two"], True, [5.0], 0)
    assert rig.pool.pipes.idle == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(idle.reading)


@all_cases("takes", [[3], [BlockingIOError(), 3], [InterruptedError(), 3]])
def test_what_came_before_waits_for_room(takes: list[int | OSError]) -> None:
    """The client is not read before the origin has taken what is there; the other way goes on."""
    rig, origin = Rig(), End(ORIGIN)
    origin.takes = [*takes, BlockingIOError(), 2]
    client, _, relay = rig.start(origin=origin, to_origin=b"hello you")
    assert rig.watch.events == {ORIGIN: READ | WRITE}
    origin.comes = [b"early"]
    rig.watch.happens(ORIGIN, READ)
    assert (client.sent, b"".join(data for data, _ in origin.sent)) == ([(b"early", 0)], b"hel" if len(takes) == 1 else b"")
    for events in [WRITE] * (len(takes) + 1):
        rig.watch.happens(ORIGIN, events)
        assert rig.watch.events == {ORIGIN: READ | WRITE}
    rig.watch.now = 150.0
    assert relay.active_at < 150.0
    rig.watch.happens(ORIGIN, WRITE)
    assert b"".join(data for data, _ in origin.sent) == b"hello you"
    assert (rig.watch.events, relay.active_at) == ({CLIENT: READ, ORIGIN: READ}, 150.0)
    client.comes = [b"more"]
    rig.watch.happens(CLIENT, READ)
    assert origin.sent[-1] == (b"more", 0)
    relay.end()
    assert rig.pool.counters["spliced_bytes"] == 9 + 5 + 4


def test_both_ways_begin_with_what_was_read() -> None:
    rig = Rig()
    client, origin, _ = rig.start(to_origin=b"up", to_client=b"down")
    assert (client.sent, origin.sent) == ([(b"down", 0)], [(b"up", 0)])
    assert rig.watch.events == {CLIENT: READ, ORIGIN: READ}
    broken = End(CLIENT)
    broken.takes = [BROKEN]
    client, origin, _ = rig.start(client=broken, to_client=b"down")
    assert was_reset(client, origin)


def test_a_read_that_leaves_room_is_the_last_one_of_its_event() -> None:
    rig = Rig()
    client, origin, _ = rig.start()
    client.comes = [b"one", b"two"]
    rig.watch.happens(CLIENT, READ)
    assert (origin.sent, client.comes) == ([(b"one", 0)], [b"two"])


def test_the_last_bytes_and_the_end_go_out_together() -> None:
    rig = Rig()
    client, origin, relay = rig.start()
    client.comes = [b"last", b""]
    rig.watch.now = 130.0
    rig.watch.happens(CLIENT, READ | ENDING)
    assert (origin.sent, origin.did) == ([(b"last", socket.MSG_MORE)], [("shutdown", socket.SHUT_WR)])
    assert (rig.watch.events, relay.half_closed, relay.closed) == ({ORIGIN: READ}, True, False)
    origin.comes = [b"answer", b""]
    rig.watch.happens(ORIGIN, READ | ENDING)
    assert (client.sent, client.did, origin.did[-1]) == ([(b"answer", socket.MSG_MORE)], ["closed"], "closed")
    assert (rig.ends, rig.watch.events) == (["one"], {})


def test_the_end_alone_starts_the_time_again() -> None:
    rig = Rig()
    client, origin, relay = rig.start()
    client.comes, rig.watch.now = [b""], 150.0
    rig.watch.happens(CLIENT, READ)
    assert (origin.did, relay.active_at) == ([("shutdown", socket.SHUT_WR)], 150.0)


@all_cases(("size", "flags"), [(HALF - 1, socket.MSG_MORE), (HALF, 0)])
def test_a_full_read_before_the_end_does_not_wait_for_it(size: int, flags: int) -> None:
    """Behind half a buffer there may be much more, so it is not held back."""
    rig = Rig()
    client, origin, _ = rig.start()
    client.comes = [bytes(size)]
    rig.watch.happens(CLIENT, READ | ENDING)
    assert [(len(data), used) for data, used in origin.sent] == [(size, flags)]


@all_cases(
    ("comes", "takes"),
    [
        ([BlockingIOError()], []),
        ([InterruptedError()], []),
        ([BROKEN], []),
        ([b"data"], [BROKEN]),
        ([b"data"], [BlockingIOError()]),
    ],
)
def test_what_a_read_or_a_write_may_end_with(comes: list[bytes | OSError], takes: list[int | OSError]) -> None:
    rig = Rig()
    client, origin, _ = rig.start()
    client.comes, origin.takes = list(comes), list(takes)
    rig.watch.happens(CLIENT, READ)
    if BROKEN in [*comes, *takes]:
        assert (was_reset(client, origin), rig.ends) == (True, ["one"])
    elif takes:
        assert rig.watch.events == {ORIGIN: READ | WRITE}
        rig.watch.happens(ORIGIN, WRITE)
        assert (origin.sent, rig.watch.events) == ([(b"data", 0)], {CLIENT: READ, ORIGIN: READ})
    else:
        assert (origin.sent, rig.ends, rig.watch.events) == ([], [], {CLIENT: READ, ORIGIN: READ})


@all_cases(
    ("events", "flushed", "read"),
    [
        (WRITE, True, False),
        (READ, False, True),
        (READ | ENDING, False, True),
        (READ | WRITE, True, True),
        (GONE, True, True),
    ],
)
def test_a_socket_that_waits_for_both_does_what_it_can(events: int, *, flushed: bool, read: bool) -> None:
    rig = Rig()
    client, origin, _ = rig.start()
    client.comes, origin.takes = [b"up"], [BlockingIOError()]
    rig.watch.happens(CLIENT, READ)
    origin.comes = [b"down"]
    rig.watch.happens(ORIGIN, events)
    assert [bool(origin.sent), bool(client.sent)] == [flushed, read]


def test_both_ways_may_wait_at_once() -> None:
    rig = Rig()
    client, origin, _ = rig.start()
    client.comes, origin.comes = [b"up"], [b"down"]
    client.takes, origin.takes = [BlockingIOError()], [BlockingIOError()]
    rig.watch.happens(CLIENT, READ)
    rig.watch.happens(ORIGIN, READ)
    assert rig.watch.events == {CLIENT: WRITE, ORIGIN: WRITE}
    client.comes = [b"unread"]
    rig.watch.happens(CLIENT, WRITE | READ)
    assert (client.sent, client.comes) == ([(b"down", 0)], [b"unread"])
    assert rig.watch.events == {CLIENT: WRITE, ORIGIN: READ | WRITE} or rig.watch.events == {ORIGIN: READ | WRITE}


def test_a_write_that_fails_is_the_end_of_both_ways() -> None:
    rig = Rig()
    client, origin, _ = rig.start()
    client.comes, origin.takes = [b"up"], [BlockingIOError(), BROKEN]
    rig.watch.happens(CLIENT, READ)
    origin.comes = [b"down"]
    rig.watch.happens(ORIGIN, READ | WRITE)
    assert (was_reset(client, origin), client.sent, origin.comes) == (True, [], [b"down"])


class Splices:
    """Stands in for `os.splice`: gives what it is told, and notes from where to where."""

    def __init__(self, *gives: int | OSError) -> None:
        self.gives = list(gives)
        self.asked: list[tuple[int, int, int]] = []

    def __call__(self, source: int, target: int, size: int, *, flags: int) -> int:
        assert flags & os.SPLICE_F_NONBLOCK
        assert flags & os.SPLICE_F_MOVE
        self.asked.append((source, target, size))
        found = self.gives.pop(0)
        if isinstance(found, OSError):
            raise found
        return found


def bulk(rig: Rig, monkeypatch: pytest.MonkeyPatch, *gives: int | OSError) -> tuple[End, End, Any, Splices]:
    """Brings a relay to the point where its upload goes through a pipe."""
    pipe: Any = SimpleNamespace(reading=7, writing=8, filled=0, size=1_000_000, close=lambda: None)
    monkeypatch.setattr(rig.pool.pipes, "idle", [pipe])
    client, origin, _ = rig.start()
    client.comes = [bytes(HALF)] * 4
    for _ in range(4):
        assert rig.pool.pipes.lent == 0
        rig.watch.happens(CLIENT, READ)
    assert rig.pool.pipes.lent == 1
    origin.sent.clear()
    splices = Splices(*gives)
    monkeypatch.setattr(os, "splice", splices)
    return client, origin, pipe, splices


@all_cases("who", [CLIENT, ORIGIN])
def test_four_full_reads_in_a_row_are_a_bulk_transfer(who: int) -> None:
    rig = Rig()
    client, origin, _ = rig.start()
    source = client if who == CLIENT else origin
    for sizes, lent in (([HALF] * 3 + [HALF - 1] + [HALF] * 3, 0), ([HALF], 1)):
        source.comes = [bytes(size) for size in sizes]
        for _ in sizes:
            rig.watch.happens(who, READ)
        assert (rig.pool.pipes.lent, source.comes) == (lent, [])
    rig.pool.close()
    assert rig.pool.pipes.lent == 0


def test_after_a_pipe_it_takes_four_full_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    client, _, _, _ = bulk(rig, monkeypatch, 10, 10)
    rig.watch.happens(CLIENT, READ)
    client.comes = [bytes(HALF)] * 4
    for lent in (0, 0, 0, 1):
        rig.watch.happens(CLIENT, READ)
        assert rig.pool.pipes.lent == lent


def test_without_a_pipe_a_bulk_transfer_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    rig, asked = Rig(), []
    monkeypatch.setattr(rig.pool.pipes, "lend", lambda: asked.append(True))
    client, origin, _ = rig.start()
    client.comes = [bytes(HALF)] * 8
    for _ in range(8):
        rig.watch.happens(CLIENT, READ)
    assert (sum(len(data) for data, _ in origin.sent), len(asked)) == (8 * HALF, 2)


def test_bulk_goes_through_the_pipe_until_little_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    client, origin, pipe, splices = bulk(rig, monkeypatch, 32_768, 30_000, 2_768, 32_767, 32_767)
    rig.watch.now = 180.0
    rig.watch.happens(CLIENT, READ)
    assert splices.asked == [(CLIENT, 8, 1_000_000), (7, ORIGIN, 32_768), (7, ORIGIN, 2_768)]
    assert (pipe.filled, rig.pool.pipes.lent) == (0, 1)
    [relay] = rig.pool._relays
    assert relay.active_at == 180.0
    rig.watch.happens(CLIENT, READ)
    assert (pipe.filled, rig.pool.pipes.lent, rig.pool.pipes.idle) == (0, 0, [pipe])
    client.comes = [b"few"]
    rig.watch.happens(CLIENT, READ)
    assert origin.sent == [(b"few", 0)]
    relay.end()
    assert rig.pool.counters["spliced_bytes"] == 4 * HALF + 32_768 + 32_767 + 3


def test_a_full_pipe_waits_for_the_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    again = BlockingIOError()
    _, origin, pipe, splices = bulk(rig, monkeypatch, 90_000, 50_000, again, 10_000, again, 30_000, 50_000, 50_000)
    rig.watch.happens(CLIENT, READ)
    assert (pipe.filled, rig.watch.events) == (40_000, {ORIGIN: READ | WRITE})
    rig.watch.happens(ORIGIN, WRITE)
    assert (pipe.filled, rig.watch.events) == (30_000, {ORIGIN: READ | WRITE})
    rig.watch.now = 190.0
    rig.watch.happens(ORIGIN, WRITE)
    [relay] = rig.pool._relays
    assert (pipe.filled, rig.watch.events, relay.active_at) == (0, {CLIENT: READ, ORIGIN: READ}, 190.0)
    rig.watch.happens(CLIENT, READ)
    assert (splices.gives, origin.sent, rig.pool.pipes.lent) == ([], [], 1)


def test_a_pipe_with_something_in_it_is_not_lent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    _, _, pipe, _ = bulk(rig, monkeypatch, 90_000, BlockingIOError(), BROKEN)
    rig.watch.happens(CLIENT, READ)
    rig.watch.happens(ORIGIN, WRITE)
    assert (pipe.filled, rig.pool.pipes.lent, rig.pool.pipes.idle, rig.ends) == (90_000, 0, [], ["one"])


@all_cases("how", ["end", "broken", "nothing yet"])
def test_how_a_read_into_the_pipe_ends(how: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        rig = Rig()
        gives: dict[str, int | OSError] = {"end": 0, "broken": BROKEN, "nothing yet": BlockingIOError()}
        client, origin, pipe, _ = bulk(rig, patch, gives[how])
        rig.watch.happens(CLIENT, READ)
        lent = rig.pool.pipes.lent, rig.pool.pipes.idle
        if how == "end":
            assert (lent, origin.did, rig.watch.events) == (
                (0, [pipe]),
                [("shutdown", socket.SHUT_WR)],
                {ORIGIN: READ},
            )
        elif how == "broken":
            assert (lent, was_reset(client, origin)) == ((0, [pipe]), True)
        else:
            assert (lent, rig.watch.events) == ((1, []), {CLIENT: READ, ORIGIN: READ})


def test_a_download_waits_while_the_upload_goes_through_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is then watched for both, and what it sends still goes through the pipe."""
    rig = Rig()
    client, origin, _, splices = bulk(rig, monkeypatch, 40_000, 40_000)
    origin.comes, client.takes = [b"down"], [BlockingIOError(), BlockingIOError()]
    rig.watch.happens(ORIGIN, READ)
    assert rig.watch.events == {CLIENT: READ | WRITE}
    rig.watch.happens(CLIENT, READ | WRITE)
    assert (splices.gives, client.sent, origin.sent) == ([], [], [])
    rig.watch.happens(CLIENT, WRITE)
    assert (client.sent, rig.watch.events) == ([(b"down", 0)], {CLIENT: READ, ORIGIN: READ})
