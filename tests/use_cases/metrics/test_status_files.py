"""Status files of processes: what is read of damaged ones, and totals over restarts."""

import json
from pathlib import Path

import pytest

from gatewayfilter.telemetry import METRICS
from gatewayfilter.use_cases.metrics import status_files
from gatewayfilter.use_cases.metrics.status_files import Child, MonotoneCounters, ProcessStatus, read_children, read_processes

COUNTER = next(iter(METRICS))


def write(folder: Path, name: str, document: object) -> None:
    (folder / f"{name}.json").write_text(json.dumps(document))


def test_numbers_of_a_process(tmp_path: Path) -> None:
    write(
        tmp_path,
        "proxy-0",
        {
            "pid": 7,
            "at": 90.0,
            "counters": {COUNTER: 3, "other": True},
            "decision_us": {"5": 2, "inf": -1},
            "snapshot": {"created_at": 50.5, "name": "x", "full": True},
            "rss_bytes": 9,
            "state": "serving",
        },
    )
    write(tmp_path, "supervisor", {"pid": 1})
    (found,) = read_processes(tmp_path, 100.0)
    assert (found.name, found.pid, found.age_s, found.counters[COUNTER]) == ("proxy-0", 7, 10.0, 3)
    assert (found.counters["decision_us 5"], found.counters["decision_us inf"], "other" in found.counters) == (2, 0, False)
    assert found.facts == {"pid": 7.0, "at": 90.0, "rss_bytes": 9.0, "snapshot_created_at": 50.5}


@pytest.mark.parametrize(
    ("document", "pid", "age_s"),
    [
        ({"pid": True, "at": "x"}, 0, 0.0),
        ({"pid": -1, "at": 200.0}, 0, 0.0),
        ({"pid": 1.5}, 0, 0.0),
        ({"counters": [], "decision_us": 1, "snapshot": []}, 0, 0.0),
    ],
)
def test_numbers_that_are_none(document: dict[str, object], pid: int, age_s: float, tmp_path: Path) -> None:
    write(tmp_path, "proxy-0", document)
    (found,) = read_processes(tmp_path, 100.0)
    assert (found.pid, found.age_s, set(found.counters.values())) == (pid, age_s, {0})


def test_what_is_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        write(tmp_path, f"proxy-{number}", {"pid": 1, "filler": "x" * 100})
    monkeypatch.setattr(status_files, "_MAX_FILES", 2)
    assert [found.name for found in read_processes(tmp_path, 0.0)] == ["proxy-0", "proxy-1"]
    monkeypatch.setattr(status_files, "_MAX_BYTES", 100)
    assert read_processes(tmp_path, 0.0) == []


def test_children_of_the_supervisor(tmp_path: Path) -> None:
    assert read_children(tmp_path) == []
    children = {"web": {"pid": None, "restarts": -1}, "proxy-0": {"pid": 7, "restarts": 2, "stalls": 1}, "odd": 1}
    write(tmp_path, "supervisor", {"children": children})
    assert read_children(tmp_path) == [Child("proxy-0", 2, 1, is_up=True), Child("web", 0, 0, is_up=False)]
    write(tmp_path, "supervisor", {"children": [1]})
    assert read_children(tmp_path) == []


def test_totals_go_on_over_restarts() -> None:
    counters = MonotoneCounters()
    for pid, count in ((1, 5), (1, 7), (2, 7), (2, 8), (2, 1)):
        counters.take([ProcessStatus("proxy-0", pid, 0.0, {COUNTER: count}, {})])
    counters.take([ProcessStatus("learner", 9, 0.0, {COUNTER: 4}, {})])
    assert {name: dict(totals) for name, totals in counters.totals().items()} == {
        "learner": {COUNTER: 4},
        "proxy-0": {COUNTER: 16},
    }
