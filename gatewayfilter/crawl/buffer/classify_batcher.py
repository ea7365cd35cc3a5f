"""The batcher of pages to classify: one transaction for several costs the database little more than for one."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final

from gatewayfilter.interfaces import BatchSink, Page, PageSink
from gatewayfilter.model import Classification

MOST_TOGETHER: Final = 16
"""Pages in a batch: beyond it a page costs hardly less, and the first of them waits for the last."""
MOST_BYTES_TOGETHER: Final = 3_000_000
"""In a batch, of which one page may be more."""


def judge_together(sink: PageSink, pages: Sequence[Page]) -> Sequence[Classification | None]:
    """Judges pages in their order, by a sink that may or may not take several at once."""
    if len(pages) > 1 and isinstance(sink, BatchSink):
        return sink.batch(pages)
    return [sink.page(page) for page in pages]


@dataclass(frozen=True, slots=True)
class _Case:
    """A page that waits, what is to be made of its verdict, and who waits for that."""

    page: Page
    conclude: Callable[[Classification | None], Any]
    done: asyncio.Future[Any]


class ClassifyBatcher:
    """Hands pages to the judge, in one thread beside the event loop, so that the sink is never called by two at a time.

    What waits when the thread becomes free is judged together; a page that comes alone waits for no other. Urgent ones go first.
    Between two batches it is the turn of whatever else waits for the thread.

    Args:
        sink: judges.
        thread: an executor with one thread.
    """

    def __init__(self, sink: PageSink, thread: Executor) -> None:
        self._sink = sink
        self._thread = thread
        self._urgent: deque[_Case] = deque()
        self._others: deque[_Case] = deque()
        self._lock = threading.Lock()
        self._at_work = False

    async def judge[T](self, page: Page, conclude: Callable[[Classification | None], T], *, urgent: bool) -> T:
        """Judges a page.

        Args:
            page: what is to be judged.
            conclude: what is made of its verdict, in the judge's thread.
            urgent: goes before others.

        Returns:
            What `conclude` returned.

        Raises:
            Exception: what the sink or `conclude` raised for this page.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        with self._lock:
            (self._urgent if urgent else self._others).append(_Case(page, conclude, done))
            begin, self._at_work = not self._at_work, True
        if begin:
            self._thread.submit(self._work, loop)
        return await done

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Judges one batch, in the judge's thread, and submits the next when more wait."""
        cases = self._next()
        if cases:
            ends = self._judged(cases)
            loop.call_soon_threadsafe(_deliver, cases, ends)
        with self._lock:
            self._at_work = bool(self._urgent or self._others)
            again = self._at_work
        if again:
            with contextlib.suppress(RuntimeError):  # the crawler ends: no page is waited for any more
                self._thread.submit(self._work, loop)

    def _next(self) -> list[_Case]:
        """Takes what is judged together: urgent pages or others, never both."""
        cases: list[_Case] = []
        size = 0
        with self._lock:
            waiting = self._urgent or self._others
            while (
                waiting and len(cases) < MOST_TOGETHER and (not cases or size + _weight(waiting[0].page) <= MOST_BYTES_TOGETHER)
            ):
                case = waiting.popleft()
                if not case.done.cancelled():
                    cases.append(case)
                    size += _weight(case.page)
        return cases

    def _judged(self, cases: Sequence[_Case]) -> list[Any]:
        """Returns how each case ends: a result or an exception. A batch that fails is judged one by one, for one page did it."""
        try:
            verdicts = judge_together(self._sink, [case.page for case in cases])
        except BaseException as error:  # noqa: BLE001  the boundary of one page: none may end the thread's work
            return [error] if len(cases) == 1 else [self._judged([case])[0] for case in cases]
        return [_concluded(case, verdict) for case, verdict in zip(cases, verdicts, strict=True)]


def _weight(page: Page) -> int:
    """Returns the bytes of a page; a picture fills a batch, for the operator's own judge of pictures may take its time."""
    return MOST_BYTES_TOGETHER if page.content_type.startswith("image/") else len(page.body)


def _concluded(case: _Case, verdict: Classification | None) -> Any:
    try:
        return case.conclude(verdict)
    except BaseException as error:  # noqa: BLE001  as above
        return error


def _deliver(cases: Sequence[_Case], ends: Sequence[Any]) -> None:
    for case, end in zip(cases, ends, strict=True):
        if case.done.done():  # cancelled meanwhile
            continue
        if isinstance(end, BaseException):
            # A future does not take what ends generators.
            case.done.set_exception(RuntimeError("judging stopped") if isinstance(end, StopIteration) else end)
        else:
            case.done.set_result(end)
