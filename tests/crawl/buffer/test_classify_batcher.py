import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from gatewayfilter.crawl.buffer.classify_batcher import MOST_BYTES_TOGETHER, MOST_TOGETHER, ClassifyBatcher, judge_together
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import BatchSink, Page, PageSink
from gatewayfilter.learn import LearningPipeline
from gatewayfilter.model import Classification
from tests.crawl.crawl_fakes import FakeSink


def page(name: str, size: int = 10) -> Page:
    kind = "image/png" if name.startswith("image") else "text/html"
    return Page(f"http://a.example/{name}", f"http://a.example/{name}", 200, {"content-type": kind}, bytes(size))


class Batches:
    """A sink that notes what it gets at once, and fails at pages whose names say so. Waits for its gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.got: list[list[str]] = []

    def page(self, page: Page) -> Classification | None:
        return self.batch((page,))[0]

    def batch(self, pages: Sequence[Page]) -> list[Classification | None]:
        names = [page.url.rpartition("/")[2] for page in pages]
        self.got.append(names)
        self.begun.set()
        assert self.gate.wait(10)
        for name in names:
            if name.startswith("store"):
                raise StoreError(name)
            if name.startswith("bug"):
                raise ZeroDivisionError(name)
            if name.startswith("stop"):
                raise StopIteration
        return [Classification(name, 1.0, 1.0) for name in names]


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as thread:
        yield thread


@pytest.fixture
def sink() -> Batches:
    return Batches()


def category(verdict: Classification | None) -> str:
    assert verdict is not None
    return verdict.category


async def judged(batcher: ClassifyBatcher, name: str, *, size: int = 10, urgent: bool = False) -> str:
    return await batcher.judge(page(name, size), category, urgent=urgent)


async def ends(sink: Batches, batcher: ClassifyBatcher, *names: str, size: int = 10) -> list[str | BaseException]:
    """Lets the first page hold the judge until all others wait behind it. Returns what came of each."""
    tasks = [asyncio.create_task(judged(batcher, names[0], size=size))]
    assert await asyncio.to_thread(sink.begun.wait, 10)
    tasks += [asyncio.create_task(judged(batcher, name, size=size, urgent=name.startswith("urgent"))) for name in names[1:]]
    await asyncio.sleep(0)  # each comes to the desk
    sink.gate.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_a_page_that_comes_alone_is_judged_alone(sink: Batches, thread: ThreadPoolExecutor) -> None:
    sink.gate.set()
    assert asyncio.run(judged(ClassifyBatcher(sink, thread), "a")) == "a"
    assert sink.got == [["a"]]


def test_what_waits_is_judged_together(sink: Batches, thread: ThreadPoolExecutor) -> None:
    assert asyncio.run(ends(sink, ClassifyBatcher(sink, thread), "first", "a", "b", "c")) == ["first", "a", "b", "c"]
    assert sink.got == [["first"], ["a", "b", "c"]]


def test_a_batch_is_bounded_in_pages_and_bytes(sink: Batches, thread: ThreadPoolExecutor) -> None:
    names = [str(number) for number in range(2 * MOST_TOGETHER + 1)]
    assert asyncio.run(ends(sink, ClassifyBatcher(sink, thread), "first", *names)) == ["first", *names]
    assert list(map(len, sink.got)) == [1, MOST_TOGETHER, MOST_TOGETHER, 1]
    sink.got.clear()
    sink.gate.clear()
    sink.begun.clear()
    asyncio.run(ends(sink, ClassifyBatcher(sink, thread), "first", "a", "b", "c", size=MOST_BYTES_TOGETHER // 2))
    assert sink.got == [["first"], ["a", "b"], ["c"]]
    sink.got.clear()
    sink.gate.clear()
    sink.begun.clear()
    asyncio.run(ends(sink, ClassifyBatcher(sink, thread), "first", "a", size=2 * MOST_BYTES_TOGETHER))
    assert sink.got == [["first"], ["a"]]


def test_pictures_are_judged_one_by_one(sink: Batches, thread: ThreadPoolExecutor) -> None:
    asyncio.run(ends(sink, ClassifyBatcher(sink, thread), "first", "a", "b", "image-1", "image-2", "c", "d"))
    assert sink.got == [["first"], ["a", "b"], ["image-1"], ["image-2"], ["c", "d"]]


def test_urgent_pages_go_first_and_wait_for_no_others(sink: Batches, thread: ThreadPoolExecutor) -> None:
    names = ("first", "a", "b", "urgent-1", "urgent-2")
    assert asyncio.run(ends(sink, ClassifyBatcher(sink, thread), *names)) == list(names)
    assert sink.got == [["first"], ["urgent-1", "urgent-2"], ["a", "b"]]


@pytest.mark.parametrize(("bad", "kind"), [("store", StoreError), ("bug", ZeroDivisionError), ("stop", RuntimeError)])
def test_what_goes_wrong_is_one_page_s_alone(sink: Batches, thread: ThreadPoolExecutor, bad: str, kind: type[Exception]) -> None:
    first, before, failed, after = asyncio.run(ends(sink, ClassifyBatcher(sink, thread), "first", "a", bad, "b"))
    assert (first, before, after) == ("first", "a", "b")
    assert isinstance(failed, kind)
    assert sink.got == [["first"], ["a", bad, "b"], ["a"], [bad], ["b"]]


def test_what_is_made_of_a_verdict_may_fail_for_one_page(sink: Batches, thread: ThreadPoolExecutor) -> None:
    def conclude(verdict: Classification | None) -> str:
        if category(verdict) == "a":
            raise ValueError("a")
        return category(verdict)

    async def run() -> list[str | BaseException]:
        batcher = ClassifyBatcher(sink, thread)
        sink.gate.set()
        judging = (batcher.judge(page(name), conclude, urgent=False) for name in "ab")
        return await asyncio.gather(*judging, return_exceptions=True)

    failed, good = asyncio.run(run())
    assert isinstance(failed, ValueError)
    assert good == "b"


def test_a_page_that_nobody_waits_for_any_more_is_not_judged(sink: Batches, thread: ThreadPoolExecutor) -> None:
    async def run() -> list[str | BaseException]:
        batcher = ClassifyBatcher(sink, thread)
        first = asyncio.create_task(judged(batcher, "first"))
        assert await asyncio.to_thread(sink.begun.wait, 10)
        leaving, staying = asyncio.create_task(judged(batcher, "leaves")), asyncio.create_task(judged(batcher, "stays"))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        sink.gate.set()
        return [*await asyncio.gather(first, leaving, staying, return_exceptions=True)]

    first, left, stayed = asyncio.run(run())
    assert (first, stayed) == ("first", "stays")
    assert isinstance(left, asyncio.CancelledError)
    assert sink.got == [["first"], ["stays"]]


def test_between_two_batches_others_have_the_thread(sink: Batches, thread: ThreadPoolExecutor) -> None:
    between: list[int] = []

    async def run() -> None:
        batcher = ClassifyBatcher(sink, thread)
        first = asyncio.create_task(judged(batcher, "first"))
        assert await asyncio.to_thread(sink.begun.wait, 10)
        other = asyncio.get_running_loop().run_in_executor(thread, lambda: between.append(len(sink.got)))
        second = asyncio.create_task(judged(batcher, "second"))
        await asyncio.sleep(0)
        sink.gate.set()
        await asyncio.gather(first, second, other)

    asyncio.run(run())
    assert between == [1]
    assert sink.got == [["first"], ["second"]]


def test_a_sink_for_one_page_takes_several_one_by_one() -> None:
    sink = FakeSink()
    pages = [page("a"), page("b", 0)]
    assert [verdict is not None for verdict in judge_together(sink, pages)] == [True, False]
    assert sink.pages == pages


def test_which_sinks_take_several(sink: Batches) -> None:
    assert isinstance(sink, BatchSink)
    assert issubclass(LearningPipeline, BatchSink)
    one: PageSink = FakeSink()
    assert not isinstance(one, BatchSink)


async def test_a_page_that_is_given_up_while_it_is_judged_holds_up_no_other(sink: Batches, thread: ThreadPoolExecutor) -> None:
    batcher = ClassifyBatcher(sink, thread)
    first = asyncio.create_task(judged(batcher, "first"))
    assert await asyncio.to_thread(sink.begun.wait, 10)
    sink.begun.clear()
    tasks = [asyncio.create_task(judged(batcher, name)) for name in ("given-up", "wanted")]
    await asyncio.sleep(0)
    loop, deliver = asyncio.get_running_loop(), sink.batch

    def batch(pages: Sequence[Page]) -> list[Classification | None]:
        verdicts = deliver(pages)
        asyncio.run_coroutine_threadsafe(cancel(), loop).result(10)
        return verdicts

    async def cancel() -> None:
        tasks[0].cancel()

    sink.batch = batch  # type: ignore[method-assign]
    sink.gate.set()
    async with asyncio.timeout(10):
        assert await first == "first"
        assert await tasks[1] == "wanted"
    assert tasks[0].cancelled()
    assert sink.got == [["first"], ["given-up", "wanted"]]


def test_one_page_is_judged_as_one() -> None:
    asked = list[str]()

    class Sink:
        def page(self, page: Page) -> Classification | None:
            asked.append("page")
            return None

        def batch(self, pages: Sequence[Page]) -> list[Classification | None]:
            asked.append(f"{len(pages)} pages")
            return [None] * len(pages)

    assert list(judge_together(Sink(), [page("a")])) == [None]
    assert list(judge_together(Sink(), [page("a"), page("b")])) == [None, None]
    assert asked == ["page", "2 pages"]
