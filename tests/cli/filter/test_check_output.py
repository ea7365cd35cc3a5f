"""What `check` prints of a verdict and of connections: `gatewayfilter.cli.filter.check_command`,
`gatewayfilter.cli.filter.connection_sentences`, `gatewayfilter.cli.filter.service_check`.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.cli.filter.connection_sentences import connection_sentences
from gatewayfilter.model import (
    Action,
    Classification,
    DeciderAnswer,
    Explanation,
    HostAction,
    HostVerdict,
    Reason,
    Request,
    ResourceType,
    ReviewKind,
    ReviewState,
    ReviewTask,
    Verdict,
)
from gatewayfilter.proxy.listener.connection_report import ConnectionReport
from gatewayfilter.proxy.listener.pinned_apps import PinnedApp
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases.network_facts import ClientIdentity, QuotaLeft
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

AT = "2023-11-14 22:13:20"
ALLOWED = Verdict(Action.ALLOW, Reason.UNKNOWN)
BLOCKED = Verdict(Action.BLOCK, Reason.BLACKLIST, "ut1", "a.example", 7, "ads", "score 4", unknown=True)
JUDGED = Classification("gambling", 42.0, 20.0)
OPENED = ConnectionReport(HostVerdict(HostAction.INTERCEPT, ALLOWED), False, (), False, "refused")  # type: ignore[arg-type]
RAW = "A tunnel to it that carries neither HTTP nor TLS is refused."
APP = PinnedApp("10.0.0.7", "a.example", MOMENT, MOMENT + 3_600, 4)
SAID = (
    "10.0.0.7 passes through unread until 2023-11-14 23:13:20, because it broke off 4 connections with the filter's "
    "certificate by 2023-11-14 22:13:20."
)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `check_url` finds for the request that it is asked about."""
    holder: dict[str, Any] = {
        "verdict": ALLOWED, "judged": None, "connection": None, "reviewed": None, "quotas": (), "requests": [],
    }  # fmt: skip

    def check(settings: object, store: object, engine: Any, request: Request, client: str, clock: Any) -> SimpleNamespace:
        assert (settings, store) == (SETTINGS, "store")
        holder["requests"].append((request, client, clock(), engine["clock"]()))
        answers = (DeciderAnswer("manual", "miss", "No entry."), DeciderAnswer("bloom", "maybe", "Look."))
        explanation = Explanation(replace(request, client=client), answers, holder["verdict"])
        named = {name: holder[name] for name in ("judged", "connection", "reviewed", "quotas")}
        return SimpleNamespace(explanation=explanation, **named)

    monkeypatch.setattr("gatewayfilter.cli.filter.check_command.closing", nullcontext)
    monkeypatch.setattr("gatewayfilter.cli.filter.check_command.time", SimpleNamespace(time=lambda: 5.0))
    monkeypatch.setattr("gatewayfilter.cli.ui.command_context.open_store", lambda _settings: "store")
    monkeypatch.setattr("gatewayfilter.use_cases.url_check.check_url", check)
    monkeypatch.setattr("gatewayfilter.wiring.open_engine", lambda _settings, _store, *, clock: {"clock": clock})
    return holder


def test_the_verdict_and_each_answer_are_shown(found: dict[str, Any]) -> None:
    table_ = "decider  answer  explanation\nmanual   miss    No entry.\nbloom    maybe   Look.\n"
    assert texts(Doubled(), "check", "a.example/x") == (0, f"http://a.example/x\n\n{table_}\nALLOW (unknown)\n", "")
    found["verdict"] = BLOCKED
    code, out, _ = texts(Doubled(), "check", "http://a.example/%E4%BE%8B")
    sentence = "BLOCK (blacklist), by ut1, line 7, rule a.example, category ads, score 4"
    sentence += ", on no list: the crawler will fetch and classify it"
    assert (code, out) == (1, f"http://a.example/%E4%BE%8B\nreads /例\n\n{table_}\n{sentence}\n")
    found["verdict"] = replace(BLOCKED, line=0, rule="", category="", detail="", unknown=False)
    assert texts(Doubled(), "check", "a.example")[1].endswith("BLOCK (blacklist), by ut1\n")
    request, client, now, engine_now = found["requests"][0]
    assert request == Request(parse_url("http://a.example/x"), None, ResourceType.DOCUMENT, "GET")
    assert (client, now, engine_now) == ("", 5.0, 5.0)
    more = (
        "--source",
        "b.example",
        "--type",
        "Script",
        "--method",
        "post",
        "--client",
        "tv",
        "--at",
        "2023-11-14T22:13:20+00:00",
    )
    document = called(Doubled(), "check", "a.example", *more, "--json").json
    request, client, now, engine_now = found["requests"][-1]
    assert (str(request.source), request.resource_type, request.method) == ("http://b.example/", ResourceType.SCRIPT, "POST")
    assert (client, now, engine_now) == ("tv", MOMENT, MOMENT)
    assert (document["url"], document["source"], document["type"]) == ("http://a.example/", "http://b.example/", "script")
    assert (document["method"], document["client"], document["verdict"]["reason"]) == ("POST", "tv", "blacklist")
    assert (document["answers"][1]["answer"], document["classification"], document["host"]) == ("maybe", None, None)
    assert (document["connection"], document["reviewed"], document["quotas"]) == (None, None, [])
    wrong = called(Doubled(), "check", "a.example", "--type", "zz").complains()
    assert wrong.startswith("invalid value for '--type': 'zz' is none of document, ")
    assert "missing argument 'URL'" in called(Doubled(), "check").complains()
    assert called(Doubled(), "check", "a.example", "--service", "x").complains() == "name a URL, or a service by --service"


