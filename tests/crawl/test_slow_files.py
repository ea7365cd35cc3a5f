"""PDF files that are made to be slow: the judge goes on with others meanwhile, and only a few places are held."""

import asyncio
from concurrent.futures import Future

import pytest

from gatewayfilter.crawl import CrawlContext, CrawlWorker, page_judge
from gatewayfilter.documents.pdf_text import can_read_pdf
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import FakeFrontier, FakeSink
from tests.crawl.crawl_origin import Origin, loopback_settings, reply

pytestmark = pytest.mark.skipif(not can_read_pdf(), reason="needs the extra pdf")
FILES = 7


async def until(condition: object) -> None:
    async with asyncio.timeout(20):
        while not condition():  # type: ignore[operator]  # noqa: ASYNC110  what ends the wait happens in another thread
            await asyncio.sleep(0.005)


async def test_the_judge_goes_on_while_files_are_read(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    slow: list[Future[tuple[str, str]]] = []

    def read_aside(_: bytes) -> Future[tuple[str, str]]:
        slow.append(Future())
        return slow[-1]

    monkeypatch.setattr(page_judge, "read_pdf_aside", read_aside)
    files = [f"/{number}.pdf" for number in range(FILES)]
    for path in files:
        origin.answers[path] = reply(b"%PDF-1.4 " + path.encode(), content_type="application/pdf")
    origin.answers["/page"] = reply(b"<p>a page")
    frontier, sink = FakeFrontier(*map(origin.url, (*files, "/page"))), FakeSink()
    settings = loopback_settings(concurrency=20, per_host_concurrency=20, robots="never", timeout_s=20.0)
    worker = CrawlWorker(CrawlContext(frontier, sink, settings, Counters()))
    stop = asyncio.Event()
    running = asyncio.create_task(worker.run(stop))
    try:
        await until(lambda: origin.url("/page") in frontier.finished and len(frontier.retried) == FILES - len(slow))
        assert [page.url for page in sink.pages] == [origin.url("/page")]
        assert 0 < len(slow) < FILES  # no more wait for the reader; the others go back to the queue …
        assert {why for _, _, why in frontier.retried} == {"other files are read first"}
        for future in slow:
            future.set_result(("", ""))
        await until(lambda: len(sink.pages) == 1 + len(slow))
    finally:
        stop.set()
        await running
    assert not frontier.buried  # … and lose nothing
