"""The server of the dashboard: its connections, its memory, its certificate and its end, without a process."""

import asyncio
import ctypes
import gc
import linecache
import signal
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import h11
import pytest
import uvicorn

from gatewayfilter.allocator import AllocatorOption
from gatewayfilter.errors import StartupError
from gatewayfilter.web import connections, memory, server, tls
from gatewayfilter.web.connections import BoundedProtocol, UnsignalledServer, bounded_config
from gatewayfilter.web.lean_imports import without_docstrings


def test_memory_is_kept_small_and_given_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    done: list[Any] = []
    monkeypatch.setattr(memory, "tune_allocator", done.append)
    library = SimpleNamespace(prctl=lambda *given: done.append((given[0], *(one.value for one in given[1:]))))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library if name is None else None)
    memory.limit_heaps()
    assert done == [{AllocatorOption.ARENA_MAX: 1, AllocatorOption.MMAP_THRESHOLD: 65_536}, (41, 1, 0, 0, 0)]
    del library.prctl
    memory.limit_heaps()
    assert len(done) == 3
    done.clear()
    monkeypatch.setattr(linecache, "clearcache", lambda: done.append("lines"))
    monkeypatch.setattr(gc, "collect", lambda: done.append("collected"))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("frozen"))
    monkeypatch.setattr(memory, "give_back", lambda: done.append("given back"))
    memory.keep_imported()
    assert done == ["lines", "collected", "given back", "frozen"]
    statm = tmp_path / "statm"
    monkeypatch.setattr(memory, "_STATM", statm)
    monkeypatch.setattr("resource.getpagesize", lambda: 4_096)
    found = []
    for text in ("9 3 1", "9", "9 x"):
        statm.write_text(text)
        found.append(memory.resident_bytes())
    monkeypatch.setattr(memory, "_STATM", tmp_path / "none")
    assert [*found, memory.resident_bytes()] == [3 * 4_096, 0, 0, 0]


def code(source: str) -> Any:
    space: dict[str, Any] = {}
    exec(compile(source, "x", "exec"), space)
    return space["f"].__code__


def test_docstrings_alone_are_dropped() -> None:
    with_one = code('def f():\n    "doc"\n    return "x"')
    assert without_docstrings(with_one).co_consts[0] is None
    for source in ('def f():\n    return "x"', "def f():\n    return 7", "def f(a):\n    return a", 'f = lambda: "x"'):
        found = code(source)
        assert without_docstrings(found) is found
    outer = code('def f():\n    def g():\n        "doc"\n        return 1\n    return g')
    made = without_docstrings(outer)
    assert made is not outer
    assert [one.co_consts[0] for one in made.co_consts if hasattr(one, "co_consts")] == [None]
    module = compile('"doc"\nx = 1', "x", "exec")
    assert without_docstrings(module) is module
    both = code('def f():\n    "both"\n    return "both"')
    assert eval(without_docstrings(both)) == "both"


def test_servers_are_bounded() -> None:
    config = bounded_config("app", head_bytes=7, connections=8, drain_s=3, port=9)
    shown = (
        config.app,
        config.h11_max_incomplete_event_size,
        config.limit_concurrency,
        config.timeout_graceful_shutdown,
        config.port,
        config.timeout_keep_alive,
        config.access_log,
        config.server_header,
        config.proxy_headers,
        config.ws,
        config.http,
        config.lifespan,
    )
    assert shown == ("app", 7, 8, 3, 9, 20, False, False, False, "none", BoundedProtocol, "off")
    assert bounded_config("app", head_bytes=7, connections=8).timeout_graceful_shutdown == 2
    with UnsignalledServer(config).capture_signals():
        pass


def test_the_server_ends_at_the_signal_of_the_supervisor_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        serving = server._Server(bounded_config("app", head_bytes=7, connections=8))
        with serving.capture_signals():
            assert (serving.should_exit, signal.getsignal(signal.SIGINT)) == (False, interrupt)
            signal.raise_signal(signal.SIGTERM)
        assert (serving.should_exit, heard) == (True, [])
    finally:
        signal.signal(signal.SIGTERM, before)


class Transport:
    """A connection of a client."""

    def __init__(self, client: tuple[str, int] | None) -> None:
        self.client, self.aborted = client, 0

    def get_extra_info(self, name: str) -> Any:
        return {"peername": self.client, "sockname": ("10.0.0.1", 80)}.get(name)

    def abort(self) -> None:
        self.aborted += 1

    def is_closing(self) -> bool:
        return False

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


def connected(state: Any, config: uvicorn.Config, host: str, timers: list[Any]) -> tuple[BoundedProtocol, Transport]:
    def call_later(seconds: float, run: Callable[[], None]) -> Any:
        timers.append(SimpleNamespace(seconds=seconds, run=run, cancelled=0))
        timer = timers[-1]
        timer.cancel = lambda: setattr(timer, "cancelled", timer.cancelled + 1)
        return timer

    loop: Any = SimpleNamespace(call_later=call_later, create_task=lambda *_: None)
    protocol = BoundedProtocol(config, state, {}, loop)
    transport = Transport((host, 5) if host else None)
    protocol.connection_made(cast("Any", transport))
    return protocol, transport


