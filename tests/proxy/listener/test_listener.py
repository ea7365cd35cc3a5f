"""The front door over real sockets: who is relayed, refused, or handed to mitmproxy, and with which bytes."""

import asyncio
import socket
import ssl
import struct
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
import trustme
from mitmproxy import platform

from gatewayfilter.config import TlsSettings
from gatewayfilter.model import HostVerdict
from gatewayfilter.proxy.listener import listener
from gatewayfilter.proxy.listener.handshake import ClientHandshake
from gatewayfilter.proxy.listener.listener import Listener
from gatewayfilter.settings import DenyRule
from tests.held_ports import hold_port, port_of
from tests.proxy.connection_fakes import DENY, LOOK, PASS, client_hello, connect, tcp_server, until, wire_gateway
from tests.proxy.proxy_fakes import Origin

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
HERE = {"localhost": PASS}


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each connection that was given to mitmproxy had been answered before."""
    seen: list[bool] = []
    hand_over = Listener.hand_over

    def note(self: Listener, handshake: ClientHandshake) -> None:
        seen.append(handshake.answered)
        hand_over(self, handshake)

    monkeypatch.setattr(Listener, "hand_over", note)
    return seen


def origin_port(origin: Origin) -> int:
    return int(origin.https.rpartition(":")[2])


def trusts(authority: trustme.CA, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_spliced_tunnel_shows_the_origins_own_certificate(
    version: ssl.TLSVersion, state: Path, origin: Origin, authority: trustme.CA
) -> None:
    async with wire_gateway(state, dict(HERE)) as gateway:
        tls = trusts(authority, version)
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{origin.https}/secret", proxy=gateway.url, ssl=tls) as response,
        ):
            assert response.status == 200
            assert "/secret" in await response.text()
        assert gateway.decide.asked == []
        [record] = gateway.records
        assert (record.reason, record.action, record.method) == ("splicelist", "allow", "CONNECT")
        assert record.url == f"https://localhost:{origin_port(origin)}/"
        assert gateway.counters["spliced"] == gateway.counters["requests"] == 1
        await until(lambda: gateway.counters["spliced_bytes"] > 1000)


async def test_other_hosts_are_looked_at(state: Path, origin: Origin, client_tls: ssl.SSLContext) -> None:
    async with wire_gateway(state, {}) as gateway, aiohttp.ClientSession() as client:
        async with client.get(f"{origin.https}/seen", proxy=gateway.url, ssl=client_tls) as response:
            assert response.status == 200
        async with client.get(f"{origin.http}/seen", proxy=gateway.url) as response:
            assert response.status == 200
        assert [request.url.path for request in gateway.decide.asked] == ["/seen", "/seen"]
        assert gateway.counters["spliced"] == 0


@pytest.mark.parametrize(
    ("hello", "table", "spliced"),
    [
        (client_hello("localhost"), {}, True),
        (client_hello(None), {}, True),
        (client_hello("bank.example"), {"bank.example": PASS}, True),
        (client_hello("other.example"), {}, False),
        (client_hello("bad.example"), {"bad.example": DENY}, False),
        (client_hello("localhost", version=ssl.TLSVersion.TLSv1_2), {}, True),
        (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", {}, False),
        (b"SSH-2.0-x\r\n", {}, False),
        (b"\x16garbage that is no record at all", {}, False),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", {}, False),
    ],
)
@pytest.mark.parametrize("pieces", ["whole", "bytes"])
async def test_what_is_inside_has_to_agree(
    *, hello: bytes, table: dict[str, HostVerdict], spliced: bool, pieces: str, state: Path, handed: list[bool]
) -> None:
    async with tcp_server() as server, wire_gateway(state, {"localhost": PASS, **table}) as gateway:
        _, writer, answer = await connect(gateway, f"localhost:{server.port}")
        assert answer.startswith(b"HTTP/1.1 200")
        for start in range(0, len(hello), 1 if pieces == "bytes" else len(hello)):
            writer.write(hello[start : start + (1 if pieces == "bytes" else len(hello))])
            await asyncio.sleep(0)
        if spliced:
            await until(lambda: len(server.heard) >= len(hello))
            assert bytes(server.heard) == hello
        else:
            await until(lambda: handed == [True])
        assert gateway.counters["spliced"] == int(spliced)
        writer.close()


async def test_a_mismatched_name_is_intercepted_after_all(state: Path, origin: Origin, client_tls: ssl.SSLContext) -> None:
    """The client has had its 200 already: mitmproxy's own must not reach it."""
    async with wire_gateway(state, dict(HERE)) as gateway:
        reader, writer, answer = await connect(gateway, f"localhost:{origin_port(origin)}")
        assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n"
        await writer.start_tls(client_tls, server_hostname="other.blocked.example")
        writer.write(b"GET /blocked HTTP/1.1\r\nHost: other.blocked.example\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(10):
            answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 403")
        assert origin.seen == []
        assert gateway.counters["spliced"] == 0
        writer.close()


async def test_a_server_that_speaks_first_is_not_waited_out(
    state: Path, handed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "SILENT_S", 0.05)
    async with tcp_server() as server, wire_gateway(state, dict(HERE)) as gateway:
        _, writer, answer = await connect(gateway, f"localhost:{server.port}")
        assert answer.startswith(b"HTTP/1.1 200")
        await until(lambda: handed == [True])
        assert gateway.counters["spliced"] == 0
        writer.close()


async def test_an_engine_that_fails_lets_nothing_pass_unread(
    state: Path, origin: Origin, client_tls: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    async with wire_gateway(state, dict(HERE)) as gateway, aiohttp.ClientSession() as client:
        gateway.hosts.broken = True
        async with client.get(f"{origin.https}/x", proxy=gateway.url, ssl=client_tls) as response:
            assert response.status == 200
        assert gateway.counters["spliced"] == 0
        assert gateway.counters["hook_errors"] == 1
        assert "deciding a connection failed" in caplog.text


@pytest.mark.parametrize(("splice", "reached"), [(True, 1), (False, 0)])
async def test_splicing_can_be_switched_off(*, splice: bool, reached: int, state: Path, handed: list[bool]) -> None:
    async with tcp_server() as server, wire_gateway(state, dict(HERE), tls=TlsSettings(splice=splice)) as gateway:
        _, writer, _ = await connect(gateway, f"localhost:{server.port}")
        writer.write(client_hello("localhost"))
        await until(lambda: gateway.counters["spliced"] == reached and (reached or handed))
        writer.close()


async def test_a_denied_host_is_refused_or_shown_a_page(state: Path, client_tls: ssl.SSLContext) -> None:
    table = {"blocked.example": DENY}
    async with wire_gateway(state, table, tls=TlsSettings(deny=DenyRule.ALERT)) as gateway:
        reader, writer, answer = await connect(gateway, "blocked.example:443")
        assert answer.startswith(b"HTTP/1.1 403")
        assert b"X-GatewayFilter: block; reason=blacklist\r\n" in answer
        assert await reader.read() == b""
        writer.close()
        assert gateway.counters["denied"] == gateway.counters["blocked"] == 1
        assert gateway.records[0].reason == "blacklist"
    async with (
        wire_gateway(state, table) as gateway,
        aiohttp.ClientSession() as client,
        client.get("https://blocked.example/", proxy=gateway.url, ssl=client_tls) as response,
    ):
        assert response.status == 403
        assert "<html" in await response.text()


async def test_a_device_without_the_ca_gets_no_second_certificate_warning(state: Path) -> None:
    async with wire_gateway(state, {"blocked.example": DENY}) as gateway:
        _, writer, answer = await connect(gateway, "blocked.example:443")
        assert answer.startswith(b"HTTP/1.1 200")
        with pytest.raises(ssl.SSLError):
            await writer.start_tls(ssl.create_default_context(), server_hostname="blocked.example")
        await until(lambda: gateway.counters["tls_failed"] == 1)
        _, writer, answer = await connect(gateway, "blocked.example:443")
        assert answer.startswith(b"HTTP/1.1 403")
        writer.close()


@pytest.mark.parametrize(("host", "status"), [("localhost", b"502"), ("nowhere.invalid", b"502")])
async def test_an_origin_that_cannot_be_reached_is_said_to_be(host: str, status: bytes, state: Path) -> None:
    with hold_port() as nobody:
        async with wire_gateway(state, {host: PASS}) as gateway:
            reader, writer, answer = await connect(gateway, f"{host}:{port_of(nobody)}")
            assert answer.startswith(b"HTTP/1.1 " + status)
            assert b"x-gatewayfilter: error" in answer.lower()
            assert b"<html" in await reader.read()
            assert gateway.counters["origin_errors"] == 1
            writer.close()


async def test_a_tunnel_to_the_proxy_itself_ends(state: Path) -> None:
    async with wire_gateway(state, dict(HERE)) as gateway:
        _, writer, answer = await connect(gateway, f"localhost:{gateway.port}")
        assert answer.startswith(b"HTTP/1.1 502")
        await until(lambda: gateway.counters["connections"] == 2)  # the client's, and the one that led back
        writer.close()


async def test_ipv6(state: Path) -> None:
    async with tcp_server("::1") as server, wire_gateway(state, {"[::1]": PASS}, listen="[::1]:0") as gateway:
        _, writer, answer = await connect(gateway, f"[::1]:{server.port}")
        assert answer.startswith(b"HTTP/1.1 200")
        hello = client_hello(None)
        writer.write(hello)
        await until(lambda: bytes(server.heard) == hello)
        assert gateway.records[0].url == f"https://[::1]:{server.port}/"
        writer.close()


async def test_both_families_are_listened_on(state: Path) -> None:
    async with wire_gateway(state, {}, listen="[::]:0") as gateway:
        for host in ("127.0.0.1", "::1"):
            _, writer = await asyncio.open_connection(host, gateway.port)
            writer.close()
        await until(lambda: gateway.counters["connections"] == 2)


@pytest.mark.parametrize("says", [b"HTTP/1.1 200 OK\r\n\r\nhello", b"HTTP/1.1 403 No\r\n\r\n", b"nonsense\r\n\r\n", b""])
async def test_the_parent_proxy_is_asked(says: bytes, state: Path) -> None:
    asked: list[bytes] = []
    heard = bytearray()

    async def parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(says)
        if not says.startswith(b"HTTP/1.1 200"):
            writer.close()
            return
        heard.extend(await reader.readexactly(len(hello)))

    hello = client_hello("bank.example")
    server = await asyncio.start_server(parent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with wire_gateway(state, {"bank.example": PASS}, mode=f"upstream:http://127.0.0.1:{port}") as gateway:
        reader, writer, answer = await connect(gateway, "bank.example:443")
        assert asked == [b"CONNECT bank.example:443 HTTP/1.1\r\nHost: bank.example:443\r\n\r\n"]
        if says.startswith(b"HTTP/1.1 200"):
            assert answer.startswith(b"HTTP/1.1 200")
            writer.write(hello)
            async with asyncio.timeout(10):
                assert await reader.readexactly(5) == b"hello"
            await until(lambda: bytes(heard) == hello)
        else:
            assert answer.startswith(b"HTTP/1.1 502")
            assert gateway.counters["origin_errors"] == 1
        writer.close()
    server.close()


@pytest.mark.parametrize(
    ("first", "action", "want"),
    [
        (client_hello("localhost"), PASS, "spliced"),
        (client_hello("localhost"), LOOK, "handed"),
        (client_hello("localhost"), DENY, "alert"),
        (b"\x16\x03\x01 not a hello", PASS, "handed"),
        (b"SSH-2.0-OpenSSH_9\r\n", PASS, "handed"),
    ],
)
async def test_redirected_connections(
    first: bytes, action: HostVerdict, want: str, state: Path, handed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In transparent mode; what the kernel says of the first destination is made up. The name's address counts, not that."""
    async with tcp_server() as server:
        monkeypatch.setattr(platform, "original_addr", lambda _: ("192.0.2.1", server.port))
        settings = TlsSettings(deny=DenyRule.ALERT)
        async with wire_gateway(state, {"localhost": action}, mode="transparent", tls=settings) as gateway:
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(first[:7])
            await asyncio.sleep(0.01)
            writer.write(first[7:])
            if want == "spliced":
                await until(lambda: bytes(server.heard) == first)
            elif want == "alert":
                async with asyncio.timeout(10):
                    assert await reader.read() == bytes.fromhex("15030300020270")
                assert gateway.counters["denied"] == 1
            else:
                await until(lambda: handed == [False])
            assert gateway.counters["spliced"] == int(want == "spliced")
            writer.close()


async def test_small_messages_do_not_wait_for_others(state: Path) -> None:
    """What is accepted inherits it from the listener, on Linux and BSD; each connection would pay a system call for it."""
    async with wire_gateway(state, {}) as gateway:
        _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        await until(lambda: gateway.listener._handshakes)
        [handshake] = gateway.listener._handshakes
        assert handshake.client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not handshake.client.getblocking()
        writer.close()


async def test_a_client_that_breaks_off_while_its_origin_is_dialled_leaves_nothing(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    async with wire_gateway(state, {"slow.example": PASS}) as gateway:
        asked = asyncio.Event()

        async def never(*_: object, **__: object) -> object:
            asked.set()
            return await loop.create_future()

        monkeypatch.setattr(loop, "getaddrinfo", never)
        client = socket.create_connection(("127.0.0.1", gateway.port))
        client.send(b"CONNECT slow.example:443 HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(10):
            await asked.wait()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        await until(lambda: gateway.listener.open_connections == 0)
        assert len(gateway.listener.dialer.deadlines) == 0


async def test_a_client_that_is_gone_when_it_is_handed_over_leaves_nothing(
    state: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with wire_gateway(state, {}) as gateway:
        client = socket.create_connection(("127.0.0.1", gateway.port))
        hand_over = gateway.listener.hand_over

        def too_late(handshake: ClientHandshake) -> None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            hand_over(handshake)

        monkeypatch.setattr(gateway.listener, "_services", replace(gateway.listener._services, hand_over=too_late))
        client.send(b"GET http://site.example/ HTTP/1.1\r\nHost: site.example\r\n\r\n")
        await until(lambda: gateway.counters["connections"] == 1 and gateway.listener.open_connections == 0)
    assert "hook client_connected failed" not in caplog.text


async def test_there_is_room_for_so_many_only(state: Path) -> None:
    async with wire_gateway(state, {}, max_connections_per_client=3) as gateway:
        clients = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(5)]
        await until(lambda: gateway.counters["connections_refused"] == 2)
        refused = [await asyncio.wait_for(reader.read(), 5) for reader, _ in clients[3:]]
        assert refused == [b"", b""]
        for _, writer in clients:
            writer.close()
        await until(lambda: gateway.listener.open_connections == 0)
        _, writer, answer = await connect(gateway, "nowhere.invalid:443")
        assert answer.startswith(b"HTTP/1.1 200")  # lazily: nobody has been contacted
        writer.close()


async def test_one_ipv6_network_cannot_fill_a_worker(state: Path) -> None:
    async with wire_gateway(state, {}, max_connections_per_client=3, max_connections=10) as gateway:
        ends: list[socket.socket] = []

        def refused_of(*addresses: str) -> int:
            before = gateway.counters["connections_refused"]
            for address in addresses:
                ours, theirs = socket.socketpair()
                ends.append(theirs)
                gateway.listener._take(ours, address)
            return gateway.counters["connections_refused"] - before

        assert refused_of(*(f"2001:db8:1:2:{number:x}::1" for number in range(9))) == 4
        assert refused_of("2001:db8:1:2::ffff") == 1
        assert refused_of("2001:db8:1:3::1", "2001:db8:1:3::1", "fe80::1%eth0", "192.0.2.1") == 0
        for end in ends:
            end.close()
        await until(lambda: gateway.listener.open_connections == 0)
        assert not gateway.listener._open
        assert refused_of(*["2001:db8:1:2::1"] * 4) == 1
        for end in ends:
            end.close()


async def test_stopping_waits_for_a_transfer_and_not_for_idle_ones(state: Path) -> None:
    hello = client_hello("localhost")
    async with tcp_server() as server, wire_gateway(state, dict(HERE)) as gateway:
        reader, writer, _ = await connect(gateway, f"localhost:{server.port}")
        writer.write(hello)
        await until(lambda: bytes(server.heard) == hello)
        stopping = asyncio.create_task(gateway.master.stop(30))
        total = 0
        for _ in range(5):  # in five parts, each after the one before has come: all of it while the proxy is stopping
            server.peers[0][1].write(bytes(100_000))
            total += len(await asyncio.wait_for(reader.readexactly(100_000), 10))
            await asyncio.sleep(0.05)
        assert not stopping.done()
        server.peers[0][1].close()
        await asyncio.wait_for(stopping, 10)
        assert total == 500_000
        assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize("behind_s", [0.9, 1.1, 4.1])
async def test_an_overloaded_worker_refuses_new_connections_of_clients_with_many(
    behind_s: float, state: Path, origin: Origin
) -> None:
    """Said with 503 and when to try again; what is open is served; a client without a connection is let in."""
    async with wire_gateway(state, {}) as gateway:
        opened = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(6)]
        await until(lambda: gateway.listener.open_connections == 6)
        turns = gateway.listener.poller.turns
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(turns, "behind_s", behind_s)
            patch.setattr(turns, "spread_s", behind_s)
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(f"GET {origin.http}/page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            head = answer.partition(b"\r\n\r\n")[0].lower()
            if behind_s < 1:
                assert answer.startswith(b"HTTP/1.1 200")
            else:
                assert answer.startswith(b"HTTP/1.1 503")
                assert b"\r\nretry-after: 3\r\n" in head
                assert b"\r\nx-gatewayfilter: error; reason=overloaded\r\n" in head
                assert gateway.counters["overload_refused"] == 1
                assert gateway.listener._has_its_share(("192.0.2.1",)) is False
            reader, writer = opened[0]
            writer.write(f"GET {origin.http}/page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
        for _, writer in opened:
            writer.close()
        await until(lambda: gateway.listener.open_connections == 0)
        assert turns._owners == {}
