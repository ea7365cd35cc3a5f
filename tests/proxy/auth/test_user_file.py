"""Users of the proxy: the file, the check, and a client that has to log in."""

import asyncio
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from mitmproxy.connection import ConnectionState
from mitmproxy.test import tflow
from mitmproxy.test.tutils import treq

from gatewayfilter.errors import StartupError
from gatewayfilter.proxy.auth import password_check_queue, user_file
from gatewayfilter.proxy.auth.proxy_auth import ProxyLogin
from gatewayfilter.proxy.auth.user_file import PasswordHash, Users, read_users, write_users
from gatewayfilter.settings import ProxySettings, Settings
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring.proxy import assemble_services
from tests.case_tables import all_cases
from tests.proxy.connection_fakes import PASS, FakeHosts, client_hello, connect, tcp_server, until, wire_gateway
from tests.proxy.proxy_fakes import Origin

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def basic(text: str) -> str:
    return f"Basic {b64encode(text.encode()).decode()}"


@pytest.fixture(autouse=True, scope="module")
def _quick_hashes() -> Iterator[None]:
    """Hashes at the least cost: a hash that somebody makes takes 20 ms and more."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(user_file, "_COST", 2)
        yield


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("users") / "users"
    write_users(path, {"kim": PasswordHash.of("secret: with a colon"), "李": PasswordHash.of("密码")})
    return path


@pytest.mark.parametrize(
    ("header", "user"),
    [
        (basic("kim:secret: with a colon"), "kim"),
        (basic("李:密码"), "李"),
        (f"basic   {basic('kim:secret: with a colon')[6:]}", "kim"),
        (basic("kim:secret"), ""),
        (basic("kim"), ""),
        (basic("nobody:secret: with a colon"), ""),
        ("Bearer abc", ""),
        ("Basic not-base64!", ""),
        ("Basic " + "A" * 2_000, ""),
        ("", ""),
    ],
)
def test_headers(file: Path, header: str, user: str) -> None:
    users = Users(file)
    assert users.recall(header) == ""
    assert users.verify(header) == user
    assert users.recall(header) == user


def test_the_file_is_private_and_has_no_password(file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    assert "secret" not in file.read_text()
    assert list(read_users(file)) == ["kim", "李"]


@pytest.mark.parametrize(
    "line",
    [
        "kim",
        "kim:secret",
        "kim:md5:1:1:1:AA==:AA==",
        "kim:scrypt:16384:8:1:AA==:AA==",
        "kim:scrypt:1048576:99:9:AA==:" + "A" * 44,
    ],
)
def test_a_line_that_is_no_user_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"# users\n\n{line}\n")
    with pytest.raises(StartupError, match="line 3 is no user"):
        Users(path)


def test_a_change_counts_and_forgets_what_was_right(tmp_path: Path) -> None:
    path = tmp_path / "users"
    write_users(path, {"kim": PasswordHash.of("old")})
    users = Users(path)
    assert users.verify(basic("kim:old")) == "kim"
    write_users(path, {"kim": PasswordHash.of("new")})
    users.refresh()
    assert users.recall(basic("kim:old")) == ""
    assert users.verify(basic("kim:new")) == "kim"
    path.write_text("nonsense")
    users.refresh()
    assert users.recall(basic("kim:new")) == "kim"  # a damaged file changes nothing


def test_transparent_mode_cannot_ask(tmp_path: Path, file: Path) -> None:
    settings = Settings(data_dir=tmp_path, proxy=ProxySettings(mode="transparent", auth_file=file))
    with pytest.raises(StartupError, match="transparent"):
        assemble_services(settings, FakeHosts(), None, Counters())


async def test_requests_and_tunnels_have_to_log_in(
    state: Path, origin: Origin, client_tls: ssl.SSLContext, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password_check_queue, "FIRST_PAUSE_S", 0.0)
    right = aiohttp.BasicAuth("kim", "secret: with a colon")
    async with wire_gateway(state, {}, users=file) as gateway, aiohttp.ClientSession() as client:
        for wrong in (None, aiohttp.BasicAuth("kim", "guess")):
            async with client.get(f"{origin.http}/a", proxy=gateway.url, proxy_auth=wrong) as response:
                assert response.status == 407
                assert response.headers["proxy-authenticate"].startswith("Basic realm=")
            with pytest.raises(aiohttp.ClientHttpProxyError, match="407"):
                await client.get(f"{origin.https}/b", proxy=gateway.url, proxy_auth=wrong, ssl=client_tls)
        assert origin.seen == []
        assert gateway.counters["logins_refused"] == 2
        assert gateway.decide.asked == []
        for _ in range(2):
            async with client.get(f"{origin.http}/a", proxy=gateway.url, proxy_auth=right) as response:
                assert response.status == 200
            async with client.get(f"{origin.https}/b", proxy=gateway.url, proxy_auth=right, ssl=client_tls) as response:
                assert response.status == 200
        assert len(origin.seen) == 4


@pytest.mark.parametrize(
    ("host", "port", "inside", "asked"),
    [
        ("gatewayfilter.internal", 443, "gatewayfilter.internal", []),
        ("gatewayfilter.internal", 443, "elsewhere.test", ["GET"]),
        ("gatewayfilter.internal", 80, "", ["CONNECT"]),
        ("elsewhere.test", 443, "", ["CONNECT"]),
    ],
)
def test_a_tunnel_to_the_filters_own_pages_needs_no_login(
    host: str, port: int, inside: str, asked: list[str], file: Path
) -> None:
    login = ProxyLogin(
        Users(file),
        Counters(),
        lambda _: None,
        {},
        loopback=True,
        free=lambda flow: flow.request.host == "gatewayfilter.internal",
    )
    flow = tflow.tflow(req=treq(method=b"CONNECT", host=host, port=port, authority=f"{host}:{port}".encode()))
    assert login.http_connect(flow) is None
    requests = [flow] if flow.response else [flow, tflow.tflow(req=treq(host=inside, port=443), client_conn=flow.client_conn)]
    for request in requests[1:]:
        assert login.requestheaders(request) is None
    refused = [request.request.method for request in requests if request.response and request.response.status_code == 407]
    assert refused == asked


async def test_a_login_is_asked_for_before_anything_passes_unread(state: Path, file: Path) -> None:
    good = f"Proxy-Authorization: {basic('kim:secret: with a colon')}\r\n"
    async with tcp_server() as server, wire_gateway(state, {"localhost": PASS}, users=file) as gateway:
        _, writer, answer = await connect(gateway, f"localhost:{server.port}")
        assert answer.startswith(b"HTTP/1.1 407")
        writer.close()
        _, writer, answer = await connect(gateway, f"localhost:{server.port}", fields=good)  # mitmproxy lets it in …
        assert answer.startswith(b"HTTP/1.1 200")
        writer.close()
        _, writer, answer = await connect(gateway, f"localhost:{server.port}", fields=good)  # … and the door knows it now
        assert answer.startswith(b"HTTP/1.1 200")
        writer.write(client_hello("localhost"))
        await until(lambda: bool(server.heard))
        assert gateway.counters["spliced"] == 1
        writer.close()


async def test_an_upload_without_a_login_is_refused_before_it_is_sent(state: Path, file: Path) -> None:
    async with wire_gateway(state, {}, users=file) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"POST http://x.example/ HTTP/1.1\r\nHost: x.example\r\nContent-Length: 1000000000\r\n\r\n")
        async with asyncio.timeout(10):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 407")
        writer.close()


async def test_this_machine_may_be_let_in(state: Path, origin: Origin, file: Path) -> None:
    async with (
        wire_gateway(state, {}, users=file, auth_loopback=False) as gateway,
        aiohttp.ClientSession() as client,
        client.get(f"{origin.http}/a", proxy=gateway.url) as response,
    ):
        assert response.status == 200


def test_a_password_that_is_written_in_many_ways_is_remembered_once(file: Path) -> None:
    users = Users(file)
    right = basic("kim:secret: with a colon")
    users.verify(right)
    for gap in range(1, 50):
        assert users.recall(f"BASIC{' ' * gap}{right[6:]}") == "kim"
    assert len(users._known) == 1


@pytest.mark.parametrize(
    ("dear", "other"), [((32_768, 8, 1), (16_384, 8, 1)), ((8_192, 8, 4), (16_384, 8, 1)), ((8_192, 32, 1), (16_384, 8, 1))]
)
def test_a_name_that_does_not_exist_costs_what_the_others_cost(
    dear: tuple[int, int, int], other: tuple[int, int, int], tmp_path: Path
) -> None:
    path = tmp_path / "users"
    made = {name: PasswordHash(*costs, bytes(16), bytes(32)) for name, costs in (("old", dear), ("kim", other))}
    write_users(path, made)
    users = Users(path)
    assert (users._nobody.cost, users._nobody.block, users._nobody.parallel) == dear


async def test_another_client_logs_in_while_one_tries_passwords_out(state: Path, file: Path) -> None:
    async with wire_gateway(state, {}, users=file) as gateway:

        async def ask(source: str, password: str) -> bytes:
            client = socket.socket()
            client.setblocking(False)
            client.bind((source, 0))
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", gateway.port))
            reader, writer = await asyncio.open_connection(sock=client)
            field = f"Proxy-Authorization: {basic(f'kim:{password}')}"
            writer.write(f"GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\n{field}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            return head[:12]

        flood = [asyncio.create_task(ask("127.0.0.2", f"guess {number}")) for number in range(60)]
        await until(lambda: gateway.counters["logins_throttled"] > 0)
        async with asyncio.timeout(20):
            assert await ask("127.0.0.3", "secret: with a colon") == b"HTTP/1.1 502"
        assert gateway.counters["logins_refused"] < 20
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)


@pytest.mark.parametrize("password", ["secret: with a colon", "guess"])
async def test_a_client_that_leaves_during_the_check_leaves_nothing_behind(file: Path, password: str) -> None:
    logged_in: dict[str, str] = {}
    login = ProxyLogin(Users(file), Counters(), lambda _: None, logged_in, loopback=True, free=lambda _: False)
    flow = tflow.tflow()
    flow.request.headers["Proxy-Authorization"] = basic(f"kim:{password}")
    checking = login.http_connect(flow)
    assert checking is not None
    flow.client_conn.state = ConnectionState.CLOSED
    login.client_disconnected(flow.client_conn)
    await checking
    assert (logged_in, login._inside, flow.response) == ({}, set(), None)


@all_cases(
    ("numbers", "digest_bytes", "right"),
    [
        ("65536:8:1", 16, True),  # 64 MiB
        ("65536:4:2", 16, True),
        ("65536:8:2", 16, False),
        ("65537:8:1", 16, False),
        ("2:8:1", 16, True),
        ("1:8:1", 16, False),
        ("2:8:1", 15, False),
    ],
)
def test_the_bounds_of_a_hash(numbers: str, digest_bytes: int, *, right: bool) -> None:
    text = f"scrypt:{numbers}:AA==:{b64encode(bytes(digest_bytes)).decode()}"
    if right:
        assert str(PasswordHash.parse(text)) == text
    else:
        with pytest.raises(ValueError, match="too much memory"):
            PasswordHash.parse(text)


def test_what_is_no_base64_is_not_read_as_if_it_were(file: Path) -> None:
    right = basic("kim:x")
    for header, user in ((right, "kim"), (f"{right[:8]}!{right[8:]}", "")):
        assert Users(file).named(header) == user
    digest = b64encode(bytes(16)).decode()
    for salt, broken in (("A!A==", digest), ("AA==", f"!{digest}")):
        with pytest.raises(ValueError, match="base64"):
            PasswordHash.parse(f"scrypt:2:8:1:{salt}:{broken}")


@pytest.mark.parametrize(("length", "user"), [(1_024, "kim"), (1_025, "")])
def test_a_header_is_read_up_to_its_most_characters(length: int, user: str, file: Path) -> None:
    header = basic("kim:x")
    assert Users(file).named(header.replace(" ", " " * (length - len(header) + 1))) == user


def test_so_many_right_headers_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_file, "_MOST_REMEMBERED", 2)
    path, names = tmp_path / "users", ["ada", "bob", "kim"]
    write_users(path, dict.fromkeys(names, PasswordHash.of("x")))
    users = Users(path)
    for known in (["ada"], ["ada", "bob"], ["kim"]):
        assert users.verify(basic(f"{known[-1]}:x")) == known[-1]
        assert [name for name in names if users.recall(basic(f"{name}:x"))] == known


def test_what_was_right_by_a_file_that_changed_during_the_check_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "users"
    write_users(path, {"kim": PasswordHash.of("old")})
    users, fits = Users(path), PasswordHash.fits

    def change(kept: PasswordHash, password: str) -> bool:
        write_users(path, {"kim": PasswordHash.of("new")})
        users.refresh()
        return fits(kept, password)

    monkeypatch.setattr(PasswordHash, "fits", change)
    assert users.verify(basic("kim:old")) == "kim"
    assert users.recall(basic("kim:old")) == ""


def test_a_file_without_users_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "users"
    write_users(path, {})
    assert Users(path).verify(basic("kim:x")) == ""
    with pytest.raises(StartupError, match="cannot write"):
        write_users(tmp_path / "none" / "users", {})
