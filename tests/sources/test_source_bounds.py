"""When a list is due, what a small entry of the catalogue means, and how small files are written."""

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from zlib import crc32

import pytest

from gatewayfilter.errors import ListError, SourceError
from gatewayfilter.model import ListAction
from gatewayfilter.sources import ListFormat
from gatewayfilter.sources.catalog import _entry
from gatewayfilter.sources.download import acquire as acquire_module
from gatewayfilter.sources.download.acquire import _refuse_mostly_bad
from gatewayfilter.sources.formats.list_format import ParseReport
from gatewayfilter.sources.subscription import (
    Definition,
    SourceState,
    Subscription,
    read_definition,
    read_report,
    read_state,
    write_json,
)
from gatewayfilter.sources.subscriptions import Subscriptions
from tests.case_tables import all_cases

MINE = Definition("mine", "https://lists.test/a.txt", ListFormat.HOSTS, "ads", ListAction.BLOCK, interval_h=24)
NEVER_TRIED = SourceState()
SPREAD = 1 + 0.1 * crc32(b"mine") / 2**32


@all_cases(
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


def test_records_are_read_as_they_were_written_and_damaged_ones_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    report = ParseReport(
        ListFormat.HOSTS,
        7,
        1,
        2,
        3,
        {"popup": 4},
        5,
        1,
        samples=((3, "x", "not a host name"),),
        taken=("a.example", ".b.example"),
    )
    state = SourceState("e", "m", "s", 1.0, 2.0, 3.0, 4, "no answer", 5.0, 6.0)
    write_json(path, report)
    assert read_report(path) == report
    assert (report.entries, read_state(path)) == (10, SourceState())
    table = json.loads(path.read_text())
    del table["taken"]
    path.write_text(json.dumps(table))
    assert read_report(path) == replace(report, taken=())
    write_json(path, state)
    assert (read_state(path), read_report(path)) == (state, None)
    write_json(path, replace(MINE, list_format=None))
    assert read_definition(path) == replace(MINE, list_format=None)
    for text in ("{", "[]", '{"list_format": "sonnet"}'):
        path.write_text(text)
        assert (read_state(path), read_report(path)) == (SourceState(), None)
        with pytest.raises(SourceError, match="is damaged"):
            read_definition(path)
    path.unlink()
    assert (read_state(path), read_report(path)) == (SourceState(), None)
    with pytest.raises(SourceError, match="cannot read"):
        read_definition(path)


def test_failures_are_counted_since_the_first_and_waits_are_bounded() -> None:
    once = SourceState(etag="e", checked_at=1.0).failed(10.0, "no answer", 20.0)
    assert once == SourceState(
        etag="e", checked_at=10.0, failed_at=10.0, failures=1, failing_since=10.0, error="no answer", retry_after_s=20.0
    )
    again = once.failed(30.0, "refused")
    assert (again.failures, again.failing_since, again.failed_at, again.error, again.retry_after_s) == (
        2,
        10.0,
        30.0,
        "refused",
        0.0,
    )
    assert once.failed(30.0, "busy", 1e9).retry_after_s == 604_800.0


@pytest.mark.parametrize(
    ("changed", "pending"), [({}, True), ({"enabled": False}, False), ({"bundled": True}, False), ({"name": "other"}, True)]
)
def test_what_is_enabled_and_was_never_fetched_is_pending(changed: dict[str, Any], tmp_path: Path, *, pending: bool) -> None:
    path = tmp_path / "list"
    found = Subscription(replace(MINE, **changed), path)
    assert found.is_pending is pending
    path.touch()
    assert not found.is_pending


@all_cases(
    ("report", "why"),
    [
        ({"accepted": 1, "rejected": 1}, ""),
        ({"accepted": 1, "rejected": 2}, "most of it cannot be read as hosts: 2 bad lines, 1 good; line 7, 'x': odd"),
        ({"cosmetic": 1, "duplicates": 1, "unsupported": {"a": 1, "b": 2}, "rejected": 5}, ""),
        (
            {"accepted": 1_000, "cosmetic": 1, "duplicates": 1, "unsupported": {"a": 1, "b": 2}, "rejected": 1_006},
            "most of it cannot be read as hosts: 1,006 bad lines, 1,005 good; line 7, 'x': odd",
        ),
        ({"duplicates": 5, "unsupported": {"a": 9}}, "it holds no usable entry; line 7, 'x': odd"),
    ],
)
def test_a_list_of_which_most_is_bad_is_refused(report: dict[str, Any], why: str) -> None:
    found = ParseReport(ListFormat.HOSTS, samples=((7, "x", "odd"),), **report)
    if not why:
        _refuse_mostly_bad(found)
        return
    with pytest.raises(ListError) as refused:
        _refuse_mostly_bad(found)
    assert str(refused.value) == why


def test_what_is_quoted_of_a_bad_list() -> None:
    samples = tuple((number, "y" * 70, "odd") for number in range(9))
    with pytest.raises(ListError) as refused:
        _refuse_mostly_bad(ParseReport(ListFormat.HOSTS, samples=samples))
    quoted = [f"line {number}, {'y' * 60!r}: odd" for number in range(acquire_module._QUOTED)]
    assert str(refused.value) == f"it holds no usable entry; {'; '.join(quoted)}"
    with pytest.raises(ListError, match=r"^it holds no usable entry; nothing but comments$"):
        _refuse_mostly_bad(ParseReport(ListFormat.HOSTS))
