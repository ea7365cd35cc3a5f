"""Worker processes that answer batches of lines on all cores, in the order of the lines.

Memory is bounded: at most `AHEAD` batches a worker, and `MOST_BYTES` of input in all, are on their way, and the reader waits
when they are. Reading has a thread of its own, so that the answers to what was read go out while the next line is still awaited.
A worker that dies ends the run with one sentence; what was written by then are whole lines, without gaps.

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
from typing import TYPE_CHECKING, Protocol

from gatewayfilter.errors import GatewayFilterError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerContext

    from gatewayfilter.cli.bulk.json_lines import Answers, Batch, BulkLines

AHEAD = 3
"""Batches for each worker that may be on their way: one at work, one that waits for it, one answer that waits to be written."""

MOST_BYTES = 1 << 26
"""Bytes of input on their way: a few long lines, however many workers there are."""


class OpenLines(Protocol):
    """What each worker process opens to answer lines. It is pickled.

    Attributes:
        preload: modules that the workers share the import of.
    """

    @property
    def preload(self) -> tuple[str, ...]: ...  # noqa: D102  as above

    def open(self) -> BulkLines:
        """Returns what answers lines, in the worker."""
        ...


def answer_on_all_cores(opener: OpenLines, batches: Iterator[Batch], jobs: int, command: str) -> Iterator[Answers]:
    """Yields the answers to each batch, in order.

    Args:
        opener: what the workers answer by.
        batches: read in a thread of its own, not further ahead than needed.
        jobs: how many workers.
        command: the name of the command, for messages.

    Raises:
        GatewayFilterError: a worker ended.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *opener.preload])
    free: Queue[_Worker] = Queue()
    ended = (
        f"a worker process of {command} ended unexpectedly (out of memory, or killed); what was written until then is complete"
    )
    workers = [_Worker(context, opener, free, ended) for _ in range(jobs)]
    waiting: Queue[Future[Answers] | BaseException | None] = Queue(AHEAD * jobs)
    on_their_way = _Allowance(MOST_BYTES)
    threading.Thread(target=_feed, args=(batches, free, waiting, on_their_way), daemon=True).start()
    try:
        while (item := waiting.get()) is not None:
            answers = _answers(item)
            yield answers
            on_their_way.give_back(answers.size)
    finally:
        for worker in workers:
            worker.end()


def _answers(item: Future[Answers] | BaseException) -> Answers:
    if isinstance(item, BaseException):
        raise item
    return item.result()


class _Allowance:
    """A bound on bytes that are in use at once; one piece is always admitted."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._changed = threading.Condition()

    def take(self, size: int) -> None:
        """Waits until this many bytes are free, or nothing is in use."""
        with self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + size <= self._most)
            self._used += size

    def give_back(self, size: int) -> None:
        """Frees them."""
        with self._changed:
            self._used -= size
            self._changed.notify()


def _feed(
    batches: Iterator[Batch],
    free: Queue[_Worker],
    waiting: Queue[Future[Answers] | BaseException | None],
    on_their_way: _Allowance,
) -> None:
    """Reads batches and puts them on their way until there are none."""
    try:
        for batch in batches:
            on_their_way.take(batch.size)
            waiting.put(free.get().ask(batch))
    except BaseException as error:  # noqa: BLE001  # any error must reach the writing thread
        waiting.put(error)
    else:
        waiting.put(None)


class _Worker:
    """A worker process, and the answers that are awaited of it.

    Args:
        context: starts it.
        opener: what it answers by.
        free: where it stands once for each batch that it may still be given.
        ended: the message of an unexpected end.
    """

    def __init__(self, context: ForkServerContext, opener: OpenLines, free: Queue[_Worker], ended: str) -> None:
        self._free = free
        self._ended = ended
        self._awaited: deque[Future[Answers]] = deque()
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(opener, theirs), daemon=True)
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
        self._fail(GatewayFilterError(self._ended))
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
            self._fail(GatewayFilterError(self._ended))
            self._free.put(self)  # wakes the thread that waits for a worker

    def _fail(self, error: GatewayFilterError) -> None:
        while self._awaited:
            with suppress(IndexError):  # the other thread took it
                self._awaited.popleft().set_exception(error)


def _work(opener: OpenLines, theirs: Connection) -> None:
    """Answers batches until the parent ends. ^C is handled by the parent, which ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines = opener.open()
    with suppress(EOFError, OSError):
        while True:
            batch: Batch = theirs.recv()
            try:
                answers: Answers | Exception = lines.decide(batch)
            except Exception as error:  # noqa: BLE001  # reported where the answer is waited for
                answers = error
            theirs.send(answers)
