"""How a tunnel is requested from a parent proxy, over doubles of socket and poller: what is sent, read, closed and told."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.proxy.tunnel import dialer
from gatewayfilter.proxy.tunnel.dialer import Dialer, ParentRefusedError, Way
from gatewayfilter.proxy.tunnel.poller import READ
from gatewayfilter.proxy.tunnel.reach_guard import InternalAddressError
from tests.case_tables import all_cases

REQUEST = b"CONNECT bank.example:443 HTTP/1.1\r\nHost: bank.example:443\r\n"
BROKEN = ConnectionResetError(104, "reset")


class Made:
    """A connected socket."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.room: int | OSError | None = None
        self.comes: list[bytes | OSError] = []
        self.closed = False

    def fileno(self) -> int:
        return 7

    def send(self, data: bytes) -> int:
        if isinstance(self.room, OSError):
            raise self.room
        self.sent.append(data)
        return len(data) if self.room is None else self.room

    def recv(self, most: int) -> bytes:
        assert most == 4096
        found = self.comes.pop(0)
        if isinstance(found, OSError):
            raise found
        return found

    def getsockname(self) -> tuple[str, int]:
        return "192.0.2.1", 5

    def getpeername(self) -> tuple[str, int]:
        return "192.0.2.9", 443

    def close(self) -> None:
        self.closed = True


class World:
    """A dialer whose races end as a test has it."""

    def __init__(self, *, parent: bool = True, authorization: bytes = b"", **more: Any) -> None:
        self.made: Any = Made()
        self.told: list[Any] = []
        self.watched: dict[int, tuple[int, Callable[[int], None]]] = {}
        poller = SimpleNamespace(watch=self._watch, forget=self.watched.pop, drop=self._drop)
        self.timers: list[Callable[[], None]] = []
        loop: Any = SimpleNamespace(
            time=lambda: 10.0, call_at=lambda _, act: self.timers.append(act), gatewayfilter_poller=poller
        )
        at = ("192.0.2.50", 3128) if parent else None
        self.dialer = Dialer(loop, at, authorization=authorization, connect_s=30.0, **more)
        self.dial = self.dialer.dial("bank.example", 443, self.told.append, client="10.0.0.7")

    def _watch(self, descriptor: int, events: int, handler: Callable[[int], None]) -> None:
        self.watched[descriptor] = events, handler

    def _drop(self, made: Made) -> None:
        self.watched.pop(7, None)
        made.close()

    def connected(self, result: Any = None) -> Any:
        self.dialer.deadlines.add(self.dial)
        self.dial._connected(self.made if result is None else result)
        return self.told[0] if self.told else None

    def answers(self, *pieces: bytes | OSError) -> Any:
        for piece in pieces:
            self.made.comes = [piece]
            self.watched[7][1](READ)
        return self.told[0] if self.told else None


@all_cases(("authorization", "fields"), [(b"", b"\r\n"), (b"Basic YTpi", b"Proxy-Authorization: Basic YTpi\r\n\r\n")])
def test_what_is_asked_of_a_parent(authorization: bytes, fields: bytes) -> None:
    world = World(authorization=authorization)
    assert world.connected() is None
    assert (world.made.sent, world.watched[7][0]) == ([REQUEST + fields], READ)
    assert len(world.dialer.deadlines) == 1
    way = world.answers(b"HTTP/1.1 200 OK\r\n", BlockingIOError(), b"A: b\r\n\r", InterruptedError(), b"\nfirst")
    assert way == Way(world.made, b"first")
    assert (world.watched, world.made.closed, len(world.dialer.deadlines)) == ({}, False, 0)


@all_cases(("room", "message"), [(BROKEN, "reset"), (len(REQUEST) + 1, "takes nothing"), (0, "takes nothing")])
def test_a_parent_that_does_not_take_the_request(room: int | OSError, message: str) -> None:
    world = World()
    world.made.room = room
    error = world.connected()
    assert (message in str(error), world.made.closed, world.watched) == (True, True, {})
    assert len(world.dialer.deadlines) == 0


