"""The spool between proxy and learner: what goes in comes out, bounded, private, and never twice."""

import errno
import gzip
import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.spool_reader import SpoolReader
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import CrawlRequest, Page, PassedResponse
from gatewayfilter.model import Classification
from gatewayfilter.store import page_spool
from gatewayfilter.store.page_spool import MOST_DECODED, PageSpool, page_of, read_page, waiting_pages
from gatewayfilter.telemetry import Counters

HTML = {"content-type": "text/html"}


def response(body: bytes = b"<html>x", url: str = "http://127.0.0.1/", encoding: str = "") -> PassedResponse:
    return PassedResponse(url, 200, {**HTML, **({"content-encoding": encoding} if encoding else {})}, body, public=True)


def fill(folder: Path, *responses: PassedResponse) -> list[str]:
    dropped: list[str] = []
    spool = PageSpool(folder, dropped.append)
    spool.start()
    for item in responses:
        assert spool.passed(item)
    spool.stop()
    assert not spool.passed(response())  # nobody would write it
    return dropped


class Sink:
    """Finds `harm` harmful; the database may be away."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.away = False

    def page(self, page: Page) -> Classification | None:
        if self.away:
            raise StoreError("away")
        if b"raise" in page.body:
            raise RuntimeError("a fault")
        self.pages.append(page)
        return Classification("gambling" if b"harm" in page.body else "", 1.0, 1.0, charset="utf-8")


class Queue:
    def __init__(self) -> None:
        self.offers: list[CrawlRequest] = []

    def add(self, offers: list[CrawlRequest], now: float) -> int:
        self.offers += offers
        return len(offers)


class Unlearned(Sink):
    """Learns nothing of a page."""

    def page(self, page: Page) -> Classification | None:
        super().page(page)
        return None


def reader(folder: Path, sink: Sink, queue: Queue) -> SpoolReader:
    settings = CrawlSettings(allow_networks=("127.0.0.0/8",))
    return SpoolReader(folder, sink, queue, settings, Counters())  # type: ignore[arg-type]


def test_pages_come_out_in_order_decoded_and_leave_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    body = "<html>花园".encode()
    assert fill(folder, response(gzip.compress(body), encoding="gzip"), response(b"2")) == []
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    sink, queue = Sink(), Queue()
    assert reader(folder, sink, queue).work_off()
    assert [page.body for page in sink.pages] == [body, b"2"]
    assert list(folder.iterdir()) == []
    assert queue.offers == []


def test_links_of_a_harmful_page_are_looked_at_next(tmp_path: Path) -> None:
    fill(tmp_path / "spool", response(b"<html>harm <a href='/next'>n</a>"))
    queue = Queue()
    reader(tmp_path / "spool", Sink(), queue).work_off()
    assert [offer.url for offer in queue.offers] == ["http://127.0.0.1/next"]


def test_a_page_that_nothing_is_learned_of_is_left_to_the_crawler(tmp_path: Path) -> None:
    fill(tmp_path / "spool", response(url="http://127.0.0.1/x"))
    queue = Queue()
    reader(tmp_path / "spool", Unlearned(), queue).work_off()
    assert [offer.url for offer in queue.offers] == ["http://127.0.0.1/x"]


def test_a_page_comes_with_what_was_said_in_asking_for_it(tmp_path: Path) -> None:
    fill(tmp_path / "spool", replace(response(), said="Mozilla/5.0 é"))
    [path] = waiting_pages(tmp_path / "spool")
    page = read_page(path)
    assert page is not None
    assert (page.said, page.secondhand) == ("Mozilla/5.0 é", True)


def test_a_file_of_a_version_that_did_not_ask_whose_page_it_is_says_nothing(tmp_path: Path) -> None:
    head = json.dumps({"url": "http://127.0.0.1/", "status": 200, "headers": HTML}).encode()
    (tmp_path / "a.page").write_bytes(len(head).to_bytes(4, "big") + head + b"<html>x")
    assert read_page(tmp_path / "a.page") is None


@pytest.mark.parametrize("head", [b"[]", b"{}", b'{"url": "http://a/", "status": 200, "headers": ["a"], "said": ""}', b"7"])
def test_a_file_with_another_head_is_no_page(head: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.page").write_bytes(len(head).to_bytes(4, "big") + head + b"<html>x")
    assert read_page(tmp_path / "a.page") is None
    assert read_page(tmp_path / "gone.page") is None


def test_a_spool_is_made_with_the_folders_above_it_and_closed_to_others(tmp_path: Path) -> None:
    assert fill(tmp_path / "a" / "spool", response()) == []
    assert len(waiting_pages(tmp_path / "a" / "spool")) == 1


def test_a_page_that_is_not_written_whole_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "rename", refuses)
    assert fill(tmp_path / "spool", response()) == ["http://127.0.0.1/"]
    assert list((tmp_path / "spool").iterdir()) == []


def test_as_many_bytes_wait_as_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_spool, "_MOST_QUEUED_BYTES", 100)
    for size, is_taken in ((100, True), (101, False)):
        spool = PageSpool(tmp_path / "spool", lambda _: None)
        spool.start()
        (thread,) = (one for one in threading.enumerate() if one is spool._thread)
        assert (thread.name, thread.daemon) == ("page-spool", True)
        assert spool.passed(response(b"x" * size)) is is_taken
        spool.stop()


def test_pages_that_are_written_make_room_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_spool, "_MOST_QUEUED_BYTES", 100)
    spool = PageSpool(tmp_path / "spool", lambda _: None)
    spool.start()
    for number in range(3):
        while not spool.passed(response(b"x" * 80)):
            time.sleep(0.001)
        while len(waiting_pages(tmp_path / "spool")) <= number:
            time.sleep(0.001)
    assert not spool.passed(response(b"x" * 101))
    spool.stop()


def test_pictures_are_looked_at_where_some_are_known(tmp_path: Path) -> None:
    for known in (False, True):
        fill(tmp_path / "spool", response(b"<html>fine <a href='/next'>n</a> <img src=/a.gif>"))
        queue = Queue()
        settings = CrawlSettings(allow_networks=("127.0.0.0/8",))
        images = lambda known=known: known  # noqa: E731
        SpoolReader(tmp_path / "spool", Sink(), queue, settings, Counters(), images).work_off()  # type: ignore[arg-type]
        assert [offer.url for offer in queue.offers] == (["http://127.0.0.1/a.gif"] if known else [])


@pytest.mark.parametrize(
    "item", [response(b"nonsense", encoding="gzip"), response(b"raise"), response(url="http://127.0.0.1/?token=abc")]
)
def test_what_cannot_or_may_not_be_judged_goes_away(item: PassedResponse, tmp_path: Path) -> None:
    fill(tmp_path / "spool", item, response(b"after"))
    sink = Sink()
    assert reader(tmp_path / "spool", sink, Queue()).work_off()
    assert [page.body for page in sink.pages] == [b"after"]
    assert waiting_pages(tmp_path / "spool") == []


def test_pages_wait_for_the_database(tmp_path: Path) -> None:
    fill(tmp_path / "spool", response())
    sink = Sink()
    sink.away = True
    worker = reader(tmp_path / "spool", sink, Queue())
    assert not worker.work_off()
    sink.away = False
    assert worker.work_off()
    assert len(sink.pages) == 1


def test_pages_wait_for_a_disk_that_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    fill(tmp_path / "spool", response(), response(b"after"))
    worker = reader(tmp_path / "spool", Sink(), Queue())
    owner: type[object]
    for owner, name in ((Path, "unlink"), (Sink, "page")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, refuses)
            assert not worker.work_off()
        assert len(waiting_pages(tmp_path / "spool")) == 2
    assert worker.work_off()
    assert waiting_pages(tmp_path / "spool") == []


def test_a_full_spool_drops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_spool, "MOST_FILES", 3)
    dropped = fill(tmp_path / "spool", *(response(url=f"http://127.0.0.1/{number}") for number in range(5)))
    assert dropped == ["http://127.0.0.1/3", "http://127.0.0.1/4"]
    assert len(waiting_pages(tmp_path / "spool")) == 3


def test_room_is_looked_for_twice_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("gatewayfilter.store.page_spool.time.monotonic", lambda: now[0])
    monkeypatch.setattr(page_spool, "MOST_FILES", 2)
    spool = page_spool.PageSpool(tmp_path / "spool", list[str]().append)
    for moment, has_room in (
        (1_000.0, True),
        (1_000.0, True),
        (1_000.4, False),
        (1_000.4375, False),
        (1_000.5, True),
        (1_000.9, True),
    ):
        now[0] = moment
        if moment == 1_000.4:
            assert not spool._has_room(10)
            for path in waiting_pages(tmp_path / "spool"):
                path.unlink()
        assert spool._has_room(10) is has_room, moment


def test_a_page_fits_into_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_spool, "MOST_BYTES", 100)
    for sizes, fits in (([60, 40], [True, True]), ([60, 41, 40], [True, False, True]), ([101], [False])):
        spool = page_spool.PageSpool(tmp_path / "spool", list[str]().append)
        assert [spool._has_room(size) for size in sizes] == fits


def test_a_spool_that_cannot_be_written_drops_and_says_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "spool").write_text("a file")
    assert fill(tmp_path / "spool", *[response()] * 3) == ["http://127.0.0.1/"] * 3
    assert [one.getMessage() for one in caplog.records] == ["cannot hand pages to the learner: File exists"]


@pytest.mark.parametrize(
    "body", [bytes(100_000_000), b"".join(b"%d" % number for number in range(500_000))], ids=["bomb", "long"]
)
def test_a_long_page_and_a_bomb_are_cut(body: bytes) -> None:
    cut = page_of(response(gzip.compress(body), encoding="gzip"))
    assert cut is not None
    assert cut.truncated
    assert len(cut.body) == MOST_DECODED


@given(st.binary(max_size=300))
def test_a_damaged_file_is_no_page_and_no_error(data: bytes) -> None:
    class Damaged:
        @staticmethod
        def read_bytes() -> bytes:
            return data

    found = read_page(Damaged())  # type: ignore[arg-type]
    assert found is None or json.dumps(found.url)
