"""The short ways of mitmproxy's HTTP layer: the same traffic, hooks once each, in tunnels and beside them."""

import asyncio
import ssl
from collections import Counter
from typing import Any

import aiohttp
import pytest
from mitmproxy import http
from mitmproxy.proxy import events
from mitmproxy.proxy.layers.http import HttpStream

from tests.proxy.conftest import StartGateway
from tests.proxy.proxy_fakes import Gateway, Origin

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
HOOKS = ("requestheaders", "request", "responseheaders", "response")


class Listener:
    """Counts hooks; one of them waits when told to."""

    def __init__(self, waits: str) -> None:
        self.calls: Counter[str] = Counter()
        self.order: list[str] = []
        self._waits = waits

    def _called(self, name: str, flow: http.HTTPFlow) -> Any:
        self.calls[name] += 1
        self.order.append(f"{flow.request.path} {name}")

        async def later() -> None:
            await asyncio.sleep(0)

        return later() if name == self._waits else None

    def requestheaders(self, flow: http.HTTPFlow) -> Any:
        return self._called("requestheaders", flow)

    def request(self, flow: http.HTTPFlow) -> Any:
        return self._called("request", flow)

    def responseheaders(self, flow: http.HTTPFlow) -> Any:
        return self._called("responseheaders", flow)

    def response(self, flow: http.HTTPFlow) -> Any:
        return self._called("response", flow)


@pytest.mark.parametrize("waits", ["", *HOOKS])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_each_hook_runs_once_and_in_order(
    scheme: str,
    waits: str,
    gateway: Gateway,
    origin: Origin,
    client: aiohttp.ClientSession,
    client_tls: ssl.SSLContext,
) -> None:
    listener = Listener(waits)
    gateway.master.addons.add(listener)
    base = getattr(origin, scheme)
    for number in range(3):
        async with client.post(f"{base}/page{number}", data=b"x" * 70_000, proxy=gateway.url, ssl=client_tls) as response:
            assert response.status == 200
            await response.read()
    assert listener.calls == dict.fromkeys(HOOKS, 3)
    for number in range(3):
        ours = [entry.partition(" ")[2] for entry in listener.order if entry.startswith(f"/page{number} ")]
        assert sorted(ours) == sorted(HOOKS)
        assert ours.index("requestheaders") < ours.index("responseheaders") < ours.index("response")
    assert gateway.counters["requests"] == 3


async def test_what_passes_a_tunnel_goes_straight_inside(
    monkeypatch: pytest.MonkeyPatch,
    start_gateway: StartGateway,
    origin: Origin,
    client: aiohttp.ClientSession,
    client_tls: ssl.SSLContext,
) -> None:
    by_the_stream: list[str] = []
    passthrough = HttpStream.passthrough

    def note(self: HttpStream, event: events.Event) -> Any:
        by_the_stream.append(type(event).__name__)
        return passthrough(self, event)

    monkeypatch.setattr(HttpStream, "passthrough", note)
    async with start_gateway() as gateway:
        for number in range(3):
            async with client.get(f"{origin.https}/inside{number}", proxy=gateway.url, ssl=client_tls) as response:
                assert response.status == 200
    assert set(by_the_stream) <= {"RequestEndOfMessage", "HookCompleted"}


async def test_without_the_fast_path_all_hooks_are_handed_up(
    start_gateway: StartGateway, origin: Origin, client: aiohttp.ClientSession, client_tls: ssl.SSLContext
) -> None:
    listener = Listener("request")
    async with start_gateway(fast_path=False) as gateway:
        gateway.master.addons.add(listener)
        async with client.get(f"{origin.https}/page", proxy=gateway.url, ssl=client_tls) as response:
            assert response.status == 200
    assert listener.calls == dict.fromkeys(HOOKS, 1)
