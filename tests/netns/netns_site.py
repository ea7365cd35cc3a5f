"""Runs inside the origin's namespace: a site by HTTP and HTTPS, over both families, and a UDP echo in the place of HTTP/3.

Arguments: the certificate's PEM file.
"""

import asyncio
import ssl
import sys

from aiohttp import WSMsgType, web

RELEASE = asyncio.Event()


async def page(request: web.Request) -> web.Response:
    """Says where it is and whom it hears."""
    return web.Response(text=f"site {request.path} for {request.host}", content_type="text/html")


async def echo(request: web.Request) -> web.WebSocketResponse:
    """Says each message back."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(f"echo {message.data}")
    return socket


async def events(request: web.Request) -> web.StreamResponse:
    """Sends one event, and another when somebody asks for `/release`."""
    RELEASE.clear()
    stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await stream.prepare(request)
    await stream.write(b"data: first\n\n")
    await RELEASE.wait()
    await stream.write(b"data: second\n\n")
    return stream


async def release(_: web.Request) -> web.Response:
    """Lets the second event go."""
    RELEASE.set()
    return web.Response(text="released")


class UdpEcho(asyncio.DatagramProtocol):
    """Answers every datagram."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert isinstance(self.transport, asyncio.DatagramTransport)
        self.transport.sendto(data[:8], addr)


async def main() -> None:
    site = web.Application()
    site.add_routes([web.get("/ws", echo), web.get("/events", events), web.get("/release", release), web.get("/{rest:.*}", page)])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1])
    runner = web.AppRunner(site, access_log=None)
    await runner.setup()
    loop = asyncio.get_running_loop()
    for host in ("0.0.0.0", "::"):
        await web.TCPSite(runner, host, 80).start()
        await web.TCPSite(runner, host, 443, ssl_context=context).start()
        await web.TCPSite(runner, host, 853).start()  # only that it can be reached matters
    await loop.create_datagram_endpoint(UdpEcho, ("::", 443))  # a UDP socket of asyncio serves both families
    print("ready", flush=True)  # noqa: T201  the test waits for it
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
