import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from gatewayfilter.crawl import Backlog, PageBuffer, WarcArchive
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import Page
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import FakeSink

NOW = 1_700_000_000.0


def page(body: bytes = b"<p>knitting", url: str = "http://a.example/") -> Page:
    return Page(url, url, 200, {"content-type": "text/html"}, body)


class Book:
    """Satisfies `interfaces.EvidenceStore`."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        self.error: Exception | None = None

    def note_archived(self, url: str, reference: str) -> bool:
        if self.error is not None:
            raise self.error
        self.notes[url] = reference
        return True

    def archived(self, url: str) -> str:
        return self.notes.get(url, "")


class Buffered:
    """A buffer with fakes around it, over a real archive."""

    def __init__(self, folder: Path, *, max_bytes: int = 10_000_000, evidence_only: bool = False) -> None:
        self.sink = FakeSink()
        self.book = Book()
        self.counters = Counters()
        self.archive = WarcArchive(folder, max_bytes, lambda: NOW)
        backlog = Backlog(folder / "backlog.log")
        self.buffer = PageBuffer(
            self.sink, self.archive, self.book, 100.0, self.counters, backlog, evidence_only=evidence_only, clock=lambda: NOW
        )


def test_a_page_is_judged_and_archived(tmp_path: Path) -> None:
    made = Buffered(tmp_path)
    assert made.buffer.page(page()) is not None
    made.buffer.flush()
    assert made.counters.as_dict() == {"pages_archived": 1}
    assert made.book.notes == {}
    assert made.archive.size_bytes()


@pytest.mark.parametrize("evidence_only", [False, True])
def test_several_pages_are_judged_and_archived_at_once(tmp_path: Path, *, evidence_only: bool) -> None:
    made = Buffered(tmp_path, evidence_only=evidence_only)
    pages = [page(url="http://a.example/1"), page(b"<p>casino", url="http://a.example/2"), page(b"", url="http://a.example/3")]
    assert [found and found.category for found in made.buffer.batch(pages)] == ["", "gambling", None]
    made.buffer.flush()
    assert made.counters.as_dict() == {"pages_archived": 1 if evidence_only else 2}
    assert made.archive.read(made.book.archived("http://a.example/2")) == pages[1]
    assert list(made.book.notes) == ["http://a.example/2"]


def test_the_evidence_of_a_harmful_page_is_found_and_outlives_the_size_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayfilter.crawl.buffer.warc_archive.SEGMENT_BYTES", 1)
    made = Buffered(tmp_path, max_bytes=600)
    bad = Page("http://a.example/asked", "http://a.example/bad", 200, {"content-type": "text/html"}, b"<p>casino")
    made.buffer.page(bad)
    made.buffer.flush()
    reference = made.book.archived(bad.url)
    assert made.book.archived(bad.final_url) == reference
    for number in range(8):
        made.buffer.page(page(url=f"http://b.example/{number}"))
        made.buffer.flush()
    assert WarcArchive(tmp_path, 600).read(reference) == bad


def test_evidence_only(tmp_path: Path) -> None:
    made = Buffered(tmp_path, evidence_only=True)
    made.buffer.page(page())
    made.buffer.page(page(b"casino", "http://b.example/"))
    made.buffer.flush()
    assert made.counters.as_dict() == {"pages_archived": 1}
    assert list(made.book.notes) == ["http://b.example/"]


def test_pages_wait_over_a_restart_and_none_is_lost(tmp_path: Path) -> None:
    made = Buffered(tmp_path)
    pages = [page(b"casino", f"http://a.example/{number}") for number in range(3)]
    for each in pages:
        made.buffer.put(each).result()
    assert made.sink.pages == []
    again = Buffered(tmp_path)  # the first one was killed
    assert again.buffer.waiting == 3
    for each in pages:
        scanned = again.buffer.scan_first()
        assert scanned is not None
        assert scanned.page == each
        again.buffer.advance()
    assert again.buffer.scan_first() is None
    again.buffer.flush()
    assert len(again.book.notes) == 3
    assert made.counters.as_dict() == {"pages_archived": 3, "pages_buffered": 3}


def test_a_page_of_a_task_waits_with_its_place_there(tmp_path: Path) -> None:
    made = Buffered(tmp_path)
    for number, (task, depth) in enumerate([("", 0), ("forums", 0), ("a-1_b", 100)]):
        made.buffer.put(page(url=f"http://a.example/{number}"), task, depth).result()
    again = Buffered(tmp_path)
    places = []
    while (scanned := again.buffer.scan_first()) is not None:
        assert scanned.page is not None
        places.append((scanned.page.url[-1], scanned.task, scanned.depth))
        again.buffer.advance()
    assert places == [("0", "", 0), ("1", "forums", 0), ("2", "a-1_b", 100)]


def test_a_verdict_that_was_not_kept_leaves_the_page_where_it_is(tmp_path: Path) -> None:
    made = Buffered(tmp_path)
    made.buffer.put(page()).result()
    made.sink.error = StoreError("away")
    with pytest.raises(StoreError):
        made.buffer.scan_first()
    made.sink.error = None
    assert made.buffer.scan_first() is not None
    assert made.buffer.waiting == 1


def test_what_was_removed_before_it_was_scanned_is_counted(tmp_path: Path) -> None:
    made = Buffered(tmp_path)
    made.buffer.put(page()).result()
    for segment in tmp_path.glob("*.zst"):
        segment.unlink()
    scanned = made.buffer.scan_first()
    assert scanned is not None
    assert scanned.page is None
    assert made.counters["pages_lost"] == 1


class BrokenArchive(WarcArchive):
    """A disk that refuses, or that hangs until it is let go."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 1_000_000)
        self.go = threading.Event()

    def append_all(self, records: Sequence[bytes]) -> list[str]:
        self.go.wait()
        raise OSError(28, "No space left on device")


