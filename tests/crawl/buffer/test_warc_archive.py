import fcntl
import itertools
import multiprocessing
import os
import random
import re
import stat
import time
from dataclasses import replace
from multiprocessing import Queue
from pathlib import Path
from uuid import UUID

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.crawl.buffer import warc_archive as archive_module
from gatewayfilter.crawl.buffer.warc_archive import WarcArchive, _record
from gatewayfilter.interfaces import Page
from tests.open_files import open_files

PAGE = Page(
    "http://a.example/x",
    "https://www.a.example/x?y",
    200,
    {"content-type": "text/html; charset=gb18030", "x-odd": "a: b"},
    "赌场\r\n\r\n<p>".encode("gb18030") * 50,
    elapsed_ms=42,
)
_NAME = st.from_regex(r"[a-z][a-z-]{0,12}", fullmatch=True).filter(
    lambda name: name not in {"content-length", "content-encoding", "transfer-encoding"}
)
_VALUE = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)


@pytest.fixture
def archive(tmp_path: Path) -> WarcArchive:
    return WarcArchive(tmp_path / "archive", 10_000_000, lambda: 1_800_000_000.0)


def test_a_page_is_found_again_by_another_process(archive: WarcArchive, tmp_path: Path) -> None:
    references = [archive.keep(replace(PAGE, status=status), 1000.5) for status in (200, 404, 599)]
    again = WarcArchive(tmp_path / "archive", 10_000_000)
    assert [again.read(reference) for reference in references] == [replace(PAGE, status=status) for status in (200, 404, 599)]
    assert archive.size_bytes() > 0


@settings(max_examples=30)
@given(
    headers=st.dictionaries(_NAME, _VALUE, max_size=4),
    body=st.binary(max_size=2000),
    status=st.integers(100, 599),
    truncated=st.booleans(),
    secondhand=st.booleans(),
)
def test_any_page_survives(
    tmp_path_factory: pytest.TempPathFactory,
    headers: dict[str, str],
    body: bytes,
    status: int,
    *,
    truncated: bool,
    secondhand: bool,
) -> None:
    archive = WarcArchive(tmp_path_factory.mktemp("archive"), 10_000_000)
    page = replace(PAGE, headers=headers, body=body, status=status, truncated=truncated, secondhand=secondhand)
    assert archive.read(archive.keep(page, 1000.0)) == page


def test_what_no_file_can_hold_is_replaced(archive: WarcArchive) -> None:
    page = archive.read(archive.keep(replace(PAGE, url="http://a.example/\ud800", headers={"x": "caf\udce9"}), 1000.0))
    assert page is not None
    assert (page.url, page.headers, page.body) == ("http://a.example/?", {"x": "caf?"}, PAGE.body)


def test_headers_cannot_forge_lines(archive: WarcArchive) -> None:
    page = archive.read(archive.keep(replace(PAGE, headers={"x": "a\r\nWARC-Type: warcinfo\r\n\r\nbody"}), 1000.0))
    assert page is not None
    assert page.headers == {"x": "a WARC-Type: warcinfo body"}
    assert page.body == PAGE.body


def test_others_can_read_it_and_nobody_else_may(archive: WarcArchive, tmp_path: Path) -> None:
    archive.keep(PAGE, 1000.0)
    archive.keep(replace(PAGE, truncated=True), 1001.0)
    (segment,) = (tmp_path / "archive").glob("*.warc.zst")
    assert stat.S_IMODE(segment.stat().st_mode) == 0o600
    assert stat.S_IMODE(segment.parent.stat().st_mode) == 0o700
    with segment.open("rb") as file:
        records = [
            (record.headers["WARC-Target-URI"], record.headers["WARC-Date"], record.reader.read())
            for record in ArchiveIterator(file)
        ]
    assert records == [
        (PAGE.final_url, "1970-01-01T00:16:40.000000Z", PAGE.body),
        (PAGE.final_url, "1970-01-01T00:16:41.000000Z", PAGE.body),
    ]


