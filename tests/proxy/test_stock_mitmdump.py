"""The addon in an unchanged mitmdump, as `mitmdump -s` runs it."""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.held_ports import HOST, hold_port, port_of
from tests.proxy.proxy_fakes import Origin
from tests.proxy.split_clients import PATIENCE_S, channel

SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.held_ports import HOST, hold_port, port_of
from tests.proxy.proxy_fakes import Gateway
from gatewayfilter.config import ProxySettings
addons = [Gateway().addon(ProxySettings())]
"""


@pytest.fixture
def stock(state: Path, tmp_path: Path, client_tls: ssl.SSLContext) -> Iterator[int]:
    script = tmp_path / "addon.py"
    script.write_text(SCRIPT.format(root=str(Path(__file__).parents[2])))
    with hold_port() as held:
        port = port_of(held)
        command = [str(Path(sys.executable).parent / "mitmdump"), "-q", "--listen-host", HOST, "-p", str(port)]
        command += ["--set", f"confdir={state / 'ca'}", "--set", f"ssl_verify_upstream_trusted_ca={state / 'origin-ca.pem'}"]
        with subprocess.Popen([*command, "-s", str(script)]) as process:
            yield port
            process.terminate()


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for _ in range(50 * PATIENCE_S):
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.02)
    pytest.fail("mitmdump does not listen")


async def test_it_filters_streams_and_refuses_uploads_early(
    stock: int, origin: Origin, client: aiohttp.ClientSession, client_tls: ssl.SSLContext
) -> None:
    reader, writer = await connect(stock)
    writer.write(b"POST %s/blocked-upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n" % origin.http.encode())
    async with asyncio.timeout(10):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 403")
    writer.close()
    proxy = f"http://127.0.0.1:{stock}"
    for url in ("https://blocked.invalid/", f"{origin.https}/blocked"):
        async with client.get(url, proxy=proxy, ssl=client_tls) as response:
            assert response.status == 403
    async with client.get(f"{origin.http}/events", proxy=proxy) as response:
        assert await response.content.readuntil(b"\n\n") == b"data: first\n\n"
        origin.gate.set()
        assert await response.content.readuntil(b"\n\n") == b"data: second\n\n"
    assert origin.seen == []


async def test_a_request_in_pieces_is_read(stock: int, origin: Origin) -> None:
    """mitmproxy's own guess stands behind ours, and would take the first piece for another protocol."""
    await connect(stock)
    for cut in (1, 2, 5):
        async with channel(stock, origin.http.removeprefix("http://")) as client:
            await client.send(b"GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n", cut)
            assert await client.status() == "403 blacklist", cut
        async with channel(stock, origin.http.removeprefix("http://")) as client:
            await client.send(b"\0\0\0\x08\x04\xd2"[:cut])  # what follows could meet a closed connection
            assert await client.status() == "400 not-http", cut
        assert origin.seen == []
