"""The process for other proxies: what it serves, what it tells, and how it ends. Servers are the test's; sockets are real."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import StartupError
from gatewayfilter.processes.integration import daemon, zone
from gatewayfilter.telemetry import Counters


def noted[T](log: list[Any], entry: object, result: T) -> T:
    """Takes note of something, and returns a result."""
    log.append(entry)
    return result


class Parts:
    """Stands in for what decides."""

    def __init__(self, log: list[str]) -> None:
        self.log, self.counters, self.decider = log, Counters(), cast("Any", None)

    def start(self) -> None:
        self.log.append("start")

    def stop(self) -> None:
        self.log.append("stop")

    def facts(self) -> dict[str, int]:
        return {"feed_seq": 7}


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    found = list[str]()
    monkeypatch.setattr(daemon, "deciding", lambda _: Parts(found))
    monkeypatch.setattr(daemon, "raise_file_limit", lambda: found.append("files"))
    for name in ("_serve_squid", "_serve_icap", "_serve_http", "serve_zone"):

        async def serve(*_: object, name: str = name) -> None:
            found.append(name)

        monkeypatch.setattr(daemon, name, serve)
    before, interval = signal.getsignal(signal.SIGTERM), sys.getswitchinterval()
    yield found
    signal.signal(signal.SIGTERM, before)
    sys.setswitchinterval(interval)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_what_is_set_until_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: list[str], number: signal.Signals
) -> None:
    status = tmp_path / "run" / "integration.json"
    monkeypatch.setattr(daemon, "_STATUS_EVERY_S", 0.001)
    write = daemon._write_status
    told = list[dict[str, Any]]()

    def written(*facts: Any) -> None:
        write(*facts)
        told.append(json.loads(status.read_text()))
        if len(told) == 2:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(daemon, "_write_status", written)
    for chosen, served in (
        ({}, []),
        ({"helper": {"socket": str(tmp_path / "h.sock")}}, ["_serve_squid"]),
        ({"icap": {"listen": "127.0.0.1:1344"}, "decide": {"listen": "127.0.0.1:8099"}}, ["_serve_icap", "_serve_http"]),
        ({"rpz": {"listen": "127.0.0.1:5353"}}, ["serve_zone"]),
        ({"rpz": {"file": "/run/zone.rpz"}}, ["serve_zone"]),
    ):
        log.clear()
        told.clear()
        settings = Settings.model_validate({"data_dir": tmp_path, **chosen})
        asyncio.run(daemon._run(settings, (number,)))
        assert log == ["files", "start", *served, "stop"]
        assert not status.exists()
        path = str(tmp_path / "h.sock") if "helper" in chosen else ""
        assert (told[0]["state"], told[0]["listen"], told[0]["feed_seq"], told[0]["counters"]) == ("serving", path, 7, {})
        assert "decision_us" in told[0]
    assert sys.getswitchinterval() == pytest.approx(0.001)


def test_its_two_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = list[Any]()

    async def run(_: Settings, ending: tuple[signal.Signals, ...]) -> None:
        ran.append(ending)

    monkeypatch.setattr(daemon, "begin_child", ran.append)
    monkeypatch.setattr(daemon, "set_up_logging", lambda *asked: ran.append(asked))
    monkeypatch.setattr(daemon, "_run", run)
    settings = Settings()
    daemon.run_integration(settings)
    daemon.run_daemon(settings)
    assert ran == [
        settings, (signal.SIGTERM,), (settings.log.level, settings.log.format), (signal.SIGTERM, signal.SIGINT),
    ]  # fmt: skip


def test_the_socket_of_helpers_is_made_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[dict[str, Any]]()
    helpers: Any = SimpleNamespace(connections=set(), connection=None)

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            helpers.connections.add(transport)
            helpers.connected.set()

    def served(_decider: object, _counters: object, _url: str, **facts: Any) -> Any:
        made.append(facts)
        return helpers

    helpers.connection = Connection
    monkeypatch.setattr(daemon, "SquidHelpers", served)
    path = tmp_path / "helper.sock"

    async def serving(on_error: str) -> None:
        settings = Settings.model_validate({"data_dir": tmp_path, "proxy": {"on_error": on_error}})
        helpers.connected = asyncio.Event()
        async with AsyncExitStack() as stack:
            await daemon._serve_squid(stack, settings, cast("Any", Parts([])), path)
            reader, writer = await asyncio.open_unix_connection(path)
            async with asyncio.timeout(10):
                await helpers.connected.wait()
        assert not path.exists()
        async with asyncio.timeout(10):
            assert await reader.read() == b"", "open connections are closed, too"
        writer.close()
        helpers.connections.clear()

    for on_error in ("allow", "block"):
        asyncio.run(serving(on_error))
    assert made == [{"allows_failures": True}, {"allows_failures": False}]


def test_icap_has_an_inspector_and_its_address_is_named_where_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = list[str]()

    def part(name: str) -> Any:
        return SimpleNamespace(close=lambda: log.append(f"close {name}"))

    async def start(host: str, port: int) -> Any:
        log.append(f"{host} {port}")
        if port == 1:
            raise OSError(98, "Address already in use")
        return part("server")

    pool = SimpleNamespace(start=lambda: log.append("start"), stop=lambda: log.append("stop"))
    monkeypatch.setattr(daemon, "InspectionPool", lambda _: pool)
    monkeypatch.setattr(daemon, "icap_server", lambda *_: SimpleNamespace(start=start, close=part("served").close))

    async def serving(listen: str) -> None:
        settings = Settings.model_validate({"data_dir": tmp_path, "icap": {"listen": listen}})
        async with AsyncExitStack() as stack:
            await daemon._serve_icap(stack, settings, cast("Any", None))

    asyncio.run(serving("127.0.0.1:1344"))
    assert log == ["start", "127.0.0.1 1344", "close server", "close served", "stop"]
    log.clear()
    with pytest.raises(StartupError, match=r"cannot listen on icap\.listen 127\.0\.0\.1:1: Address already in use"):
        asyncio.run(serving("127.0.0.1:1"))
    assert log == ["start", "127.0.0.1 1", "stop"]


async def _answer(_scope: object, _receive: object, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_decisions_over_http_are_served_until_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "decide_endpoint", lambda *_: _answer)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = socket.create_server(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()

        async def serving(listen: str) -> bytes:
            settings = Settings.model_validate({"data_dir": tmp_path, "decide": {"listen": listen}})
            async with AsyncExitStack() as stack:
                await daemon._serve_http(stack, settings, cast("Any", None))
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                line = await reader.readline()
            async with asyncio.timeout(10):
                await reader.read()  # the end closes connections
            writer.close()
            assert len(asyncio.all_tasks()) == 1
            return line

        assert asyncio.run(serving(f"127.0.0.1:{port}")).startswith(b"HTTP/1.1 204")
        with pytest.raises(StartupError, match=r"cannot listen on decide\.listen .*: Address already in use"):
            asyncio.run(serving(f"127.0.0.1:{taken.getsockname()[1]}"))


def test_a_socket_has_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"helper\.socket is not set"):
        daemon.usable_socket(Settings())
    settings = Settings.model_validate({"helper": {"socket": str(tmp_path / "h.sock")}})
    assert daemon.usable_socket(settings) == tmp_path / "h.sock"


class Zone:
    """Stands in for keeper and server of the zone."""

    def __init__(self) -> None:
        self.log = list[Any]()
        self.on_change: Any = None
        self.told = list[tuple[str, int]]()

    def start(self) -> None:
        self.log.append("keep")

    def stop(self) -> None:
        self.log.append("keep no more")

    async def notify(self, host: str, port: int) -> bool:
        self.told.append((host, port))
        await asyncio.sleep(3_600)
        return True


def test_the_zone_is_kept_and_resolvers_are_told_of_its_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Zone()

    async def start(host: str, port: int) -> tuple[Any, Any]:
        keeper.log.append((host, port))
        if port == 1:
            raise OSError(98, "Address already in use")
        parts = [SimpleNamespace(close=lambda name=name: keeper.log.append(name)) for name in ("tcp", "udp")]
        return parts[0], parts[1]

    server = SimpleNamespace(start=start, close=lambda: keeper.log.append("server"), notify=keeper.notify)
    monkeypatch.setattr(zone, "rpz_keeper", lambda _settings, _counters, build: noted(keeper.log, build.func, (keeper, None)))
    monkeypatch.setattr(zone, "rpz_server", lambda *_: server)

    async def serving(**rpz: Any) -> int:
        settings = Settings.model_validate({"data_dir": tmp_path, "rpz": rpz})
        async with AsyncExitStack() as stack:
            await zone.serve_zone(stack, settings, Counters())
            if keeper.on_change is not None:
                for _ in range(2):  # the second takes the place of the first
                    await asyncio.to_thread(keeper.on_change)
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                assert len(asyncio.all_tasks()) == 3
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(serving(file=str(tmp_path / "zone"))) == 1
    assert keeper.log == [zone._build, "keep", "keep no more"]
    keeper.log.clear()
    assert asyncio.run(serving(listen="127.0.0.1:5353", notify=["127.0.0.1:53", "[::1]:54"])) == 1
    assert keeper.log == [zone._build, ("127.0.0.1", 5353), "keep", "keep no more", "server", "udp", "tcp"]
    assert keeper.told == [("127.0.0.1", 53), ("::1", 54)] * 2
    with pytest.raises(StartupError, match=r"cannot listen on rpz\.listen 127\.0\.0\.1:1: Address already in use"):
        asyncio.run(serving(listen="127.0.0.1:1"))


def test_lists_are_read_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[Any]()
    codes = [0, 3]

    def process(**facts: Any) -> Any:
        done.append((facts["target"], facts["args"], facts["daemon"]))
        return SimpleNamespace(start=lambda: done.append("start"), join=lambda: done.append("join"), exitcode=codes.pop(0))

    monkeypatch.setattr(
        "gatewayfilter.processes.integration.zone.multiprocessing.get_context", lambda _: SimpleNamespace(Process=process)
    )
    settings = Settings(data_dir=tmp_path)
    zone._build(settings)
    assert done == [(zone._read_lists, (settings, tmp_path / "rpz" / "names"), True), "start", "join"]
    with pytest.raises(OSError, match="ended with 3"):
        zone._build(settings)
    done.clear()
    monkeypatch.setattr(zone, "begin_child", lambda _: done.append("begin"))
    monkeypatch.setattr(zone, "low_priority", lambda: noted(done, "low priority", nullcontext()))
    monkeypatch.setattr(zone, "write_base_names", lambda _, path: done.append(path))
    zone._read_lists(settings, tmp_path / "names")
    assert done == ["begin", "low priority", tmp_path / "names"]
