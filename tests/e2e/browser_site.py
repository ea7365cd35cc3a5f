"""A site that loads everything a browser can load, from itself (`127.0.0.1`) and from a third party (`localhost`)."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trustme
from aiohttp import web

from gatewayfilter.model import Reason
from gatewayfilter.proxy.pages.stub_resources import stub_response

PAGE = (Path(__file__).parent / "everything.html").read_text(encoding="utf-8")


@dataclass
class BrowserSite:
    """The site. `seen` are the paths that reached it; `policy` is the page's content security policy."""

    http: str = ""
    https: str = ""
    policy: str = ""
    seen: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:  # noqa: C901  one branch a kind of thing
        self.seen.append(request.path)
        name = request.path.rpartition("/")[2]
        cors = {"access-control-allow-origin": "*"}
        if name == "socket":
            socket_ = web.WebSocketResponse()
            await socket_.prepare(request)
            async for message in socket_:
                await socket_.send_str(f"echo {message.data}")
            return socket_
        if name == "events":
            return web.Response(text="data: event\n\n", content_type="text/event-stream")
        if name == "page":
            third = f"{request.scheme}://localhost:{request.url.port}"
            address = f"{'wss' if request.scheme == 'https' else 'ws'}://127.0.0.1:{request.url.port}/socket"
            headers = {"content-security-policy": self.policy} if self.policy else {}
            return web.Response(
                text=PAGE.replace("$third", third).replace("$socket", address), content_type="text/html", headers=headers
            )
        if name == "worker.js":
            return web.Response(text="postMessage('works')", content_type="text/javascript")
        if name.endswith(".js"):
            return web.Response(text=f"(window.ran = window.ran || []).push('{name}')", content_type="text/javascript")
        if name.endswith(".css"):
            return web.Response(text="p { color: green }", content_type="text/css")
        if name.endswith(".json"):
            return web.json_response({}, headers=cors)
        if name.endswith(".html"):
            return web.Response(text="<!DOCTYPE html><p>frame", content_type="text/html")
        media = {"png": ("2x2.png", "image/png"), "mp3": ("noop-0.5s.mp3", "audio/mpeg"), "mp4": ("noop-1s.mp4", "video/mp4")}
        if (found := media.get(name.rpartition(".")[2])) is not None:
            stub = stub_response(found[0], Reason.ADBLOCK)
            assert stub is not None
            return web.Response(body=stub.raw_content, content_type=found[1])
        return web.Response(text="ok", content_type="text/plain")


@asynccontextmanager
async def browser_site(folder: Path) -> AsyncIterator[BrowserSite]:
    """Serves on loopback, by http and https; the authority lies in `folder/origin-ca.pem`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "origin-ca.pem"))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(tls)
    site = BrowserSite()
    app = web.Application()
    app.router.add_route("*", "/{name:.*}", site.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    addresses = []
    for context in (None, tls):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            addresses.append(f"{'https' if context else 'http'}://127.0.0.1:{listener.getsockname()[1]}")
            await web.SockSite(runner, listener.dup(), ssl_context=context).start()
    site.http, site.https = addresses
    try:
        yield site
    finally:
        await runner.cleanup()
