"""A snapshot that is made from an older one and a delta is the newer one, byte by byte; what a lying delta makes is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.format import read_sections
from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.deltas import making
from gatewayfilter.fleet.deltas.delta_file import Delta, Kind, Part, read_delta, write_delta
from gatewayfilter.fleet.deltas.making import make_delta
from gatewayfilter.fleet.deltas.rebuilding import rebuild
from gatewayfilter.model import ListAction, Source

HOSTS = [f".host-{number}.example" for number in range(3_000)]
RULES = [f"||ads-{number}.example^$third-party" for number in range(500)]
MOST = 10_000_000


def snapshot(path: Path, hosts: list[str], rules: list[str] = RULES, others: tuple[list[str], ...] = (), at: float = 1.0) -> Path:
    builder = SnapshotBuilder(created_at=at)
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
