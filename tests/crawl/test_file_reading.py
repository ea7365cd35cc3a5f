"""PDF files are read beside the judge, a few at a time; what is no file is not looked at."""

import asyncio
from concurrent.futures import Future

import pytest

from gatewayfilter.crawl import page_judge
from gatewayfilter.crawl.net.fetch_errors import HostBusyError
from gatewayfilter.crawl.page_judge import FileReading
from gatewayfilter.interfaces import Page


def page(content_type: str) -> Page:
    return Page("http://a.example/", "http://a.example/", 200, {"content-type": content_type}, b"%PDF-1.7")


async def test_four_files_may_wait_and_each_that_ends_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    reading: list[Future[str]] = []

    def read(_body: bytes) -> Future[str]:
        reading.append(Future())
        return reading[-1]

    monkeypatch.setattr(page_judge, "read_pdf_aside", read)
    monkeypatch.setattr(page_judge, "is_pdf", lambda kind, _body: kind == "application/pdf")
    files = FileReading()
    await files.read(page("text/html"))
    assert reading == []
    waiting = [asyncio.create_task(files.read(page("application/pdf"))) for _ in range(4)]
    await asyncio.sleep(0)
    assert len(reading) == 4
    with pytest.raises(HostBusyError, match="other files are read first") as raised:
        await files.read(page("application/pdf"))
    assert raised.value.retry_after_s == 10.0
    reading[0].set_result("")
    reading[1].set_exception(ValueError("broken"))
    ended = await asyncio.gather(*waiting[:2], return_exceptions=True)
    assert [type(one) for one in ended] == [type(None), ValueError]
    more = [asyncio.create_task(files.read(page("application/pdf"))) for _ in range(2)]
    await asyncio.sleep(0)
    assert len(reading) == 6
    with pytest.raises(HostBusyError):
        await files.read(page("application/pdf"))
    for one in reading[2:]:
        one.set_result("")
    await asyncio.gather(*waiting[2:], *more)
