"""A chain of deltas, each checked before it is applied; whatever fails, nothing is left behind."""

import hashlib
import logging
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.deltas import catching_up
from gatewayfilter.fleet.deltas.catching_up import CaughtUp, catch_up, discard
from gatewayfilter.fleet.deltas.chain import DeltaLink

DELTAS = (b"one", b"four", b"eleven")
MOST = 100


def link_to(data: bytes) -> DeltaLink:
    return DeltaLink("older", hashlib.sha256(data).hexdigest(), len(data))


LINKS = tuple(map(link_to, DELTAS))
FILES = {link.name: data for link, data in zip(LINKS, DELTAS, strict=True)}


@pytest.fixture(autouse=True)
def _rebuilding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each delta is appended."""

    def rebuild(old: Path, data: bytes, target: Path, most: int) -> set[str]:
        assert most == MOST
        if data == b"broken":
            raise FleetError("no delta")
        target.write_bytes(old.read_bytes() + data)
        return set()

    monkeypatch.setattr(catching_up, "rebuild", rebuild)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base"
    path.write_bytes(b"base ")
    return path


def fetch(name: str, size: int) -> bytes:
    data = FILES[name]
    assert len(data) == size
    return data


@pytest.mark.parametrize("count", [1, 2, 3])
def test_deltas_are_applied_in_order(tmp_path: Path, base: Path, count: int) -> None:
    folder = tmp_path / "a" / "b"
    found = catch_up(folder, base, LINKS[:count], MOST, fetch)
    assert found.path is not None
    assert found.path.read_bytes() == b"base " + b"".join(DELTAS[:count])
    assert found.fetched == sum(map(len, DELTAS[:count]))
    assert len([*folder.iterdir()]) == min(count, 2)  # two take turns
    assert folder.stat().st_mode & 0o777 == 0o700
    discard(folder)
    assert [*folder.iterdir()] == []
    assert base.read_bytes() == b"base "


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("answer", [b"", b"onf", b"elevem", FleetError("gone"), OSError("disk"), KeyError("x")])
def test_a_delta_that_is_not_as_signed_is_not_applied(
    tmp_path: Path, base: Path, place: int, answer: bytes | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def other(name: str, size: int) -> bytes:
        asked.append(name)
        if len(asked) <= place:
            return fetch(name, size)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with caplog.at_level(logging.INFO):
        found = catch_up(tmp_path / "made", base, LINKS, MOST, other)
    came = 0 if isinstance(answer, Exception) else len(answer)
    assert found == CaughtUp(None, sum(map(len, DELTAS[:place])) + came)
    assert len(asked) == place + 1
    assert [*(tmp_path / "made").iterdir()] == []
    reason = "KeyError" if isinstance(answer, KeyError) else str(answer) if came == 0 and answer else "not as signed"
    assert reason in caplog.text


def test_a_delta_that_cannot_be_applied_leaves_nothing(tmp_path: Path, base: Path) -> None:
    links = (LINKS[0], link_to(b"broken"))
    files = {link.name: data for link, data in zip(links, (b"one", b"broken"), strict=True)}
    assert catch_up(tmp_path, base, links, MOST, lambda name, _: files[name]) == CaughtUp(None, 9)
    assert [path.name for path in tmp_path.iterdir()] == ["base"]


def test_what_is_left_of_another_time_is_removed(tmp_path: Path, base: Path) -> None:
    (tmp_path / "7.made").write_bytes(b"old")
    assert catch_up(tmp_path, base, (), MOST, fetch) == CaughtUp(None, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["base"]


def test_what_another_process_removes_meanwhile_is_passed_over(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "glob", lambda folder, _: iter([folder / "gone.made"]))
    assert catch_up(tmp_path, base, LINKS, MOST, fetch).path is not None
    discard(tmp_path)


@pytest.mark.parametrize(("largest", "made"), [(6, True), (5, False)])
def test_a_large_delta_is_left_to_blocks(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, largest: int, *, made: bool
) -> None:
    monkeypatch.setattr(catching_up, "LARGEST_DELTA", largest)
    assert (catch_up(tmp_path, base, LINKS, MOST, fetch).path is not None) is made


@pytest.mark.parametrize(("more", "made"), [(0, True), (-1, False)])
def test_files_are_made_where_there_is_room(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, more: int, *, made: bool
) -> None:
    usage = SimpleNamespace(free=4 * MOST + 64_000_000 + more)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert (catch_up(tmp_path, base, LINKS, MOST, fetch).path is not None) is made