@all_cases(
    ("pieces", "message"),
    [
        ([BROKEN], "reset"),
        ([b"HTTP/1.1 200 OK\r\n", b""], "gave no answer"),
        ([b"HTTP/1.1 200 OK\r\n".ljust(65_537, b"x")], "gave no answer"),
        ([b"HTTP/1.1\r\n\r\n"], "refused: HTTP/1.1"),
        ([b"HTTP/1.1 199 x\r\n\r\n"], "refused: HTTP/1.1 199 x"),
        ([b"HTTP/2 200 x\r\n\r\n"], "refused: HTTP/2 200 x"),
        ([b"SIP/1.1 200 x\r\n\r\n"], "refused: SIP/1.1 200 x"),
        ([b"HTTP/1.1 403 " + b"n" * 200 + b"\r\nA: b\r\n\r\n"], f"refused: HTTP/1.1 403 {'n' * 87}"),
    ],
)
def test_how_a_parent_refuses(pieces: list[bytes | OSError], message: str) -> None:
    world = World()
    world.connected()
    error = world.answers(*pieces)
    assert str(error).endswith(message), str(error)
    assert isinstance(error, ParentRefusedError) is (pieces[0] is not BROKEN)
    assert (world.made.closed, world.watched, len(world.told), len(world.dialer.deadlines)) == (True, {}, 1, 0)


def test_a_long_head_is_read_up_to_its_most_bytes() -> None:
    world = World()
    world.connected()
    head = b"HTTP/1.1 200 OK\r\n".ljust(dialer._MOST_HEAD_BYTES, b"x")
    assert world.answers(head) is None
    assert world.answers(b"\r\n\r\n") == Way(world.made)


@pytest.mark.parametrize("stage", ["race", "request"])
def test_giving_up_closes_what_there_is_and_tells_it_once(stage: str) -> None:
    world, cancelled = World(), list[str]()
    if stage == "race":
        world.dialer.deadlines.add(world.dial)
        race: Any = SimpleNamespace(cancel=lambda: cancelled.append("race"))
        world.dial._race = race
    else:
        world.connected()
    world.dial.give_up()
    (error,) = world.told
    assert (type(error), str(error)) == (TimeoutError, "timed out after 30 seconds")
    assert (cancelled, world.made.closed) == ((["race"], False) if stage == "race" else ([], True))
    assert len(world.dialer.deadlines) == 0
    world.dial.give_up()
    world.dial.cancel()
    assert len(world.told) == 1


class Guard:
    """Finds that connections lead home, or do not."""

    def __init__(self, *, home: bool) -> None:
        self.home = home
        self.asked: list[tuple[str, ...]] = []

    def leads_home(self, *what: str) -> bool:
        self.asked.append(what)
        return self.home


@pytest.mark.parametrize("home", [True, False])
def test_a_connection_that_ends_at_this_machine_is_none_for_the_client(*, home: bool) -> None:
    guard: Any = Guard(home=home)
    world = World(parent=False, guard=guard)
    found = world.connected()
    assert guard.asked == [("10.0.0.7", "bank.example", "192.0.2.1", "192.0.2.9")]
    assert (isinstance(found, InternalAddressError), world.made.closed) == (home, home)
    assert home or found == Way(world.made)
    assert World(guard=guard).dialer.guard is None, "a parent's address is the operator's word"


def test_addresses_that_the_client_must_not_reach_are_not_connected_to() -> None:
    asked: list[tuple[object, ...]] = []

    def refuse(client: str, host: str, found: list[Any], *, destination: str) -> None:
        asked.append((client, host, [info[4] for info in found], destination))
        raise InternalAddressError

    guard: Any = SimpleNamespace(admitted=refuse)
    world = World(parent=False, guard=guard)
    world.dialer.dial("10.0.0.1", 443, world.told.append, "10.0.0.9", client="10.0.0.7").begin()
    assert asked == [("10.0.0.7", "10.0.0.1", [("10.0.0.1", 443)], "10.0.0.9")]
    assert (len(world.told), isinstance(world.told[0], InternalAddressError), len(world.dialer.deadlines)) == (1, True, 0)


def test_a_race_that_is_lost_is_told() -> None:
    world = World()
    assert world.connected(BROKEN) is BROKEN
    assert len(world.dialer.deadlines) == 0


@all_cases(("own_port", "parent", "asked"), [(3128, True, 1), (443, True, 0), (443, False, 1), (3128, False, 0)])
def test_whether_a_way_leads_back_is_asked_by_the_port_that_was_connected(own_port: int, asked: int, *, parent: bool) -> None:
    seen: list[object] = []

    def leads_back(made: object) -> bool:
        seen.append(made)
        return True

    world = World(parent=parent, leads_back=leads_back)
    world.dialer.own_port = own_port
    found = world.connected()
    assert (len(seen), isinstance(found, OSError) and "leads back" in str(found), world.made.closed) == (
        asked,
        asked == 1,
        asked == 1,
    )
