from pathlib import Path

import pytest

from gatewayfilter.crawl.buffer.evidence_index import EvidenceIndex
from tests.open_files import open_files


def test_what_another_process_writes_anew_takes_the_place_of_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "pins.jsonl"
    ours = EvidenceIndex(path)
    ours.pin("a:1", 100.0)
    ours.pin("a:2", 200.0)
    others = EvidenceIndex(path)
    others.drop_expired(150.0)
    aside = tmp_path / "new"
    aside.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "a:2" in line))
    aside.replace(path)
    ours.refresh()
    assert (len(ours), ours.in_segment("a")) == (1, ["a:2"])


def test_a_pin_that_says_nothing_new_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "pins.jsonl"
    index = EvidenceIndex(path)
    for until in (200.0, 200.0, 100.0, 300.0):
        index.pin("a:1", until)
    assert len(path.read_text().splitlines()) == 2
    index.drop_expired(300.0)
    assert len(index) == 0


def test_pages_are_found_where_they_were_moved_to(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path / "pins.jsonl")
    for reference in ("a:2", "a:1", "b:1"):
        index.pin(reference, 100.0)
    index.move("a:1", "kept:7")
    index.pin("a:1", 200.0)
    for found in (index, EvidenceIndex(tmp_path / "pins.jsonl")):
        assert len(found) == 3
        assert [found.place_of(reference) for reference in ("a:1", "a:2", "c:9")] == ["kept:7", "a:2", "c:9"]
        assert [found.in_segment(segment) for segment in ("a", "kept", "b", "c")] == [["a:2"], ["a:1"], ["b:1"], []]
    index.drop_expired(100.0)
    assert (len(index), index.in_segment("a"), index.in_segment("kept")) == (1, [], ["a:1"])


def test_the_log_is_private_and_no_descriptor_stays_open(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path / "pins.jsonl")
    before = open_files()
    for number in range(5):
        index.pin(f"a:{number}", 100.0)
    assert not open_files() - before
    assert (tmp_path / "pins.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_log_is_written_anew_when_most_of_it_is_of_no_use(tmp_path: Path) -> None:
    path = tmp_path / "pins.jsonl"
    line = '{"page":"a:1","until":100.0,"at":"a:1"}\n'
    for lines, left in ((1002, 1002), (1003, 1)):
        path.write_text(line * lines)
        index = EvidenceIndex(path)
        index.drop_expired(50.0)
        assert len(path.read_text().splitlines()) == left
    assert path.read_text() == line
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["pins.jsonl"]
    index.pin("a:2", 100.0)
    index.drop_expired(50.0)
    assert len(path.read_text().splitlines()) == 2
    assert len(EvidenceIndex(path)) == 2


def test_notes_of_this_process_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pins.jsonl"
    index = EvidenceIndex(path)
    reads = 0
    load = index._load

    def counted() -> None:
        nonlocal reads
        reads += 1
        load()

    monkeypatch.setattr(index, "_load", counted)
    index.pin("a:1", 100.0)
    index.refresh()
    index.drop_expired(200.0)
    index.refresh()
    assert (reads, len(index)) == (0, 0)
    EvidenceIndex(path).pin("a:2", 300.0)
    index.refresh()
    index.refresh()
    assert (reads, len(index)) == (1, 2)
    path.unlink()
    index.refresh()
    assert len(index) == 2


def test_lines_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "pins.jsonl"
    good = '{"page":"a:1","until":100.0,"at":"b:1"}'
    path.write_bytes(f'nonsense\n[]\n{{"page":"x"}}\n{{"page":"y","until":"z","at":"a"}}\n{good}\n'.encode() + b'\xff{"pa')
    index = EvidenceIndex(path)
    assert (len(index), index.place_of("a:1")) == (1, "b:1")


def test_lines_of_this_process_count_towards_it(tmp_path: Path) -> None:
    path = tmp_path / "pins.jsonl"
    index = EvidenceIndex(path)
    index.pin("a:1", 100.0)
    for _ in range(1001):
        index.move("a:1", "b:1")
    for lines in (1002, 1):
        index.drop_expired(50.0)
        assert len(path.read_text().splitlines()) == lines
        index.move("a:1", "b:1")
