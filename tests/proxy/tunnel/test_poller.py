"""Sockets are watched for what was asked, by whoever asked last, and the loop gets what is its own."""

import asyncio
import select
import selectors
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.proxy.tunnel.client_turns import CROWD
from gatewayfilter.proxy.tunnel.poller import ENDING, GONE, READ, WRITE, LoopPoller, Poller, WireSelector, new_loop, poller_of
from gatewayfilter.proxy.tunnel.poller import _descriptor as descriptor_of
from tests.proxy.connection_fakes import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="epoll is Linux's")


@pytest.fixture(params=["selector", "loop"])
async def watcher(request: pytest.FixtureRequest) -> AsyncIterator[Poller]:
    loop = asyncio.get_running_loop()
    if request.param == "loop":
        yield LoopPoller(loop)
        return
    found = poller_of(loop)
    assert isinstance(found, WireSelector)
    yield found


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    with near, far:
        yield near, far


class Notes:
    """A handler that keeps what it is told, and takes what can be read."""

    def __init__(self, watched: socket.socket) -> None:
        self.events: list[int] = []
        self.heard = b""
        self._watched = watched

    def __call__(self, events: int) -> None:
        self.events.append(events)
        with suppress(BlockingIOError):
            self.heard += self._watched.recv(100)


async def test_it_is_told_what_was_asked_for(watcher: Poller, pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    notes = Notes(near)
    watcher.watch(near.fileno(), READ, notes)
    await asyncio.sleep(0.01)
    assert notes.events == []
    far.send(b"x")
    await until(lambda: notes.heard == b"x")
    assert all(events & READ and not events & WRITE for events in notes.events)
    watcher.watch(near.fileno(), READ | WRITE, notes)
    await until(lambda: notes.events[-1] & WRITE)
    watcher.watch(near.fileno(), READ, notes)
    seen = len(notes.events)
    await asyncio.sleep(0.01)
    assert len(notes.events) == seen
    assert watcher.now > 0
    watcher.drop(near)


async def test_the_last_one_who_asked_is_told(watcher: Poller, pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    first, second = Notes(near), Notes(near)
    watcher.watch(near.fileno(), READ, first)
    watcher.watch(near.fileno(), READ, second)
    far.send(b"x")
    await until(lambda: second.heard == b"x")
    assert first.events == []
    watcher.drop(near)


async def test_the_forgotten_are_left_in_peace(watcher: Poller, pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    notes = Notes(near)
    watcher.watch(near.fileno(), READ, notes)
    watcher.forget(near.fileno())
    watcher.forget(near.fileno())
    far.send(b"x")
    await asyncio.sleep(0.01)
    assert notes.events == []
    assert near.recv(10) == b"x"
    watcher.watch(near.fileno(), READ, notes)
    far.send(b"y")
    await until(lambda: notes.heard == b"y")
    watcher.drop(near)
    assert near.fileno() == -1
    watcher.drop(near)


async def test_a_broken_connection_is_reported_to_who_waits_to_write(watcher: Poller) -> None:
    with socket.socket() as made, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        made.setblocking(False)
        made.connect_ex(nobody.getsockname())
        events: list[int] = []

        def note(happened: int) -> None:
            events.append(happened)
            watcher.forget(made.fileno())

        watcher.watch(made.fileno(), WRITE, note)
        await until(lambda: events)
        assert events[0] & GONE


async def test_a_handler_that_fails_takes_nothing_from_the_others(
    watcher: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    failures: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
    notes = Notes(near)

    def fail(_: int) -> None:
        watcher.forget(far.fileno())
        raise ValueError("broken")

    watcher.watch(far.fileno(), WRITE, fail)
    watcher.watch(near.fileno(), READ, notes)
    far.send(b"x")
    await until(lambda: notes.heard == b"x" and failures)
    assert str(failures[0]) == "broken"
    watcher.drop(near)


async def test_a_number_that_is_used_again_inherits_no_events(pair: tuple[socket.socket, socket.socket]) -> None:
    """Two sockets are ready at once; who is told first closes the other and opens a new one, which gets its number."""
    watcher = poller_of(asyncio.get_running_loop())
    near, far = pair
    other, its_far = socket.socketpair()
    its_far.send(b"x")
    far.send(b"x")
    told: list[str] = []
    made: list[socket.socket] = []

    def replace(mine: socket.socket, theirs: socket.socket) -> Callable[[int], None]:
        def handler(_: int) -> None:
            told.append("first")
            number = theirs.fileno()
            watcher.drop(theirs)
            made.extend(socket.socketpair())
            assert number in {made[0].fileno(), made[1].fileno()}
            watcher.watch(number, READ, lambda _: told.append("new"))
            watcher.forget(mine.fileno())

        return handler

    watcher.watch(near.fileno(), READ, replace(near, other))
    watcher.watch(other.fileno(), READ, replace(other, near))
    await asyncio.sleep(0.02)
    assert told == ["first"]
    for one in made:
        watcher.drop(one)
    its_far.close()


async def test_the_loop_knows_a_socket_by_its_number_too(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    loop = asyncio.get_running_loop()
    told: list[str] = []
    loop.add_reader(near, told.append, "first")
    loop.add_reader(near.fileno(), told.append, "second")
    loop.add_writer(near, lambda: loop.remove_writer(near.fileno()))
    far.send(b"x")
    await until(lambda: told)
    assert set(told) == {"second"}
    assert loop.remove_reader(near)
    assert not loop.remove_reader(near.fileno())


async def test_the_loop_has_its_turn_whatever_happens_to_sockets(pair: tuple[socket.socket, socket.socket]) -> None:
    """A socket that is ready for ever keeps neither timers nor tasks waiting, nor those that its handler makes."""
    loop = asyncio.get_running_loop()
    watcher = poller_of(loop)
    near, _ = pair
    came: list[str] = []

    def busy(_: int) -> None:
        if not came:
            came.append("busy")
            loop.call_later(0.01, came.append, "timer")
            loop.call_soon(came.append, "soon")

    loop.call_later(0.005, came.append, "before")
    watcher.watch(near.fileno(), WRITE, busy)
    await until(lambda: "timer" in came)
    assert came == ["busy", "soon", "before", "timer"]
    assert await asyncio.to_thread(lambda: "thread") == "thread"
    watcher.forget(near.fileno())


async def test_what_the_loop_watches_is_read_without_a_turn_of_it(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    near, far = pair
    turns: list[int] = []
    take: Any = loop._process_events  # type: ignore[attr-defined]

    def note(happened: list[Any]) -> None:
        turns.append(len(happened))
        take(happened)

    monkeypatch.setattr(loop, "_process_events", note)
    got: list[bytes] = []
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))

    def read() -> None:
        got.append(near.recv(1))
        if len(got) < 20:
            far.send(b"x")
        elif len(got) == 20:
            far.send(b"x")
            raise ValueError("as the loop does: the others go on")

    loop.add_reader(near, read)
    far.send(b"x")
    await until(lambda: len(got) == 21)
    assert len(complaints) == 1
    assert sum(turns) < 10
    loop.remove_reader(near)
    loop.set_exception_handler(None)


async def test_callbacks_that_wait_come_before_what_can_be_read(pair: tuple[socket.socket, socket.socket]) -> None:
    loop = asyncio.get_running_loop()
    near, far = pair
    came: list[str] = []

    def first() -> None:
        came.append("first")
        far.send(b"x")
        loop.call_soon(came.append, "waited")

    def read() -> None:
        came.append("read")
        near.recv(1)
        loop.remove_reader(near)
        loop.call_soon(came.append, "last")

    loop.add_reader(near, read)
    loop.call_soon(first)
    await until(lambda: len(came) == 4)
    assert came == ["first", "waited", "read", "last"]


def test_it_is_a_selector() -> None:
    """As `selectors` describes one; asyncio's own tests ask no more of it."""
    found = WireSelector()
    near, far = socket.socketpair()
    with near, far:
        key = found.register(near, selectors.EVENT_READ, "data")
        table = found.get_map()
        assert (
            found.get_key(near) == found.get_key(near.fileno()) == table[near] == table[near.fileno()] == table.get(near) == key
        )
        assert table.get(far) is None
        assert (list(table), len(table)) == ([near.fileno()], 1)
        assert found.select(0) == []
        far.send(b"x")
        assert found.select(None) == [(key, selectors.EVENT_READ)]
        key = found.modify(near, selectors.EVENT_READ | selectors.EVENT_WRITE, "more")
        assert found.select(1) == [(key, selectors.EVENT_READ | selectors.EVENT_WRITE)]
        with pytest.raises(KeyError):
            found.register(near, selectors.EVENT_READ)
        with pytest.raises(ValueError, match="invalid events"):
            found.register(far, 0)
        assert found.unregister(near) == key
        for ask in (found.unregister, found.get_key):
            with pytest.raises(KeyError):
                ask(near)
        with pytest.raises(KeyError):
            found.modify(near, selectors.EVENT_READ)
        found.register(near, selectors.EVENT_READ)
        near.close()
        found.unregister(near)  # after it was closed
        with pytest.raises(ValueError, match="invalid file descriptor"):
            found.register(near, selectors.EVENT_READ)
    found.close()


class Polls:
    """Stands in for an epoll set: gives what it is told, and notes what it is asked."""

    def __init__(self, *happens: list[tuple[int, int]] | InterruptedError) -> None:
        self.happens = list(happens)
        self.asked: list[tuple[float | None, int]] = []
        self.did: list[tuple[object, ...]] = []

    def poll(self, timeout: float | None, most: int) -> list[tuple[int, int]]:
        self.asked.append((timeout, most))
        found = self.happens.pop(0)
        if isinstance(found, InterruptedError):
            raise found
        return found

    def register(self, *what: object) -> None:
        self.did.append(("register", *what))

    def modify(self, *what: object) -> None:
        self.did.append(("modify", *what))

    def unregister(self, *what: object) -> None:
        self.did.append(("unregister", *what))


def selector_of(polls: Polls) -> WireSelector:
    found = WireSelector()
    found._epoll.close()
    set_up: Any = found
    set_up._epoll = polls
    return found


def test_in_a_crowd_all_that_are_ready_are_looked_at() -> None:
    crowd = [(number, READ) for number in range(100, 100 + CROWD)]
    polls = Polls(crowd, [*crowd, (99, READ)], [*crowd, (99, READ)], crowd, [])
    found = selector_of(polls)
    turns: list[object] = []

    def take(ready: list[tuple[int, int]]) -> list[tuple[int, int]]:
        turns.append(len(ready))
        return ready

    found.turns = cast("Any", SimpleNamespace(take=take, rest=lambda: turns.append("rest")))
    served: list[int] = []
    found._handlers = {number: served.append for number, _ in crowd}
    for _ in range(5):
        assert found.select(0) == []
    assert [most for _, most in polls.asked] == [256, 256, 8192, 8192, 256]
    assert turns == [CROWD + 1, CROWD + 1, "rest"]
    assert served == [READ] * 4 * CROWD


def test_a_wait_that_a_signal_ends_is_over() -> None:
    assert selector_of(Polls(InterruptedError())).select(1.0) == []


def test_a_wait_goes_on_for_the_rest_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as nothing is for the loop: what happens to sockets of the poller alone does not end it."""
    times = iter([10.0, 10.25, 10.5, 11.0, 11.5, 11.5])
    monkeypatch.setattr("gatewayfilter.proxy.tunnel.poller.time.monotonic", times.__next__)
    polls = Polls([(7, READ)], [(7, READ)], [(7, READ)], [(7, READ)])
    found = selector_of(polls)
    found._handlers, found._ready = {7: lambda _: None}, ()  # the loop has nothing to do
    assert found.select(1.0) == []
    assert [timeout for timeout, _ in polls.asked] == [1.0, 0.75, 0.5]
    assert found.now == 11.0
    polls.happens = [[(7, READ)], []]
    assert found.select(None) == []
    assert [timeout for timeout, _ in polls.asked[3:]] == [None, None]


def test_a_socket_is_registered_once_and_changed_where_its_events_do() -> None:
    polls = Polls()
    found = selector_of(polls)
    for events in (READ, READ, READ | WRITE, WRITE):
        found.watch(7, events, lambda _: None)
    found.watch(8, WRITE, lambda _: None)
    found.forget(7)
    found.forget(7)
    assert polls.did == [
        ("register", 7, READ | ENDING),
        ("modify", 7, READ | WRITE | ENDING),
        ("modify", 7, WRITE),
        ("register", 8, WRITE),
        ("unregister", 7),
    ]


@pytest.mark.parametrize(
    ("asked", "happened", "told"),
    [
        (selectors.EVENT_READ, READ, selectors.EVENT_READ),
        (selectors.EVENT_READ, GONE, selectors.EVENT_READ),
        (selectors.EVENT_READ, WRITE, 0),
        (selectors.EVENT_WRITE, WRITE, selectors.EVENT_WRITE),
        (selectors.EVENT_WRITE, GONE, selectors.EVENT_WRITE),
        (selectors.EVENT_WRITE, READ, 0),
        (selectors.EVENT_READ | selectors.EVENT_WRITE, READ | WRITE, selectors.EVENT_READ | selectors.EVENT_WRITE),
        (selectors.EVENT_READ | selectors.EVENT_WRITE, GONE, selectors.EVENT_READ | selectors.EVENT_WRITE),
    ],
)
def test_what_the_loop_is_told_of_what_it_watches(asked: int, happened: int, told: int) -> None:
    polls = Polls([], [(7, happened)])
    found = selector_of(polls)
    key = found.register(7, asked, "data")
    assert found.select(0) == []
    assert found.select(0) == ([(key, told)] if told else [])
    wanted = (READ if asked & selectors.EVENT_READ else 0) | (WRITE if asked & selectors.EVENT_WRITE else 0)
    assert polls.did == [("register", 7, wanted)]


def test_a_descriptor_is_a_number_from_zero() -> None:
    assert [descriptor_of(given) for given in (0, 7)] == [0, 7]
    for closed in (-1, SimpleNamespace(fileno=lambda: -1)):
        with pytest.raises(ValueError, match="invalid file descriptor: -1"):
            descriptor_of(closed)


def test_without_epoll_the_loop_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "epoll")
    loop = new_loop()
    try:
        assert isinstance(poller_of(loop), LoopPoller)
        assert poller_of(loop) is poller_of(loop)
    finally:
        loop.close()


def test_asyncio_still_keeps_its_lists_where_we_look() -> None:
    """Without them the selector works, but gives the loop a turn after each look."""
    loop = new_loop()
    try:
        assert not loop._ready  # type: ignore[attr-defined]
        assert not loop._scheduled  # type: ignore[attr-defined]
        loop.call_soon(print)
        loop.call_later(1, print)
        assert len(loop._ready) == len(loop._scheduled) == 1  # type: ignore[attr-defined]
    finally:
        loop.close()
