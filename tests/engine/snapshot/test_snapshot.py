"""A snapshot says what its builder was told: save and open are identity. Damage is refused with one sentence."""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.blocked_parts import blocked_page
from gatewayfilter.engine.policies.effective_policy import ListSelection
from gatewayfilter.engine.snapshot.format import read_sections
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.overlay import Overlay
from gatewayfilter.engine.tables.bloom import BloomAnswer
from gatewayfilter.engine.tables.host_markers import host_of_key, prefix_marker
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, ManualRule, Source
from gatewayfilter.urls import digest_of, parse_url

BLOCK, ALLOW = ListAction.BLOCK, ListAction.ALLOW

texts = st.text(st.characters(codec="utf-8"), max_size=12)
keys = st.builds("{}{}".format, st.sampled_from(["", "."]), st.text("abc.", min_size=1, max_size=4)) | st.builds(
    "{}/{}".format, st.text("abc", min_size=1, max_size=2), st.sampled_from(["", "*", "x", "x/*", "x?y=1"])
)
sources = st.builds(Source, texts, st.sampled_from(ListAction), texts)
learned = st.builds(
    LearnedEntry,
    keys,
    st.sampled_from(ListAction),
    st.sampled_from(["", "gambling", "賭博"]),
    texts,
    texts,
    st.floats(0, 2e9),
    st.floats(0, 4e9),
    st.none() | st.floats(0, 1),
)
rules = st.builds(
    ManualRule,
    st.integers(0, 2**31),
    st.sampled_from(ListAction),
    st.sampled_from(EntryKind),
    texts,
    texts,
    texts,
    st.none() | st.floats(0, 2e9),
)


def small() -> bytes:
    """One of everything."""
    builder = SnapshotBuilder(feed_seq=7, created_at=1_000.0)
    bad = builder.add_source(Source("bad", BLOCK, "gambling"))
    good = builder.add_source(Source("good", ALLOW, "news"))
    ads = builder.add_source(Source("ads", BLOCK, "ads"))
    builder.add_keys(bad, [".bad.example", "host.example/path/*", "page.example/a?b=1"])
    builder.add_keys(good, [".good.example"])
    builder.add_adblock_list(ads, ["||ads.example^", "@@||ads.example/fine$script"])
    builder.add_learned([LearnedEntry("l.example/x", BLOCK, "adult", "http://l.example/x", "score 42.0", 5.0, 6.0)])
    builder.set_rules([ManualRule(3, BLOCK, EntryKind.DOMAIN, ".p.example", "why", "kids", 9.5)])
    return builder.build()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(sources, st.lists(keys, max_size=8)), max_size=4),
    st.lists(learned, max_size=6),
    st.lists(rules, max_size=4),
    st.integers(0, 2**53),
    st.floats(0, 2e9),
)
def test_save_and_open_is_identity(
    lists: list[tuple[Source, list[str]]],
    entries: list[LearnedEntry],
    people: list[ManualRule],
    feed_seq: int,
    created_at: float,
) -> None:
    builder = SnapshotBuilder(feed_seq=feed_seq, created_at=created_at)
    expected: dict[ListAction, dict[str, set[str]]] = {action: {} for action in ListAction}
    for number, (source, listed) in enumerate(lists):
        assert builder.add_source(source) == number
        assert builder.add_keys(number, listed) == len(listed)
        for key in listed:
            expected[source.action].setdefault(key, set()).add(source.name)
    assert builder.add_learned(entries) == len(entries)
    last = {entry.key: entry for entry in entries}
    for entry in last.values():
        expected[entry.action].setdefault(entry.key, set()).add(f"learned:{entry.category or 'harmless'}")
    builder.set_rules(people)

    snapshot = Snapshot.from_bytes(builder.build())

    assert snapshot.sources[: len(lists)] == tuple(source for source, _ in lists)
    assert snapshot.rules == tuple(people)
    assert (snapshot.info.feed_seq, snapshot.info.created_at) == (feed_seq, created_at)
    assert (snapshot.info.manual_rules, snapshot.info.learned) == (len(people), len(last))
    for action, table in snapshot.tables.items():
        for key, names in expected[action].items():
            assert snapshot.bloom.ask(digest_of(key)) is BloomAnswer.MAYBE
            found = table.find(digest_of(key))
            assert found is not None
            assert {snapshot.sources[index].name for index in snapshot.source_sets[found]} == names
            if marker := prefix_marker(key):
                assert table.find(digest_of(marker)) is not None
        assert table.find(digest_of("never.listed")) is None
    for host in {host_of_key(key) for key in expected[BLOCK] if "/" in key}:
        assert blocked_page(
            EngineState(snapshot, Overlay.over((), feed_seq), ListSelection()), parse_url(f"http://{host}/"), -1.0
        )
    assert snapshot.info.blacklist == len(expected[BLOCK])
    assert snapshot.info.whitelist == len(expected[ALLOW])
    assert snapshot.info.splicelist == len(expected[ListAction.SPLICE])
    for key, entry in last.items():
        assert snapshot.learned(digest_of(key)) == entry
    assert snapshot.learned(digest_of("never.listed")) is None


