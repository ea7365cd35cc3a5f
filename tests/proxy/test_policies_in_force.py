"""A proxy on loopback with two clients by their addresses: policies treat them differently, at any time and at once."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

from gatewayfilter.config import CrawlSettings, ProxySettings, Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.model import (
    APPROVED,
    Client,
    EntryKind,
    Group,
    HostAction,
    ListAction,
    ManualRule,
    PauseScope,
    Schedule,
    ScheduleEffect,
    Source,
    Window,
    parse_matcher,
)
from gatewayfilter.proxy.auth.user_file import PasswordHash, write_users
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.store import Store
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.wiring.proxy import assemble_components
from tests.proxy.proxy_fakes import Origin

CHILD, ADULT = "127.0.0.2", "127.0.0.3"
EVENING = datetime.fromisoformat("2026-05-04T20:59:50+00:00").timestamp()
PATIENCE_S = 20.0


class Clock:
    """The wall clock of the filter."""

    def __init__(self) -> None:
        self.now = EVENING

    def __call__(self) -> float:
        return self.now


class Home:
    """A running filter with its database, and the two clients."""

    def __init__(self, state: Path, settings: Settings) -> None:
        self.clock = Clock()
        self.store = Store.open(f"sqlite:///{state}/policies.sqlite3")
        self.editor = PolicyEditor(self.store.policies, self.clock)
        folder = SnapshotFolder(state / "policy-snapshots")
        builder = SnapshotBuilder()
        builder.add_keys(builder.add_source(Source("networks", category="social")), [".localhost"])
        folder.publish(builder.build())
        self.engine = engine = FilterEngine(folder.open_newest()[0], off_categories=["social"], clock=self.clock)
        self.components = assemble_components(settings, engine, folder, self.store)
        self.master = LeanMaster(settings, self.components.addon, self.components.services)
        self.sessions: dict[str, aiohttp.ClientSession] = {}
        self.proxy = ""

    async def reason(self, client: str, url: str) -> str:
        """The reason of a block, `""` for an allowed request."""
        async with self.sessions[client].get(url, proxy=self.proxy) as response:
            await response.read()
            return response.headers.get("x-gatewayfilter", "")

    async def until(self, client: str, url: str, wanted: str, within_s: float = PATIENCE_S) -> float:
        """Waits for an answer of the filter. Returns the seconds that this took."""
        began = time.monotonic()
        while (found := await self.reason(client, url)) != wanted:
            assert time.monotonic() - began < within_s, found
            await asyncio.sleep(0.05)
        return time.monotonic() - began

    async def until_spliced(self, client: str) -> None:
        """Waits until connections of a client to the origin pass unread."""
        began = time.monotonic()
        while (found := self.engine.decide_host("localhost", client).action) is not HostAction.SPLICE:
            assert time.monotonic() - began < PATIENCE_S, found
            await asyncio.sleep(0.02)

    async def until_known(self, client: str) -> None:
        """Waits until the engine has a client."""
        began = time.monotonic()
        while client not in self.engine.state.overlay.policies.clients:
            assert time.monotonic() - began < PATIENCE_S
            await asyncio.sleep(0.02)

    async def until_logged(self, client: str, reasons: set[str]) -> None:
        """Waits until the log has decisions with these reasons, and no others, for a client."""
        began = time.monotonic()
        while (found := self.logged(client)) != reasons:
            assert time.monotonic() - began < PATIENCE_S, found
            await asyncio.sleep(0.1)

    def logged(self, client: str) -> set[str]:
        return {record.reason for _, record in self.store.log.tail(1000) if record.client == client}


@pytest.fixture
async def home(state: Path, tmp_path: Path) -> AsyncIterator[Home]:
    async with running(state, tmp_path) as made:
        yield made


@asynccontextmanager
async def running(state: Path, tmp_path: Path, **more: object) -> AsyncIterator[Home]:
    proxy = ProxySettings.model_validate({"listen": "127.0.0.1:0", "upstream_ca": state / "origin-ca.pem", **more})
    settings = Settings(data_dir=state, proxy=proxy, crawl=CrawlSettings(allow_networks=("127.0.0.0/8",)))
    made = Home(tmp_path, settings)
    made.components.start()
    await made.master.start()
    made.proxy = f"http://127.0.0.1:{made.master.address[1]}"
    for client in (CHILD, ADULT):
        connector = aiohttp.TCPConnector(local_addr=(client, 0))
        made.sessions[client] = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60))
    try:
        yield made
    finally:
        for session in made.sessions.values():
            await session.close()
        await made.master.stop(0.2)
        await asyncio.to_thread(made.components.stop)
        made.store.close()


def bedtime(effect: ScheduleEffect = ScheduleEffect.BLOCK_ALL, target: str = "") -> Schedule:
    return Schedule("bedtime", "kids", effect, (Window(21 * 60, 6 * 60),), "UTC", target)


def family(editor: PolicyEditor, schedule: Schedule) -> None:
    editor.add_policy("kids")
    editor.add_group(Group("kids", "kids"))
    editor.add_client(Client("child", (parse_matcher(CHILD),), "kids"))
    editor.add_schedule(schedule, {"social"})


async def ended(read: Callable[[], "asyncio.Future[object]"]) -> bool:
    """Whether reading ends before anything comes."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return not await read()
    except (aiohttp.ClientError, ConnectionError):
        return True