def test_several_are_appended_and_fill_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = WarcArchive(tmp_path, 10_000_000)
    pages = [replace(PAGE, elapsed_ms=number) for number in range(7)]
    records = [archive.pack(page, 1000.5) for page in pages]
    monkeypatch.setattr(archive_module, "SEGMENT_BYTES", 2 * max(map(len, records)) + 1)
    references = archive.append_all(records)
    assert [archive.read(reference) for reference in references] == pages
    held = [path.stat().st_size for path in tmp_path.glob("pages-*")]
    assert len(held) == 3
    assert sum(held) == sum(map(len, records))
    assert archive.append_all(()) == []


def test_a_segment_that_is_just_full_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = WarcArchive(tmp_path, 10_000_000)
    record = archive.pack(PAGE, 1000.5)
    monkeypatch.setattr(archive_module, "SEGMENT_BYTES", 2 * len(record))
    together = [reference.split(":", 1) for reference in archive.append_all([record] * 4)]
    one_by_one = [archive.append_all([record])[0].split(":", 1) for _ in range(4)]
    for found in (together, one_by_one):
        names, places = zip(*found, strict=True)
        assert places == (f"0:{len(record)}", f"{len(record)}:{len(record)}") * 2
        assert [names.count(name) for name in names] == [2] * 4
    assert archive.size_bytes() == 8 * len(record)


def test_no_more_is_removed_than_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "SEGMENT_BYTES", 1)
    seconds = itertools.count(1_800_000_000.0)
    record = WarcArchive(tmp_path, 1).pack(PAGE, 1000.5)
    archive = WarcArchive(tmp_path, 3 * len(record), lambda: next(seconds))
    references = [archive.append_all([record])[0] for _ in range(5)]
    assert archive.size_bytes() == 3 * len(record)
    assert [archive.read(reference) is not None for reference in references] == [False, False, True, True, True]


def test_evidence_that_another_process_moved_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "SEGMENT_BYTES", 1)
    seconds = itertools.count(1_800_000_000.0)
    ours, other = WarcArchive(tmp_path, 10_000_000, lambda: next(seconds)), WarcArchive(tmp_path, 1, lambda: next(seconds))
    reference = ours.keep(PAGE, 1000.0)
    ours.pin(reference, 2e9)
    ours.keep(PAGE, 1000.0)
    other.keep(PAGE, 1000.0)
    assert not (tmp_path / reference.partition(":")[0]).exists()
    assert ours.read(reference) == PAGE


def test_no_descriptor_stays_open(archive: WarcArchive) -> None:
    reference = archive.keep(PAGE, 1000.0)
    before = open_files()
    archive.keep(PAGE, 1000.0)
    archive.pin(reference, 2000.0)
    assert archive.read(reference) == PAGE
    assert not archive_module._is_held(archive.folder / "none")
    assert archive_module._is_held(archive.folder / reference.partition(":")[0])
    assert not open_files() - before


@pytest.mark.parametrize(
    "reference",
    ["", "x", "../../etc/passwd:0:10", "pages-1800000000000-00000000.warc.zst:0:10", "pages-1800000000000-00000000.warc.zst:0"],
)
def test_what_is_not_there_is_none(archive: WarcArchive, reference: str) -> None:
    archive.keep(PAGE, 1000.0)
    assert archive.read(reference) is None


def test_a_damaged_or_torn_segment_loses_only_what_is_damaged(archive: WarcArchive, tmp_path: Path) -> None:
    first, second, third = (archive.keep(PAGE, 1000.0) for _ in range(3))
    (segment,) = (tmp_path / "archive").glob("*.warc.zst")
    data = bytearray(segment.read_bytes())
    at = int(second.split(":")[1])
    data[at + 8 : at + 40] = bytes(32)
    segment.write_bytes(data[:-5])
    assert archive.read(first) == PAGE
    assert archive.read(second) is None
    assert archive.read(third) is None
    after = archive.keep(PAGE, 1000.0)
    assert archive.read(after) == PAGE


