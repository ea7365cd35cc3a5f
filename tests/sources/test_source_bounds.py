"""When a list is due, what a small entry of the catalogue means, and how small files are written."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from zlib import crc32

import pytest

from gatewayfilter.model import ListAction
from gatewayfilter.sources import ListFormat
from gatewayfilter.sources.catalog import _entry
from gatewayfilter.sources.subscription import Definition, SourceState, read_definition, write_json
from gatewayfilter.sources.subscriptions import Subscriptions

MINE = Definition("mine", "https://lists.test/a.txt", ListFormat.HOSTS, "ads", ListAction.BLOCK, interval_h=24)
NEVER_TRIED = SourceState()
SPREAD = 1 + 0.1 * crc32(b"mine") / 2**32


@pytest.mark.parametrize(
    ("interval_h", "state", "wait_s"),
    [
        (24, SourceState(checked_at=1_000.0), 86_400),
        (0, SourceState(checked_at=1_000.0), 7 * 3_600),  # that of the settings
        (24, SourceState(checked_at=1_000.0, failures=1), 300),
        (24, SourceState(checked_at=1_000.0, failures=2), 600),
        (24, SourceState(checked_at=1_000.0, failures=9), 76_800),
        (24, SourceState(checked_at=1_000.0, failures=10), 86_400),
        (24, SourceState(checked_at=1_000.0, failures=10_000), 86_400),
        (0.05, SourceState(checked_at=1_000.0, failures=1), 180),
        (24, SourceState(checked_at=1_000.0, failures=1, retry_after_s=5_000.0), 5_000),
        (24, SourceState(checked_at=1_000.0, failures=1, retry_after_s=10.0), 300),
        (24, SourceState(checked_at=1_000.0, retry_after_s=200_000.0), 86_400),  # of an earlier failure
        (1e9, SourceState(checked_at=1_000.0, failures=21), 300 * 2.0**20),
        (1e9, SourceState(checked_at=1_000.0, failures=22), 300 * 2.0**20),
    ],
)
def test_when_a_list_is_due(interval_h: float, state: SourceState, wait_s: float) -> None:
    asked = cast("Subscriptions", SimpleNamespace(_settings=SimpleNamespace(interval_h=7)))
    definition = replace(MINE, interval_h=interval_h)
    assert Subscriptions._next_due_at(asked, definition, state) == pytest.approx(1_000.0 + wait_s * SPREAD)
    assert Subscriptions._next_due_at(asked, definition, NEVER_TRIED) == 0.0


def test_an_entry_of_the_catalogue_without_the_rest() -> None:
    texts = ("title", "address", "licence", "homepage", "category", "description", "description_zh")
    table: dict[str, Any] = {key: key for key in texts} | {"format": "hosts"}
    found = _entry("mine", table)
    assert [getattr(found, key) for key in texts] == list(texts)
    assert (found.name, found.list_format, found.interval_h, found.default, found.entries, found.size_mb) == (
        *("mine", ListFormat.HOSTS, 0.0, False, 0, 0.0),
    )
    whole = _entry("mine", table | {"interval_h": 5, "default": True, "entries": 7, "size_mb": 2})
    assert (whole.interval_h, whole.default, whole.entries, whole.size_mb) == (5.0, True, 7, 2.0)


def test_what_is_written_is_whole_on_the_disk_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "source.json", list[tuple[bool, bytes]]()

    def fsync(descriptor: int) -> None:
        seen.append((path.exists(), Path(f"/proc/self/fd/{descriptor}").read_bytes()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_json(path, MINE)
    assert seen == [(False, path.read_bytes())]
    assert [one.name for one in tmp_path.iterdir()] == ["source.json"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_definition(path) == MINE
