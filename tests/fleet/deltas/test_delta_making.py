"""Which parts a delta has: each that is small, or at most half of its section; and what a delta spares."""

from pathlib import Path

import pytest

from gatewayfilter.engine.snapshot.format import Section, read_sections
from gatewayfilter.engine.tables.bloom import Mapped
from gatewayfilter.fleet.deltas import making
from gatewayfilter.fleet.deltas.delta_file import Kind, Part, read_delta
from gatewayfilter.fleet.deltas.making import make_delta
from tests.fleet.deltas.test_delta_rebuilding import HOSTS, RULES, snapshot


def test_parts_that_would_spare_little_are_left_to_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = snapshot(tmp_path / "old", HOSTS), snapshot(tmp_path / "new", [*HOSTS, ".more.example"], at=2.0)
    before, after = read_sections(old.read_bytes()), read_sections(new.read_bytes())
    changed = {name: section for name, section in after.items() if before[name].checksum != section.checksum}
    small = {name for name, section in changed.items() if section.length <= 8_192}
    large = min((section for name, section in changed.items() if name not in small), key=lambda section: section.length)
    assert small
    for size, kept in ((4_096, set(changed)), (4_097, set(changed) - small), (large.length // 2, set(changed) - small)):

        def part(_: object, __: object, ___: object, section: Section, size: int = size) -> Part:
            return Part(section.name, Kind.PATCH, bytes(size if section.name in small or section == large else 5))

        monkeypatch.setattr(making, "_part", part)
        delta = make_delta(old, new)
        assert delta is not None
        assert {one.name for one in read_delta(delta).parts} == (kept if size <= large.length // 2 else kept - {large.name})


def test_a_delta_with_what_it_leaves_to_blocks_is_half_of_the_snapshot_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = snapshot(tmp_path / "old", HOSTS), snapshot(tmp_path / "new", HOSTS, RULES[5:], at=2.0)
    before, after = read_sections(old.read_bytes()), read_sections(new.read_bytes())
    left = sum(section.length for name, section in after.items() if before[name].checksum != section.checksum)
    monkeypatch.setattr(making, "_part", lambda *_: None)
    most = new.stat().st_size // 2 - left
    for size in (most, most + 1):
        monkeypatch.setattr(making, "write_delta", lambda _head, _parts, size=size: bytes(size))
        assert make_delta(old, new) == (bytes(size) if size == most else None)


def test_a_section_that_is_new_is_left_to_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = snapshot(tmp_path / "old", HOSTS), snapshot(tmp_path / "new", HOSTS, RULES[5:], at=2.0)
    calls: list[object] = []

    def without(data: Mapped) -> dict[str, Section]:
        calls.append(data)
        found = read_sections(data)
        return {name: section for name, section in found.items() if len(calls) > 1 or name != "adblock"}

    monkeypatch.setattr(making, "read_sections", without)
    delta = make_delta(old, new)
    assert delta is not None
    assert {one.name for one in read_delta(delta).parts} == {"meta"}


def test_what_hardly_changed_is_a_small_patch(tmp_path: Path) -> None:
    rules = [f"||ads-{number * number}.example/{number:x}^$third-party" for number in range(3_000)]
    old = snapshot(tmp_path / "old", HOSTS[:10], rules)
    new = snapshot(tmp_path / "new", HOSTS[:10], [*rules[:10], *rules[12:]], at=2.0)
    delta = make_delta(old, new)
    assert delta is not None
    (patch,) = (part for part in read_delta(delta).parts if part.name == "adblock")
    assert len(patch.data) * 20 < read_sections(new.read_bytes())["adblock"].length
