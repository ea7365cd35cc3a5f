"""What of a topic's partitions may be taken and committed, at each bound; and files of properties."""

from pathlib import Path

import pytest

from gatewayfilter.errors import ConfigError
from gatewayfilter.scaleout.kafka.deliveries import CAREFUL, GIVE_UP, SPAN, Deliveries
from gatewayfilter.scaleout.kafka.properties import read_properties
from tests.case_tables import all_cases


@all_cases(
    ("note", "first", "again"),
    [
        ("", "1", "0"),
        ("0", "1", "0"),
        ("2", "3", "2"),
        ("999", "1000", "999"),
        ("1000", "1", "0"),
        ("x", "1", "0"),
        ("٣", "1", "0"),
    ],
)
def test_a_note_counts_the_beginnings_at_an_offset(note: str, first: str, again: str) -> None:
    assert Deliveries(4).begin(0, 10, note) == first
    assert Deliveries(4).begin(0, 10, note, again=True) == again


def test_a_window_of_messages_is_in_work_and_few_windows_ahead_of_the_oldest() -> None:
    found = Deliveries(2)
    assert (found.room, found.knows(0)) == (2, False)
    found.begin(0, 10, "")
    assert (found.room, found.knows(0), found.knows(1)) == (2, True, False)
    for offset in range(10, 10 + SPAN * 2 - 1):
        assert found.take(0, offset)
        if offset > 10:
            found.done(0, offset)
    assert found.room == 1
    found.take(0, 10 + SPAN * 2 - 1)
    found.done(0, 10 + SPAN * 2 - 1)
    assert found.room == 0, "the oldest one must be done first"
    found.begin(1, 5, "")
    assert found.take(1, 5)
    assert found.room == 0
    found.done(0, 10)
    assert found.room == 1
    assert found.take(7, 1), "a partition of another reader: it is in work all the same"
    assert found.room == 0


def test_messages_are_taken_one_at_a_time_where_reading_began_often() -> None:
    found = Deliveries(2)
    assert found.begin(0, 10, f"{CAREFUL - 1}") == f"{CAREFUL}"
    until = 10 + (SPAN + 1) * 2
    for offset in range(10, until):
        assert found.room == 1
        assert found.take(0, offset)
        assert found.room == 0
        found.done(0, offset)
        moved = found.to_commit()
        assert moved == {0: (offset + 1, f"{CAREFUL}")}
        found.committed(moved)
    assert found.room == 1
    found.take(0, until)
    found.done(0, until)
    moved = found.to_commit()
    assert moved == {0: (until + 1, "0")}
    found.committed(moved)
    assert found.room == 2
    other = Deliveries(2)
    other.begin(0, 10, f"{CAREFUL - 2}")
    assert other.room == 2


def test_the_first_message_alone_is_given_up() -> None:
    for begun, is_taken in ((GIVE_UP - 2, True), (GIVE_UP - 1, False)):
        found = Deliveries(2)
        found.begin(0, 10, f"{begun}")
        assert found.take(0, 10) is is_taken
        assert found.take(0, 11)
    found.done(0, 10)
    found.done(0, 11)
    found.committed(found.to_commit())
    assert found.take(0, 12), "it was behind that one"


def test_partitions_are_committed_each_by_itself() -> None:
    found = Deliveries(4)
    found.begin(0, 10, "")
    found.begin(1, 20, "")
    for partition, offset in ((0, 10), (1, 20), (1, 21)):
        found.take(partition, offset)
    assert found.to_commit() == {}
    found.done(1, 20)
    assert found.to_commit() == {1: (21, "0")}
    found.forget(1)
    found.committed({1: (21, "0")})
    assert (found.to_commit(), found.room, found.knows(0), found.knows(1)) == ({}, 3, True, False)
    found.done(0, 10)
    assert found.to_commit() == {0: (11, "0")}


def test_lines_of_properties(tmp_path: Path) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text("  # a = b\n \t\n a.b =  c = d \nempty=\n", encoding="utf-8")
    assert read_properties(file) == {"a.b": "c = d", "empty": ""}
    for text, line in (("a=b\n= c\n", 2), ("\n\n x \n", 3)):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"{file.name}, line {line}: NAME=VALUE is expected$"):
            read_properties(file)
    file.write_bytes(b"a=\xff")
    with pytest.raises(ConfigError, match=r"not UTF-8$"):
        read_properties(file)
