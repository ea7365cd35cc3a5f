"""The sites that requests are led to."""

import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trustme
from aiohttp import web

from tests.proxy.request.filtered_sites import ADDRESSES, ENFORCED, NAMES, Sites


@pytest.fixture
async def sites(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sites]:
    usual = socket.getaddrinfo

    def led(host: Any, *rest: Any, **more: Any) -> Any:
        return usual("127.0.0.1" if host in NAMES else ENFORCED if host in ADDRESSES else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", led)
    monkeypatch.setattr("gatewayfilter.proxy.tunnel.resolver.known_addresses", lambda *_: None)
    found = Sites()
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{name:.*}", found.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*NAMES).configure_cert(tls)
    for scheme, context in (("http", None), ("https", tls)):
        with socket.socket() as listener:
            listener.bind(("0.0.0.0", 0))
            found.ports[scheme] = listener.getsockname()[1]
            await web.SockSite(runner, listener.dup(), ssl_context=context).start()
    yield found
    await runner.cleanup()
