"""Decides batches of lines on all cores: worker processes over one mapped snapshot, answers in the order of the lines.

Memory is bounded: at most `AHEAD` batches a worker are on their way, and the reader waits when they are. Reading has a thread
of its own, so that the answers to what was read go out while the next line is still awaited. A worker that dies ends the
run with one sentence; what was written by then are whole lines, without gaps.

Each worker has a pipe of its own. In `ProcessPoolExecutor` they share one for their answers, and one that is killed in the middle
of an answer leaves it locked, with the rest of the answer awaited for ever.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from queue import Queue
from typing import TYPE_CHECKING

from gatewayfilter.cli.filter.jsonl_requests import RequestLines
from gatewayfilter.errors import GatewayFilterError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerContext

    from gatewayfilter.cli.filter.jsonl_requests import Answers, Batch
    from gatewayfilter.engine.engine_image import EngineImage

AHEAD = 3
"""Batches for each worker that may be on their way: one at work, one that waits for it, one answer that waits to be written."""

_ENDED = "a worker process of match ended unexpectedly (out of memory, or killed); what was written until then is complete"


def decide_on_all_cores(image: EngineImage, batches: Iterator[Batch], jobs: int) -> Iterator[Answers]:
    """Yields the answers to each batch, in order.

    Args:
        image: what the workers decide by.
        batches: read in a thread of its own, not further ahead than needed.
        jobs: how many workers.

    Raises:
        GatewayFilterError: a worker ended.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "gatewayfilter.engine.engine_image"])
    free: Queue[_Worker] = Queue()
    workers = [_Worker(context, image, free) for _ in range(jobs)]
    waiting: Queue[Future[Answers] | BaseException | None] = Queue(AHEAD * jobs)
    threading.Thread(target=_feed, args=(batches, free, waiting), daemon=True).start()
    try:
        while (item := waiting.get()) is not None:
            yield _answers(item)
    finally:
        for worker in workers:
            worker.end()


def _answers(item: Future[Answers] | BaseException) -> Answers:
    if isinstance(item, BaseException):
        raise item
    return item.result()


def _feed(batches: Iterator[Batch], free: Queue[_Worker], waiting: Queue[Future[Answers] | BaseException | None]) -> None:
    """Reads batches and puts them on their way until there are none."""
    try:
        for batch in batches:
            waiting.put(free.get().ask(batch))
    except BaseException as error:  # noqa: BLE001  # any error must reach the writing thread
        waiting.put(error)
    else:
        waiting.put(None)


class _Worker:
    """A worker process, and the answers that are awaited of it.

    Args:
        context: starts it.
        image: what it decides by.
        free: where it stands once for each batch that it may still be given.
    """

    def __init__(self, context: ForkServerContext, image: EngineImage, free: Queue[_Worker]) -> None:
        self._free = free
        self._awaited: deque[Future[Answers]] = deque()
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(image, theirs), daemon=True)
        self._process.start()
        theirs.close()
        threading.Thread(target=self._receive, daemon=True).start()
        for _ in range(AHEAD):
            free.put(self)

    def ask(self, batch: Batch) -> Future[Answers]:
        """Puts a batch on its way. Returns what will have its answers, or the error that it ended."""
        future: Future[Answers] = Future()
        self._awaited.append(future)
        with suppress(OSError):  # it ended: the receiver reports it
            self._ours.send(batch)
            return future
        self._fail(GatewayFilterError(_ENDED))
        return future

    def end(self) -> None:
        """Ends the process; what it still works on is wanted no more."""
        self._process.kill()
        self._process.join()

    def _receive(self) -> None:
        try:
            while True:
                answers: Answers | Exception = self._ours.recv()
                if isinstance(answers, Exception):
                    self._awaited.popleft().set_exception(answers)
                else:
                    self._awaited.popleft().set_result(answers)
                self._free.put(self)
        except (EOFError, OSError):
            self._fail(GatewayFilterError(_ENDED))
            self._free.put(self)  # wakes the thread that waits for a worker

    def _fail(self, error: GatewayFilterError) -> None:
        while self._awaited:
            with suppress(IndexError):  # the other thread took it
                self._awaited.popleft().set_exception(error)


def _work(image: EngineImage, theirs: Connection) -> None:
    """Answers batches until the parent ends. ^C is handled by the parent, which ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines = RequestLines(image.open())
    with suppress(EOFError, OSError):
        while True:
            batch: Batch = theirs.recv()
            try:
                answers: Answers | Exception = lines.decide(batch)
            except Exception as error:  # noqa: BLE001  # reported where the answer is waited for
                answers = error
            theirs.send(answers)