def test_a_disk_that_hangs_or_refuses_holds_up_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.crawl.buffer.page_buffer.MOST_BESIDE", 3)
    archive, sink, counters = BrokenArchive(tmp_path), FakeSink(), Counters()
    buffer = PageBuffer(sink, archive, Book(), 100.0, counters)
    for number in range(5):
        assert buffer.page(page(b"casino", f"http://a.example/{number}")) is not None
    assert len(sink.pages) == 5
    assert counters.as_dict() == {"archive_failures": 2 * 2}  # no room beside: neither before the verdict nor after it
    archive.go.set()
    buffer.flush()
    assert counters["archive_failures"] == 7


class ForgetfulArchive(WarcArchive):
    """A disk with room for one page at a time, and for none that is large."""

    def append_all(self, records: Sequence[bytes]) -> list[str]:
        if len(records) > 1 or len(records[0]) > 5_000:
            raise OSError(28, "No space left on device")
        return super().append_all(records)


def test_pages_judged_together_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    append_all = WarcArchive.append_all

    def noted(archive: WarcArchive, records: Sequence[bytes]) -> list[str]:
        written.append(len(records))
        return append_all(archive, records)

    monkeypatch.setattr(WarcArchive, "append_all", noted)
    made = Buffered(tmp_path)
    pages = [page(body, f"http://a.example/{number}") for number, body in enumerate((b"knitting", b"", b"casino", b"gardens"))]
    made.buffer.batch(pages)
    made.buffer.flush()
    assert written == [3]
    assert made.counters.as_dict() == {"pages_archived": 3}
    found = WarcArchive(tmp_path, 10_000_000).read(made.book.notes["http://a.example/2"])
    assert found is not None
    assert found.body == b"casino"


def test_a_page_that_cannot_be_written_loses_no_other(tmp_path: Path) -> None:
    archive, book, counters = ForgetfulArchive(tmp_path, 1_000_000), Book(), Counters()
    buffer = PageBuffer(FakeSink(), archive, book, 100.0, counters)
    noise = random.Random(7).randbytes(20_000)
    buffer.batch([page(body, f"http://a.example/{number}") for number, body in enumerate((b"knitting", noise, b"casino"))])
    buffer.flush()
    assert counters.as_dict() == {"pages_archived": 2, "archive_failures": 1}
    found = archive.read(book.notes["http://a.example/2"])
    assert found is not None
    assert found.body == b"casino"


