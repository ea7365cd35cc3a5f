"""Markers: keys about a host, and records that count the blocked parts of a host."""

from dataclasses import replace

from gatewayfilter.engine.tables.host_markers import (
    blocked_part_of,
    count_parts,
    host_of_key,
    part_marker,
    parts_counted,
    prefix_marker,
    recount,
    site_marker,
)
from gatewayfilter.model import LearnedEntry, ListAction
from tests.case_tables import all_cases


def entry(key: str, category: str = "gambling", action: ListAction = ListAction.BLOCK, until: float = 9.0) -> LearnedEntry:
    return LearnedEntry(key, action, category, f"http://{key}", "score 9", 1.0, until)


@all_cases(
    ("key", "host", "marker"),
    [
        ("a.test/x", "a.test", None),
        ("a.test/", "a.test", None),
        ("a.test:81/x", "a.test", None),
        ("a.test/x/*", "a.test", "a.test**"),
        ("a.test:81/*", "a.test", "a.test:81**"),
        ("[::1]/x", "[::1]", None),
        ("[::1]:81/x/*", "[::1]", "[::1]:81**"),
    ],
)
def test_hosts_and_markers_of_keys(key: str, host: str, marker: str | None) -> None:
    assert (host_of_key(key), prefix_marker(key)) == (host, marker)
    assert blocked_part_of(entry(key)) == f"{host}*gambling"


def test_markers_are_of_hosts() -> None:
    assert (part_marker("a.test"), part_marker("a.test", "games"), site_marker("google.*")) == (
        "a.test*",
        "a.test*games",
        ".google.**",
    )


def test_what_blocks_no_part_is_not_counted() -> None:
    assert blocked_part_of(entry(".a.test")) == ""
    assert blocked_part_of(entry("a.test/x", action=ListAction.ALLOW)) == ""


def test_blocked_parts_are_counted_by_host_and_category() -> None:
    entries = [entry("a.test/1"), entry("a.test:81/2", until=20.0), entry("a.test/3", until=5.0), entry("a.test/4", "adult")]
    found = count_parts([*entries, entry("b.test/1"), entry(".c.test"), entry("a.test/5", action=ListAction.ALLOW)])
    assert {marker: (parts_counted(record), record.expires_at) for marker, record in found.items()} == {
        "a.test*gambling": (3, 20.0),
        "a.test*adult": (1, 9.0),
        "b.test*gambling": (1, 9.0),
    }
    record = found["a.test*gambling"]
    assert record == LearnedEntry("a.test*gambling", ListAction.BLOCK, "gambling", "", "3", 0.0, 20.0)


def test_a_removal_leaves_the_expiry() -> None:
    record = LearnedEntry("a.test*gambling", ListAction.BLOCK, "gambling", "", "2", 0.0, 9.0)
    assert recount(record, record.key, entry("a.test/1", until=99.0), -1) == replace(record, detail="1")
    assert recount(record, record.key, entry("a.test/1", until=99.0), 1) == replace(record, detail="3", expires_at=99.0)
    assert parts_counted(recount(None, record.key, entry("a.test/1"), -1)) == -1
