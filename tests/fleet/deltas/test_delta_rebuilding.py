"""A snapshot that is made from an older one and a delta is the newer one, byte by byte; what a lying delta makes is not."""

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.format import Section, read_sections
from gatewayfilter.engine.tables.bitmap_table import TableArrays
from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.deltas import making, rebuilding
from gatewayfilter.fleet.deltas.delta_file import Delta, Kind, Part, read_delta, write_delta
from gatewayfilter.fleet.deltas.making import make_delta, table_of
from gatewayfilter.fleet.deltas.rebuilding import rebuild
from gatewayfilter.model import ListAction, Source

HOSTS = [f".host-{number}.example" for number in range(3_000)]
RULES = [f"||ads-{number}.example^$third-party" for number in range(500)]
MOST = 10_000_000


def snapshot(
    path: Path,
    hosts: list[str],
    rules: list[str] = RULES,
    others: tuple[list[str], ...] = (),
    at: float = 1.0,
    error_rate: float = 0.001,
) -> Path:
    builder = SnapshotBuilder(created_at=at, error_rate=error_rate)
    for number, keys in enumerate((*others, hosts)):
        builder.add_keys(builder.add_source(Source(f"list {number}", ListAction.BLOCK, "ads")), keys)
    builder.add_adblock_list(builder.add_source(Source("rules", ListAction.BLOCK, "ads")), rules)
    path.write_bytes(builder.build())
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return snapshot(tmp_path / "old", HOSTS)


@pytest.mark.parametrize(
    ("hosts", "rules", "others"),
    [
        (HOSTS, RULES, ()),
        ([*HOSTS, *(f".more-{number}.example" for number in range(30))], RULES, ()),
        (HOSTS[20:], RULES, ()),
        ([*HOSTS[10:], ".more.example"], [*RULES[5:], "||more.example^"], ()),
        (HOSTS, RULES, (HOSTS[:40],)),  # other numbers of source sets, and entries with another one than before
        (HOSTS, RULES, tuple([HOSTS[number]] for number in range(300))),  # values of two bytes
    ],
)
def test_the_newer_snapshot_is_made_of_little(
    tmp_path: Path, old: Path, hosts: list[str], rules: list[str], others: tuple[list[str], ...]
) -> None:
    new = snapshot(tmp_path / "new", hosts, rules, others, 2.0)
    delta = make_delta(old, new)
    assert delta is not None
    done = rebuild(old, delta, tmp_path / "made", MOST)
    assert done == set(read_sections(new.read_bytes()))
    assert (tmp_path / "made").read_bytes() == new.read_bytes()
    assert len(delta) < new.stat().st_size * 0.15


def test_there_is_no_delta_to_quite_another_snapshot(tmp_path: Path, old: Path) -> None:
    other = snapshot(tmp_path / "new", [f".other-{number}.example" for number in range(3_000)], [])
    assert make_delta(old, other) is None
    assert make_delta(tmp_path / "missing", other) is None
    old.write_bytes(b"no snapshot" * 100)
    assert make_delta(old, other) is None


def test_what_is_too_large_to_be_patched_is_left_to_blocks(tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "MOST_PATCHED", 1_000)
    new = snapshot(tmp_path / "new", HOSTS, [*RULES[5:], "||more.example^"])
    delta = make_delta(old, new)
    assert delta is not None
    assert "adblock" not in rebuild(old, delta, tmp_path / "made", MOST)


