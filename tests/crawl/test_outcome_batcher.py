"""Completions that come together are written together, and are not lost when the crawler ends."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import cast

import pytest

from gatewayfilter.crawl import outcome_batcher
from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.outcome_batcher import OutcomeBatcher
from gatewayfilter.crawl.outcomes import OutcomeHandler
from gatewayfilter.errors import StoreError


class Outcomes:
    """Completions are names here; each transaction is a list of them."""

    def __init__(self) -> None:
        self.written: list[list[str]] = []
        self.refuses = False
        self.may_end = threading.Event()

    @contextmanager
    def together(self) -> Iterator[None]:
        self.may_end.wait(10)
        self.written.append([])
        yield
        if self.refuses:
            raise StoreError("locked")

    def complete(self, completion: str) -> Sequence[bytes]:
        self.written[-1].append(completion)
        return [completion.encode()]


async def test_finish_waits_for_what_is_gathered_and_only_what_stands_is_seen() -> None:
    outcomes, seen = Outcomes(), set[bytes]()
    closing = threading.Event()
    closing.set()
    with ThreadPoolExecutor(1) as queue:
        context = cast("CrawlContext", SimpleNamespace(seen=seen))
        batcher = OutcomeBatcher(context, cast("OutcomeHandler", outcomes), queue, closing)
        await batcher.finish()  # nothing was gathered
        callers = [asyncio.create_task(batcher.complete(name)) for name in ("a", "b")]  # type: ignore[arg-type]
        await asyncio.sleep(0)
        ending = asyncio.create_task(batcher.finish())
        await asyncio.sleep(0.01)
        assert not ending.done()
        outcomes.may_end.set()
        await asyncio.gather(ending, *callers)
        assert outcomes.written == [["a", "b"]]
        assert seen == {b"a", b"b"}
        outcomes.refuses = True
        await batcher.complete("c")  # type: ignore[arg-type]
        assert seen == {b"a", b"b"}


@pytest.mark.parametrize("ends", [False, True])
async def test_completions_are_gathered_unless_the_crawler_ends(monkeypatch: pytest.MonkeyPatch, *, ends: bool) -> None:
    outcomes, closing, pauses = Outcomes(), threading.Event(), list[float]()
    outcomes.may_end.set()
    if ends:
        closing.set()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            callers.append(asyncio.ensure_future(batcher.complete("b")))  # type: ignore[arg-type]
        await asyncio.tasks.sleep(0)

    callers: list[asyncio.Future[None]] = []
    monkeypatch.setattr("gatewayfilter.crawl.outcome_batcher.asyncio.sleep", pause)
    with ThreadPoolExecutor(1) as queue:
        context = cast("CrawlContext", SimpleNamespace(seen=set()))
        batcher = OutcomeBatcher(context, cast("OutcomeHandler", outcomes), queue, closing)
        async with asyncio.timeout(10):
            await batcher.complete("a")  # type: ignore[arg-type]
            await asyncio.gather(*callers)
    assert pauses == ([] if ends else [outcome_batcher.GATHER_S])
    assert outcomes.written == ([["a"]] if ends else [["a", "b"]])
