"""Pages that passed the proxy: judged in their order, left where the database refuses, dropped where they cannot be judged."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace

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


async def test_a_spool_is_worked_off_when_it_changes(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that left pages is repeated after a longer pause, even where nothing changed."""
    pauses: list[float] = []
    calls: list[bool] = []
    stop = asyncio.Event()
    steps = [("new", True), ("same", True), ("new", False), ("same", False), ("same", True), ("same", True), ("gone", True)]
    changes = iter(range(1, 10))
    done = True

    def next_step() -> None:
        nonlocal done
        if not steps:
            stop.set()
            return
        what, done = steps.pop(0)
        if what == "new":
            os.utime(spool.folder, ns=(0, next(changes)))
        if what == "gone":
            spool.folder.rmdir()

    def work_off(_: asyncio.Event) -> bool:
        calls.append(done)
        return done

    async def wait_for(waiting: Coroutine[None, None, bool], pause_s: float) -> None:
        waiting.close()
        pauses.append(pause_s)
        next_step()
        raise TimeoutError

    monkeypatch.setattr(spool.reader, "work_off", work_off)
    monkeypatch.setattr(spool_reader, "asyncio", SimpleNamespace(wait_for=wait_for, to_thread=asyncio.to_thread))
    next_step()
    await spool.reader.run(stop)
    poll_s, longer_s = spool_reader._POLL_S, spool_reader._STORE_PAUSE_S
    assert calls == [True, False, False, True, True]
    assert pauses == [poll_s, poll_s, longer_s, longer_s, poll_s, poll_s, poll_s]


async def test_the_end_of_the_process_is_not_waited_for(spool: Spool) -> None:
    stop = asyncio.Event()
    spool.put("1 bread")
    running = asyncio.create_task(spool.reader.run(stop))
    async with asyncio.timeout(10):
        while any(spool.folder.iterdir()):  # noqa: ASYNC110  it happens in another thread
            await asyncio.sleep(0.001)
    stop.set()
    async with asyncio.timeout(spool_reader._POLL_S / 2):
        await running
    assert len(spool.sink.pages) == 1


def test_pages_that_cannot_be_removed_are_judged_later(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.put("1 bread", "2 bread")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refuse)
    assert spool.reader.work_off() is False
    assert len(spool.sink.pages) == 1


def test_a_page_that_went_away_meanwhile_is_no_fault(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.put("1 bread", "2 bread")
    read = spool._read

    def read_and_remove(path: Path) -> Page | None:
        page = read(path)
        path.unlink()
        return page

    monkeypatch.setattr(spool_reader, "read_page", read_and_remove)
    assert spool.reader.work_off() is True
    assert len(spool.sink.pages) == 2

    def fails(path: Path) -> None:
        path.unlink()
        raise OSError(5, "Input/output error")

    spool.put("3 bread")
    monkeypatch.setattr(spool_reader, "read_page", fails)
    assert spool.reader.work_off() is True, "nothing is left to come back to"


def test_a_page_an_hour_old_is_not_kept_for_the_database(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.sink.error = StoreError("locked")
    now = 1_700_000_000
    monkeypatch.setattr(spool_reader, "time", SimpleNamespace(time=lambda: float(now)))
    spool.put("1 bread")
    for age_s, left in ((spool_reader._TOO_OLD_S - 1, 1), (spool_reader._TOO_OLD_S, 0)):
        os.utime(spool.folder / "0", (now - age_s, now - age_s))
        assert spool.reader.work_off() is not bool(left)
        assert len(spool.left()) == left


def test_pictures_are_queued_where_they_are_judged(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_reader, "time", SimpleNamespace(time=lambda: 50.0))
    page = Page("http://a.test/1", "http://a.test/1", 200, {"content-type": "text/html"}, b"bread <img src=/a.png><a href=/b>")
    spool.reader._judge(page)
    assert spool.frontier.added == []
    SpoolReader(spool.folder, spool.sink, spool.frontier, CrawlSettings(), spool.counters, images=lambda: True)._judge(page)
    assert spool.frontier.added == [CrawlRequest("http://a.test/a.png", Priority.LINK, 50.0)]
    SpoolReader(spool.folder, spool.sink, spool.frontier, CrawlSettings(), spool.counters)._judge(page)
    assert len(spool.frontier.added) == 1