def test_the_largest_section_that_is_patched(tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rules in ([*RULES, "||more.example^"], RULES[5:]):
        new = snapshot(tmp_path / "new", HOSTS, rules)
        before, after = (read_sections(path.read_bytes())["adblock"].length for path in (old, new))
        largest = max(before, after)
        for most, patched in ((largest, True), (largest - 1, False)):
            monkeypatch.setattr(making, "MOST_PATCHED", most)
            delta = make_delta(old, new)
            assert delta is not None
            assert ("adblock" in {part.name for part in read_delta(delta).parts}) is patched
        monkeypatch.undo()
        delta = make_delta(old, new)
        assert delta is not None
        for most, patched in ((largest, True), (largest - 1, False)):
            monkeypatch.setattr(rebuilding, "MOST_PATCHED", most)
            assert ("adblock" in rebuild(old, delta, tmp_path / "made", MOST)) is patched
        monkeypatch.undo()


@pytest.mark.parametrize(("error_rate", "made"), [(0.5, True), (2.0**-64, True), (2.0**-65, False)])
def test_how_many_positions_a_gate_may_have(tmp_path: Path, error_rate: float, *, made: bool) -> None:
    old = snapshot(tmp_path / "old", HOSTS[:500], error_rate=error_rate)
    new = snapshot(tmp_path / "new", HOSTS[:501], at=2.0, error_rate=error_rate)
    delta = make_delta(old, new)
    assert delta is not None
    assert ("bloom" in rebuild(old, delta, tmp_path / "made", MOST)) is made


def test_the_largest_gate_that_is_made(tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = snapshot(tmp_path / "new", HOSTS[20:], at=2.0)
    delta = make_delta(old, new)
    assert delta is not None
    length = read_sections(new.read_bytes())["bloom"].length
    for most, made in ((length, True), (length - 1, False)):
        monkeypatch.setattr(rebuilding, "_LARGEST_GATE", most)
        assert ("bloom" in rebuild(old, delta, tmp_path / "made", MOST)) is made


def test_the_file_is_private_and_no_other_file_is_written(tmp_path: Path, old: Path) -> None:
    new = snapshot(tmp_path / "new", [*HOSTS, ".more.example"], at=2.0)
    delta = make_delta(old, new)
    assert delta is not None
    (tmp_path / "made").write_bytes(b"of another time")
    os.link(tmp_path / "made", tmp_path / "kept")
    size = new.stat().st_size
    rebuild(old, delta, tmp_path / "made", size)
    assert (tmp_path / "made").read_bytes() == new.read_bytes()
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "kept").read_bytes() == b"of another time"
    for most, data in ((size - 1, delta), (MOST, write_delta(bytes(16) + (24).to_bytes(8, "little"), []))):
        with pytest.raises(FleetError, match="is for a snapshot of another size"):
            rebuild(old, data, tmp_path / "made", most)


def test_only_tables_are_made_from_changed_entries(tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no table could tell of any number of entries."""
    read: list[str] = []

    def table(data: mmap.mmap, section: Section) -> TableArrays:
        read.append(section.name)
        return table_of(data, section)

    monkeypatch.setattr(rebuilding, "table_of", table)
    new = snapshot(tmp_path / "new", [*HOSTS, ".more.example"], [*RULES, "||more.example^"], at=2.0)
    good = make_delta(old, new)
    assert good is not None
    delta = read_delta(good)
    others = [Part(part.name, Kind.TABLE if part.kind is Kind.PATCH else part.kind, part.data) for part in delta.parts]
    unknown = Part("unknown", Kind.PATCH, delta.parts[0].data)
    done = rebuild(old, write_delta(delta.head, [unknown, *others]), tmp_path / "made", MOST)
    assert done == set(read_sections(new.read_bytes())) - {part.name for part in delta.parts if part.kind is Kind.PATCH}
    assert read == ["blacklist"]


def _emptied(path: Path, name: str) -> None:
    section = read_sections(path.read_bytes())[name]
    with path.open("r+b") as file:
        file.seek(section.offset)
        file.write(bytes(section.length))


def test_a_section_that_was_left_to_blocks_before_makes_nothing(tmp_path: Path, old: Path) -> None:
    """As where several deltas are applied one after the other."""
    delta = make_delta(old, snapshot(tmp_path / "new", [*HOSTS, ".more.example"], [*RULES, "||more.example^"], at=2.0))
    assert delta is not None
    for name in ("blacklist", "adblock"):
        _emptied(old, name)
    assert {"blacklist", "adblock"}.isdisjoint(rebuild(old, delta, tmp_path / "made", MOST))


def test_a_damaged_older_snapshot_makes_no_delta_of_what_is_damaged(tmp_path: Path, old: Path) -> None:
    new = snapshot(tmp_path / "new", [*HOSTS, ".more.example"], [*RULES, "||more.example^"], at=2.0)
    _emptied(old, "adblock")
    delta = make_delta(old, new)
    assert delta is not None
    assert {part.name for part in read_delta(delta).parts} == {"meta", "bloom", "blacklist"}
    _emptied(old, "blacklist")
    assert make_delta(old, new) is None, "too little is left"


def _lying(delta: Delta, change: Callable[[Part], Part]) -> bytes:
    return write_delta(delta.head, [change(part) for part in delta.parts])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("blacklist", lambda data: data[:-1]),
        ("blacklist", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        ("blacklist", lambda data: b"\xff" * 24 + data[24:]),
        ("blacklist", lambda data: data[:24] + b"\xff" * 4 + data[28:]),
        ("blacklist", lambda _: b""),
        ("bloom", lambda data: data[:-1]),
        ("bloom", lambda data: data + b"\0"),
        ("bloom", lambda _: b""),
        ("bloom", lambda data: b"\x08" + data[1:]),
        ("bloom", lambda data: data[:8] + b"\0\0\0\xff" + data[12:]),
        ("bloom", lambda data: data[:8] + bytes(4) + data[12:]),
        ("adblock", lambda data: data[:-4]),
        ("adblock", lambda _: b"no frame"),
    ],
)
def test_a_lying_part_makes_nothing(tmp_path: Path, old: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    new = snapshot(tmp_path / "new", [*HOSTS[10:], ".more.example"], [*RULES[5:], "||more.example^"], at=2.0)
    good = make_delta(old, new)
    assert good is not None
    lying = _lying(read_delta(good), lambda part: Part(part.name, part.kind, change(part.data)) if part.name == name else part)
    done = rebuild(old, lying, tmp_path / "made", MOST)
    assert name not in done
    assert {"meta", "sources", "adblock", "blacklist"} - {name} <= done


def test_a_frame_that_would_grow_is_not_opened(tmp_path: Path, old: Path) -> None:
    import zstandard  # noqa: PLC0415  # for this test alone

    new = snapshot(tmp_path / "new", [*HOSTS, ".more.example"], at=2.0)
    good = make_delta(old, new)
    assert good is not None
    bomb = zstandard.ZstdCompressor().compress(bytes(50_000_000))
    lying = _lying(read_delta(good), lambda part: Part("meta", Kind.PATCH, bomb) if part.name == "meta" else part)
    assert "meta" not in rebuild(old, lying, tmp_path / "made", MOST)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:20],
        lambda data: b"X" + data[1:],
        lambda data: data[:8] + b"\xff\xff\xff\xff" + data[12:],
        lambda data: data + b"more",
        lambda data: data.replace(b'"patch"', b'"other"'),
        lambda data: data.replace(b'{"head":', b'{"head":-'),
        lambda data: data.replace(b"GWFLTSNP", b"GWFLTSNQ"),
        lambda _: b"",
        lambda _: write_delta(b"", []),
        lambda _: write_delta(bytes(16) + b"\xff" * 8, []),
    ],
)
def test_what_is_no_delta_is_refused(tmp_path: Path, old: Path, spoil: Callable[[bytes], bytes]) -> None:
    good = make_delta(old, snapshot(tmp_path / "new", [*HOSTS, ".more.example"], at=2.0))
    assert good is not None
    with pytest.raises(FleetError):
        rebuild(old, spoil(good), tmp_path / "made", MOST)
    with pytest.raises(FleetError):
        rebuild(old, good, tmp_path / "made", 1_000)
