"""`gatewayfilter status` and `doctor` on what they find: `gatewayfilter.cli.operate.status_command` and
`gatewayfilter.cli.operate.doctor_command`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from gatewayfilter.gateway.doctor.finding import Finding, Level
from gatewayfilter.model import Pause, PauseScope
from gatewayfilter.use_cases.filter_status import Attention, FilterStatus, ListStatus, TodayCounts, WorkerStatus
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, texts

STATUS = FilterStatus(
    running=True,
    since=MOMENT,
    listen="0.0.0.0:8080",
    workers=WorkerStatus(3, 4, 0),
    learner="idle",
    lists=ListStatus(2, 1, 2_000, "easylist", MOMENT, (), ()),
    learned=1,
    reviews=2,
    requests=1,
    pauses=(Pause(PauseScope.ALL, "", MOMENT), Pause(PauseScope.CLIENT, "tv", MOMENT + 60)),
    today=TodayCounts(1, 1_000),
    free_mb=12_345.6,
    faults={},
    attention=(),
)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    holder: dict[str, Any] = {"status": STATUS}

    def status(settings: object, store: object) -> FilterStatus:
        assert (settings, store) == (SETTINGS, "store")
        known: FilterStatus = holder["status"]
        return known

    monkeypatch.setattr("gatewayfilter.use_cases.filter_status.filter_status", status)
    monkeypatch.setattr(time, "time", lambda: MOMENT + holder.get("after", 59))
    return holder


def test_the_status_of_a_filter_that_runs(found: dict[str, Any]) -> None:
    assert texts(Doubled("store"), "status") == (
        0,
        (
            "Running   yes, on 0.0.0.0:8080, for 0 minutes\n"
            "Workers   3 of 4 serve; learner: idle\n"
            "Lists     2 subscribed, 1 entry and 2,000 Adblock rules in force; "
            "the oldest, easylist, was checked 2023-11-14 22:13:20\n"
            "Learned   1 page or host\n"
            "Waiting   2 reviews, 1 request to unblock a page\n"
            "Pauses    all until 2023-11-14 22:13:20, client:tv until 2023-11-14 22:14:20\n"
            "Today     1 request, 1,000 blocked\n"
            "Disk      12,346 MB free\n"
        ),
        "",
    )
    answer = called(Doubled("store"), "status", "--json")
    assert (answer.code, answer.json["workers"]["serving"], answer.json["pauses"][1]["target"]) == (0, 3, "tv")


DURATIONS = {
    -1.0: "0 minutes",
    60.0: "1 minute",
    3_599.0: "59 minutes",
    3_600.0: "1 h 0 min",
    7_260.0: "2 h 1 min",
    172_799.0: "47 h 59 min",
    172_800.0: "2 days",
    259_200.0: "3 days",
}


def test_how_long_it_runs(found: dict[str, Any]) -> None:
    for after, words in DURATIONS.items():
        found["after"] = after
        assert texts(Doubled("store"), "status")[1].splitlines()[0] == f"Running   yes, on 0.0.0.0:8080, for {words}"


def test_what_is_not_there_is_told(found: dict[str, Any]) -> None:
    found["status"] = replace(STATUS, since=0.0, learner="", pauses=(), lists=replace(STATUS.lists, oldest_at=0.0), learned=2)
    lines = texts(Doubled("store"), "status")[1].splitlines()
    assert lines[0] == "Running   yes, on 0.0.0.0:8080"
    assert lines[1] == "Workers   3 of 4 serve; learner: not running"
    assert lines[2] == "Lists     2 subscribed, 1 entry and 2,000 Adblock rules in force"
    assert (lines[3], lines[5]) == ("Learned   2 pages and hosts", "Pauses    none")
    found["status"] = replace(STATUS, running=False)
    lines = texts(Doubled("store"), "status")[1].splitlines()
    assert (lines[0], lines[1][:5]) == ("Running   no (0.0.0.0:8080 in the settings)", "Lists")


def test_what_needs_attention_is_told_with_what_mends_it(found: dict[str, Any]) -> None:
    found["status"] = replace(STATUS, attention=(Attention("The disk is full.", "gatewayfilter log purge", "disk"),))
    code, out, _ = texts(Doubled("store"), "status")
    assert (code, out.splitlines()[-2:]) == (1, ["! The disk is full.", "    → gatewayfilter log purge"])
    answer = called(Doubled("store"), "status", "--json")
    assert (answer.code, answer.json["attention"][0]["code"]) == (1, "disk")


def test_the_doctor_marks_each_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [Finding("disk", Level.OK, "There is room.", "none needed"), Finding("clock", Level.NOTE, "It is set.")]
    findings += [Finding("DNS", Level.WARNING, "It is slow.", "gatewayfilter config show")]
    monkeypatch.setattr("gatewayfilter.use_cases.operation.self_check.examined", lambda _loaded, _now: iter(findings))
    good = "✓ disk: There is room.\n· clock: It is set.\n! DNS: It is slow.\n    → gatewayfilter config show\n"
    assert texts(Doubled(), "doctor") == (0, good, "")
    answer = called(Doubled(), "doctor", "--json")
    assert (answer.code, answer.json["healthy"], len(answer.json["findings"])) == (0, True, 3)
    findings.append(Finding("port", Level.ERROR, "It is taken."))
    assert texts(Doubled(), "doctor") == (1, f"{good}✗ port: It is taken.\n", "")
    assert called(Doubled(), "doctor", "--json").json["healthy"] is False