def test_connections_of_a_client_and_the_time_of_a_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_PER_CLIENT", 2)
    config = bounded_config(lambda *_: None, head_bytes=1_000, connections=8)
    config.load()
    state = uvicorn.server.ServerState()
    timers: list[Any] = []
    aborted = [
        connected(state, config, host, timers)[1].aborted for host in (*["10.0.0.7"] * 3, "10.0.0.8", *["127.0.0.1"] * 4, "x", "")
    ]
    assert aborted == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert [timer.seconds for timer in timers] == [20.0] * 9
    protocol, transport = connected(state, config, "10.0.0.9", timers)
    first = timers[-1]
    protocol.on_response_complete()
    assert (first.cancelled, state.total_requests) == (1, 1)
    timer = timers[-1]
    assert (timer is first, timer.seconds, timer.cancelled) == (False, 20.0, 0)
    timer.run()
    assert transport.aborted == 1
    protocol.conn.receive_data(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert [type(protocol.conn.next_event()) for _ in range(2)] == [h11.Request, h11.EndOfMessage]
    protocol.cycle = cast("Any", SimpleNamespace(response_complete=False))
    timer.run()
    assert transport.aborted == 1
    protocol.cycle = cast("Any", SimpleNamespace(response_complete=True))
    timer.run()
    assert transport.aborted == 2
    count = len(timers)
    protocol.cycle = cast("Any", None)
    protocol.connection_lost(None)
    assert (timer.cancelled, len(timers), protocol in state.connections) == (1, count, False)


def test_the_server_listens_where_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with server.listening("127.0.0.1:0") as listener:
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 1
        assert (listener.family, listener.get_inheritable()) == (socket.AF_INET, False)
        listener.listen()
        port = listener.getsockname()[1]
        with (
            pytest.raises(StartupError, match=rf"^cannot listen on web\.listen 127\.0\.0\.1:{port}: "),
            server.listening(f"127.0.0.1:{port}"),
        ):
            raise AssertionError
    assert listener.fileno() == -1


class Status:
    """A status file that notes what is written."""

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []
        self.removed = 0

    def write(self, **facts: Any) -> None:
        self.written.append(facts)

    def remove(self) -> None:
        self.removed += 1


@pytest.mark.parametrize(
    ("name", "tls", "url"), [(("127.0.0.1", 80), False, "http://127.0.0.1:80/"), (("::1", 443, 0, 0), True, "https://[::1]:443/")]
)
def test_a_server_tells_its_state_until_it_ends(
    monkeypatch: pytest.MonkeyPatch, name: tuple[Any, ...], *, tls: bool, url: str
) -> None:
    status, served, released = Status(), list[Any](), list[str]()
    now = [0.0]
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class Times:
        """Memory is to be released once, after the second report."""

        @property
        def due(self) -> bool:
            return len(status.written) == 2 and not released

        def released(self) -> None:
            released.append("noted")

    monkeypatch.setattr(server, "ReleaseTimes", Times)
    monkeypatch.setattr(server, "release_memory", lambda: released.append("released"))
    looks: list[float] = []
    real = asyncio.wait

    async def wait(tasks: Any, timeout: float) -> Any:
        looks.append(timeout)
        now[0] += 2.5
        if len(looks) == 3:
            ended.set()
            return await real(tasks)
        await asyncio.sleep(0)
        return None

    monkeypatch.setattr(asyncio, "wait", wait)
    ended = asyncio.Event()

    class Serving:
        async def serve(self, sockets: list[Any]) -> None:
            served.append(sockets)
            await ended.wait()

    store = SimpleNamespace(close_idle=lambda: released.append("closed"))
    listener = SimpleNamespace(getsockname=lambda: name)
    asyncio.run(server._run(cast("Any", Serving()), cast("Any", listener), cast("Any", status), cast("Any", store), tls=tls))
    assert served == [[listener]]
    assert status.written == [{"state": "serving", "listen": url.split("/")[2], "url": url}] * 2  # at 0 and 5 seconds
    assert (status.removed, looks, released) == (1, [1.0] * 3, ["closed", "released", "noted"])


def test_a_server_that_fails_says_so() -> None:
    async def fail(_: Any) -> None:
        raise OSError("no socket")

    status = Status()
    parts: Any = SimpleNamespace(serve=fail, getsockname=lambda: ("127.0.0.1", 80), close_idle=None)
    with pytest.raises(OSError, match="no socket"):
        asyncio.run(server._run(parts, parts, cast("Any", status), parts, tls=False))
    assert status.removed == 1


def test_a_certificate_is_issued_for_names_that_can_be_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    issued: list[set[str]] = []
    lan: list[str | None] = ["10.9.9.9", None]

    def issue(authority: Any, names: set[str]) -> bytes:
        assert authority == tmp_path
        issued.append(names)
        raise OSError("not here")

    monkeypatch.setattr(tls, "issue_server_certificate", issue)
    monkeypatch.setattr(tls, "read_lan_address", lambda: lan.pop(0))
    own = {"127.0.0.1", "::1"}
    good = {"a.example", "x" * 253, "10.0.0.1", "2001:db8::1", ""}
    for address in ({"10.9.9.9"}, set[str]()):
        with pytest.raises(OSError, match="not here"):
            tls.context_of(None, None, tmp_path, [*good, "x" * 254, "0.0.0.0", "::", "\u00e4.example", ".x", "x."])
        assert issued[-1] == good | own | address
