"""Which connections a listener takes, how it counts them, and what becomes of them at mitmproxy; no sockets, no event loop."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from weakref import ref

import pytest

from gatewayfilter.proxy.listener import listener
from gatewayfilter.proxy.listener.connect_request import ConnectRequest
from gatewayfilter.proxy.listener.listener import Admission, Handlers, Limits, Listener, OpenTunnel
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.tunnel.poller import READ
from gatewayfilter.telemetry import Counters

PAGES = BlockPages()


class Handshake:
    """A connection in its handshake."""

    made: list["Handshake"]

    def __init__(self, services: Any, client: Any, address: str, owner: object) -> None:
        self.services, self.client, self.address, self.owner = services, client, address, owner
        self.begun, self.over = False, False
        self.data, self.answered, self.head_bytes = b"", False, 0
        self.opened: ConnectRequest | None = None
        self.made.append(self)

    def begin(self) -> None:
        self.begun = True

    def expired(self, now: float, idle_s: float) -> bool:
        assert (now, idle_s) == (50.0, 7.0)
        return self.over

    def drop(self) -> None:
        self.services.undecided.discard(self)
        self.services.closed(self.address)

    def out_of_time(self) -> None:
        pass


class Client:
    """The socket of a client."""

    def __init__(self, *_: object) -> None:
        self.blocking, self.closed = True, False

    def fileno(self) -> int:
        return 9

    def setblocking(self, blocking: bool) -> None:  # noqa: FBT001
        self.blocking = blocking

    def close(self) -> None:
        self.closed = True


class Task:
    """A task that is run by hand."""

    def add_done_callback(self, call: Callable[["Task"], None]) -> None:
        self.done = call


class Door:
    """A listener and what it did."""

    def __init__(self, mode: str = "regular", *, most: int = 100, most_of_one: int = 10) -> None:
        self.done: list[object] = []
        self.counters = Counters()
        self.turns: Any = SimpleNamespace(
            behind_s=0.0, spread_s=0.0, own=self._own, disown=lambda number, owner: self.done.append(("disowned", number, owner))
        )
        self.poller: Any = SimpleNamespace(
            turns=self.turns,
            now=100.0,
            watch=lambda number, events, call: self.done.append(("watched", number, events)),
            forget=lambda number: self.done.append(("forgotten", number)),
            drop=lambda one: self.done.append("dropped"),
        )
        self.timers: list[tuple[object, ...]] = []
        self.tasks: list[Any] = []
        loop = SimpleNamespace(
            time=lambda: 50.0,
            call_later=lambda *arguments: self.timers.append(arguments),
            create_task=self._task,
        )
        relays: Any = SimpleNamespace(loop=loop, poller=self.poller, counters=self.counters)
        self.admits, self.takes_tunnels, self.fault = True, True, False
        handlers = Handlers(cast("Any", None), self._tunnel, lambda: self.takes_tunnels)
        self.dialer: Any = SimpleNamespace(own_port=0)
        self.listener = Listener(
            mode, handlers, cast("Any", None), relays, cast("Any", self.dialer),
            admission=Admission(lambda text: text, lambda authorization, address: self.admits),
            limits=Limits(7.0, most, most_of_one), pages=PAGES,
        )  # fmt: skip
        self.services = self.listener._services

    def _own(self, number: int, name: str) -> object:
        self.done.append(("owned", number, name))
        return f"owner {name}"

    def _task(self, work: Any) -> Any:
        self.tasks.append(work)
        made = Task()
        self.task = ref(made)
        return made

    async def _tunnel(self, client: Any, data: bytes, tunnel: OpenTunnel) -> None:
        self.done.append(("tunnel", data, tunnel))
        if self.fault:
            raise RuntimeError("a fault")

    def take(self, address: str) -> Handshake | None:
        """Has a client connect; returns its handshake, `None` where it was refused."""
        before = len(Handshake.made)
        client = Client()
        self.listener._take(cast("Any", client), address)
        assert client.closed == (len(Handshake.made) == before)
        return Handshake.made[before] if len(Handshake.made) > before else None


@pytest.fixture(autouse=True)
def _no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    Handshake.made = []
    monkeypatch.setattr(listener, "ClientHandshake", Handshake)


def test_a_connection_is_taken_and_counted() -> None:
    door = Door()
    taken = door.take("10.0.0.2")
    assert taken is not None
    assert (taken.begun, taken.client.blocking, taken.address) == (True, False, "10.0.0.2")
    assert str(taken.owner).startswith("owner ")
    assert (door.listener.open_connections, door.counters.as_dict()) == (1, {"connections": 1})
    assert set[object](door.services.undecided) == {taken}
    taken.drop()
    assert (door.listener.open_connections, dict(door.listener._open)) == (0, {})


def test_how_many_connections_there_may_be() -> None:
    door = Door(most=4, most_of_one=2)
    assert [door.take("10.0.0.2") is not None for _ in range(3)] == [True, True, False]
    assert [door.take(f"10.0.0.{number}") is not None for number in (3, 4, 5)] == [True, True, False]
    assert (door.counters["connections_refused"], door.counters["connections"], door.listener.open_connections) == (2, 6, 4)
    Handshake.made[0].drop()
    assert door.take("10.0.0.5") is not None
    again = Door(most_of_one=2)
    first = again.take("10.0.0.2")
    assert first is not None
    again.take("10.0.0.2")
    first.drop()
    assert [again.take("10.0.0.2") is not None for _ in range(2)] == [True, False], "the other one is still there"


def test_a_network_of_ipv6_has_half_of_all() -> None:
    for most, of_one, taken in ((8, 2, 4), (4, 3, 3), (9, 1, 4)):
        door = Door(most=most, most_of_one=of_one)
        found = [door.take(f"2001:db8::{number}%eth0") is not None for number in range(8)]
        assert found == [True] * taken + [False] * (8 - taken)
        assert door.take("2001:db8:0:1::1") is not None
        assert door.take("10.0.0.1") is not None or most == taken + 1
    counted = listener._counted_as
    assert counted("10.0.0.2") == ("10.0.0.2",)
    assert counted("2001:db8::1%eth0") == ("2001:db8::1%eth0", f"{0x20010DB800000000:x}/64")


def test_during_an_overload_clients_with_many_are_refused() -> None:
    def taken(door: Door, address: str) -> bool:
        found = door.take(address)
        assert found is not None
        return found.owner is not None

    door = Door()
    for _ in range(6):
        assert taken(door, "10.0.0.2")
    door.turns.behind_s = 1.0
    assert taken(door, "10.0.0.2"), "no more than at the bound"
    door.turns.behind_s = 1.5
    assert not taken(door, "10.0.0.2")
    assert [taken(door, "10.0.0.3") for _ in range(8)] == [True] * 7 + [False]
    assert door.counters["overload_refused"] == 2
    door.turns.spread_s = 4.0
    assert taken(door, "10.0.0.4")
    assert taken(door, "10.0.0.4")
    assert taken(door, "10.0.0.6")
    door.turns.spread_s = 4.5
    assert not taken(door, "10.0.0.4")
    assert not taken(door, "10.0.0.6"), "it has one"
    assert taken(door, "10.0.0.5")
    many = Door(most_of_one=50)
    for _ in range(16):
        many.take("10.0.0.2")
    many.turns.behind_s = 1.5
    assert [taken(many, "10.0.0.3") for _ in range(12)] == [True] * 12, "its share of all is more"
    assert not taken(many, "10.0.0.2")


class Accepting:
    """A listening socket."""

    def __init__(self, *coming: object) -> None:
        self.coming = list(coming)

    def fileno(self) -> int:
        return 3

    def _accept(self) -> tuple[int, tuple[str, int]]:
        found = self.coming.pop(0) if self.coming else BlockingIOError()
        if isinstance(found, OSError):
            raise found
        return 9, (str(found), 5)


def test_many_are_accepted_at_once_in_a_rush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_ACCEPTED_AT_ONCE", 3)
    monkeypatch.setattr(listener, "socket", SimpleNamespace(socket=Client, SOCK_STREAM=1, IPPROTO_TCP=6))
    door = Door()
    waiting: Any = Accepting(*["10.0.0.2"] * 9)
    door.listener._families[waiting] = 2
    taken = []
    for seconds in (1.0, 0.0015, 0.0025, 0.0, 1.0):
        door.poller.now += seconds
        door.listener._accept(waiting)
        taken.append(len(Handshake.made))
    assert taken == [1, 4, 5, 8, 9]
    for fault in (InterruptedError(), ConnectionAbortedError(), OSError(errno.EPROTO, "x")):
        door.listener._accept(cast("Any", Accepting(fault, "10.0.0.2")))
    assert (len(Handshake.made), door.timers) == (9, [])
    door = Door()
    door.poller.now = listener._RUSH_S  # the loop's time begins with 0: no less than this after the connection before
    waiting = Accepting(*["10.0.0.2"] * 3)
    door.listener._families[waiting] = 2
    door.listener._accept(waiting)
    assert len(Handshake.made) == 10


def test_without_descriptors_it_rests(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "gatewayfilter.proxy.listener.listener")
    door = Door()
    for number in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
        waiting: Any = Accepting(OSError(number, "none left"))
        door.listener._accept(waiting)
        assert door.done == [("forgotten", 3)]
        seconds, again, argument = door.timers.pop()
        assert (seconds, argument, caplog.records[-1].getMessage()) == (
            0.5,
            waiting,
            "no more connections can be taken: none left",
        )
        door.done.clear()
        cast("Any", again)(argument)
        assert door.done == [], "it does not listen any more"
        door.listener.sockets = (waiting,)
        cast("Any", again)(argument)
        assert door.done == [("watched", 3, READ)]
        door.done.clear()
        door.listener.sockets = ()


def test_handshakes_that_take_too_long_are_dropped() -> None:
    door = Door()
    first, second = door.take("10.0.0.2"), door.take("10.0.0.3")
    assert first is not None
    first.over = True
    door.listener._sweep()
    assert set[object](door.services.undecided) == {second}
    assert door.timers == [(5.0, door.listener._sweep)]
    door.listener._sweeper = cast("Any", SimpleNamespace(cancel=lambda: door.done.append("cancelled")))
    door.listener.sockets = cast("Any", (Accepting(),))
    door.done.clear()
    door.listener.close()
    assert (door.done, door.services.undecided, door.listener.sockets) == (["dropped", "cancelled"], set(), ())


@pytest.mark.parametrize(
    ("mode", "address", "admits", "may"),
    [
        ("regular", "10.0.0.2", True, True),
        ("regular", "10.0.0.2", False, False),
        ("regular", "8.8.8.8", True, False),
        ("regular", "fe80::1%eth0", True, True),
        ("regular", "2a00::1", True, False),
        ("regular", "no address", True, False),
        ("transparent", "8.8.8.8", True, True),
        ("transparent", "8.8.8.8", False, False),
    ],
)
def test_who_may_be_relayed(mode: str, address: str, *, admits: bool, may: bool) -> None:
    door = Door(mode)
    door.admits = admits
    assert door.services.admits("", address) == may
    assert door.services.transparent == (mode == "transparent")


def test_behind_a_parent_by_tls_nothing_is_relayed() -> None:
    for mode, can in (("upstream:https://parent:1", False), ("upstream:http://parent:1", True), ("regular", True)):
        assert Door(mode).services.can_splice == can


def test_a_task_is_kept_until_it_is_done() -> None:
    door = Door()
    taken: Any = door.take("10.0.0.2")
    door.listener.hand_over(taken)
    door.tasks.pop().close()
    task = door.task()
    assert task is not None, "the loop itself keeps none"
    task.done(task)
    del task
    assert door.task() is None


def test_a_tunnel_goes_to_mitmproxy_without_its_head() -> None:
    for fault in (False, True):
        door = Door()
        door.fault = fault
        taken: Any = door.take("10.0.0.2")
        taken.opened, taken.head_bytes, taken.data, taken.answered = ConnectRequest("site.example", 443), 4, b"headinside", True
        door.done.clear()
        door.listener.hand_over(taken)
        if fault:
            with pytest.raises(RuntimeError):
                asyncio.run(door.tasks.pop())
        else:
            asyncio.run(door.tasks.pop())
        assert door.done == [("tunnel", b"inside", OpenTunnel(("site.example", 443), True)), ("disowned", 9, taken.owner)]
        assert door.listener.open_connections == 0


@pytest.mark.parametrize("answered", [False, True])
async def test_a_connection_goes_to_mitmproxy_with_what_was_read(monkeypatch: pytest.MonkeyPatch, *, answered: bool) -> None:
    door, seen = Door(), list[object]()
    door.takes_tunnels = False
    ended = asyncio.Event()

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.extend((await reader.read(4), type(writer).__name__))
        writer.close()
        ended.set()

    door.listener._handlers = Handlers(stream, cast("Any", None), lambda: False)
    door.listener.loop = asyncio.get_running_loop()
    taken: Any = door.take("10.0.0.2")
    taken.opened, taken.data, taken.answered = ConnectRequest("site.example", 443), b"read", answered
    near, far = socket.socketpair()
    near.setblocking(False)
    taken.client = near
    door.done.clear()
    monkeypatch.setattr(asyncio.StreamWriter, "get_extra_info", lambda *_: ("10.0.0.2", 5))
    with far:
        await door.listener._serve(taken)
        await ended.wait()
        await asyncio.sleep(0)
    assert seen == [b"read", "AnsweredWriter" if answered else "StreamWriter"]
    assert (len(door.done), door.listener.open_connections) == (1, 0)


async def test_a_connection_that_cannot_be_handed_over_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door()

    async def fail(*_: object) -> None:
        raise OSError(errno.EBADF, "gone")

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "connect_accepted_socket", fail)
    door.listener.loop = loop
    taken: Any = door.take("10.0.0.2")
    door.done.clear()
    await door.listener._serve(taken)
    assert (taken.client.closed, door.done, door.listener.open_connections) == (True, [("disowned", 9, taken.owner)], 0)


async def test_a_connection_that_was_reset_meanwhile_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    door, served = Door(), list[object]()
    kept: list[asyncio.StreamWriter] = []  # one that is freed is closed in any case

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append((reader, writer))

    door.listener._handlers = Handlers(stream, cast("Any", None), lambda: False)
    door.listener.loop = asyncio.get_running_loop()
    taken: Any = door.take("10.0.0.2")
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    taken.client = near
    monkeypatch.setattr(asyncio.StreamWriter, "get_extra_info", lambda writer, _: kept.append(writer))
    with far:
        await door.listener._serve(taken)
        for _ in range(3):
            await asyncio.sleep(0)
        assert far.recv(1) == b"", "it is closed"
    assert (served, door.listener.open_connections) == ([], 0)