def test_info_counts_what_people_call_entries() -> None:
    data = small()
    info = Snapshot.from_bytes(data).info
    assert (info.blacklist, info.whitelist, info.adblock_rules, info.manual_rules, info.learned) == (4, 1, 2, 1, 1)
    assert (info.version, info.feed_seq, info.created_at, info.size_bytes) == (3, 7, 1_000.0, len(data))


def test_digests_of_another_shape_are_refused() -> None:
    builder = SnapshotBuilder()
    source = builder.add_source(Source("x"))
    assert builder.add_digests(source, np.zeros((2, 16), dtype=np.uint8)) == 2
    with pytest.raises(ValueError, match="shape"):
        builder.add_digests(source, np.zeros((2, 8), dtype=np.uint8))


def test_an_error_rate_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="error rate"):
        SnapshotBuilder(error_rate=0)


def test_a_mapped_file_outlives_its_name(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    path.write_bytes(small())
    snapshot = Snapshot.open(path)
    path.unlink()
    assert snapshot.blacklist.find(digest_of(".bad.example")) is not None
    assert snapshot.adblock.rule_count == 2


def test_closing_with_views_in_use_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    path.write_bytes(small())
    snapshot = Snapshot.open(path)
    matcher = snapshot.adblock
    snapshot.close()
    assert matcher.rule_count == 2


def borders(data: bytes) -> list[int]:
    """Returns where header, section table and each section begin and end."""
    sections = read_sections(data).values()
    return sorted({0, 1, 8, 63, 64, *(section.offset for section in sections), *(s.offset + s.length for s in sections)})


@pytest.mark.parametrize("verify", [True, False])
def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path, *, verify: bool) -> None:
    data = small()
    path = tmp_path / "snapshot"
    for border in borders(data):
        for cut in (border - 1, border, border + 1):
            if 0 <= cut < len(data):
                path.write_bytes(data[:cut])
                with pytest.raises(SnapshotError, match=r"^the snapshot snapshot cannot be used: [^\n]+$"):
                    Snapshot.open(path, verify=verify)


def test_every_flipped_byte_is_refused() -> None:
    data = small()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(SnapshotError):
            Snapshot.from_bytes(bytes(damaged))


@pytest.mark.parametrize("name", ["meta", "sources", "sets", "rules", "bloom", "blacklist", "adblock"])
def test_what_is_read_at_opening_is_always_verified(tmp_path: Path, name: str) -> None:
    data = bytearray(small())
    section = read_sections(bytes(data))[name]
    data[section.offset + section.length - 1] ^= 1
    path = tmp_path / "snapshot"
    path.write_bytes(data)
    with pytest.raises(SnapshotError, match=f"its section '{name}' is damaged"):
        Snapshot.open(path, verify=True)
    if name in {"bloom", "blacklist", "adblock"}:
        Snapshot.open(path).close()
    else:
        with pytest.raises(SnapshotError, match=f"its section '{name}' is damaged"):
            Snapshot.open(path)


def test_anything_appended_is_refused() -> None:
    with pytest.raises(SnapshotError, match="bytes instead of"):
        Snapshot.from_bytes(small() + b"\0")


@given(st.binary(max_size=300))
def test_foreign_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError, match="not a snapshot"):
        Snapshot.from_bytes(data)


def test_another_version_says_so() -> None:
    data = bytearray(small())
    data[8] = 1
    with pytest.raises(SnapshotError, match="format version 1, this program reads version 3"):
        Snapshot.from_bytes(bytes(data))


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.touch()])
def test_what_is_no_file_is_refused(tmp_path: Path, make: object) -> None:
    path = tmp_path / "snapshot"
    assert callable(make)
    make(path)
    with pytest.raises(SnapshotError, match=r"^the snapshot snapshot cannot be used: "):
        Snapshot.open(path)


def test_opening_rules_leaves_the_interpreter_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are short and the collector rests while rules are opened, and only then; also where they are damaged."""
    seen: list[tuple[float, bool]] = []

    def note(blob: memoryview) -> None:
        seen.append((sys.getswitchinterval(), gc.isenabled()))
        raise SnapshotError(f"{len(blob)} bytes are damaged")

    before = sys.getswitchinterval()
    monkeypatch.setattr("gatewayfilter.engine.snapshot.reader.AdblockMatcher", note)
    with pytest.raises(SnapshotError, match="damaged"):
        _ = Snapshot.from_bytes(small()).adblock
    ((turn_s, collects),) = seen
    assert turn_s < before
    assert not collects
    assert (sys.getswitchinterval(), gc.isenabled()) == (before, True)
