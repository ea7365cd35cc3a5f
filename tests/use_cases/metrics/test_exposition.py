"""The exposition: every counter is in it, by the conventions, and no total goes back when a process starts again."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gatewayfilter.telemetry import METRICS
from gatewayfilter.use_cases.metrics.exposition import StatusCollector, exposition, metric_name

DASHBOARD = Path(__file__).parents[3] / "deploy" / "grafana" / "gatewayfilter.json"
NAME = re.compile(r"gatewayfilter_[a-z0-9_]+")


def write(folder: Path, name: str, **facts: Any) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"pid": 1, "at": 100.0} | facts))


def values(collector: StatusCollector) -> dict[tuple[str, str], float]:
    families = list(text_string_to_metric_families(exposition(collector).decode()))
    return {(sample.name, sample.labels.get("process", "")): sample.value for family in families for sample in family.samples}


def running(folder: Path) -> StatusCollector:
    counters = {name: number for number, name in enumerate(METRICS, 1)}
    snapshot = {"created_at": 50.5, "feed_seq": 3}
    times = {"5": 2, "10": 3, "inf": 1, "sum": 200_031}
    write(folder, "proxy-0", counters=counters, decision_us=times, rss_bytes=7, feed_seq=4, snapshot=snapshot)
    write(folder, "learner", counters={}, feed_seq=4, published_seq=3)
    write(folder, "supervisor", children={"proxy-0": {"pid": 1, "restarts": 2, "stalls": 1}, "learner": {"pid": None}})
    return StatusCollector(folder, lambda: 101.5)


def test_every_counter_is_exported(tmp_path: Path) -> None:
    found = values(running(tmp_path))
    for number, name in enumerate(METRICS, 1):
        assert found[metric_name(name), "proxy-0"] == number
        assert found[metric_name(name), "learner"] == 0
    assert found["gatewayfilter_process_restarts_total", "proxy-0"] == 2
    assert found["gatewayfilter_process_stalls_total", "proxy-0"] == 1
    assert found["gatewayfilter_process_up", "proxy-0"] == 1
    assert found["gatewayfilter_process_up", "learner"] == 0
    assert found["gatewayfilter_status_age_seconds", "proxy-0"] == 1.5
    assert found["gatewayfilter_process_resident_memory_bytes", "proxy-0"] == 7
    assert found["gatewayfilter_snapshot_created_timestamp_seconds", "proxy-0"] == 50.5
    assert found["gatewayfilter_published_seq", "learner"] == 3


def test_conventions(tmp_path: Path) -> None:
    """What `promtool check metrics` asks for: a help text and a type for each, totals for counters, base units."""
    text = exposition(running(tmp_path)).decode()
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in {"counter", "gauge", "histogram", "info"}, family
        assert NAME.fullmatch(family.name)
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert not re.search(r"_(ms|us|minutes|hours|mb|kb)(_|$)", sample.name)
    assert text.count("# TYPE gatewayfilter_requests_total counter") == 1


def test_decision_times_are_a_histogram(tmp_path: Path) -> None:
    collector = running(tmp_path)

    def buckets() -> dict[str, float]:
        families = text_string_to_metric_families(exposition(collector).decode())
        family = next(one for one in families if one.name == "gatewayfilter_decision_seconds")
        assert {sample.labels["process"] for sample in family.samples} == {"proxy-0"}
        return {sample.labels.get("le", sample.name.rpartition("_")[2]): sample.value for sample in family.samples}

    found = buckets()
    assert (found["5e-06"], found["1e-05"], found["1.5e-05"], found["0.1"], found["+Inf"]) == (2, 5, 5, 5, 6)
    assert found["count"] == 6
    assert found["sum"] == pytest.approx(0.200031)
    write(tmp_path, "proxy-0", pid=2, decision_us={"5": 1, "sum": 4})
    found = buckets()
    assert (found["5e-06"], found["+Inf"]) == (3, 7)
    assert found["sum"] == pytest.approx(0.200035)
    write(tmp_path, "proxy-0", pid=2, decision_us=["5", 1])
    assert buckets()["+Inf"] == 7


def test_one_very_slow_decision_is_counted(tmp_path: Path) -> None:
    collector = running(tmp_path)
    write(tmp_path, "proxy-1", decision_us={"inf": 1, "sum": 900_000})
    assert values(collector)["gatewayfilter_decision_seconds_count", "proxy-1"] == 1


def test_each_metric_of_the_dashboard_exists(tmp_path: Path) -> None:
    known = {name for name, _ in values(running(tmp_path))}
    dashboard = json.loads(DASHBOARD.read_text())
    used = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(used) > 20
    for expression in used:
        assert set(NAME.findall(expression)) <= known, expression
        assert NAME.search(expression)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_totals_do_not_go_back(tmp_path: Path) -> None:
    collector = StatusCollector(tmp_path)
    seen: list[float] = []
    for pid, count in [(1, 10), (1, 15), (2, 3), (2, 3), (2, 8), (3, 20), (3, 1), (3, 2)]:
        write(tmp_path, "proxy-0", pid=pid, counters={"requests": count})
        seen.append(values(collector)["gatewayfilter_requests_total", "proxy-0"])
    assert seen == [10, 15, 18, 18, 23, 43, 44, 45]
    (tmp_path / "proxy-0.json").unlink()
    assert values(collector)["gatewayfilter_requests_total", "proxy-0"] == 45


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"[" * 100_000, b"\xff", b'{"counters": 1, "pid": "x", "at": "y", "snapshot": [1]}',
        b'{"counters": {"requests": "9", "blocked": -1, "evil\\n": 1, "unknown": true}}', b'{"children": [1]}',
    ],
)  # fmt: skip
def test_damaged_files_are_passed_over(content: bytes, tmp_path: Path) -> None:
    for name in ("proxy-0", "supervisor", 'a"b\\c'):
        (tmp_path / f"{name}.json").write_bytes(content)
    os.mkfifo(tmp_path / "learner.json")
    (tmp_path / "crawler-1.json").symlink_to("/etc/passwd")
    found = values(StatusCollector(tmp_path))
    assert found.get(("gatewayfilter_requests_total", "proxy-0"), 0) == 0
    assert found["gatewayfilter_build_info", ""] == 1


def test_no_state_folder(tmp_path: Path) -> None:
    assert values(StatusCollector(tmp_path / "missing"))["gatewayfilter_build_info", ""] == 1
