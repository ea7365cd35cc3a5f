"""A lean proxy, an HTTP and an HTTPS origin and clients, all on loopback and in the test's own event loop."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
import trustme
from aiohttp import web

from gatewayfilter.config import ProxySettings, Settings
from gatewayfilter.interfaces import Offer
from gatewayfilter.model import Action, Explanation, LogRecord, Reason, Request, Verdict
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.ca import ensure_ca
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.privacy import DecisionRecorder
from gatewayfilter.telemetry import Counters

BLOCK = Verdict(Action.BLOCK, Reason.BLACKLIST, source_list="test", rule="blocked.example", category="gambling", detail="score 9")
ALLOW = Verdict(Action.ALLOW, Reason.WHITELIST)
UNKNOWN = Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True)


class FakeDecide:
    """Blocks URLs with `blocked` in them, does not know those with `unknown`, raises at `raise`; the table outranks this."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.table: dict[str, Verdict] = {}

    def decide(self, request: Request) -> Verdict:
        self.asked.append(request)
        text = request.url.text
        if text in self.table:
            return self.table[text]
        if "raise" in text:
            raise RuntimeError("the engine is broken")
        if "blocked" in text:
            return BLOCK
        return UNKNOWN if "unknown" in text else ALLOW

    def explain(self, request: Request) -> Explanation:
        raise NotImplementedError


class FakeOffers:
    """Keeps what was offered."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.full = False

    def offer(self, offer: Offer) -> bool:
        if not self.full:
            self.urls.append(offer.url)
        return not self.full


@dataclass
class Gateway:
    """A running proxy and what it did."""

    decide: FakeDecide = field(default_factory=FakeDecide)
    offers: FakeOffers = field(default_factory=FakeOffers)
    counters: Counters = field(default_factory=Counters)
    records: list[LogRecord] = field(default_factory=list)
    url: str = ""
    port: int = 0
    master: LeanMaster | None = None

    def addon(self, settings: ProxySettings) -> GatewayAddon:
        return GatewayAddon(self.decide, self.offers, DecisionRecorder(self.records.append), settings, self.counters)


@dataclass
class Origin:
    """A web site by HTTP and HTTPS."""

    http: str
    https: str
    seen: list[str] = field(default_factory=list)
    uploaded: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)


type StartGateway = Callable[..., AbstractAsyncContextManager[Gateway]]


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("state")
    authority.cert_pem.write_to_path(str(folder / "origin-ca.pem"))
    return folder  # type: ignore[return-value]


@pytest.fixture
def client_tls(state: Path) -> ssl.SSLContext:
    """What a client with the filter's CA installed trusts."""
    ensure_ca(state / "ca")
    return ssl.create_default_context(cafile=str(state / "ca" / "mitmproxy-ca-cert.pem"))


@pytest.fixture
def start_gateway(state: Path) -> StartGateway:
    @asynccontextmanager
    async def start(**proxy: object) -> AsyncIterator[Gateway]:
        gateway = Gateway()
        settings = Settings(
            data_dir=state, proxy=ProxySettings(listen="127.0.0.1:0", upstream_ca=state / "origin-ca.pem", **proxy)
        )
        gateway.master = LeanMaster(settings, gateway.addon(settings.proxy))
        await gateway.master.start()
        host, gateway.port = gateway.master.address
        gateway.url = f"http://{host}:{gateway.port}"
        try:
            yield gateway
        finally:
            await gateway.master.stop(0.2)

    return start


@pytest.fixture
async def gateway(start_gateway: StartGateway) -> AsyncIterator[Gateway]:
    async with start_gateway() as running:
        yield running


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20), auto_decompress=False) as session:
        yield session


@pytest.fixture
async def origin(authority: trustme.CA) -> AsyncIterator[Origin]:
    found = Origin("", "")

    async def page(request: web.Request) -> web.StreamResponse:
        found.seen.append(str(request.url))
        return web.Response(
            text=f"<title>{request.path}</title>{request.headers['Host']}",
            content_type="text/html",
            headers={"alt-svc": 'h3=":443"'},
        )

    async def chunked(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for number in range(5):
            await response.write(b"%d" % number * 10)
        return response

    async def events(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: first\n\n")
        await found.gate.wait()
        await response.write(b"data: second\n\n")
        return response

    async def large(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": str(64 << 20)})
        await response.prepare(request)
        for _ in range(64):
            await response.write(bytes(1 << 20))
        return response

    async def upload(request: web.Request) -> web.StreamResponse:
        found.seen.append(str(request.url))
        async for chunk in request.content.iter_any():
            found.uploaded += len(chunk)
        return web.Response(text=str(found.uploaded))

    async def socket(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(f"echo {message.data}")
        return ws

    app = web.Application(client_max_size=1 << 30)
    app.router.add_get("/chunked", chunked)
    app.router.add_get("/events", events)
    app.router.add_get("/large", large)
    app.router.add_post("/{name:.*upload.*}", upload)
    app.router.add_get("/{name:.*socket.*}", socket)
    app.router.add_route("*", "/{name:.*}", page)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(tls)
    for context in (None, tls):
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        if context is None:
            found.http = f"http://localhost:{port}"
        else:
            found.https = f"https://localhost:{port}"
    yield found
    found.gate.set()
    await runner.cleanup()
