"""Decides batches of lines on all cores: worker processes over one mapped snapshot, answers in the order of the questions.

Memory is bounded: at most `AHEAD` batches a worker are on their way, and the reader waits when they are. Reading has a thread
of its own, so that the answers to what was read go out while the next line is still awaited. A worker that dies ends the
run with one sentence; what was written by then are whole lines, without gaps.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from queue import Queue
from typing import TYPE_CHECKING

from gatewayfilter.cli.request_lines import RequestLines
from gatewayfilter.errors import GatewayFilterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.cli.request_lines import Answers, Batch
    from gatewayfilter.engine.engine_image import EngineImage

AHEAD = 3
"""Batches for each worker that may be on their way: one at work, one that waits for it, one answer that waits to be written."""

_ENDED = "a worker process of match ended unexpectedly (out of memory, or killed); what was written until then is complete"
_lines: RequestLines | None = None


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
    pool = ProcessPoolExecutor(jobs, context, _start, (image,))
    waiting: Queue[Future[Answers] | BaseException | None] = Queue(AHEAD * jobs)
    reader = threading.Thread(target=_feed, args=(pool, batches, waiting), daemon=True)
    reader.start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item.result()
    except BrokenProcessPool as error:
        raise GatewayFilterError(_ENDED) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _feed(pool: ProcessPoolExecutor, batches: Iterator[Batch], waiting: Queue[Future[Answers] | BaseException | None]) -> None:
    """Reads batches and puts them on their way until there are none, or the pool is gone."""
    try:
        for batch in batches:
            waiting.put(pool.submit(_answer, batch))
    except BaseException as error:  # noqa: BLE001  # whatever it is, the thread that writes has to know
        waiting.put(error)
    else:
        waiting.put(None)


def _start(image: EngineImage) -> None:
    """Makes a worker ready. ^C is for the parent, which ends us; without a parent we end ourselves."""
    global _lines  # noqa: PLW0603  # the executor gives its tasks no other way to what a worker keeps
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _lines = RequestLines(image.open())


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _answer(batch: Batch) -> Answers:
    assert _lines is not None
    return _lines.decide(batch)
