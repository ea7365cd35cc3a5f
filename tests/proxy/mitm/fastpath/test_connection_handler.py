import asyncio
from typing import Any

import pytest

from gatewayfilter.proxy.mitm.fastpath.connection_handler import FastConnectionHandler
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
