"""The sections of a compiled form, written and read: `gatewayfilter.engine.adblock.index.sections`."""

import pytest

from gatewayfilter.engine.adblock.index import sections as sections_module
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_names, pack_numbers, pack_sections
from gatewayfilter.errors import SnapshotError


def reader_of(*sections: bytes) -> SectionReader:
    return SectionReader(memoryview(pack_sections(sections)))


def test_sections_are_read_in_their_order() -> None:
    written = [b"", b"a", b"abcd", b"abcde", b""]
    reader = reader_of(*written)
    assert bytes(reader.last()) == b""
    assert [bytes(reader.raw()) for _ in written] == written
    for read in (reader.raw, reader.numbers, reader.names):
        with pytest.raises(SnapshotError, match="cut off"):
            read()
    assert bytes(reader_of(b"a", b"bc").last()) == b"bc"


def test_a_form_without_sections_has_no_last_one() -> None:
    for read in (reader_of().last, reader_of().raw):
        with pytest.raises(SnapshotError, match="cut off"):
            read()


def test_every_cut_is_refused_and_no_more() -> None:
    for sections in ([b"", b"", b""], [b"abcd", b"efgh"], [b"abcd", b""]):
        blob = pack_sections(sections)
        SectionReader(memoryview(blob))
        SectionReader(memoryview(blob + b"more"))
        for length in range(len(blob)):
            with pytest.raises(SnapshotError):
                SectionReader(memoryview(blob[:length]))


def test_the_number_of_sections_is_bounded() -> None:
    most = sections_module._MAX_SECTIONS
    SectionReader(memoryview(pack_sections([b""] * most)))
    with pytest.raises(SnapshotError, match="damaged"):
        SectionReader(memoryview(pack_sections([b""] * (most + 1))))


def test_numbers() -> None:
    for numbers in ([], [0], [1, 2**32 - 1, 256]):
        assert list(reader_of(pack_numbers(numbers)).numbers()) == numbers
    for section in (b"a", b"abc", b"abcde"):
        with pytest.raises(SnapshotError, match="damaged"):
            reader_of(section).numbers()


def test_names_are_read_in_steps_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a", "bc", "", "d\u00e9f", "gh"]
    expected = {name: number for number, name in enumerate(names)}
    for step in range(5, 16):
        monkeypatch.setattr(sections_module, "_STEP", step)
        reader = reader_of(pack_names(names), pack_names(names), pack_names([]))
        assert reader.numbered_names() == expected
        assert reader.names() == names
        assert reader.names() == []
        for section in (b"a\nb\na", b"abc\nabcd\xff", b"a\nb\nc\nd\ne\nf\ng\nh\na"):
            with pytest.raises(SnapshotError, match="damaged"):
                reader_of(section).names()
    monkeypatch.setattr(sections_module, "_STEP", 4)
    assert reader_of(b"abc\nab").names() == ["abc", "ab"]
    assert reader_of(b"abcd").names() == ["abcd"]
    with pytest.raises(SnapshotError, match="damaged"):
        reader_of(b"abcd\na").names()
