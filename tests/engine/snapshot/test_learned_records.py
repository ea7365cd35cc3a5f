"""Learned records: the section of a snapshot that has the crawler's entries: `gatewayfilter.engine.snapshot.learned_records`."""

from collections.abc import Sequence
from struct import pack
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gatewayfilter.engine.snapshot.learned_records import LearnedRecords, build_records, learned_source, patch_records
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import LearnedEntry, ListAction, Source


def entry(name: str, certainty: float | None = None) -> LearnedEntry:
    return LearnedEntry(
        f"{name}.example", ListAction.BLOCK, "ads", f"http://{name}.example/", "字 " * len(name), 1.5, 2.5, certainty
    )


ENTRIES = [entry("a"), entry("bbb", 0.75), entry("cc")]


def opened(section: bytes, *, before: bytes = b"", number: int | None = None) -> LearnedRecords:
    closed: list[bool] = []
    table: Any = SimpleNamespace(find=lambda _: number, close=lambda: closed.append(True))
    table.closed = closed
    return LearnedRecords(before + section, len(before), len(section), table)


@pytest.mark.parametrize("before", [b"", b"x" * 24])
def test_records_are_read_as_they_were_written(before: bytes) -> None:
    section = build_records(ENTRIES)
    records = opened(section, before=before)
    assert list(records) == ENTRIES
    assert list(records.keys()) == ["a.example", "bbb.example", "cc.example"]
    assert [opened(section, before=before, number=number).find(b"") for number in range(3)] == ENTRIES
    assert opened(section).find(b"") is None
    with pytest.raises(SnapshotError, match="has no record"):
        opened(section, number=3).find(b"")
    records.close()
    assert records._table.closed == [True]  # type: ignore[attr-defined]
    empty = opened(build_records([]), before=before)
    assert (list(empty), list(empty.keys())) == ([], [])


def test_a_section_is_as_long_as_its_header_says() -> None:
    good = build_records(ENTRIES)
    for section in (b"", good[:7], good[:20], good[:-1], good + b"x", build_records([]) + b"x"):
        with pytest.raises(SnapshotError, match="the details section"):
            opened(section)


def test_a_header_that_names_more_records_than_there_are_is_refused() -> None:
    for section in (pack("<Q", 1), pack("<QQ", 2, 0), pack("<QQ", 1, 1), pack("<QQQ", 2, 0, 1)):
        with pytest.raises(SnapshotError, match="not as long as its header says"):
            opened(section)
        with pytest.raises(SnapshotError, match="not as long as its header says"):
            LearnedRecords(section + bytes(64), 0, len(section), SimpleNamespace())  # type: ignore[arg-type]
    assert len(list(opened(build_records(ENTRIES[:1])))) == 1


def test_a_damaged_record_is_told() -> None:
    for record in (
        b"{",
        b"[]",
        b"7",
        b'["k","block","c","u","d",1]',
        b'["k","x","c","u","d",1,2]',
        b'["k","block","c","u","d","x",2]',
    ):
        section = pack("<QQ", 1, len(record)) + record
        with pytest.raises(SnapshotError, match="damaged"):
            list(opened(section))
    for record in (b"{", b"[]", b"7"):
        with pytest.raises(SnapshotError, match="damaged"):
            list(opened(pack("<QQ", 1, len(record)) + record).keys())


def test_removals_and_additions_leave_the_others() -> None:
    cases: tuple[tuple[Sequence[int], Sequence[int], Sequence[int]], ...] = (
        ((), (0, 1, 2), (0, 1, 2)), ((0,), (1, 2), (0, 0, 1)), ((1,), (0, 2), (0, 0, 1)), ((2,), (0, 1), (0, 1, 1)),
        ((0, 1, 2), (), (0, 0, 0)), ((0, 2), (1,), (0, 0, 0)),
    )  # fmt: skip
    new = [entry("new"), entry("newer", 0.5)]
    for leaving, left, numbers in cases:
        for added in ([], new[:1], new):
            patched, found = patch_records(memoryview(build_records(ENTRIES)), np.array(leaving, np.int64), added)
            wanted = [ENTRIES[number] for number in left] + added
            assert (list(opened(patched)), patched) == (wanted, build_records(wanted)), leaving
            assert (found.tolist(), found.dtype.str) == (list(numbers), "<u4")
    patched, found = patch_records(memoryview(build_records([])), np.array([], np.int64), new)
    assert (patched, found.tolist()) == (build_records(new), [])


def test_learned_entries_are_of_a_source_by_their_category() -> None:
    assert learned_source(ListAction.BLOCK, "ads") == Source("learned:ads", ListAction.BLOCK, "ads", learned=True)
    assert learned_source(ListAction.ALLOW, "") == Source("learned:harmless", ListAction.ALLOW, "", learned=True)
