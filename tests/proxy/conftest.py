"""A lean proxy, an HTTP and an HTTPS origin and clients, all on loopback and in the test's own event loop."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import trustme
from aiohttp import web

from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.config import CrawlSettings, ProxySettings, Settings
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.tunnel.poller import new_loop
from tests.proxy.proxy_fakes import FakePassed, Gateway, Origin

type StartGateway = Callable[..., AbstractAsyncContextManager[Gateway]]


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The tests run on the loop that a worker has."""
    return {"worker": new_loop}


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Path:
    folder = tmp_path_factory.mktemp("state")
    authority.cert_pem.write_to_path(str(folder / "origin-ca.pem"))
    return folder


@pytest.fixture
def client_tls(state: Path) -> ssl.SSLContext:
    """What a client with the filter's CA installed trusts."""
    ensure_ca(state / "ca")
    return ssl.create_default_context(cafile=str(state / "ca" / "mitmproxy-ca-cert.pem"))


@pytest.fixture
def start_gateway(state: Path) -> StartGateway:
    @asynccontextmanager
    async def start(passed: FakePassed | None = None, **proxy: object) -> AsyncIterator[Gateway]:
        gateway = Gateway(passed=passed)
        # Origins here wait until their connections have ended; test_shared_origins.py keeps them.
        chosen = {"shared_origins": 0, "listen": "127.0.0.1:0", "upstream_ca": state / "origin-ca.pem", **proxy}
        settings = Settings(
            data_dir=state, proxy=ProxySettings.model_validate(chosen), crawl=CrawlSettings(allow_networks=("127.0.0.0/8",))
        )
        gateway.master = LeanMaster(settings, gateway.addon(settings.proxy, settings))
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
    found = Origin()
    runner = web.AppRunner(found.application(), shutdown_timeout=0.1)
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(tls)
    ports = []
    for context in (None, tls):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            ports.append(listener.getsockname()[1])
            await web.SockSite(runner, listener.dup(), ssl_context=context).start()
    found.http, found.https = f"http://localhost:{ports[0]}", f"https://localhost:{ports[1]}"
    yield found
    found.gate.set()
    await runner.cleanup()