def test_what_is_known_beside_the_verdict(found: dict[str, Any]) -> None:
    task = ReviewTask(3, ReviewKind.PAGE, "http://a.example/", "k", "ads", Classification("", 3.0, 20.0), True, MOMENT)
    decided = replace(task, state=ReviewState.REJECTED, decided_at=MOMENT + 60, decided_by="kim", blocked=False)
    found |= {
        "judged": (JUDGED, MOMENT),
        "reviewed": task,
        "connection": OPENED,
        "quotas": (QuotaLeft("tv", "video", 5, 60, MOMENT),),
    }
    lines = texts(Doubled(), "check", "a.example")[1].splitlines()
    quota = "quota tv: 5 of 60 minutes of video used today; again from 2023-11-14 22:13"
    opened = "Connections to this host are opened, and each request decided."
    assert lines[6:] == [
        "ALLOW (unknown)",
        opened,
        RAW,
        quota,
        "",
        f"The classifier said on {AT}:",
        f"GAMBLING: {JUDGED.summary()}",
    ]
    found["quotas"] = (QuotaLeft("tv", "video", 5, 60, None),)
    assert quota.partition(";")[0] in texts(Doubled(), "check", "a.example")[1].splitlines()
    document = called(Doubled(), "check", "a.example", "--json").json
    assert document["classification"]["judged_at"] == MOMENT
    assert (document["classification"]["classification"]["score"], document["reviewed"]["task"]) == (42.0, 3)
    assert (document["host"]["action"], document["quotas"][0]["used"]) == ("intercept", 5)
    assert document["connection"] == {"unread": False, "pinned_apps": [], "raw_tunnels": "refused"}
    found["reviewed"] = decided
    lines = texts(Doubled(), "check", "a.example")[1].splitlines()
    said = "kim said on 2023-11-14 22:14:20 that it is {} (review task 3)."
    assert (lines[-4], lines[-2]) == (said.format("harmless"), f"The classifier said on {AT}:")
    found |= {"reviewed": replace(decided, blocked=True), "judged": (JUDGED, MOMENT + 60)}
    lines = texts(Doubled(), "check", "a.example")[1].splitlines()
    assert lines[-4] == said.format("ads")
    assert lines[-2:] == [f"The classifier said on {AT}:", "HARMLESS: nearest to a limit with a score of 3.0 (limit 20.0)"]
    found["judged"] = None
    assert texts(Doubled(), "check", "a.example")[1].splitlines()[-1] == said.format("ads")


def test_connections_are_opened_refused_or_pass_unread() -> None:
    rule = Verdict(Action.BLOCK, Reason.MANUAL_BLOCK, "own", "a.example")
    refused = replace(OPENED, decision=HostVerdict(HostAction.DENY, rule))
    assert list(connection_sentences(refused, "")) == [
        "Connections to this host are refused before their first request (manual-block, own, a.example).", RAW,
    ]  # fmt: skip
    page = "; a device that takes the filter's certificate sees the block page"
    assert next(connection_sentences(replace(refused, shows_page=True), "")).endswith(f"(manual-block, own, a.example){page}.")
    unread = "to this host pass through unread{}: the verdict above does not count for them."
    learned = replace(OPENED, decision=HostVerdict(HostAction.SPLICE, Verdict(Action.ALLOW, Reason.PINNED_APP, rule="x")))
    assert next(connection_sentences(learned, "tv")) == f"Connections of tv {unread.format('')}"
    spliced = replace(OPENED, decision=HostVerdict(HostAction.SPLICE, replace(rule, source_list="")))
    assert next(connection_sentences(spliced, "")) == f"Connections {unread.format(' (manual-block, a.example)')}"
    decision = HostVerdict(HostAction.INTERCEPT, ALLOWED, named=True, because=rule, connect_to="safe.example")
    assert list(connection_sentences(replace(OPENED, decision=decision, raw="unread"), "")) == [  # type: ignore[arg-type]
        "Connections to this host are opened, and each request decided.",
        "They never pass through unread: it or a page of it is blocked (manual-block, own, a.example).",
        "They end at an address of safe.example in place of its own.",
        "A tunnel to it that carries neither HTTP nor TLS is relayed unread.",
    ]
    for other in (replace(decision, named=False), replace(decision, because=None)):
        assert len(list(connection_sentences(replace(OPENED, decision=other), ""))) == 3


