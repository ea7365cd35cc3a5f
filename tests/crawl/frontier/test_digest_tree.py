import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gatewayfilter.crawl.frontier import digest_tree
from gatewayfilter.crawl.frontier.digest_tree import DigestTree
from tests.case_tables import all_cases

# Few different bytes, so that digests share long beginnings and the tree grows deep.
_CLOSE = st.binary(min_size=3, max_size=3).map(lambda tail: bytes(13) + bytes(byte % 3 for byte in tail))
_DIGESTS = st.binary(min_size=16, max_size=16) | _CLOSE


class TreeEqualsSet(RuleBasedStateMachine):
    """Whatever is done, the tree holds what a set would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = DigestTree()
        self.model: set[bytes] = set()

    @rule(digest=_DIGESTS)
    def add(self, digest: bytes) -> None:
        assert self.tree.add(digest) is (digest not in self.model)
        self.model.add(digest)

    @rule(digest=_DIGESTS)
    def remove(self, digest: bytes) -> None:
        assert self.tree.remove(digest) is (digest in self.model)
        self.model.discard(digest)

    @rule(digest=_DIGESTS)
    def look_up(self, digest: bytes) -> None:
        assert (digest in self.tree) is (digest in self.model)

    @invariant()
    def equal(self) -> None:
        assert len(self.tree) == len(self.model)
        assert sorted(self.tree) == sorted(self.model)


TestTreeEqualsSet = TreeEqualsSet.TestCase
TestTreeEqualsSet.settings = settings(max_examples=30, deadline=None)


def test_leaves_branch_as_they_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_tree, "_LEAF_ENTRIES", 2)
    chance = random.Random(3)
    digests = [bytes(12) + chance.randbytes(4) for _ in range(3000)]
    tree = DigestTree()
    assert tree.update(digests) == len(set(digests))
    assert all(digest in tree for digest in digests)
    assert set(tree) == set(digests)
    assert all(tree.remove(digest) for digest in set(digests))
    assert len(tree) == 0
    assert list(tree) == []


@all_cases("first", range(4))
def test_the_end_of_one_and_the_beginning_of_the_next_are_no_entry(first: int) -> None:
    tree = DigestTree()
    tree.add(bytes([first]) + b"abcdefghijklmno")
    tree.add(bytes([first]) + b"pqrstuvwxyzabcd")
    assert bytes([first]) + b"ghijklmnopqrstu" not in tree
    assert not tree.remove(bytes([first]) + b"ghijklmnopqrstu")
    assert len(tree) == 2


@settings(max_examples=30)
@given(st.sets(_DIGESTS, max_size=200))
def test_saving_and_opening_is_identity(tmp_path_factory: pytest.TempPathFactory, digests: set[bytes]) -> None:
    path = tmp_path_factory.mktemp("tree") / "seen.tree"
    tree = DigestTree(path)
    tree.update(digests)
    tree.save()
    again = DigestTree(path)
    assert (set(again), len(again), again.unsaved) == (digests, len(digests), 0)


def test_removals_are_saved_and_nothing_is_left_beside(tmp_path: Path) -> None:
    tree = DigestTree(tmp_path / "seen.tree")
    tree.update([b"a" * 16, b"b" * 16])
    tree.save()
    tree.remove(b"a" * 16)
    tree.save()
    assert list(DigestTree(tmp_path / "seen.tree")) == [b"b" * 16]
    assert [path.name for path in tmp_path.iterdir()] == ["seen.tree"]


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-3], lambda data: data[:5], lambda _: b"", lambda data: data[:30] + b"x" + data[31:]]
)
def test_a_damaged_file_starts_an_empty_tree(tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "seen.tree"
    tree = DigestTree(path)
    tree.add(b"a" * 16)
    tree.save()
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    assert len(DigestTree(path)) == 0
    assert "damaged" in caplog.text


def test_a_folder_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tree = DigestTree(tmp_path / "missing" / "seen.tree")
    tree.add(os.urandom(16))
    tree.save()
    assert tree.unsaved == 1
    assert "cannot write seen.tree" in caplog.text


def test_a_file_is_whole_on_the_disk_before_it_takes_the_place_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "seen.tree"
    tree = DigestTree(path)
    tree.add(b"a" * 16)
    tree.save()
    tree.add(b"b" * 16)
    sizes = []

    def fails(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("gatewayfilter.crawl.frontier.digest_tree.os.fsync", fails)
        tree.save()
    assert sizes == [path.stat().st_size + 16]
    assert list(DigestTree(path)) == [b"a" * 16]
    assert caplog.messages == ["cannot write seen.tree: Input/output error"]
    assert [file.name for file in tmp_path.iterdir()] == ["seen.tree"]
    tree.save()
    assert len(DigestTree(path)) == 2


def test_a_file_is_written_when_something_changed(tmp_path: Path) -> None:
    path = tmp_path / "seen.tree"
    DigestTree(path).save()
    assert not path.exists()
    tree = DigestTree(path)
    assert tree.update([b"a" * 16, b"a" * 16, b"b" * 16]) == tree.unsaved == 2
    assert tree.remove(b"a" * 16)
    assert tree.unsaved == 3
    tree.save()
    assert tree.unsaved == 0
    path.unlink()
    tree.save()
    assert not path.exists()


def test_a_leaf_branches_when_it_is_full() -> None:
    tree = DigestTree()
    for number in range(digest_tree._LEAF_ENTRIES):
        tree.add(bytes([7, number]) + b"a" * 14)
    kinds = [type(tree._root[7])]
    tree.add(bytes([7, 0]) + b"b" * 14)
    assert [*kinds, type(tree._root[7])] == [bytearray, list]
    assert len(tree) == digest_tree._LEAF_ENTRIES + 1
    assert bytes([7, 255]) + b"a" * 14 in tree


def test_it_is_emptied_when_it_holds_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_tree, "MAX_ENTRIES", 3)
    tree = DigestTree()
    digests = [bytes([number]) * 16 for number in range(4)]
    lengths = []
    for digest in digests:
        assert tree.add(digest)
        lengths.append(len(tree))
    assert lengths == [1, 2, 3, 1]
    assert [digest in tree for digest in digests] == [False, False, False, True]
