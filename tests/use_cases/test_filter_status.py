"""The state of the filter by its status files: what is counted, and what needs attention."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ListError
from gatewayfilter.interfaces import ChannelState
from gatewayfilter.store import Store
from gatewayfilter.use_cases import filter_status as module
from gatewayfilter.use_cases.filter_status import (
    ListStatus,
    WorkerStatus,
    filter_status,
    process_states,
    running_listen,
    serving_workers,
)
from gatewayfilter.use_cases.process_facts import process_facts

NOW = 2_000_000_000.0
LISTS = ListStatus(1, 10, 10, "a", 0.0, (), ())


def says(settings: Settings, name: str, **facts: Any) -> None:
    """Writes a status file as a process does; it is this one."""
    folder = settings.data_dir / "run"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"pid": os.getpid(), **facts}))


def test_the_file_of_a_process_counts_while_it_lives(settings: Settings) -> None:
    assert process_facts(settings, "learner") == {}
    says(settings, "learner", state="learning")
    assert process_facts(settings, "learner")["state"] == "learning"
    path = settings.data_dir / "run" / "learner.json"
    for text in ("", "[]", "{}", '{"pid": "x"}', '{"pid": 4194305}', '{"pid": null}'):
        path.write_text(text)
        assert process_facts(settings, "learner") == {}
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # a zombie now
    path.write_text(json.dumps({"pid": child}))
    assert process_facts(settings, "learner") == {}
    os.waitpid(child, 0)


@pytest.mark.parametrize(
    ("facts", "serving"),
    [
        ({"state": "serving", "at": NOW}, 1),
        ({"state": "serving", "at": NOW - 30}, 1),
        ({"state": "serving", "at": NOW - 30.5}, 0),
        ({"state": "starting", "at": NOW}, 0),
        ({"state": "serving"}, 0),
        ({}, 0),
    ],
)
def test_which_workers_serve(settings: Settings, facts: dict[str, Any], serving: int) -> None:
    assert serving_workers(settings, NOW) == 0
    says(settings, "supervisor", listen="127.0.0.1:1", children={"proxy-0": {}, "learner": {}})
    says(settings, "proxy-0", **facts)
    assert serving_workers(settings, NOW) == serving
    assert running_listen(settings) == "127.0.0.1:1"


def test_the_processes_that_run_has_started(settings: Settings) -> None:
    assert process_states(settings) == []
    assert running_listen(settings) == ""
    says(settings, "supervisor", children={"proxy-0": {"pid": os.getpid(), "restarts": 2, "stalls": 1}, "web": {"pid": None}})
    says(settings, "proxy-0", state="serving", at=NOW - 7)
    worker, web = process_states(settings, NOW)
    assert (worker.name, worker.pid, worker.state, worker.age_s) == ("proxy-0", os.getpid(), "serving", 7.0)
    assert (worker.restarts, worker.stalls) == (2, 1)
    resident_kb = int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0])
    assert worker.memory_mb == pytest.approx(resident_kb * 1024 / 1e6, rel=0.2)
    assert (web.pid, web.state, web.age_s, web.restarts, web.stalls, web.memory_mb) == (0, "", 0.0, 0, 0, 0.0)
    says(settings, "proxy-0", at=NOW + 5)  # its clock is ahead
    assert process_states(settings, NOW)[0].age_s == 0.0


def test_nothing_runs(settings: Settings, store: Store) -> None:
    found = filter_status(settings, store, NOW)
    assert (found.running, found.since, found.listen, found.learner) == (False, 0.0, settings.proxy.listen, "")
    assert (found.workers, found.faults, found.pauses) == (WorkerStatus(0, 0, 0), {}, ())
    assert (found.learned, found.reviews, found.requests) == (0, 0, 0)
    assert {item.code for item in found.attention} >= {"stopped", "lists"}
    assert "learner" not in {item.code for item in found.attention}


def test_what_runs(settings: Settings, store: Store) -> None:
    now = time.time()
    children = {"proxy-0": {"restarts": 1}, "proxy-1": {}, "learner": {"restarts": 2}}
    says(settings, "supervisor", listen="127.0.0.1:1", started_at=now - 60, children=children)
    for number in (0, 1):
        says(settings, f"proxy-{number}", state="serving", at=now, counters={"log_dropped": 2, "requests": 9})
    says(settings, "learner", state="learning", at=now - 300)
    found = filter_status(settings, store, now)
    assert (found.running, found.since, found.listen, found.learner) == (True, now - 60, "127.0.0.1:1", "learning")
    assert (found.workers, found.faults) == (WorkerStatus(2, 2, 3), {"log_dropped": 4})
    assert {item.code for item in found.attention} == {"restarts", "lists", "log_dropped"}
    says(settings, "learner", state="learning", at=now - 301)
    late = filter_status(settings, store, now)
    assert (late.learner, "learner" in {item.code for item in late.attention}) == ("", True)


@pytest.mark.parametrize(
    ("changed", "codes"),
    [
        ({}, []),
        ({"running": False}, ["stopped"]),
        ({"workers": WorkerStatus(1, 2, 0)}, ["workers"]),
        ({"running": False, "workers": WorkerStatus(0, 2, 0)}, ["stopped"]),
        ({"workers": WorkerStatus(2, 2, 1)}, ["restarts"]),
        ({"learner": ""}, ["learner"]),
        ({"learner": "", "running": False}, ["stopped"]),
        ({"lists": ListStatus(0, 1, 1, "", 0.0, (), ())}, ["lists"]),
        ({"lists": ListStatus(1, 1, 1, "", 0.0, ("a", "b"), ())}, ["failing"]),
        ({"lists": ListStatus(1, 1, 1, "", 0.0, (), ("a", "b"))}, ["pending"]),
        ({"free_mb": 500.0}, []),
        ({"free_mb": 499.0}, ["disk"]),
        ({"faults": {"hook_errors": 3, "log_dropped": 1}}, ["hook_errors", "log_dropped"]),
    ],
)
def test_what_needs_attention(changed: dict[str, Any], codes: list[str]) -> None:
    well: dict[str, Any] = {"running": True, "workers": WorkerStatus(2, 2, 0), "learner": "learning", "lists": LISTS}
    found = list(module._attention(**well | {"free_mb": 501.0, "faults": {}} | changed))
    assert [item.code for item in found] == codes
    assert all(item.words and item.mend for item in found)


def test_what_needs_attention_is_told_with_its_numbers() -> None:
    lists = ListStatus(0, 1, 1, "", 0.0, ("a", "b"), ("c", "d"))
    found = module._attention(
        running=True, workers=WorkerStatus(1, 2, 3), learner="", lists=lists, free_mb=1.5, faults={"hook_errors": 3_000}
    )
    assert {item.code: (item.words, dict(item.values)) for item in found if item.values} == {
        "workers": ("1 of 2 workers serve.", {"serving": 1, "all": 2}),
        "restarts": ("Processes were restarted 3 times.", {"count": 3}),
        "pending": ("Not fetched yet: c, d.", {"names": "c, d"}),
        "failing": ("Updates fail: a, b.", {"names": "a, b"}),
        "disk": ("2 MB are free on the disk.", {"bytes": 1_500_000.0}),
        "hook_errors": ("3,000 requests on which the filter itself failed since the start.", {"count": 3_000}),
    }


@pytest.mark.parametrize(("ahead_s", "told"), [(120.0, False), (121.0, True)])
def test_a_clock_behind_the_last_update(ahead_s: float, *, told: bool) -> None:
    lists = ListStatus(1, 1, 1, "a", NOW + ahead_s, (), ())
    assert [item.code for item in module._wrong_clock(lists, NOW)] == ["clock"] * told


@pytest.mark.parametrize(("trouble", "words"), [("the publisher is away", "The publisher is away."), ("", "")])
def test_the_lists_of_a_follower_are_those_of_its_publisher(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch, trouble: str, words: str
) -> None:
    monkeypatch.setattr("gatewayfilter.use_cases.fleet_status.follower_trouble", lambda *_: trouble)
    assert "fleet" not in {item.code for item in filter_status(settings, store, NOW).attention}
    fleet = settings.fleet.model_copy(update={"follow": "https://publisher.example"})
    found = {item.code: item for item in filter_status(settings.model_copy(update={"fleet": fleet}), store, NOW).attention}
    assert "lists" not in found
    assert ("fleet" in found) is bool(trouble)
    if trouble:
        assert (found["fleet"].words, found["fleet"].values) == (words, {"error": trouble})


def test_channels_that_fail_are_told(settings: Settings) -> None:
    states = {
        "webhook": ChannelState(1, failures=2, failing_since=86_400.0, error="refused"),
        "email": ChannelState(1, failures=1, failing_since=86_460.0),
        "command": ChannelState(1),
    }
    store = SimpleNamespace(notifications=SimpleNamespace(channels=lambda _: states))
    utc = settings.model_copy(update={"filter": settings.filter.model_copy(update={"timezone": "UTC"})})
    found = list(module._failing_channels(utc, cast("Any", store)))
    assert [item.words for item in found] == [
        "Messages by webhook fail since 1970-01-02 00:00: refused.", "Messages by email fail since 1970-01-02 00:01.",
    ]  # fmt: skip
    assert found[0].values == {"name": "webhook", "since": 86_400.0, "error": "refused"}
    assert {item.code for item in found} == {"channel"}


def test_a_catalogue_of_services_that_cannot_be_read_is_told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(module._wrong_services(settings)) == []

    def fails(_: Settings) -> None:
        raise ListError("line 3 is no table")

    monkeypatch.setattr(module, "services", fails)
    (found,) = module._wrong_services(settings)
    assert found.words == "Your catalogue of services cannot be read: line 3 is no table."
    assert (found.code, found.values) == ("services", {"error": "line 3 is no table"})


def test_the_memory_of_a_process() -> None:
    assert 1.0 < module._memory_mb(os.getpid()) < 100_000.0
    assert module._memory_mb(4_194_305) == 0.0


def item(name: str, failures: int = 0, at: float = 1.0, *, pending: bool = False, **definition: bool) -> Any:
    known = SimpleNamespace(**{"name": name, "enabled": True, "bundled": False} | definition)
    return SimpleNamespace(definition=known, is_pending=pending, state=SimpleNamespace(failures=failures, checked_at=at))


def test_which_lists_fail_and_which_is_the_oldest(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [
        item("once", 2, 7.0),
        item("often", 3, 5.0),
        item("new", 9, 0.0, pending=True),
        item("off", 9, 1.0, enabled=False),
        item("starter", 9, 2.0, bundled=True),
    ]
    monkeypatch.setattr(module, "subscriptions", lambda _: SimpleNamespace(all=lambda: lists))
    found = module._lists(settings)
    assert found == ListStatus(3, 0, 0, "often", 5.0, ("often",), ("new",))
    lists[:] = [item("new", pending=True)]
    assert module._lists(settings) == ListStatus(1, 0, 0, "", 0.0, (), ("new",))