def test_devices_that_pass_unread_are_named() -> None:
    later = "A device with an app that keeps aborting connections may later pass unread: gatewayfilter pinned-apps list."
    assert list(connection_sentences(replace(OPENED, counts=True), ""))[1:] == [later, RAW]
    assert list(connection_sentences(replace(OPENED, counts=True), "tv"))[1:] == [RAW]
    assert list(connection_sentences(replace(OPENED, learned=(APP,), counts=True), ""))[1:] == [SAID, RAW]
    assert list(connection_sentences(replace(OPENED, learned=(APP,)), ""))[1:] == [f"{SAID[:-1]}; this does not count now.", RAW]
    assert len(list(connection_sentences(replace(OPENED, learned=(APP,) * 10), ""))) == 12
    more = list(connection_sentences(replace(OPENED, learned=(APP,) * 12, counts=True), ""))
    assert (len(more), more[11]) == (13, "2 more devices are in gatewayfilter pinned-apps list.")


class Engine:
    """Denies a.example, and opens b.example, which it names."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def set_neighbours(self, neighbours: object) -> None:
        self.asked.append(neighbours)

    def decide_host(self, host: str, address: str, user: str) -> HostVerdict:
        self.asked.append((host, address, user))
        if host == "a.example":
            return HostVerdict(HostAction.DENY, replace(BLOCKED, detail=""))
        return HostVerdict(HostAction.INTERCEPT, ALLOWED, because=BLOCKED if host == "b.example" else None)


def test_each_host_of_a_service_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    clocks: list[float] = []

    def opened(settings: object, store: object, *, clock: Any) -> Engine:
        assert (settings, store) == (SETTINGS, store_)
        clocks.append(clock())
        return engine

    hosts: dict[str, Any] = {"one": ("a.example",), "two": ("a.example", "b.example", "c.example"), "none": ()}
    store_ = SimpleNamespace(policies=SimpleNamespace(read=lambda: "policies"))
    catalogue = {name: SimpleNamespace(name=name.title(), hosts=found) for name, found in hosts.items()}
    facts = "gatewayfilter.use_cases.network_facts"
    monkeypatch.setattr("gatewayfilter.cli.filter.service_check.time", SimpleNamespace(time=lambda: 5.0))
    monkeypatch.setattr("gatewayfilter.wiring.services", lambda _settings: catalogue)
    monkeypatch.setattr("gatewayfilter.wiring.open_engine", opened)
    monkeypatch.setattr(f"{facts}.neighbours_with", lambda client, policies: (client, policies))
    monkeypatch.setattr(f"{facts}.identity_of", lambda *_: ClientIdentity("10.0.0.7", user="kim"))
    code, out, _ = texts(Doubled(store_), "check", "--service", "one")
    assert (code, table(out)) == (
        1,
        [
            ["host", "connections", "reason", "explanation"],
            ["a.example", "deny", "blacklist", "a.example"],
            ["One: 1 of 1 host blocked as a whole"],
        ],
    )
    assert engine.asked == [("a.example", "", "")]
    engine.asked.clear()
    more = ("--client", "tv", "--at", "2023-11-14T22:13:20+00:00")
    code, out, _ = texts(Doubled(store_), "check", "--service", "two", *more)
    assert (code, table(out)[2:]) == (
        0,
        [
            ["b.example", "intercept", "blacklist", "score 4"],
            ["c.example", "intercept"],
            ["Two: 1 of 3 hosts blocked as a whole"],
        ],
    )
    assert (engine.asked[:2], clocks) == ([("tv", "policies"), ("a.example", "10.0.0.7", "kim")], [5.0, MOMENT])
    answer = called(Doubled(store_), "check", "--service", "one", "--json")
    assert (answer.code, answer.json["blocked"], answer.json["service"], answer.json["client"]) == (1, True, "one", "")
    assert answer.json["hosts"] == [{"host": "a.example", "action": "deny", "reason": "blacklist", "detail": "a.example"}]
    assert texts(Doubled(store_), "check", "--service", "none")[0] == 0
