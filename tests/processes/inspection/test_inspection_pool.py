"""The worker's side of inspection, over a socket whose other end the test has. No process is started."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import InspectError
from gatewayfilter.interfaces import PassedResponse
from gatewayfilter.model import Classification
from gatewayfilter.processes.inspection import client
from gatewayfilter.processes.inspection.client import MOST_WAITING, InspectionPool
from gatewayfilter.processes.inspection.frames import LENGTHS, pack_answer, pack_request, unpack_answer

PAGE = PassedResponse("http://a.example/", 203, {"content-type": "text/html"}, b"\x00body", False, "said")
FOUND = Classification("gambling", 30.0, 20.0)


class FakeProcess:
    """The inspector: the test answers in its place."""

    pid = 4711

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel.dup()
        self.channel.setblocking(False)
        self.done = list[str]()

    def join(self, timeout_s: float) -> None:
        self.done.append(f"join {timeout_s:g}")

    def terminate(self) -> None:
        self.done.append("terminate")

    def kill(self) -> None:
        self.done.append("kill")
        self.channel.close()

    async def taken(self) -> int:
        """Reads a page. Returns its number."""
        loop = asyncio.get_running_loop()
        number, head, body = LENGTHS.unpack(await loop.sock_recv(self.channel, LENGTHS.size))
        await loop.sock_recv(self.channel, head + body)
        return int(number)

    async def answer(self, number: int, found: Classification | None) -> None:
        await asyncio.get_running_loop().sock_sendall(self.channel, pack_answer(number, found))


class Running:
    """A pool, and the processes that it started."""

    def __init__(self, pool: InspectionPool) -> None:
        self.pool = pool
        self.processes = list[FakeProcess]()
        self.fails = 0
        self.slept = list[float]()
        self.go_on = asyncio.Event()

    def start(self, _settings: Settings, channel: socket.socket) -> Any:
        if self.fails:
            self.fails -= 1
            raise OSError(12, "Cannot allocate memory")
        self.processes.append(FakeProcess(channel))
        return self.processes[-1]

    async def ready(self) -> FakeProcess:
        async with asyncio.timeout(10):
            await self.pool._ready.wait()
        return self.processes[-1]

    async def restarted(self, delay_s: float) -> None:
        """Waits for the pause before the next start, and ends it."""
        async with asyncio.timeout(10):
            while not self.slept:
                await _sleep(0)
        assert self.slept.pop() == pytest.approx(delay_s)
        self.go_on.set()


_sleep = asyncio.sleep


@pytest.fixture
async def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    found = Running(InspectionPool(Settings(data_dir=tmp_path)))

    class Asyncio:
        """The library, with pauses that the test ends."""

        def __getattr__(self, name: str) -> Any:
            return getattr(asyncio, name)

        async def sleep(self, delay_s: float) -> None:
            found.slept.append(delay_s)
            await found.go_on.wait()
            found.go_on.clear()

    monkeypatch.setattr(client, "_start", found.start)
    monkeypatch.setattr(client, "asyncio", Asyncio())
    found.pool.start()
    yield found
    assert found.pool._keeper is not None
    found.pool._keeper.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await found.pool._keeper
    for process in found.processes:
        process.channel.close()


async def test_pages_are_answered_by_their_number(running: Running) -> None:
    assert [running.pool.pid] == [None]
    early = asyncio.create_task(running.pool.inspect(PAGE))  # waits for the start
    process = await running.ready()
    assert running.pool.pid == 4711
    other = asyncio.create_task(running.pool.inspect(PAGE))
    first, second = await process.taken(), await process.taken()
    assert first != second
    await process.answer(second, None)
    await process.answer(first, FOUND)
    assert (await early, await other) == (FOUND, None)
    assert (running.pool._waiting, running.pool._sent, running.pool._early) == ({}, {}, 0)
    await process.answer(99, FOUND)  # of a page whose client has gone
    again = asyncio.create_task(running.pool.inspect(PAGE))
    await process.answer(await process.taken(), FOUND)
    assert await again == FOUND


async def test_an_end_is_told_to_all_who_wait_and_another_is_started_later(running: Running) -> None:
    process = await running.ready()
    waiting = [asyncio.create_task(running.pool.inspect(PAGE)) for _ in range(2)]
    await process.answer(await process.taken(), FOUND)
    assert FOUND in [await one for one in (await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED))[0]]
    for delay_s in (0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0):
        process.channel.close()
        await running.restarted(delay_s)
        process = await running.ready()
        assert running.pool.pid == 4711
    with pytest.raises(InspectError, match="ended"):
        await asyncio.gather(*waiting)
    assert (running.pool._waiting, running.pool._sent) == ({}, {})


async def test_one_that_lived_long_is_started_again_at_once(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    process = await running.ready()
    process.channel.close()
    await running.restarted(0.4)
    process = await running.ready()
    loop = asyncio.get_running_loop()
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + 31)
    process.channel.close()
    await running.restarted(0.2)
    monkeypatch.undo()


async def test_while_none_runs_pages_wait_for_one(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    process = await running.ready()
    running.fails = 1
    process.channel.close()
    await running.restarted(0.4)
    waiting = [asyncio.create_task(running.pool.inspect(PAGE)) for _ in range(MOST_WAITING)]
    await running.restarted(0.8)
    assert "cannot be started" in caplog.text
    with pytest.raises(InspectError, match="too many"):
        await running.pool.inspect(PAGE)
    process = await running.ready()
    with pytest.raises(InspectError, match="too many"):
        await running.pool.inspect(PAGE)
    for _ in waiting:
        await process.answer(await process.taken(), FOUND)
    assert await asyncio.gather(*waiting) == [FOUND] * MOST_WAITING


async def test_a_page_that_takes_too_long_ends_the_process(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    process = await running.ready()
    loop = asyncio.get_running_loop()
    limits = list[float]()
    call_later = loop.call_later

    def noting(delay: float, *arguments: Any) -> asyncio.TimerHandle:
        if arguments[0] == running.pool._give_up:
            limits.append(delay)
        return call_later(delay, *arguments)

    monkeypatch.setattr(loop, "call_later", noting)
    first = asyncio.create_task(running.pool.inspect(PAGE))
    await process.answer(await process.taken(), None)
    assert await first is None
    second = asyncio.create_task(running.pool.inspect(PAGE))
    number = await process.taken()
    assert limits == [client.FIRST_ANSWER_S, client.HANGS_AFTER_S], "the first one waits until the models were read"
    running.pool._give_up(number + 1)  # was answered meanwhile
    assert process.done == []
    running.pool._give_up(number)
    assert process.done == ["kill"]
    with pytest.raises(InspectError, match="ended"):
        await second
    await running.restarted(0.4)
    process = await running.ready()
    third = asyncio.create_task(running.pool.inspect(PAGE))
    await process.answer(await process.taken(), None)
    await third
    assert limits[2] == client.FIRST_ANSWER_S, "so does that of the next process"


async def test_a_client_that_does_not_wait_leaves_nothing_behind(running: Running) -> None:
    process = await running.ready()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await running.pool.inspect(PAGE)
    task = asyncio.create_task(running.pool.inspect(PAGE))
    number = await process.taken()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running.pool._waiting == {}
    await process.answer(number, FOUND)
    other = asyncio.create_task(running.pool.inspect(PAGE))
    await process.answer(await process.taken(), None)
    assert await other is None
    assert running.pool._sent == {}


async def test_the_end(running: Running) -> None:
    process = await running.ready()
    await asyncio.to_thread(running.pool.stop)
    assert process.done == ["join 1", "terminate"]
    assert running.pool._keeper is not None
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await running.pool._keeper
    assert running.pool.pid is None
    InspectionPool(Settings()).stop()


def test_frames_hold_a_page_and_its_judgement() -> None:
    frame = pack_request(7, PAGE)
    number, head, body = LENGTHS.unpack(frame[: LENGTHS.size])
    assert (number, body, len(frame)) == (7, 5, LENGTHS.size + head + 5)
    assert json.loads(frame[LENGTHS.size : -body]) == ["http://a.example/", 203, {"content-type": "text/html"}, False, "said"]
    assert frame[-body:] == b"\x00body"
    for found in (FOUND, None):
        frame = pack_answer(1 << 40, found)
        assert LENGTHS.unpack(frame[: LENGTHS.size]) == (1 << 40, len(frame) - LENGTHS.size, 0)
        assert unpack_answer(frame[LENGTHS.size :]) == found


def test_the_process_ends_with_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[object]()

    started = SimpleNamespace(start=lambda: done.append("start"))

    def process(**facts: object) -> object:
        done.append(facts)
        return started

    def context(method: str) -> object:
        done.append(method)
        return SimpleNamespace(Process=process)

    monkeypatch.setattr("gatewayfilter.processes.inspection.client.multiprocessing.get_context", context)
    settings = Settings()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert cast("object", client._start(settings, theirs)) is started
    facts = {"target": client._inspector, "args": (settings, theirs), "name": "inspector", "daemon": True}
    assert done == ["spawn", facts, "start"]