def test_a_page_that_cannot_be_packed_takes_no_room_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.crawl.buffer.page_buffer.MOST_BESIDE", 1)
    made = Buffered(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(WarcArchive, "pack", lambda *_: bytes(-1))
        with pytest.raises(ValueError, match="negative"):
            made.buffer.page(page())
    assert made.buffer.page(page()) is not None
    made.buffer.flush()
    assert made.counters.as_dict() == {"pages_archived": 1}


def test_a_note_that_cannot_be_written_is_counted(tmp_path: Path) -> None:
    made = Buffered(tmp_path)
    made.book.error = StoreError("away")
    made.buffer.page(page(b"casino"))
    made.buffer.flush()
    assert made.counters.as_dict() == {"pages_archived": 1, "archive_failures": 1}


def test_two_processes_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.crawl.buffer.warc_archive.SEGMENT_BYTES", 1)
    now = [NOW]
    one, other = (WarcArchive(tmp_path, 600, lambda: now[0]) for _ in range(2))
    reference = one.keep(page(b"casino"), NOW)
    one.pin(reference, NOW + 1000)
    for number in range(8):
        now[0] += 1
        other.keep(page(url=f"http://b.example/{number}"), NOW)
    found = one.read(reference)
    assert found is not None
    assert found.body == b"casino"


def test_room_beside_is_given_back_when_pages_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.crawl.buffer.page_buffer.MOST_BESIDE", 2)
    made = Buffered(tmp_path)
    for _ in range(3):
        made.buffer.batch([page(url="http://a.example/1"), page(url="http://a.example/2")])
        made.buffer.flush()
    assert made.counters.as_dict() == {"pages_archived": 6}


def test_of_two_pages_the_one_that_can_be_written_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Buffered(tmp_path)
    append_all, written = made.archive.append_all, list[int]()

    def refuses_the_first(records: Sequence[bytes]) -> list[str]:
        written.append(len(records))
        if len(written) <= 2:
            raise OSError(28, "No space left on device")
        return append_all(records)

    monkeypatch.setattr(made.archive, "append_all", refuses_the_first)
    made.buffer.batch([page(b"<p>casino", url="http://a.example/1"), page(b"<p>casino", url="http://a.example/2")])
    made.buffer.flush()
    made.buffer.flush()
    assert written == [2, 1, 1]
    assert made.counters.as_dict() == {"archive_failures": 1, "pages_archived": 1}
    assert list(made.book.notes) == ["http://a.example/2"]


def test_evidence_is_kept_longer_on_request(tmp_path: Path) -> None:
    made = Buffered(tmp_path)
    bad = page(b"<p>casino", url="http://a.example/bad")
    made.buffer.page(bad)
    made.buffer.flush()
    reference = made.buffer.evidence_of(bad)
    assert reference == made.book.notes.pop(bad.url)
    made.buffer.keep_longer(bad, reference)
    made.buffer.keep_longer(page(url="http://a.example/other"), "")
    made.buffer.flush()
    assert made.book.notes == {bad.url: reference}
    assert made.buffer.evidence_of(page(url="http://a.example/other")) == ""


def test_without_a_backlog_nothing_waits(tmp_path: Path) -> None:
    buffer = PageBuffer(FakeSink(), WarcArchive(tmp_path, 1_000_000), Book(), 100.0, Counters())
    assert (buffer.waiting, buffer.has_room, buffer.scan_first()) == (0, False, None)
    buffer.advance()
    with pytest.raises(OSError, match="no backlog"):
        buffer.put(page()).result()


def test_there_is_room_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.crawl.buffer.page_buffer.MOST_BACKLOG", 2)
    made, room = Buffered(tmp_path), list[tuple[int, bool]]()
    for number in range(2):
        room.append((made.buffer.waiting, made.buffer.has_room))
        made.buffer.put(page(url=f"http://a.example/{number}")).result()
    assert [*room, (made.buffer.waiting, made.buffer.has_room)] == [(0, True), (1, True), (2, False)]
    made.buffer.advance()
    assert made.buffer.has_room