def test_the_oldest_go_first_and_evidence_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "SEGMENT_BYTES", 1)
    now = [1_800_000_000.0]

    def clock() -> float:
        now[0] += 1
        return now[0]

    archive = WarcArchive(tmp_path / "archive", 2_000, clock)
    pages = [replace(PAGE, body=f"{number} ".encode() * 9, url=f"http://{number}.example/") for number in range(12)]
    references = []
    for number, page in enumerate(pages):
        references.append(archive.keep(page, 1000.0))
        if number in {1, 3}:
            archive.pin(references[-1], 1_800_000_000.0 + (1e6 if number == 1 else 30))
    assert archive.size_bytes() < 2_000 + 2 * 500
    found = [archive.read(reference) for reference in references]
    assert found[0] is None
    assert found[2] is None
    assert found[1] == pages[1]
    assert found[-1] == pages[-1]
    now[0] += 100
    for _ in range(6):
        archive.keep(PAGE, 1000.0)
    again = WarcArchive(tmp_path / "archive", 2_000, clock)
    assert again.read(references[1]) == pages[1]
    assert again.read(references[3]) is None


def test_what_was_kept_just_now_stays_however_much_others_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(1_800_000_000.0)
    slow, quick = WarcArchive(tmp_path, 2_000, lambda: next(seconds)), WarcArchive(tmp_path, 2_000, lambda: next(seconds))
    begun = slow.keep(PAGE, 1000.0)
    monkeypatch.setattr(archive_module, "SEGMENT_BYTES", 1)
    others = [quick.keep(PAGE, 1000.0) for _ in range(9)]
    assert slow.read(begun) == PAGE
    assert slow.read(others[0]) is None
    ended = slow.keep(PAGE, 1000.0)  # fills its segment, which no other process may remove before this one begins the next
    for _ in range(9):
        quick.keep(PAGE, 1000.0)
    assert (slow.read(begun), slow.read(ended)) == (PAGE, PAGE)
    slow.keep(PAGE, 1000.0)
    quick.keep(PAGE, 1000.0)
    assert (slow.read(begun), slow.read(ended)) == (None, None)


