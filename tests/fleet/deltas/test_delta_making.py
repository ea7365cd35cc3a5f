"""Which parts a delta has: each that is small, or at most half of its section."""

from pathlib import Path

import pytest

from gatewayfilter.engine.snapshot.format import Section, read_sections
from gatewayfilter.fleet.deltas import making
from gatewayfilter.fleet.deltas.delta_file import Kind, Part, read_delta
from gatewayfilter.fleet.deltas.making import make_delta
from tests.fleet.deltas.test_delta_rebuilding import HOSTS, snapshot


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
