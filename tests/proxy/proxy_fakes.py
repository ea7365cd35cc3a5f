"""Stand-ins for the engine and the frontier, and what the fixtures hand to tests."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from gatewayfilter.config import LogPrivacy, ProxySettings, Settings
from gatewayfilter.content_encoding import decode_up_to
from gatewayfilter.errors import InspectError
from gatewayfilter.interfaces import CrawlRequest, PassedResponse
from gatewayfilter.model import (
    Action,
    Classification,
    Enforcement,
    Explanation,
    LogRecord,
    Reason,
    Request,
    RequestChange,
    ResponseChange,
    Verdict,
)
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.filter_services import FilterServices
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.telemetry import Counters

BLOCK = Verdict(Action.BLOCK, Reason.BLACKLIST, source_list="test", rule="blocked.example", category="gambling", detail="score 9")
ALLOW = Verdict(Action.ALLOW, Reason.WHITELIST)
UNKNOWN = Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True)


class FakeDecide:
    """Blocks URLs with `blocked` in them, does not know those with `unknown`, raises at `raise`; the table outranks this."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.table: dict[str, Verdict] = {}

    def decide(self, request: Request) -> Verdict:
        self.asked.append(request)
        text = request.url.text
        if text in self.table:
            return self.table[text]
        if "raise" in text:
            raise RuntimeError("the engine is broken")
        if "blocked" in text:
            return BLOCK
        return UNKNOWN if "unknown" in text else ALLOW

    def explain(self, request: Request) -> Explanation:
        raise NotImplementedError


class FakeCrawlRequests:
    """Keeps what was offered."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.full = False

    def offer(self, offer: CrawlRequest) -> bool:
        if not self.full:
            self.urls.append(offer.url)
        return not self.full


class FakeChanges:
    """Changes what its tables say, by the path of the URL."""

    def __init__(self) -> None:
        self.requests: dict[str, RequestChange] = {}
        self.responses: dict[str, ResponseChange] = {}
        self.seen: list[tuple[str, int, dict[str, str], str]] = []

    def enforced(self, request: Request) -> Enforcement | None:
        return None

    def change_request(self, request: Request) -> RequestChange | None:
        return self.requests.get(request.url.path + request.url.query)

    def change_response(
        self, request: Request, status: int, headers: Mapping[str, str], address: str = ""
    ) -> ResponseChange | None:
        self.seen.append((request.url.path, status, dict(headers), address))
        return self.responses.get(request.url.path)


class FakeInspect:
    """Finds gambling where a body has `casino`, waits for `gate` where it has `slow`, fails where it has `broken`."""

    def __init__(self) -> None:
        self.seen: list[PassedResponse] = []
        self.gate = asyncio.Event()
        self.began = asyncio.Event()

    async def inspect(self, response: PassedResponse) -> Classification | None:
        self.seen.append(response)
        self.began.set()
        body, _ = decode_up_to(response.body, response.headers.get("content-encoding", ""), 2_000_000)
        if b"slow" in body:
            await self.gate.wait()
        if b"broken" in body:
            raise InspectError("broken")
        return Classification("gambling" if b"casino" in body else "", 42.0, 20.0)


class FakePassed:
    """Keeps what passed."""

    def __init__(self) -> None:
        self.seen: list[PassedResponse] = []
        self.full = False

    def passed(self, response: PassedResponse) -> bool:
        if not self.full:
            self.seen.append(response)
        return not self.full


@dataclass
class Gateway:
    """A running proxy and what it did."""

    decide: FakeDecide = field(default_factory=FakeDecide)
    offers: FakeCrawlRequests = field(default_factory=FakeCrawlRequests)
    counters: Counters = field(default_factory=Counters)
    records: list[LogRecord] = field(default_factory=list)
    changes: FakeChanges = field(default_factory=FakeChanges)
    inspect: FakeInspect = field(default_factory=FakeInspect)
    passed: FakePassed | None = None
    url: str = ""
    port: int = 0
    master: LeanMaster = field(init=False)

    def addon(self, settings: ProxySettings, whole: Settings | None = None) -> GatewayAddon:
        return GatewayAddon(
            whole or Settings(proxy=settings),
            FilterServices(
                self.decide,
                recorder=DecisionRecorder(self.records.append, LogPrivacy.FULL),
                offers=self.offers,
                changes=self.changes,
                inspect=self.inspect,
                passed=self.passed,
            ),
            self.counters,
        )


class Origin:
    """A web site by HTTP and HTTPS.

    Attributes:
        seen: URLs that reached a page or an upload.
        uploaded: bytes that reached an upload.
        gate: holds the second event of `/events` back.
    """

    def __init__(self) -> None:
        self.http = ""
        self.https = ""
        self.seen: list[str] = []
        self.uploaded = 0
        self.gate = asyncio.Event()

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/chunked", self.chunked)
        app.router.add_get("/events", self.events)
        app.router.add_get("/large", self.large)
        app.router.add_post("/{name:.*upload.*}", self.upload)
        app.router.add_get("/{name:.*socket.*}", self.socket)
        app.router.add_route("*", "/{name:.*}", self.page)
        return app

    async def page(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(str(request.url))
        text = f"<title>{request.path}</title>{request.headers['Host']}"
        return web.Response(text=text, content_type="text/html", headers={"alt-svc": 'h3=":443"'})

    async def chunked(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for number in range(5):
            await response.write(b"%d" % number * 10)
        return response

    async def events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: first\n\n")
        await self.gate.wait()
        await response.write(b"data: second\n\n")
        return response

    async def large(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": str(64 << 20)})
        await response.prepare(request)
        for _ in range(64):
            await response.write(bytes(1 << 20))
        return response

    async def upload(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(str(request.url))
        async for chunk in request.content.iter_any():
            self.uploaded += len(chunk)
        return web.Response(text=str(self.uploaded))

    async def socket(self, request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(f"echo {message.data}")
        return ws
