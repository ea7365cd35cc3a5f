"""A proxy on loopback with two clients: a service is blocked for one of them, and its minutes run out."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import trustme

from gatewayfilter.model import (
    Client,
    EntryKind,
    Group,
    ListAction,
    Quota,
    QuotaKind,
    Schedule,
    ScheduleEffect,
    Service,
    Window,
    parse_matcher,
)
from gatewayfilter.use_cases.policies import PolicyEditor
from tests.proxy.proxy_fakes import Origin
from tests.proxy.test_policies_in_force import ADULT, CHILD, PATIENCE_S, Home, ended, running, streaming

CLIPS = {"clips": Service("clips", "Clips", "短片", "video", ("localhost",))}
SERVICE, QUOTA = "block; reason=service", "block; reason=quota"


@pytest.fixture
async def home(state: Path, tmp_path: Path) -> AsyncIterator[Home]:
    async with running(state, tmp_path) as made:
        made.engine.set_services(CLIPS)
        yield made


def family(editor: PolicyEditor) -> None:
    editor.add_policy("kids")
    editor.add_group(Group("kids", "kids"))
    editor.add_client(Client("child", (parse_matcher(CHILD),), "kids"))


def block(editor: PolicyEditor, text: str) -> None:
    known: tuple[str, ...] = ()
    editor.set_policy("kids", [("services", text)], known_categories=known, known_sources=known, known_services=CLIPS)


def add_quota(editor: PolicyEditor, minutes: int = 1) -> None:
    editor.add_quota(Quota("hour", "kids", QuotaKind.SERVICE, "clips", minutes, "UTC"), (), CLIPS)


async def minutes_used(home: Home, used: int) -> None:
    """Waits until the database has these minutes of the child."""
    began = time.monotonic()
    while (found := [one.used for one in await asyncio.to_thread(home.store.usage.sums, home.clock.now)]) != [used]:
        assert time.monotonic() - began < PATIENCE_S, found
        await asyncio.sleep(0.05)


async def until_spent(home: Home) -> None:
    """Waits until the worker has what was used up."""
    began = time.monotonic()
    while not home.engine.state.overlay.policies.spent:
        assert time.monotonic() - began < PATIENCE_S
        await asyncio.sleep(0.05)


async def test_a_service_is_blocked_for_one_of_two(home: Home, origin: Origin) -> None:
    page = f"{origin.http}/page"
    await asyncio.to_thread(family, home.editor)
    assert await home.reason(CHILD, page) == ""
    await asyncio.to_thread(block, home.editor, "clips")
    await home.until(CHILD, page, SERVICE)
    assert await home.reason(ADULT, page) == ""
    await asyncio.to_thread(block, home.editor, "")
    await home.until(CHILD, page, "")
    await home.until_logged(CHILD, {"unknown", "service"})


async def test_a_connection_to_a_blocked_service_is_refused_unopened(
    home: Home, origin: Origin, client_tls: ssl.SSLContext, authority: trustme.CA
) -> None:
    trusts_origin = ssl.create_default_context()
    authority.configure_trust(trusts_origin)
    await asyncio.to_thread(family, home.editor)
    await asyncio.to_thread(block, home.editor, "clips")
    await home.until(CHILD, f"{origin.http}/page", SERVICE)
    origin.seen.clear()
    with pytest.raises(aiohttp.ClientError):
        await home.sessions[CHILD].get(f"{origin.https}/page", proxy=home.proxy, ssl=trusts_origin)
    assert not origin.seen
    async with home.sessions[ADULT].get(f"{origin.https}/page", proxy=home.proxy, ssl=client_tls) as response:
        assert response.status == 200


async def test_what_runs_of_a_service_ends_with_the_window(home: Home, origin: Origin) -> None:
    def schedule() -> None:
        windows = (Window(21 * 60, 22 * 60),)
        home.editor.add_schedule(Schedule("night", "kids", ScheduleEffect.BLOCK_SERVICE, windows, "UTC", "clips"), (), CLIPS)

    await asyncio.to_thread(family, home.editor)
    await asyncio.to_thread(schedule)
    await home.until_known("child")
    async with streaming(home, CHILD, origin.http) as child, streaming(home, ADULT, origin.http) as adult:
        home.clock.now += 15
        assert await ended(lambda: asyncio.ensure_future(child.content.read(1)))
        origin.gate.set()
        assert await adult.content.readuntil(b"\n\n") == b"data: second\n\n"
    await home.until(CHILD, f"{origin.http}/page", "block; reason=schedule")


async def test_a_quota_runs_out_and_streams_end(home: Home, origin: Origin) -> None:
    page = f"{origin.http}/page"
    await asyncio.to_thread(family, home.editor)
    await asyncio.to_thread(add_quota, home.editor)
    await home.until_known("child")
    await until_counting(home)
    async with (
        streaming(home, CHILD, origin.http) as child,
        streaming(home, ADULT, origin.http) as adult,
        home.sessions[CHILD].ws_connect(f"{origin.http}/socket", proxy=home.proxy) as socket,
    ):
        assert await home.reason(CHILD, page) == await home.reason(ADULT, page) == ""
        await minutes_used(home, 1)
        await until_spent(home)
        assert await home.reason(CHILD, page) == ""  # the minute goes on to its end
        home.clock.now += 10  # 21:00:00
        assert await ended(lambda: asyncio.ensure_future(child.content.read(1)))
        message = await socket.receive(PATIENCE_S)
        assert message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR}
        await home.until(CHILD, page, QUOTA)
        assert await home.reason(ADULT, page) == ""
        origin.gate.set()
        assert await adult.content.readuntil(b"\n\n") == b"data: second\n\n"
    async with home.sessions[CHILD].get(page, proxy=home.proxy, headers={"accept": "text/html"}) as response:
        text = await response.text()
        assert "minutes of clips are used up until 2026-05-05 00:00" in text
    home.clock.now += 3 * 3600  # the next day
    await home.until(CHILD, page, "")
    await home.until_logged(CHILD, {"unknown", "quota"})


async def until_counting(home: Home) -> None:
    began = time.monotonic()
    while not home.components.services.usage.active:
        assert time.monotonic() - began < PATIENCE_S
        await asyncio.sleep(0.05)


async def test_messages_over_a_websocket_count_and_other_requests_do_not(home: Home, origin: Origin) -> None:
    await asyncio.to_thread(family, home.editor)
    await asyncio.to_thread(add_quota, home.editor, 5)
    await until_counting(home)
    async with home.sessions[CHILD].get(
        f"{origin.http}/page", proxy=home.proxy, headers={"sec-fetch-dest": "image", "sec-fetch-mode": "no-cors"}
    ) as response:
        assert response.status == 200
    async with home.sessions[CHILD].ws_connect(f"{origin.http}/socket", proxy=home.proxy) as socket:
        await minutes_used(home, 1)
        home.clock.now += 60
        await socket.send_str("a")
        assert await socket.receive_str() == "echo a"
        await minutes_used(home, 2)
        home.clock.now += 60  # nothing passes
        await asyncio.sleep(0.5)
        await minutes_used(home, 2)


@pytest.mark.slow
async def test_what_passes_unread_counts(home: Home, origin: Origin, authority: trustme.CA) -> None:
    trusts_origin = ssl.create_default_context()
    authority.configure_trust(trusts_origin)
    await asyncio.to_thread(family, home.editor)
    await asyncio.to_thread(add_quota, home.editor)
    await asyncio.to_thread(home.store.lists.add_rule, ListAction.SPLICE, EntryKind.DOMAIN, ".localhost")
    await home.until_spliced(CHILD)
    await until_counting(home)
    async with streaming(home, CHILD, origin.https, tls=trusts_origin) as child:
        await minutes_used(home, 1)
        await until_spent(home)
        home.clock.now += 10
        assert await ended(lambda: asyncio.ensure_future(child.content.read(1)))
    await home.until_logged(CHILD, {"manual-splice", "quota"})


@pytest.mark.slow
async def test_an_own_catalogue_is_taken_in_and_a_wrong_one_is_not(home: Home, state: Path, origin: Origin) -> None:
    page = f"{origin.http}/page"
    await asyncio.to_thread(family, home.editor)
    await asyncio.to_thread(block, home.editor, "clips")
    await home.until(CHILD, page, SERVICE)
    own = state / "services.toml"
    try:
        own.write_text("[clips]\nhosts = ['clips.example']\n", encoding="utf-8")
        await home.until(CHILD, page, "")
        wrong = state / "services.new"  # at once in its place: half a file may be a right one
        wrong.write_text("[clips]\nhosts = ['com']\n", encoding="utf-8")
        wrong.rename(own)
        await asyncio.sleep(1)
        assert "youtube" in home.engine.services
        assert home.engine.services["clips"].hosts == ("clips.example",)
    finally:
        own.unlink()
