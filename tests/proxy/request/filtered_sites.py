"""Sites and a proxy on loopback for values of a policy that act on requests: what reaches the sites, and what comes back.

Each name leads to 127.0.0.1, each enforced address to 127.0.0.9, so that a site sees where a request was led.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import brotli
from aiohttp import web

from gatewayfilter.config import CrawlSettings, ProxySettings, Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.model import (
    DEFAULT,
    LogRecord,
    ManualRule,
    Policy,
    PolicyItem,
    PolicySet,
    with_value,
)
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.store import Store
from gatewayfilter.wiring.proxy import assemble_components

NAMES = (
    "www.google.com", "www.google.co.uk", "www.bing.com", "duckduckgo.com", "html.duckduckgo.com", "yandex.ru", "www.ecosia.org",
    "search.brave.com", "www.youtube.com", "youtubei.googleapis.com", "music.youtube.com", "www.baidu.com", "en.wikipedia.org",
    "files.example",
)  # fmt: skip
ENFORCED = "127.0.0.9"
ADDRESSES = {
    "forcesafesearch.google.com", "strict.bing.com", "safe.duckduckgo.com", "213.180.193.56", "strict-safe-search.ecosia.org",
    "safesearch.brave.com", "restrict.youtube.com", "restrictmoderate.youtube.com",
}  # fmt: skip
EXE = b"MZ\x90\x00\x03\x00\x00\x00" + bytes(2000)
TWICE = brotli.compress(gzip.compress(EXE))


@dataclass
class Sites:
    """All sites, by HTTP and HTTPS.

    Attributes:
        ports: by scheme.
        seen: each request: address that it came to, host without its port, path with its query, header fields, body.
        answers: path → header fields and pieces of the body.
    """

    ports: dict[str, int] = field(default_factory=dict)
    seen: list[tuple[str, str, str, Mapping[str, str], bytes]] = field(default_factory=list)
    answers: dict[str, tuple[dict[str, str], tuple[bytes, ...]]] = field(default_factory=dict)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        address = request.transport.get_extra_info("sockname")[0]
        self.seen.append((address, request.host.partition(":")[0], request.raw_path, request.headers, await request.read()))
        headers, pieces = self.answers.get(request.path, ({"content-type": "text/plain"}, (b"site",)))
        status = int(headers.get(":status", "200"))
        response = web.StreamResponse(status=status, headers={name: headers[name] for name in headers if name != ":status"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0.02)
        return response

    def url(self, scheme: str, host: str, path: str) -> str:
        return f"{scheme}://{host}:{self.ports[scheme]}{path}"


class Filter:
    """A running proxy."""

    def __init__(
        self, state: Path, folder: Path, items: tuple[PolicyItem, ...], rules: tuple[ManualRule, ...], **more: Any
    ) -> None:
        builder = SnapshotBuilder()
        builder.set_policies(PolicySet.of(items))
        builder.set_rules(rules)
        snapshots = SnapshotFolder(folder / "snapshots")
        snapshots.publish(builder.build())
        proxy = {
            "listen": "127.0.0.1:0",
            "upstream_ca": state / "origin-ca.pem",
            "allow_networks": ("127.0.0.0/8",),
            "http2_clients": "offered",
        }
        settings = Settings(
            data_dir=state,
            proxy=ProxySettings.model_validate(proxy),
            crawl=CrawlSettings(allow_networks=("127.0.0.0/8",)),
        )
        self.store = Store.open(f"sqlite:///{folder}/log.sqlite3")
        self.engine = FilterEngine(snapshots.open_newest()[0])
        self.components = assemble_components(settings, self.engine, snapshots, self.store)
        self.master = LeanMaster(settings, self.components.addon, self.components.services)
        self.url = ""

    async def logged(self, reason: str) -> LogRecord:
        """Waits for a record with a reason."""
        for _ in range(200):
            for _, record in self.store.log.tail(100):
                if record.reason == reason:
                    return record
            await asyncio.sleep(0.05)
        raise AssertionError([record for _, record in self.store.log.tail(100)])


def policy(*values: str) -> Policy:
    found = Policy(DEFAULT)
    for value in values:
        key, _, text = value.partition("=")
        found = with_value(found, key, text, categories=(), sources=())
    return found


@asynccontextmanager
async def running(
    state: Path, folder: Path, *values: str, items: tuple[PolicyItem, ...] = (), rules: tuple[ManualRule, ...] = ()
) -> AsyncIterator[tuple[Filter, aiohttp.ClientSession]]:
    found = Filter(state, folder, (policy(*values), *items), rules)
    found.components.start()
    await found.master.start()
    found.url = f"http://127.0.0.1:{found.master.address[1]}"
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
            yield found, session
    finally:
        await found.master.stop(0.2)
        await asyncio.to_thread(found.components.stop)
        found.store.close()


async def get(found: Filter, session: aiohttp.ClientSession, url: str) -> tuple[int, str, bytes]:
    async with session.get(url, proxy=found.url) as response:
        return response.status, response.headers.get("x-gatewayfilter", ""), await response.read()
