"""A proxy whose connections are decided by a table, and bare sockets to talk to it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gatewayfilter.config import LogPrivacy, ProxySettings, Settings, TlsSettings
from gatewayfilter.model import Action, HostAction, HostVerdict, Reason, Verdict
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.auth.user_file import Users
from gatewayfilter.proxy.filter_services import FilterServices
from gatewayfilter.proxy.listener.host_policy import HostPolicy
from gatewayfilter.proxy.listener.listener import Listener
from gatewayfilter.proxy.listener.pinned_apps import PinnedApps, PinnedAppsFile
from gatewayfilter.proxy.listener.services import ConnectionServices
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from tests.proxy.proxy_fakes import Gateway, Origin

PASS = HostVerdict(HostAction.SPLICE, Verdict(Action.ALLOW, Reason.SPLICELIST, "banks", ".bank.example", category="finance"))
DENY = HostVerdict(HostAction.DENY, Verdict(Action.BLOCK, Reason.BLACKLIST, "bad", ".bad.example"), named=True)
LOOK = HostVerdict(HostAction.INTERCEPT, Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True))
NAMED = HostVerdict(HostAction.INTERCEPT, Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True), named=True)


@dataclass
class FakeHosts:
    """Decides hosts by a table; everything else is looked at."""

    table: dict[str, HostVerdict] = field(default_factory=dict)
    broken: bool = False

    def policy_mark(self) -> None:
        """There are no policies."""

    def decide_host(self, host: str, client: str = "", user: str = "") -> HostVerdict:
        if self.broken:
            raise RuntimeError("the engine is broken")
        return self.table.get(host, LOOK)


@dataclass
class WireGateway(Gateway):
    """A running proxy with a front door that decides."""

    hosts: FakeHosts = field(default_factory=FakeHosts)
    pinned_apps: PinnedApps | None = None

    def addon(self, settings: ProxySettings, whole: Settings | None = None) -> GatewayAddon:
        services = FilterServices(
            self.decide, hosts=self.hosts, recorder=DecisionRecorder(self.records.append, LogPrivacy.FULL), offers=self.offers
        )
        return GatewayAddon(whole or Settings(proxy=settings), services, self.counters)

    @property
    def listener(self) -> Listener:
        [found] = self.master._instance._servers
        assert isinstance(found, Listener)
        return found


@asynccontextmanager
async def wire_gateway(
    state: Path, table: dict[str, HostVerdict], *, users: Path | None = None, tls: TlsSettings | None = None, **proxy: object
) -> AsyncIterator[WireGateway]:
    """Runs a proxy with a table of hosts."""
    gateway = WireGateway(hosts=FakeHosts(table))
    tls = tls or TlsSettings()
    chosen = {"listen": "127.0.0.1:0", "upstream_ca": state / "origin-ca.pem", **proxy}
    settings = Settings(data_dir=state, proxy=ProxySettings.model_validate(chosen), tls=tls)
    recorder = DecisionRecorder(gateway.records.append)
    gateway.pinned_apps = PinnedApps(PinnedAppsFile(state / "pinned-apps.json"), after=2)
    policy = HostPolicy(gateway.hosts, tls, recorder, gateway.counters, gateway.pinned_apps)
    services = ConnectionServices(gateway.counters, policy, gateway.pinned_apps, Users(users) if users else None, recorder)
    gateway.master = LeanMaster(settings, gateway.addon(settings.proxy, settings), services)
    await gateway.master.start()
    host, gateway.port = gateway.master.address
    gateway.url = f"http://[{host}]:{gateway.port}" if ":" in host else f"http://{host}:{gateway.port}"
    try:
        yield gateway
    finally:
        await gateway.master.stop(0.2)


class Tcp:
    """A TCP server that keeps what it hears, for tests that speak byte by byte.

    Attributes:
        heard: all bytes of all connections.
        peers: its connections.
    """

    def __init__(self) -> None:
        self.heard = bytearray()
        self.port = 0
        self.peers: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.came = asyncio.Event()
        self.ended = asyncio.Event()
        self.failed: list[OSError] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.peers.append((reader, writer))
        self.came.set()
        try:
            while chunk := await reader.read(65536):
                self.heard += chunk
        except OSError as error:
            self.failed.append(error)
        self.ended.set()


@asynccontextmanager
async def tcp_server(host: str = "127.0.0.1") -> AsyncIterator[Tcp]:
    """Runs one."""
    found = Tcp()
    server = await asyncio.start_server(found.serve, host, 0)
    found.port = int(server.sockets[0].getsockname()[1])
    try:
        yield found
    finally:
        server.close()
        for _, writer in found.peers:
            writer.transport.abort()


def client_hello(
    name: str | None,
    *,
    alpn: tuple[str, ...] = ("h2", "http/1.1"),
    version: ssl.TLSVersion | None = None,
) -> bytes:
    """Returns what OpenSSL says first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(list(alpn))
    if version is not None:
        context.maximum_version = version
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        connection.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake with nobody succeeded")


async def connect(gateway: Gateway, target: str, *, fields: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """Opens a tunnel; returns it with the head of the answer."""
    reader, writer = await asyncio.open_connection(gateway.master.address[0], gateway.port)
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{fields}\r\n".encode())
    async with asyncio.timeout(10):
        return reader, writer, await reader.readuntil(b"\r\n\r\n")


async def until(true: Callable[[], object]) -> None:
    """Waits for something that happens elsewhere in this event loop."""
    for _ in range(2000):
        if true():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it never happened")


async def ask_for_page(port: int, origin: Origin) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Opens a connection to the proxy and asks for the origin's page over it; the answer is for the caller to read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    host = origin.http.removeprefix("http://").encode()
    writer.write(b"GET http://%b/page HTTP/1.1\r\nHost: %b\r\n\r\n" % (host, host))
    return reader, writer
