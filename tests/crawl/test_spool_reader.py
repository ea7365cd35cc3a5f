"""Pages that passed the proxy: judged in their order, left where the database refuses, dropped where they cannot be judged."""

import asyncio
import os
from pathlib import Path

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import spool_reader
from gatewayfilter.crawl.spool_reader import SpoolReader
from gatewayfilter.errors import ClassifyError, StoreError
from gatewayfilter.interfaces import CrawlRequest, Page, Priority
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import FakeFrontier, FakeSink


class Spool:
    """A spool of files that each hold the path and the body of a page."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.sink, self.frontier, self.counters = folder, FakeSink(), FakeFrontier(), Counters()
        monkeypatch.setattr(spool_reader, "waiting_pages", lambda found: sorted(found.iterdir()))
        monkeypatch.setattr(spool_reader, "read_page", self._read)
        self.reader = SpoolReader(folder, self.sink, self.frontier, CrawlSettings(), self.counters, images=lambda: False)

    def _read(self, path: Path) -> Page | None:
        where, _, body = path.read_text().partition(" ")
        url = f"http://a.test/{where}"
        return Page(url, url, 200, {"content-type": "text/html"}, body.encode()) if where != "gone" else None

    def put(self, *pages: str) -> None:
        for page in pages:
            (self.folder / f"{len(list(self.folder.iterdir()))}").write_text(page)

    def left(self) -> list[str]:
        return [path.read_text() for path in sorted(self.folder.iterdir())]


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    return Spool(tmp_path, monkeypatch)


def test_pages_are_judged_and_their_links_queued(spool: Spool) -> None:
    spool.put("1 bread", "2 casino <a href=/next>", "gone", "logout casino", "3 ")
    assert spool.reader.work_off()
    assert [page.url for page in spool.sink.pages] == ["http://a.test/1", "http://a.test/2", "http://a.test/3"]
    assert [(offer.url, offer.priority) for offer in spool.frontier.added] == [
        ("http://a.test/next", Priority.LINK),
        ("http://a.test/3", CrawlRequest("http://a.test/3").priority),
    ]
    assert spool.counters.as_dict() == {"captures_classified": 3}
    assert spool.left() == []


def test_pages_wait_while_the_database_refuses_and_an_hour_at_most(spool: Spool) -> None:
    spool.put("1 bread", "2 bread")
    spool.sink.error = StoreError("locked")
    assert not spool.reader.work_off()
    assert len(spool.left()) == 2
    old = next(iter(sorted(spool.folder.iterdir())))
    os.utime(old, (0, 0))
    assert not spool.reader.work_off()
    assert spool.left() == ["2 bread"]
    for error in (ClassifyError("no"), ZeroDivisionError()):
        spool.put("3 bread")
        spool.sink.error = error
        assert spool.reader.work_off()
        assert spool.left() == []


def test_what_is_left_at_the_end_of_the_process_waits(spool: Spool) -> None:
    spool.put("1 bread")
    stop = asyncio.Event()
    stop.set()
    assert spool.reader.work_off(stop) is False
    assert spool.left() == ["1 bread"]
    assert spool.reader.work_off(asyncio.Event()) is True
