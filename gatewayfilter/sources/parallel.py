"""Bounded parallel work in threads that never keep the process: Ctrl-C ends a command at once, also amid downloads."""

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

WIDTH: Final = 4
"""Lists that a command fetches at once: one that is unpacked and counted takes up to some 50 MB."""

_LOOK_S: Final = 0.5
"""A signal that another thread got is seen by the main thread after this long at most, in seconds."""


def in_parallel[Item, Result](
    items: Sequence[Item],
    work: Callable[[Item], Result],
    width: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Does the work for each item in threads, and returns the results in the order of the items.

    The threads are daemons: when the caller is interrupted, work that has begun is given up with the process. It has to leave
    nothing behind that a later try cannot make good.

    Args:
        items: what to work on.
        work: is called for each; the first exception that it raises is raised here, once all is done.
        width: how many at once.
        progress: called by the caller's thread with the number of items done, and of all.
    """
    waiting: SimpleQueue[tuple[int, Item]] = SimpleQueue()
    done: SimpleQueue[tuple[int, list[Result], Exception | None]] = SimpleQueue()
    for number, item in enumerate(items):
        waiting.put((number, item))
    for _ in range(min(width, len(items))):
        Thread(target=_work_off, args=(waiting, done, work), daemon=True, name="source").start()
    if progress:
        progress(0, len(items))
    results: dict[int, list[Result]] = {}
    failure: Exception | None = None
    for count in range(1, len(items) + 1):
        number, results[number], error = _next(done)
        failure = failure or error
        if progress:
            progress(count, len(items))
    if failure is not None:
        raise failure
    return [results[number][0] for number in range(len(items))]


def _next[Result](done: SimpleQueue[Result]) -> Result:
    while True:
        try:
            return done.get(timeout=_LOOK_S)
        except Empty:
            continue


def _work_off[Item, Result](
    waiting: SimpleQueue[tuple[int, Item]],
    done: SimpleQueue[tuple[int, list[Result], Exception | None]],
    work: Callable[[Item], Result],
) -> None:
    while True:
        try:
            number, item = waiting.get_nowait()
        except Empty:
            return
        try:
            done.put((number, [work(item)], None))
        except Exception as error:  # noqa: BLE001  the outermost loop of the thread: it is raised in the caller's
            done.put((number, [], error))
