import asyncio
import time
from typing import Any

import pytest

from gatewayfilter.proxy.mitm.fastpath.connection_handler import FastConnectionHandler, IdleTimer
from tests.proxy.conftest import StartGateway
from tests.proxy.connection_fakes import until
from tests.proxy.proxy_fakes import Origin

NAMES = ("client_connected", "server_connect", "server_connected", "server_disconnected", "client_disconnected")


class Hooks:
    """Notes when each hook of a connection begins and ends; some wait in between."""

    name = "notes"

    def __init__(self, waits: frozenset[str]) -> None:
        self.waits = waits
        self.seen: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(name)

        async def later() -> None:
            await asyncio.sleep(0.01)
            self.seen.append(f"{name} waited")

        def called(_: object) -> Any:
            self.seen.append(name)
            return later() if name in self.waits else None

        return called


@pytest.mark.parametrize("waits", [frozenset(), frozenset(NAMES)], ids=["none waits", "all wait"])
@pytest.mark.parametrize("fast_path", [True, False])
async def test_hooks_of_connections_run_once_and_to_their_end(
    waits: frozenset[str],
    fast_path: bool,  # noqa: FBT001  a column
    start_gateway: StartGateway,
    origin: Origin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once: list[object] = []
    run = FastConnectionHandler.handle_hook

    async def note(self: FastConnectionHandler, hook: Any) -> None:
        at_once.append(hook)
        await run(self, hook)

    monkeypatch.setattr(FastConnectionHandler, "handle_hook", note)
    async with start_gateway(fast_path=fast_path) as gateway:
        hooks = Hooks(waits)
        gateway.master.addons.add(hooks)
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        async with asyncio.timeout(10):
            host = origin.http.removeprefix("http://").encode()
            writer.write(b"GET http://%b/page HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % (host, host))
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()
            expected = [step for name in NAMES for step in ((name, f"{name} waited") if waits else (name,))]
            await until(lambda: len(hooks.seen) == len(expected))
        assert sorted(hooks.seen) == sorted(expected)
        middle = [step for step in hooks.seen if "disconnected" not in step]
        assert middle == [step for step in expected if "disconnected" not in step]
    assert bool(at_once) is fast_path


async def test_the_time_out_counts_from_the_last_activity_and_not_while_a_hook_waits() -> None:
    ends: list[float] = []

    async def end() -> None:
        ends.append(time.time())

    timer = IdleTimer(1, end)
    timer.timeout = 0.05  # type: ignore[assignment]
    timer.begin()
    await until(lambda: ends)
    timer.last_activity = time.time()
    timer.begin()
    timer.last_activity += 3600
    await asyncio.sleep(0.15)
    assert len(ends) == 1
    timer.end()
    with timer.disarm(), timer.disarm():
        timer.last_activity = 0
        timer.begin()
        await asyncio.sleep(0.15)
        assert len(ends) == 1
    await until(lambda: len(ends) == 2)
    timer.begin()
    timer.end()
    await asyncio.sleep(0.15)
    assert len(ends) == 2


@pytest.mark.parametrize("ending", ["client", "cancelled", "killed", "crashed"])
async def test_however_a_connection_ends_the_client_is_forgotten(
    ending: str, start_gateway: StartGateway, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_gateway() as gateway:
        hooks = Hooks(frozenset({"client_disconnected", "server_disconnected"}))
        gateway.master.addons.add(hooks)
        connections = gateway.master.addons.get("proxyserver").connections
        if ending == "killed":
            monkeypatch.setattr(hooks, "client_connected", lambda client: setattr(client, "error", "killed"), raising=False)
        if ending == "crashed":
            monkeypatch.setattr(FastConnectionHandler, "handle_connection", _fail)
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        async with asyncio.timeout(10):
            host = origin.http.removeprefix("http://").encode()
            writer.write(b"GET http://%b/page HTTP/1.1\r\nHost: %b\r\n\r\n" % (host, host))
            if ending in {"client", "cancelled"}:
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            if ending == "client":
                writer.close()
            if ending == "cancelled":
                (handler,) = connections.values()
                handler.transports[handler.client].handler.cancel("a test")
                await reader.read()
            await until(lambda: "client_disconnected waited" in hooks.seen)
            await until(lambda: not connections)
        writer.close()
    assert hooks.seen.count("client_disconnected") == 1
    assert hooks.seen.count("server_connected") == hooks.seen.count("server_disconnected waited")


async def _fail(_self: object, _connection: object) -> None:
    raise ValueError("a crash")