async def test_a_schedule_and_a_pause_for_one_of_two(home: Home, origin: Origin) -> None:
    page = f"{origin.http}/page"
    await asyncio.to_thread(family, home.editor, bedtime())
    assert await home.reason(CHILD, page) == await home.reason(ADULT, page) == ""

    home.clock.now += 15  # five seconds past nine
    assert await home.until(CHILD, page, "block; reason=schedule") < 5
    assert await home.reason(ADULT, page) == ""

    await asyncio.to_thread(home.editor.pause, PauseScope.CLIENT, "child", 600.0, harm_too=False)
    assert await home.until(CHILD, page, "") < 5

    home.clock.now += 601  # nobody ends it
    await home.until(CHILD, page, "block; reason=schedule")

    home.clock.now += 9 * 3600
    await home.until(CHILD, page, "")
    await home.until_logged(CHILD, {"unknown", "schedule", "pause"})
    assert home.logged(ADULT) == {"unknown"}


@asynccontextmanager
async def streaming(
    home: Home, client: str, url: str, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[aiohttp.ClientResponse]:
    async with home.sessions[client].get(f"{url}/events", proxy=home.proxy, ssl=tls or True) as response:
        assert await response.content.readuntil(b"\n\n") == b"data: first\n\n"
        yield response


async def test_what_is_running_ends_at_the_boundary(home: Home, origin: Origin) -> None:
    await asyncio.to_thread(family, home.editor, bedtime())
    session = home.sessions[CHILD]
    async with (
        streaming(home, CHILD, origin.http) as child,
        streaming(home, ADULT, origin.http) as adult,
        session.ws_connect(f"{origin.http}/socket", proxy=home.proxy) as socket,
    ):
        await socket.send_str("a")
        assert await socket.receive_str() == "echo a"
        began = time.monotonic()
        home.clock.now += 15
        assert await ended(lambda: asyncio.ensure_future(child.content.read(1)))
        message = await socket.receive(PATIENCE_S)
        assert message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR}
        assert time.monotonic() - began < PATIENCE_S
        origin.gate.set()
        assert await adult.content.readuntil(b"\n\n") == b"data: second\n\n"
    assert home.components.counters.as_dict()["ended_by_policy"] == 2
    await home.until_logged(CHILD, {"unknown", "schedule"})


async def test_what_runs_inside_of_tls_ends_at_the_boundary(home: Home, origin: Origin, client_tls: ssl.SSLContext) -> None:
    await asyncio.to_thread(family, home.editor, bedtime())
    async with (
        streaming(home, CHILD, origin.https, tls=client_tls) as child,
        streaming(home, ADULT, origin.https, tls=client_tls) as adult,
    ):
        home.clock.now += 15
        assert await ended(lambda: asyncio.ensure_future(child.content.read(1)))
        origin.gate.set()
        assert await adult.content.readuntil(b"\n\n") == b"data: second\n\n"