def test_no_other_process_removes_a_segment_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, found = fcntl.flock, list[str]()
    (tmp_path / "lock").touch()

    def look(descriptor: int, how: int) -> None:
        if how == fcntl.LOCK_SH:
            with (tmp_path / "lock").open() as others:
                try:
                    lock(others, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    found.append("they may remove it")
                except BlockingIOError:
                    found.append("they wait")
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", look)
    WarcArchive(tmp_path, 2_000).keep(PAGE, 1000.0)
    assert found == ["they wait"]


def test_a_process_that_ended_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(1_800_000_000.0)
    begun = WarcArchive(tmp_path, 2_000, lambda: next(seconds)).keep(PAGE, 1000.0)
    monkeypatch.setattr(archive_module, "SEGMENT_BYTES", 1)
    other = WarcArchive(tmp_path, 2_000, lambda: next(seconds))
    for _ in range(9):
        other.keep(PAGE, 1000.0)
    assert other.read(begun) is None


def test_a_segment_that_another_process_removed_is_not_begun_again(archive: WarcArchive, tmp_path: Path) -> None:
    first = archive.keep(PAGE, 1000.0)
    (tmp_path / "archive" / first.partition(":")[0]).unlink()
    second = archive.keep(replace(PAGE, body=b"other"), 1000.0)
    assert archive.read(first) is None
    found = archive.read(second)
    assert found is not None
    assert found.body == b"other"


def fill(folder: Path, number: int, most_bytes: int, pinned: "Queue[tuple[str, str]]") -> None:
    """Writes pages that do not compress, and keeps some of them as evidence: one of several crawlers."""
    archive_module.SEGMENT_BYTES = 20_000
    archive = WarcArchive(folder, most_bytes)
    chance = random.Random(number)
    for page in range(120):
        url = f"http://{number}.example/{page}"
        reference = archive.keep(replace(PAGE, url=url, body=chance.randbytes(3_000)), 1000.0)
        if page % 20 == 7:
            archive.pin(reference, time.time() + 1000.0)
            pinned.put((url, reference))


@pytest.mark.slow
def test_several_crawlers_at_the_cap_keep_to_it_and_lose_no_evidence(tmp_path: Path) -> None:
    most_bytes, crawlers = 150_000, 3
    context = multiprocessing.get_context("forkserver")
    pinned: Queue[tuple[str, str]] = context.Queue()
    running = [context.Process(target=fill, args=(tmp_path, number, most_bytes, pinned)) for number in range(crawlers)]
    for process in running:
        process.start()
    evidence = [pinned.get(timeout=60) for _ in range(crawlers * 6)]
    for process in running:
        process.join(60)
        assert process.exitcode == 0
    archive = WarcArchive(tmp_path, most_bytes)
    found = {url: archive.read(reference) for url, reference in evidence}
    assert {url: page and page.url for url, page in found.items()} == {url: url for url, _ in evidence}
    written = crawlers * 120 * 3_000
    # Each may have a segment of its own beyond the cap, and evidence does not count.
    assert written / 2 > archive.size_bytes() <= most_bytes + crawlers * 25_000 + len(evidence) * 3_500


def test_pins_survive_a_torn_note_and_are_written_together_in_time(tmp_path: Path) -> None:
    archive = WarcArchive(tmp_path, 10_000_000)
    reference = archive.keep(PAGE, 1000.0)
    archive.pin(reference, 2000.0)
    with (tmp_path / "pins.jsonl").open("a") as file:
        file.write('{"page": "to')
    book = WarcArchive(tmp_path, 10_000_000)._pins
    assert len(book) == 1
    for number in range(1200):
        book.pin(reference, 3000.0 + number)
    book.drop_expired(0.0)
    assert len((tmp_path / "pins.jsonl").read_text().splitlines()) == 1
    book.drop_expired(1e12)
    assert len(book) == 0


def test_a_segment_is_held_while_a_process_has_it(tmp_path: Path) -> None:
    segment = tmp_path / "pages"
    assert not archive_module._is_held(segment)
    segment.touch()
    for _ in range(2):
        assert not archive_module._is_held(segment)
    with segment.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert archive_module._is_held(segment)
    assert not archive_module._is_held(segment)


def test_a_segment_that_another_process_removes_meanwhile_has_no_size(tmp_path: Path) -> None:
    archive = WarcArchive(tmp_path, 1_000_000)
    (tmp_path / "pages-0000000000001-0000aaaa.warc.zst").symlink_to(tmp_path / "gone")
    (tmp_path / "pages-0000000000002-0000aaaa.warc.zst").write_bytes(b"x" * 7)
    (tmp_path / "pages.warc.zst").write_bytes(b"no segment of ours")
    assert archive.size_bytes() == 7


def test_a_disk_that_fills_up_leaves_no_part_of_a_record(archive: WarcArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    first = archive.keep(PAGE, 1000.0)
    (segment,) = archive.folder.glob("*.warc.zst")
    size = segment.stat().st_size
    write = os.writev
    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", lambda descriptor, frames: write(descriptor, [frames[0][:100]]))
        with pytest.raises(OSError, match="No space left on device"):
            archive.keep(PAGE, 1001.0)
    assert segment.stat().st_size == size
    second = archive.keep(replace(PAGE, status=404), 1002.0)
    assert [archive.read(reference) for reference in (first, second)] == [PAGE, replace(PAGE, status=404)]


def test_the_number_of_a_record_is_a_random_one() -> None:
    """As a UUID of version 4, which other tools take it for."""
    numbers = [UUID(re.findall(rb"WARC-Record-ID: <(urn:uuid:.*?)>", _record(PAGE, 1_000.0))[0].decode()) for _ in range(2)]
    assert [number.version for number in numbers] == [4, 4]
    assert numbers[0] != numbers[1]


def test_a_pinned_page_that_is_gone_takes_no_room_when_it_is_moved(archive: WarcArchive) -> None:
    archive.keep(PAGE, 1_000.0)
    assert archive._move_pinned(["nowhere"]) == 0
    assert archive._move_pinned([]) == 0
