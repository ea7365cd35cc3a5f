import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.crawl import SeenFilter
from gatewayfilter.crawl.frontier import seen_filter
from gatewayfilter.urls import digest_of


@settings(max_examples=30)
@given(st.sets(st.binary(min_size=16, max_size=16), max_size=200))
def test_nothing_added_is_forgotten(digests: set[bytes]) -> None:
    known = SeenFilter()
    for digest in digests:
        known.add(digest)
        assert not known.add(digest)
    assert all(digest in known for digest in digests)


def test_growth_keeps_the_error_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_filter, "INITIAL_CAPACITY", 500)
    rng = random.Random(7)
    known = SeenFilter()
    for _ in range(4000):
        known.add(rng.randbytes(16))
    wrong = sum(rng.randbytes(16) in known for _ in range(5000))
    assert wrong <= 60  # 1 % at most, over all stages


def test_saving_and_loading(tmp_path: Path) -> None:
    path = tmp_path / "seen.bloom"
    known = SeenFilter(path)
    known.save()
    assert not path.exists()
    digests = [digest_of(str(number)) for number in range(1000)]
    assert all(known.add(digest) for digest in digests)
    assert known.unsaved == 1000
    known.save()
    assert known.unsaved == 0
    again = SeenFilter(path)
    assert all(digest in again for digest in digests)
    assert digest_of("another") not in again
    assert len(again) == len(known)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-3], lambda data: data[:5], lambda _: b"", lambda data: data[:99] + b"x" + data[100:]]
)
def test_a_damaged_file_starts_an_empty_filter(tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "seen.bloom"
    known = SeenFilter(path)
    known.add(b"a" * 16)
    known.save()
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    again = SeenFilter(path)
    assert len(again) == 0
    assert "damaged" in caplog.text
    again.add(b"b" * 16)
    again.save()
    assert b"b" * 16 in SeenFilter(path)


def test_a_folder_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    known = SeenFilter(tmp_path / "missing" / "seen.bloom")
    known.add(b"a" * 16)
    known.save()
    assert known.unsaved == 1
    assert "cannot write seen.bloom" in caplog.text


def test_a_full_filter_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_filter, "MAX_ENTRIES", 3)
    known = SeenFilter()
    for name in "abcd":
        known.add(digest_of(name))
    assert len(known) == 1


def test_it_grows_by_doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_filter, "INITIAL_CAPACITY", 100)
    known = SeenFilter()
    sizes = []
    for number in range(700):
        known.add(digest_of(str(number)))
        if known.size_bits not in sizes:
            sizes.append(known.size_bits)
    assert sizes[0] > 100 * 8
    assert len(sizes) == 3
    assert all(later > 2 * earlier for earlier, later in pairwise(sizes))