async def test_what_passes_unread_ends_at_the_boundary(home: Home, origin: Origin, authority: trustme.CA) -> None:
    trusts_origin = ssl.create_default_context()
    authority.configure_trust(trusts_origin)
    await asyncio.to_thread(family, home.editor, bedtime())
    await asyncio.to_thread(home.store.lists.add_rule, ListAction.SPLICE, EntryKind.DOMAIN, ".localhost")
    await home.until_spliced(ADULT)
    async with (
        streaming(home, CHILD, origin.https, tls=trusts_origin) as child,
        streaming(home, ADULT, origin.https, tls=trusts_origin) as adult,
    ):
        home.clock.now += 15
        assert await ended(lambda: asyncio.ensure_future(child.content.read(1)))
        origin.gate.set()
        assert await adult.content.readuntil(b"\n\n") == b"data: second\n\n"
    await home.until_logged(CHILD, {"manual-splice", "schedule"})
    assert home.logged(ADULT) == {"manual-splice"}


@pytest.mark.slow
async def test_what_is_running_ends_when_its_approval_is_withdrawn(home: Home, origin: Origin) -> None:
    assert await home.reason(CHILD, f"{origin.http}/page") == ""
    await asyncio.to_thread(family, home.editor, bedtime())
    home.clock.now += 15
    await home.until(CHILD, f"{origin.http}/page", "block; reason=schedule")
    wanted = ManualRule(0, ListAction.ALLOW, EntryKind.DOMAIN, ".localhost", group=APPROVED, scope="client:child")
    rule = await asyncio.to_thread(home.store.lists.put_rule, wanted)
    await home.until(CHILD, f"{origin.http}/page", "")
    async with streaming(home, CHILD, origin.http) as child, streaming(home, ADULT, origin.http) as adult:
        await asyncio.sleep(1.5)  # the review of the approval itself
        await asyncio.to_thread(home.store.lists.remove_rule, rule.rule_id)
        assert await ended(lambda: asyncio.ensure_future(child.content.read(1)))
        origin.gate.set()
        assert await adult.content.readuntil(b"\n\n") == b"data: second\n\n"
    await home.until_logged(CHILD, {"unknown", "schedule", "manual-allow"})


async def test_a_category_that_is_off_for_all_is_blocked_for_one_at_night(home: Home, origin: Origin) -> None:
    page = f"{origin.http}/page"
    await asyncio.to_thread(family, home.editor, bedtime(ScheduleEffect.BLOCK_CATEGORY, "social"))
    assert await home.reason(CHILD, page) == ""
    home.clock.now += 15
    await home.until(CHILD, page, "block; reason=schedule")
    assert await home.reason(ADULT, page) == ""


async def test_two_users_at_one_address(state: Path, tmp_path: Path, origin: Origin, client_tls: ssl.SSLContext) -> None:
    passwords = {"anna": "one two", "bert": "three"}
    write_users(tmp_path / "users", {name: PasswordHash.of(password) for name, password in passwords.items()})
    async with running(state, tmp_path, auth_file=tmp_path / "users", auth_loopback=True) as home:
        editor = home.editor
        await asyncio.to_thread(editor.add_policy, "closed")
        await asyncio.to_thread(lambda: editor.set_policy("closed", [("block-all", "on")], known_categories=(), known_sources=()))
        await asyncio.to_thread(editor.add_client, Client("anna", (parse_matcher("user:anna"),), policy="closed"))
        await home.until_known("anna")
        found = {}
        for name, password in passwords.items():
            login = {"Proxy-Authorization": aiohttp.encode_basic_auth(name, password)}
            async with aiohttp.ClientSession() as session:
                for scheme, url in (("http", origin.http), ("https", origin.https)):
                    sent: dict[str, Any] = {"headers": login} if scheme == "http" else {"proxy_headers": login, "ssl": client_tls}
                    async with session.get(f"{url}/page", proxy=home.proxy, **sent) as response:
                        found[name, scheme] = response.status, response.headers.get("x-gatewayfilter", "")
    closed, opened = (403, "block; reason=policy"), (200, "")
    assert found == {("anna", "http"): closed, ("anna", "https"): closed, ("bert", "http"): opened, ("bert", "https"): opened}
