"""The process that looks at pages: a real one, with the real classifier and a real database."""

import asyncio
import gzip
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gatewayfilter.config import CrawlSettings, Settings
from gatewayfilter.errors import InspectError
from gatewayfilter.interfaces import PassedResponse
from gatewayfilter.processes.inspection import client
from gatewayfilter.processes.inspection.client import MOST_WAITING, InspectionPool
from gatewayfilter.processes.inspection.frames import LENGTHS, pack_answer, pack_request, unpack_answer
from gatewayfilter.wiring import open_store

pytestmark = pytest.mark.slow

HTML = {"content-type": "text/html; charset=utf-8"}
HARMFUL = (
    b"<html><head><title>Golden Reef online casino - 300% welcome bonus</title></head><body><h1>Golden Reef online casino</h1>"
    b"<p>Play online slots, roulette, blackjack and baccarat for real money. Free spins and a bonus await you.</p></body>"
)
FINE = b"<html><title>Garden</title><body><p>How to plant tulips in autumn, and what soil they like.</p></body></html>"


def page(body: bytes, url: str = "http://127.0.0.1:8/page", *, public: bool = True, encoding: str = "") -> PassedResponse:
    return PassedResponse(url, 200, {**HTML, **({"content-encoding": encoding} if encoding else {})}, body, public)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder: Path = tmp_path_factory.mktemp("inspection") / "state"
    found = Settings(data_dir=folder, crawl=CrawlSettings(allow_networks=("127.0.0.0/8",)))
    open_store(found).close()
    return found


@pytest.fixture
async def pool(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[InspectionPool]:
    monkeypatch.setattr(client, "HANGS_AFTER_S", client.FIRST_ANSWER_S)  # a busy machine judges slowly, and hangs nowhere
    running = InspectionPool(settings)
    running.start()
    yield running
    await asyncio.to_thread(running.stop)


async def eventually[T](look: Callable[[], Awaitable[T]]) -> T:
    """Waits for something that another process does."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await look()
            except (InspectError, LookupError):
                await asyncio.sleep(0.05)


async def test_pages_are_judged_learned_and_survive_the_death_of_the_process(pool: InspectionPool, settings: Settings) -> None:
    found = await eventually(lambda: pool.inspect(page(HARMFUL)))
    assert found is not None
    assert found.category == "gambling"
    assert "score" in found.summary()
    zipped = page(gzip.compress(HARMFUL), "http://127.0.0.1:8/private", public=False, encoding="gzip")
    judged, fine, broken = await asyncio.gather(
        pool.inspect(zipped), pool.inspect(page(FINE)), pool.inspect(page(b"x", encoding="gzip"))
    )
    assert judged is not None
    assert judged.harmful
    assert fine is not None
    assert not fine.harmful
    assert broken is None

    pid = pool.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(InspectError):
        await pool.inspect(page(FINE))
    assert await eventually(lambda: pool.inspect(page(FINE, "http://127.0.0.1:8/again"))) is not None

    store = open_store(settings)

    async def learned() -> set[str]:
        urls = {entry.url for entry in await asyncio.to_thread(lambda: list(store.lists.learned()))}
        if "http://127.0.0.1:8/again" not in urls:
            raise LookupError
        return urls

    urls = await eventually(learned)
    store.close()
    assert "http://127.0.0.1:8/private" not in urls


async def test_more_than_it_can_take_is_refused_at_once(pool: InspectionPool) -> None:
    await eventually(lambda: pool.inspect(page(FINE)))
    answers = await asyncio.gather(*(pool.inspect(page(FINE)) for _ in range(2 * MOST_WAITING)), return_exceptions=True)
    assert sum(isinstance(answer, InspectError) for answer in answers) == MOST_WAITING
    assert await pool.inspect(page(FINE)) is not None


def test_frames_carry_what_was_put_in() -> None:
    frame = pack_request(7, page(b"\x00body", public=False))
    number, head, body = LENGTHS.unpack(frame[: LENGTHS.size])
    assert (number, body, len(frame)) == (7, 5, LENGTHS.size + head + 5)
    assert unpack_answer(pack_answer(7, None)[LENGTHS.size :]) is None
