"""TLS of connections to clients and origins: the certificate store, ALPN, resumed sessions."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
import trustme
from mitmproxy import certs
from mitmproxy.connection import Client
from mitmproxy.proxy.context import Context
from mitmproxy.test import taddons, tflow

from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.proxy.mitm import tls_config
from gatewayfilter.proxy.mitm.tls_config import Bounded, GatewayCertStore, GatewayTlsConfig
from tests.proxy.conftest import StartGateway
from tests.proxy.proxy_fakes import Gateway


@pytest.fixture
def store(tmp_path: Path) -> GatewayCertStore:
    ensure_ca(tmp_path)
    return GatewayCertStore.of(certs.CertStore.from_store(tmp_path, "mitmproxy", 2048))


def test_the_older_half_is_dropped(store: GatewayCertStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_config, "MOST_CERTIFICATES", 4)
    names = [f"host{number}.example" for number in range(5)]
    made, kept = {}, []
    for name in names:
        made[name] = store.get_cert(name, [])
        kept.append((len(store.expire_queue), len(store.certs)))
    assert kept == [(1, 1), (2, 2), (3, 3), (4, 4), (3, 3)]
    for name in names[2:]:
        assert store.get_cert(name, []) is made[name]
    assert store.get_cert(names[0], []) is not made[names[0]]


def test_other_options_leave_the_store_as_it_is(tmp_path: Path) -> None:
    ensure_ca(tmp_path)
    addon = GatewayTlsConfig()
    with taddons.context(addon) as context:
        context.configure(addon, confdir=str(tmp_path))
        store = addon.certstore
        assert type(store) is GatewayCertStore
        context.configure(addon, http2=False)
        assert addon.certstore is store


@pytest.mark.parametrize(
    ("path", "is_answered"), [("CRL", True), ("/x?y=CRL", True), ("CRL?", False), ("/a.crl", False), ("/", False)]
)
def test_the_list_of_revoked_certificates_is_answered(tmp_path: Path, path: str, *, is_answered: bool) -> None:
    ensure_ca(tmp_path)
    addon = GatewayTlsConfig()
    with taddons.context(addon) as context:
        context.configure(addon, confdir=str(tmp_path))
        found = tflow.tflow()
        found.live = True
        found.request.path = path.replace("CRL", addon.crl_path())
        addon.request(found)
        assert (found.response is not None and found.response.content == addon.certstore.default_crl) is is_answered


class TlsOrigin:
    """An origin that counts full and resumed handshakes, and answers one request a connection."""

    def __init__(self, authority: trustme.CA, name: str) -> None:
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.set_alpn_protocols(["h2", "http/1.1"])
        authority.issue_cert(name).configure_cert(self.tls)
        self.resumed: list[bool] = []
        self.protocols: list[str | None] = []
        self.port = 0

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncIterator[Self]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        yield self
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made = writer.get_extra_info("ssl_object")
        self.resumed.append(made.session_reused)
        self.protocols.append(made.selected_alpn_protocol())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            await writer.drain()
        writer.close()


async def ask(gateway: Gateway, port: int, tls: ssl.SSLContext) -> tuple[str, ssl.SSLObject]:
    """Sends a request over a new connection. Returns the status and the connection's TLS."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    await writer.start_tls(tls, server_hostname="localhost")
    made = writer.get_extra_info("ssl_object")
    writer.write(f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return head.decode().split()[1], made


async def test_a_session_of_an_origin_is_resumed_until_its_certificate_has_to_be_checked_again(
    start_gateway: StartGateway, authority: trustme.CA, client_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_gateway() as gateway, TlsOrigin(authority, "localhost").running() as origin, asyncio.timeout(20):
        for _ in range(4):
            status, _ = await ask(gateway, origin.port, client_tls)
            assert status == "200"
        assert origin.resumed == [False, True, True, True]
        found = gateway.master.addons.get("tlsconfig")
        assert isinstance(found, GatewayTlsConfig)
        assert not found._open
        monkeypatch.setattr(tls_config, "SESSION_S", 0.0)
        await ask(gateway, origin.port, client_tls)
        assert not origin.resumed[-1]


async def test_no_session_leads_to_an_origin_with_another_certificate(
    start_gateway: StartGateway, authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    stranger = trustme.CA()
    async with start_gateway() as gateway, asyncio.timeout(20):
        async with TlsOrigin(authority, "localhost").running() as origin:
            for _ in range(3):
                assert (await ask(gateway, origin.port, client_tls))[0] == "200"
        for issuer, name in ((stranger, "localhost"), (authority, "other.example")):
            async with TlsOrigin(issuer, name).running(origin.port):
                for _ in range(2):
                    assert (await ask(gateway, origin.port, client_tls))[0] == "502"


@pytest.mark.parametrize(
    ("setting", "offered", "chosen"),
    [
        ("needed", ["h2", "http/1.1"], "http/1.1"),
        ("needed", ["http/1.1", "h2"], "http/1.1"),
        ("needed", ["h2"], "h2"),
        ("needed", ["http/1.1"], "http/1.1"),
        ("offered", ["h2", "http/1.1"], "h2"),
        ("offered", ["http/1.1", "h2"], "http/1.1"),
    ],
)
async def test_the_protocol_of_a_client(
    setting: str, offered: list[str], chosen: str, start_gateway: StartGateway, client_tls: ssl.SSLContext
) -> None:
    client_tls.set_alpn_protocols(offered)
    async with start_gateway(http2_clients=setting) as gateway, asyncio.timeout(20):
        for _ in range(3):  # the first is configured by mitmproxy
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(b"CONNECT localhost:9 HTTP/1.1\r\nHost: localhost:9\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            await writer.start_tls(client_tls, server_hostname="localhost")
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == chosen
            writer.close()


async def test_an_origin_is_offered_what_its_client_uses(
    start_gateway: StartGateway, authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    client_tls.set_alpn_protocols(["h2", "http/1.1"])
    async with start_gateway() as gateway, TlsOrigin(authority, "localhost").running() as origin, asyncio.timeout(20):
        for _ in range(2):
            assert (await ask(gateway, origin.port, client_tls))[0] == "200"
    assert origin.protocols == ["http/1.1"] * 2


def _in_days(days: int) -> float:
    return time.time() + days * 86_400


async def test_a_certificate_made_by_a_wrong_clock_is_made_anew(
    start_gateway: StartGateway, authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    async with start_gateway() as gateway, TlsOrigin(authority, "localhost").running() as origin, asyncio.timeout(20):

        async def shown() -> bytes | None:
            return (await ask(gateway, origin.port, client_tls))[1].getpeercert(binary_form=True)

        first = [await shown() for _ in range(3)]
        assert len(set(first)) == 1
        found = gateway.master.addons.get("tlsconfig")
        assert isinstance(found, GatewayTlsConfig)
        for days in (-30, 400):
            found._now = partial(_in_days, days)
            assert await shown() not in first
        found._now = time.time
        second = [await shown() for _ in range(2)]
        assert len({*first, *second}) == 2
        assert len(set(second)) == 1


def test_a_full_table_drops_its_older_half() -> None:
    table: Bounded[int, str] = Bounded(4)
    for number in range(5):
        table[number] = "x"
    assert list(table) == [2, 3, 4]
    table[2] = "y"
    assert len(table) == 3


def test_a_certificate_is_that_of_the_name_of_each_connection(tmp_path: Path) -> None:
    ensure_ca(tmp_path)
    now = [time.time()]
    addon = GatewayTlsConfig(now=lambda: now[0])
    with taddons.context(addon) as set_up:
        set_up.configure(addon, confdir=str(tmp_path))

        def leaf(sni: str | None, address: tuple[str, int] | None = ("192.0.2.9", 443)) -> Any:
            made = Context(Client(peername=("192.0.2.7", 1), sockname=("192.0.2.1", 8080), sni=sni), set_up.options)
            made.server.address = address
            return addon._leaf(made)

        def names(found: Any) -> set[str]:
            return {str(name.value) for name in found.entry.cert.altnames}

        first, second, nameless = leaf("a.example"), leaf("b.example"), leaf(None)
        assert ("a.example" in names(first), "b.example" in names(first)) == (True, False)
        assert ("a.example" in names(second), "b.example" in names(second)) == (False, True)
        assert "a.example" not in names(nameless)
        assert leaf("a.example") is first
        assert leaf("a.example", None) is not first
        now[0] = first.ends - 1
        assert leaf("a.example") is first
        now[0] = first.ends
        assert leaf("a.example").entry is not first.entry
        now[0] = second.begins
        assert leaf("b.example") is second
        now[0] = second.begins - 1
        assert leaf("b.example").entry is not second.entry
        ensure_ca(tmp_path / "other")
        own, now[0] = leaf("c.example"), time.time()
        set_up.configure(addon, confdir=str(tmp_path / "other"))
        assert leaf("c.example").entry.cert.issuer == addon.certstore.default_ca.subject
        assert leaf("c.example").entry is not own.entry
