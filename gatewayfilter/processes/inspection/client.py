"""The client of the inspector process, in the proxy worker: pages are judged outside of the event loop."""

import asyncio
import itertools
import logging
import multiprocessing
import socket
from contextlib import suppress
from multiprocessing.context import SpawnProcess
from typing import Final

from gatewayfilter.errors import InspectError
from gatewayfilter.interfaces import PassedResponse
from gatewayfilter.model import Classification
from gatewayfilter.processes.inspection.frames import LENGTHS, pack_request, unpack_answer
from gatewayfilter.settings import Settings

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 32
"""Pages on their way to the process; the next one is not inspected."""
HANGS_AFTER_S: Final = 10.0
"""A page that takes longer has met a fault: the process is ended, and another one started."""
FIRST_ANSWER_S: Final = 60.0
"""The same for the first page of a process, which waits until its models were read: a long time on a busy machine."""
_FIRST_DELAY_S: Final = 0.2
_LONGEST_DELAY_S: Final = 30.0


class InspectionPool:
    """Implements `Inspect` with a process that is started again when it ends. To be used in one event loop.

    Args:
        settings: for the process.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Classification | None]] = {}
        self._sent: dict[int, asyncio.TimerHandle] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._ready = asyncio.Event()
        self._early = 0
        self._has_answered = False
        self._process: SpawnProcess | None = None
        self._keeper: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the process, and keeps one running. To be called in the event loop."""
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    def stop(self) -> None:
        """Ends the process; what it still has to learn it learns. May be called from another thread, after the loop's work."""
        if self._keeper is not None:
            with suppress(RuntimeError):
                self._keeper.get_loop().call_soon_threadsafe(self._keeper.cancel)
        if (process := self._process) is not None:
            process.join(1)
            process.terminate()

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None and self._writer is not None else None

    async def inspect(self, response: PassedResponse) -> Classification | None:
        """Judges a page; waits for the process where it is just starting. The caller sets the time limit.

        Raises:
            InspectError: the process has too much to do, or ended over this page.
        """
        if len(self._waiting) + self._early >= MOST_WAITING:
            raise InspectError("too many pages wait to be inspected")
        if self._writer is None:
            self._early += 1
            try:
                await self._ready.wait()
            finally:
                self._early -= 1
        writer = self._writer
        if writer is None:
            raise InspectError("the inspector process ended")
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        answer: asyncio.Future[Classification | None] = loop.create_future()
        self._waiting[number] = answer
        self._sent[number] = loop.call_later(HANGS_AFTER_S if self._has_answered else FIRST_ANSWER_S, self._give_up, number)
        writer.write(pack_request(number, response))
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    def _give_up(self, number: int) -> None:
        if self._sent.pop(number, None) is not None and self._process is not None:
            _log.error("inspecting a page takes too long; the inspector process is restarted")
            self._process.kill()

    async def _keep(self) -> None:
        delay_s = _FIRST_DELAY_S
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._run_once()
            except OSError as error:
                _log.warning("the inspector process cannot be started: %s", error)
            finally:
                self._forget()
            lived_s = loop.time() - started
            delay_s = _FIRST_DELAY_S if lived_s > _LONGEST_DELAY_S else min(delay_s * 2, _LONGEST_DELAY_S)
            _log.error("the inspector process ended; it starts again in %.1f s", delay_s)
            await asyncio.sleep(delay_s)

    async def _run_once(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.to_thread(_start, self._settings, theirs)
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._ready.set()
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._read(reader)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            number, length, _ = LENGTHS.unpack(await reader.readexactly(LENGTHS.size))
            head = await reader.readexactly(length)
            self._has_answered = True
            if (timer := self._sent.pop(number, None)) is not None:
                timer.cancel()
            answer = self._waiting.get(number)
            if answer is not None and not answer.done():
                answer.set_result(unpack_answer(head))

    def _forget(self) -> None:
        writer, self._writer = self._writer, None
        self._ready.clear()
        self._has_answered = False
        if writer is not None:
            writer.close()
        for timer in self._sent.values():
            timer.cancel()
        self._sent.clear()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(InspectError("the inspector process ended"))


def _start(settings: Settings, channel: socket.socket) -> SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(
        target=_inspector, args=(settings, channel), name="inspector", daemon=True
    )
    process.start()
    return process


def _inspector(settings: Settings, channel: socket.socket) -> None:
    from gatewayfilter.processes.inspection.inspector import run_inspector  # noqa: PLC0415  in the new process alone

    run_inspector(settings, channel)
