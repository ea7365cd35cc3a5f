"""Answers of the API about people, traffic and the system: each field, the order, and what is recorded."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import PolicyError
from gatewayfilter.fleet.follower_state import Fault, FollowerState
from gatewayfilter.fleet.health import Report
from gatewayfilter.interfaces import ChannelState, UnblockRequest
from gatewayfilter.model import (
    ALL_DAYS,
    DEFAULT,
    Client,
    Pause,
    PauseScope,
    Quota,
    QuotaKind,
    Role,
    Schedule,
    ScheduleEffect,
    Scope,
    Window,
)
from gatewayfilter.use_cases import fleet_status as fleet_case
from gatewayfilter.use_cases import https as https_case
from gatewayfilter.use_cases.access.log_in import LogInResult, LogInStatus
from gatewayfilter.use_cases.backup.restore_plan import KindChanges
from gatewayfilter.use_cases.fleet_status import FleetStatus, FollowerRow
from gatewayfilter.use_cases.operation import notifications
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.access.identity import Role as WebRole
from gatewayfilter.web.api.people.models import WindowModel, page_of, read_windows, window_model
from gatewayfilter.web.api.system import backup as backup_api
from gatewayfilter.web.api.system import health as health_api
from gatewayfilter.web.api.traffic import log_files
from tests.web.account_fakes import GOOD
from tests.web.learning_fakes import ask
from tests.web.pages.test_page_values import NOW, Kept, kept
from tests.web.people_fakes import TABLET, address, household
from tests.web.traffic_log import decision
from tests.web.web_fakes import ADMIN, APPROVER, CSRF

API = "/api/v1"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("api")
    with kept(folder / "state", filter__timezone="UTC", proxy__auth_file=folder / "users") as web:
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    household(opened.services.store, NOW)
    yield opened

    def none(policies: Any) -> Any:
        kinds = (policies.pauses, policies.quotas, policies.schedules, policies.clients, policies.groups, policies.policies)
        return [(item, False) for kind in kinds for item in kind.values()]

    opened.services.store.policies.change(none, NOW)
    opened.child.jobs.clear()
    opened.child.results.clear()
    opened.who.identity = ADMIN
    for rule in opened.services.store.lists.rules():
        opened.services.store.lists.remove_rule(rule.rule_id)


def sent(web: Kept, method: str, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
    """Sends a request to the API; returns what its answer holds."""
    given = {key.replace("_", "-"): text for key, text in headers.items()}
    answer = web.client.request(method, f"{API}{path}", json=body, headers=given)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else answer.headers


def got(web: Kept, path: str, **params: Any) -> Any:
    answer = web.client.get(f"{API}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def put(web: Kept, *items: Any) -> None:
    web.services.store.policies.change(lambda _: [(item, True) for item in items], NOW)


def policies(web: Kept) -> Any:
    return web.services.store.policies.read()


def test_windows_are_read_and_shown() -> None:
    for begin, end, minutes in (("00:00", "24:00", (0, 1440)), ("21:05", "06:00", (1265, 360)), ("23:59", "00:00", (1439, 0))):
        model = WindowModel(begin=begin, end=end, days=["sun", "mon", "wed"])
        (window,) = read_windows([model])
        assert window == Window(*minutes, frozenset({0, 2, 6}))
        assert window_model(window) == WindowModel(begin=begin, end=end, days=["mon", "wed", "sun"])
    for begin, end, days, why in (
        ("08:60", "09:00", ["mon"], "08:60 is no time: a day goes from 00:00 to 24:00"),
        ("08:00", "24:01", ["mon"], "24:01 is no time: a day goes from 00:00 to 24:00"),
        (
            "24:00",
            "06:00",
            ["mon"],
            "a window begins before 24:00 and does not end when it begins; 00:00 to 24:00 is the whole day",
        ),
        (
            "08:00",
            "08:00",
            ["mon"],
            "a window begins before 24:00 and does not end when it begins; 00:00 to 24:00 is the whole day",
        ),
        ("08:00", "09:00", ["mon", "xxx"], "a day is one of mon, tue, wed, thu, fri, sat, sun"),
    ):
        with pytest.raises(PolicyError) as refused:
            read_windows([WindowModel(begin=begin, end=end, days=days)])
        assert str(refused.value) == why
    assert len(read_windows([WindowModel(begin="08:59", end="09:00", days=["mon", "mon"])])) == 1
    pairs = [("b", 2), ("a", 1), ("c", 3)]
    assert (page_of(pairs, "", 3), page_of(pairs, "", 2), page_of(pairs, "b", 2)) == (
        ([1, 2, 3], None),
        ([1, 2], "b"),
        ([3], None),
    )


def test_clients_have_all_their_facts(web: Kept) -> None:
    tv = policies(web).clients["tv"]
    answer = web.client.get(f"{API}/clients/tv")
    state = answer.json()["state"]
    assert (answer.headers["etag"], answer.json()) == (
        f'"{version_of(tv)}"',
        {
            "name": "tv",
            "addresses": ["192.0.2.12"],
            "group": DEFAULT,
            "policy": "night",
            "note": "",
            "icon": "",
            "last_at": 0.0,
            "present": False,
            "requests_today": 0,
            "blocked_today": 0,
            "state": {
                "kind": "blocked",
                "until": state["until"],
                "cause": "nights",
                "schedules": ["nights"],
                "services": [],
                "categories": [],
                "allowed": [],
                "used_up": [],
            },
        },
    )
    assert [one["name"] for one in got(web, "/clients", group="kids")["items"]] == [TABLET, "laptop"]
    added = sent(
        web, "POST", "/clients", {"name": "new", "addresses": ["192.0.2.50", "192.0.2.50"], "note": "n", "icon": "tv"}, 201
    )
    assert (added["addresses"], added["group"], added["note"], added["icon"], web.told()) == (
        ["192.0.2.50"],
        DEFAULT,
        "n",
        "tv",
        ("client.added", "new", ""),
    )
    changed = sent(web, "PATCH", "/clients/new", {"addresses": ["192.0.2.51"], "icon": ""})
    assert (changed["addresses"], changed["icon"], changed["note"], web.told()) == (
        ["192.0.2.51"],
        "",
        "n",
        ("client.changed", "new", ""),
    )
    assert sent(web, "PATCH", "/clients/new", {"name": "new", "note": ""})["note"] == ""
    assert sent(web, "PATCH", "/clients/new", {"name": "newer"})["name"] == "newer"
    assert web.told()[:2] == ("client.renamed", "new")
    sent(web, "PATCH", "/clients/newer", {"note": "x"}, 412, if_match='"x"')
    sent(web, "DELETE", "/clients/newer", None, 412, if_match='"x"')
    sent(web, "DELETE", "/clients/newer", None, 204)
    assert web.told() == ("client.removed", "newer", "")
    assert sent(web, "GET", "/clients/newer", None, 404)["detail"] == "there is no client 'newer'"
    assert (
        sent(web, "POST", "/clients", {"name": "tv", "addresses": ["192.0.2.52"]}, 409)["detail"]
        == "there is a client 'tv' already"
    )
    assert sent(web, "POST", "/clients", {"name": "z", "addresses": ["192.0.2.53"], "group": "none"}, 422)["detail"]


def test_what_holds_for_a_client(web: Kept) -> None:
    put(web, Quota("play", "kids", QuotaKind.SERVICE, "roblox", 60, "UTC"))
    found = got(web, f"/clients/{TABLET}/policy")
    assert (found["client"], found["at"], found["group"], found["policies"], found["schedules"]) == (
        TABLET,
        NOW,
        "kids",
        ["kids", "default"],
        [],
    )
    assert found["quotas"] == [{"quota": "play", "target": "roblox", "used": 0, "minutes": 60, "until": None}]
    assert {"key": "safesearch", "value": "on", "origin": "group kids", "policy": "kids"} in found["values"]
    assert got(web, "/clients/tv/policy", at=5)["at"] == 5
    assert got(web, "/clients/tv/policy", at=0)["at"] == 0
    assert got(web, "/clients/tv/policy")["schedules"] == ["nights"]
    sent(web, "GET", "/clients/none/policy", None, 404)


def test_groups_have_their_members(web: Kept) -> None:
    assert got(web, "/groups", limit=2) == {
        "items": [
            {"name": DEFAULT, "policy": DEFAULT, "note": "", "clients": ["tv"]},
            {"name": "guests", "policy": "", "note": "", "clients": []},
        ],
        "next": "guests",
    }
    assert got(web, "/groups/kids") == {"name": "kids", "policy": "kids", "note": "the small ones", "clients": [TABLET, "laptop"]}
    added = sent(web, "POST", "/groups", {"name": "staff", "policy": "night", "note": "n"}, 201)
    assert (added, web.told()) == ({"name": "staff", "policy": "night", "note": "n", "clients": []}, ("group.added", "staff", ""))
    assert sent(web, "POST", "/groups", {"name": DEFAULT}, 409)["detail"] == "there is a group 'default' already"
    assert sent(web, "PATCH", "/groups/staff", {"note": "m"}) | {"name": ""} == added | {"name": "", "note": "m"}
    assert web.told() == ("group.changed", "staff", "")
    assert sent(web, "PATCH", "/groups/staff", {"policy": ""})["note"] == "m"
    before = web.changes
    assert sent(web, "PATCH", "/groups/staff", {"name": "staff"})["note"] == "m"
    assert web.changes == before
    assert sent(web, "PATCH", "/groups/staff", {"name": "crew"})["name"] == "crew"
    assert web.told() == ("group.renamed", "staff", "crew")
    sent(web, "PATCH", "/groups/crew", {"name": "kids"}, 409)
    sent(web, "PATCH", "/groups/none", {"note": ""}, 404)
    sent(web, "DELETE", "/groups/crew", None, 412, if_match='"x"')
    sent(web, "DELETE", "/groups/crew", None, 204)
    assert web.told() == ("group.removed", "crew", "")


def test_policies_have_their_users(web: Kept) -> None:
    assert got(web, "/policies", limit=1)["next"] == DEFAULT
    assert got(web, "/policies/night") == {
        "name": "night", "values": {}, "groups": [], "clients": ["tv"], "schedules": ["nights"], "quotas": [],
    }  # fmt: skip
    body = {"name": "strict", "values": {"safesearch": "on"}, "groups": ["guests"], "clients": ["laptop"]}
    added = sent(web, "POST", "/policies", body, 201)
    assert (added, web.told()) == (body | {"schedules": [], "quotas": []}, ("policy.added", "strict", ""))
    assert sent(web, "POST", "/policies", {"name": "empty"}, 201)["values"] == {}
    assert sent(web, "POST", "/policies", {"name": "empty"}, 409)["detail"] == "there is a policy 'empty' already"
    put(
        web,
        Quota("q", "strict", QuotaKind.SERVICE, "roblox", 60, "UTC"),
        Schedule("s", "strict", ScheduleEffect.BLOCK_ALL, (Window(0, 60, ALL_DAYS),), "UTC"),
    )
    changed = sent(web, "PATCH", "/policies/strict", {"values": {"safesearch": None, "youtube": "strict"}, "clients": ["tv"]})
    assert (changed["values"], changed["clients"], changed["quotas"], changed["schedules"]) == (
        {"youtube": "strict"},
        ["laptop", "tv"],
        ["q"],
        ["s"],
    )
    assert web.told() == ("policy.changed", "strict", "safesearch, youtube")
    sent(web, "PATCH", "/policies/strict", {"values": {}}, 412, if_match='"x"')
    sent(web, "DELETE", "/policies/empty", None, 412, if_match='"x"')
    sent(web, "DELETE", "/policies/empty", None, 204)
    assert web.told() == ("policy.removed", "empty", "")


def test_quotas_and_schedules_have_all_their_facts(web: Kept) -> None:
    body = {
        "name": "play",
        "policy": "kids",
        "kind": "service",
        "target": "roblox",
        "minutes": 60,
        "other_days": {"sun": 90, "sat": 120},
    }
    added = sent(web, "POST", "/quotas", body, 201)
    assert (added, list(added["other_days"]), web.told()) == (
        body | {"timezone": "UTC", "used": {}},
        ["sat", "sun"],
        ("quota.added", "play", ""),
    )
    assert got(web, "/quotas") == {"items": [added], "next": None}
    assert sent(web, "PATCH", "/quotas/play", {"minutes": 70}) == added | {"minutes": 70, "other_days": {}}
    assert web.told() == ("quota.changed", "play", "")
    sent(web, "PATCH", "/quotas/play", {"minutes": 70}, 412, if_match='"x"')
    sent(web, "DELETE", "/quotas/play", None, 412, if_match='"x"')
    sent(web, "DELETE", "/quotas/play", None, 204)
    assert web.told() == ("quota.removed", "play", "")
    assert sent(web, "POST", "/quotas", body | {"name": "z", "timezone": "Asia/Shanghai"}, 201)["timezone"] == "Asia/Shanghai"
    windows = [{"begin": "08:00", "end": "13:00", "days": ["mon", "tue"]}]
    schedule = {"name": "school", "policy": "kids", "effect": "block-service", "target": "tiktok", "windows": windows}
    added = sent(web, "POST", "/schedules", schedule, 201)
    assert (added, web.told()) == (schedule | {"timezone": "UTC"}, ("schedule.added", "school", ""))
    assert [one["name"] for one in got(web, "/schedules", policy="kids")["items"]] == ["school"]
    assert [one["name"] for one in got(web, "/schedules")["items"]] == ["nights", "school"]
    other = {"policy": "kids", "effect": "block-all", "windows": windows, "timezone": "Asia/Shanghai"}
    assert sent(web, "PUT", "/schedules/school", other) == other | {"name": "school", "target": ""}
    assert web.told() == ("schedule.changed", "school", "")
    sent(web, "PUT", "/schedules/school", other, 412, if_match='"x"')
    for wrong in ({"effect": "block-all", "target": "tiktok"}, {"effect": "block-service", "target": ""}):
        detail = sent(web, "POST", "/schedules", schedule | {"name": "w"} | wrong, 422)["detail"]
        assert detail == "block-all has no target, every other effect has one"
    sent(web, "DELETE", "/schedules/school", None, 412, if_match='"x"')
    sent(web, "DELETE", "/schedules/school", None, 204)
    assert web.told() == ("schedule.removed", "school", "")


def test_what_was_used_of_a_quota_is_shown_by_client(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    put(web, *(Quota(name, "kids", QuotaKind.SERVICE, "roblox", 60, "UTC") for name in ("p", "q")))
    sums = [SimpleNamespace(quota=quota, client="client:tv", used=used) for quota, used in (("p", 5), ("q", 7))]
    monkeypatch.setattr(type(web.services.store.usage), "sums", lambda _self, now: sums if now == NOW else [])
    assert {one["name"]: one["used"] for one in got(web, "/quotas")["items"]} == {"p": {"client:tv": 5}, "q": {"client:tv": 7}}
    assert got(web, "/quotas/q")["used"] == {"client:tv": 7}


def test_pauses_end_by_themselves_or_are_ended(web: Kept) -> None:
    put(
        web,
        Pause(PauseScope.ALL, "", NOW + 60),
        Pause(PauseScope.GROUP, "kids", NOW + 30),
        Pause(PauseScope.CLIENT, "tv", NOW + 30),
    )
    assert [(one["scope"], one["until"]) for one in got(web, "/pauses")["items"]] == [
        ("client", NOW + 30),
        ("group", NOW + 30),
        ("all", NOW + 60),
    ]
    made = sent(web, "POST", "/pauses", {"scope": "client", "target": "tv", "minutes": 2.5, "harm_too": True}, 201)
    assert made == {"scope": "client", "target": "tv", "until": NOW + 150, "harm_too": True}
    assert (web.told()[0], web.told()[2]) == ("pause.started", "2.5 min")
    assert sent(web, "POST", "/pauses", {"minutes": 1}, 201)["harm_too"] is False
    for body in ({"minutes": 1, "target": "tv"}, {"minutes": 1, "scope": "group"}):
        assert sent(web, "POST", "/pauses", body, 422)["detail"] == "the scope all has no target, the others have one"
    for scope in ("group", "client"):
        assert (
            sent(web, "POST", "/pauses", {"minutes": 1, "scope": scope, "target": "x"}, 404)["detail"]
            == f"there is no {scope} 'x'"
        )
    assert web.client.delete(f"{API}/pauses", params={"scope": "group", "target": "kids"}).status_code == 204
    assert web.told()[0] == "pause.ended"
    answer = web.client.delete(f"{API}/pauses", params={"scope": "group", "target": "kids"})
    assert (answer.status_code, answer.json()["detail"]) == (404, "there is no such pause")
    assert web.client.delete(f"{API}/pauses").status_code == 204


def test_services_have_all_their_facts(web: Kept) -> None:
    every = web.services.services
    one = next(service for service in every.values() if service.part_of)
    assert got(web, f"/services/{one.service_id}") == {
        "service_id": one.service_id, "name": one.name, "name_zh": one.name_zh, "group": one.group, "hosts": list(one.hosts),
        "ports": list(one.ports), "part_of": one.part_of, "own": one.own,
    }  # fmt: skip
    assert [row["service_id"] for row in got(web, "/services", limit=1000)["items"]] == sorted(every)
    icon = web.client.get(f"{API}/services/{one.service_id}/icon")
    assert icon.headers["cache-control"] == "private, max-age=86400"


def test_the_log_has_all_facts_of_a_decision(web: Kept) -> None:
    store = web.services.store
    facts: dict[str, object] = {"source_list": "l", "rule": "r", "category": "ads", "resource_type": "script", "method": "POST"}
    store.log.write([decision(NOW - 90, f"http://n{n}.example/", "192.0.2.10", "block", "adblock", **facts) for n in range(3)])
    while store.log_counter.step():
        pass
    first = got(web, "/log", limit=2)
    item = first["items"][0]
    assert item == {
        "id": item["id"], "at": NOW - 90, "client": "192.0.2.10", "client_name": TABLET, "user": "", "method": "POST",
        "url": "http://n2.example/", "type": "script", "action": "block", "reason": "adblock", "list": "l", "rule": "r",
        "category": "ads", "elapsed_us": 12,
    }  # fmt: skip
    assert (first["next"], first["complete"], first["searched_to"]) == (item["id"] - 1, True, NOW - 90)
    assert [row["url"] for row in got(web, "/log", limit=2, after=first["next"])["items"]] == ["http://n0.example/"]
    assert got(web, f"/log/{item['id']}") == item
    assert sent(web, "GET", f"/log/{item['id'] + 1}", None, 404)["detail"] == f"there is no decision {item['id'] + 1} in the log"
    stats = got(web, "/log/stats", since="2h", top=1)
    assert (stats["decisions"], stats["blocked"], stats["uncounted"], set(stats["tops"])) == (
        3, 3, 0, {"client", "host", "category", "source", "reason"},
    )  # fmt: skip
    assert (stats["tops"]["category"], len(stats["tops"]["host"])) == ([{"name": "ads", "decisions": 3, "blocked": 3}], 1)
    assert (stats["since"] <= NOW - 90, stats["until"]) == (True, stats["until"])
    for path, buckets in (("/log/timeline", "buckets"), ("/overview", "timeline")):
        found = got(web, path)
        blocked = [one for one in found[buckets] if one["blocked"]]
        assert [(one["blocked"], one["allowed"], one["unknown"], one["learned"]) for one in blocked] == [(3, 0, 0, 0)]
        assert (found["uncounted"], found["until"] > NOW - 90) == (0, True)
    overview = got(web, "/overview", span="week")
    assert (overview["decisions"], overview["blocked"], overview["since"] < NOW - 5 * 86_400) == (3, 3, True)
    assert [overview[name][0] for name in ("clients", "categories", "lists")] == [
        {"name": name, "decisions": 3, "blocked": 3} for name in (TABLET, "ads", "l")
    ]
    assert {one["name"] for one in overview["sites"]} == {f"n{n}.example" for n in range(3)}
    store.unblock.ask([UnblockRequest("http://asked.example/", "10.0.0.7", "adblock", "", "", "", "homework", NOW - 9)])
    number = store.unblock.open_requests()[0].request_id
    store.unblock.deny([number], word="no", now=NOW)
    report = got(web, "/reports", since="24h", until="2027-01-16")
    assert (
        report["decisions"],
        report["blocked"],
        report["lists"] > 0,
        report["failing"],
        report["learned"],
        report["learned_count"],
    ) == (
        3,
        3,
        True,
        [],
        [],
        0,
    )
    assert (report["blocked_by"]["source"], report["clients"][0]["decisions"]) == (
        [{"name": "l", "decisions": 3, "blocked": 3}],
        3,
    )
    asked = next(one for one in report["requests"] if one["number"] == number)
    assert asked == {
        "number": number,
        "url": "http://asked.example/",
        "who": "10.0.0.7",
        "comment": "homework",
        "state": "denied",
        "word": "no",
        "at": NOW - 9,
    }
    detail = web.client.get(f"{API}/reports", params={"since": "today", "until": "yesterday"}).json()["detail"]
    assert detail == "the report ends before it begins"
    lines = web.client.get(f"{API}/log/export", params={"format": "jsonl"})
    assert (lines.headers["content-type"], lines.headers["content-disposition"]) == (
        "application/x-ndjson",
        'attachment; filename="decisions.jsonl"',
    )
    assert [json.loads(line)["url"] for line in lines.text.splitlines()] == [f"http://n{n}.example/" for n in (2, 1, 0)]
    assert '": ' not in lines.text
    assert sent(web, "POST", "/log/purge", {"before": "1h", "client": TABLET}) == {"removed": 0}
    assert web.told() == ("log.purged", TABLET, "1h")
    erased = sent(web, "POST", f"/clients/{TABLET}/erase", {"keep": True})
    assert (erased["counts"]["decisions"], erased["counts"]["clients"], TABLET in policies(web).clients) == (3, 0, True)
    assert (web.told(), sent(web, "POST", "/clients/laptop/erase", {})["counts"]["clients"]) == (("client.erased", TABLET, ""), 1)


def test_a_long_export_is_sent_in_pieces(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"a": number, "b": "=x"} for number in range(1_001)]
    monkeypatch.setattr(log_files, "exported_rows", lambda *_: iter(rows))
    text = web.client.get(f"{API}/log/export", params={"separator": "semicolon"})
    lines = text.text.splitlines()
    assert (len(lines), lines[1], lines[500:502], lines[-1]) == (1_002, "0;'=x", ["499;'=x", "500;'=x"], "1000;'=x")
    assert (text.headers["content-type"], text.headers["content-disposition"]) == (
        "text/csv; charset=utf-8", 'attachment; filename="decisions.csv"',
    )  # fmt: skip


def test_requests_and_links_have_all_their_facts(web: Kept) -> None:
    store = web.services.store
    put(web, Client("tablet", (address("10.0.0.7"),), "kids"))
    numbers = [ask(store, f"http://r{n}.example/x") for n in range(3)]
    number = numbers[-1]
    listed = got(web, "/requests", limit=1)
    assert listed["items"][0] == {
        "id": number,
        "state": "open",
        "url": "http://r2.example/x",
        "client": "10.0.0.7",
        "client_name": "tablet",
        "comment": "homework",
        "at": NOW,
        "times": 1,
        "reason": "blacklist",
        "source_list": "games list",
        "rule": ".games.example",
        "category": "games",
        "site": ".r2.example",
        "whole_site": True,
        "evidence": [],
        "review": 0,
        "decided_at": None,
        "word": "",
        "until": None,
        "scope": "",
        "rules": [],
    }
    assert [one["id"] for one in got(web, "/requests", limit=2, after=listed["next"])["items"]] == numbers[1::-1]
    body = {"seconds": 60, "word": " yes ", "site": False, "group": "kids"}
    approved = sent(web, "POST", f"/requests/{number}/approve", body)
    assert (
        approved["state"],
        approved["until"],
        approved["word"],
        approved["scope"],
        len(approved["rules"]),
        approved["decided_at"],
    ) == (
        "approved",
        NOW + 60,
        "yes",
        "group:kids",
        1,
        NOW,
    )
    tag = web.client.get(f"{API}/requests/{number}").headers["etag"]
    sent(web, "POST", f"/requests/{number}/reopen", None, 412, if_match='"x"')
    sent(web, "POST", f"/requests/{number}/reopen", None, 200, if_match=f"W/{tag}")
    assert sent(web, "POST", f"/requests/{number}/approve", {"once": True}, 200, if_match="*")["until"] == NOW + 86_400
    sent(web, "POST", f"/requests/{number}/reopen")
    assert sent(web, "POST", f"/requests/{number}/approve", {"seconds": None, "everybody": True})["until"] is None
    sent(web, "POST", f"/requests/{number}/reopen")
    assert sent(web, "POST", f"/requests/{number}/deny", {"word": " no "})["word"] == "no"
    link = sent(web, "POST", f"/requests/{numbers[0]}/link", {"seconds": 60, "client": "tv", "site": True}, 201)
    assert {name: link[name] for name in ("state", "url", "pattern", "scope", "until", "once", "request")} == {
        "state": "unused",
        "url": "http://r0.example/x",
        "pattern": ".r0.example",
        "scope": "client:tv",
        "until": NOW + 60,
        "once": False,
        "request": numbers[0],
    }
    decided = got(web, "/requests", state="decided", limit=1)
    assert ([one["id"] for one in decided["items"]], decided["next"]) == ([number], number)
    made = [sent(web, "POST", "/bypass-links", {"url": f"l{n}.example", "everybody": True, "once": True}, 201) for n in range(2)]
    assert (made[1]["once"], made[1]["until"], "?link=" in made[1]["address"], made[1]["request"]) == (True, NOW + 3_600, True, 0)
    links = got(web, "/bypass-links", limit=2)
    assert ([one["id"] for one in links["items"]], links["next"]) == ([made[1]["id"], made[0]["id"]], made[0]["id"])
    assert next(one["id"] for one in got(web, "/bypass-links", after=links["next"])["items"]) == link["id"]
    assert sent(web, "DELETE", f"/bypass-links/{link['id']}")["state"] == "revoked"
    for one in numbers[:2]:
        store.unblock.deny([one], word="", now=NOW)


def test_the_fleet_has_all_its_facts(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        FollowerRow("north", 1.0, 2.0, Report("1.2", 41, 3600, 900, 2, 0, 1, Fault.DISK, 4)), FollowerRow("new", 3.0, 0.0, None),
    )  # fmt: skip
    state = FollowerState(in_force=41, made_at=5.0, contact_at=6.0, fault=Fault.SIGNATURE, exceptions=("policy:a",))
    monkeypatch.setattr(fleet_case, "fleet_status", lambda _: FleetStatus(True, 42, 7.0, rows, "https://p.example", state))
    monkeypatch.setattr(fleet_case, "follower_trouble", lambda _, now: f"trouble {now}")
    followers = [
        {
            "name": "north",
            "added_at": 1.0,
            "reported_at": 2.0,
            "program": "1.2",
            "sequence": 41,
            "age_s": 3600,
            "exceptions": 2,
            "workers": 4,
            "fault": Fault.DISK.value,
        },
        {
            "name": "new",
            "added_at": 3.0,
            "reported_at": 0.0,
            "program": "",
            "sequence": 0,
            "age_s": 0,
            "exceptions": 0,
            "workers": 0,
            "fault": "",
        },
    ]
    assert got(web, "/fleet") == {
        "publishes": True,
        "sequence": 42,
        "exported_at": 7.0,
        "followers": followers,
        "follow": "https://p.example",
        "in_force": 41,
        "made_at": 5.0,
        "contact_at": 6.0,
        "fault": Fault.SIGNATURE.value,
        "trouble": f"trouble {NOW}",
        "exceptions": ["policy:a"],
    }
    made = sent(web, "POST", "/fleet/followers", {"name": "south"}, 201)
    assert (made["name"], bool(made["token"]), web.told()) == ("south", True, ("follower.added", "south", ""))
    sent(web, "DELETE", "/fleet/followers/south", None, 204)
    assert web.told() == ("follower.removed", "south", "")


def test_https_has_all_its_facts(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = SimpleNamespace(name="CA", sha256="ab", expires_at=5.0, days_left=3)
    shown = {"name": "CA", "sha256": "ab", "expires_at": 5.0, "days_left": 3}
    found = [SimpleNamespace(current=facts, waiting=facts), SimpleNamespace(current=facts, waiting=None)]
    monkeypatch.setattr(type(web.services), "authorities", lambda _: found.pop())
    assert got(web, "/https/authority") == {"current": shown, "waiting": None}
    assert got(web, "/https/authority") == {"current": shown, "waiting": shown}
    web.child.results = {"certificate": b"pem"}
    for form, waiting, media in (("pem", False, "application/x-pem-file"), ("p12", True, "application/x-pkcs12")):
        answer = web.client.get(f"{API}/https/certificate", params={"form": form, "waiting": waiting})
        assert (answer.content, answer.headers["content-type"]) == (b"pem", media)
        assert web.child.jobs.pop() == (
            "gatewayfilter.use_cases.https:certificate",
            (web.services.settings, form),
            {"waiting": waiting},
        )
    web.client.get(f"{API}/https/certificate")
    assert web.child.jobs.pop()[1:] == ((web.services.settings, "pem"), {"waiting": False})
    monkeypatch.setattr(https_case, "renew_authority", lambda _, step: facts)
    assert (sent(web, "POST", "/https/authority/renew", {"step": "new-key"}), web.told()) == (
        shown,
        ("authority.renewed", "CA", "new-key"),
    )
    app = SimpleNamespace(client="10.0.0.1", host="a.example", learned_at=1.0, expires_at=2.0, failures=3)
    monkeypatch.setattr(https_case, "pinned_apps", lambda _, now: [app] if now == NOW else [])
    assert got(web, "/https/pinned-apps") == [
        {"client": "10.0.0.1", "host": "a.example", "learned_at": 1.0, "expires_at": 2.0, "failures": 3}
    ]
    monkeypatch.setattr(https_case, "forget_pinned_app", lambda _, host, client: 2 if client else 0)
    answer = web.client.delete(f"{API}/https/pinned-apps/a.example", params={"client": "10.0.0.1"})
    assert (answer.json(), web.told()) == ({"removed": 2}, ("pinned-app.removed", "a.example", "10.0.0.1"))
    before = web.changes
    assert (sent(web, "DELETE", "/https/pinned-apps/a.example"), web.changes) == ({"removed": 0}, before)


def test_the_state_of_the_system(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    status = SimpleNamespace(
        running=True,
        since=1.0,
        listen="l",
        workers=SimpleNamespace(serving=1, expected=2),
        today=SimpleNamespace(requests=3, blocked=4),
        reviews=5,
        requests=6,
        attention=[SimpleNamespace(words="w", mend="m")],
    )
    monkeypatch.setattr(health_api, "filter_status", lambda *given: status if given[2] == NOW else None)
    found = got(web, "/status")
    assert found == {
        "version": found["version"],
        "running": True,
        "since": 1.0,
        "listen": "l",
        "workers_serving": 1,
        "workers_expected": 2,
        "requests_today": 3,
        "blocked_today": 4,
        "reviews": 5,
        "requests": 6,
        "attention": [{"sentence": "w", "command": "m"}],
    }
    finding = {"level": "warning", "check": "c", "words": "w", "mend": "m"}
    newest = SimpleNamespace(findings=[finding], began_at=7.0, complete=True)
    web.services.__dict__["examinations"] = SimpleNamespace(newest=lambda: newest)
    assert got(web, "/doctor") == {"healthy": True, "findings": [finding], "examined_at": 7.0, "complete": True}
    newest.findings = [finding, finding | {"level": "error"}]
    assert got(web, "/doctor")["healthy"] is False
    states = {"ntfy": ChannelState(1, 2.0, 3, 4.0, 5.0, "e"), "mail": None}
    monkeypatch.setattr(notifications, "channel_states", lambda *_: states)
    empty = {"name": "mail", "used": False, "sent_at": 0.0, "failures": 0, "failing_since": 0.0, "error": ""}
    used = {"name": "ntfy", "used": True, "sent_at": 2.0, "failures": 3, "failing_since": 5.0, "error": "e"}
    assert got(web, "/notifications/channels") == {"items": [used, empty]}
    web.child.results = {"send_test": {"mail": "", "ntfy": "away"}}
    assert sent(web, "POST", "/notifications/test") == {
        "items": [{"channel": "mail", "sent": True, "error": ""}, {"channel": "ntfy", "sent": False, "error": "away"}],
    }  # fmt: skip
    assert (web.child.jobs.pop()[1], web.told()) == ((web.services.settings, NOW), ("notification.tested", "mail, ntfy", ""))
    sent(web, "PUT", "/proxy-users/kim", {"password": "p"}, 204)
    assert (web.told(), got(web, "/proxy-users")) == (("proxy-user.changed", "kim", ""), {"items": ["kim"]})
    sent(web, "DELETE", "/proxy-users/kim", None, 204)
    assert web.told() == ("proxy-user.removed", "kim", "")
    before = web.changes
    assert (sent(web, "DELETE", "/proxy-users/kim", None, 404)["detail"], web.changes) == ("there is no user kim", before)
    setting = next(one for one in got(web, "/settings") if one["key"] == "web.session_hours")
    assert (setting["origin"], setting["changeable"], bool(setting["description"])) == ("default", True, True)
    changed = sent(web, "PUT", "/settings/web.session_hours", {"value": "5"})
    assert changed == {
        "key": "web.session_hours",
        "before": setting["value"],
        "after": 5,
        "file": str(web.services.settings_file),
        "overruled_by": "",
    }
    assert web.told() == ("setting.changed", "web.session_hours", "")


def test_backups_by_the_api(web: Kept, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Made:
        """A backup that is open."""

        report = SimpleNamespace(size_bytes=3)
        closed = 0

        def __enter__(self) -> None:
            """It is open."""

        def __exit__(self, *_: object) -> None:
            self.closed += 1

    made, asked = Made(), list[dict[str, Any]]()
    path = tmp_path / "b"
    path.write_bytes(b"abc")
    changes = [KindChanges("a", 1, 2, 3)]
    kinds = [{"kind": "a", "added": 1, "changed": 2, "removed": 3}]
    with path.open("rb") as file:
        made.file = file  # type: ignore[attr-defined]
        monkeypatch.setattr(backup_api, "made_backup", lambda *_, **named: asked.append(named) or made)
        answer = web.client.post(f"{API}/backup", json={"log": True, "passphrase": "p"})
    assert (answer.content, asked, made.closed, web.told()) == (
        b"abc", [{"with_log": True, "passphrase": "p"}], 1, ("backup.downloaded", "3 bytes", ""),
    )  # fmt: skip
    monkeypatch.setattr(backup_api, "shown_changes", lambda *_: changes)
    monkeypatch.setattr(backup_api, "restored", lambda *_: SimpleNamespace(changes=changes, safety_copy=path))
    upload = {"file": (f"{'x' * 150}", b"x")}
    before = web.changes
    preview = web.client.post(f"{API}/restore/preview", files=upload).json()
    assert (preview, web.changes) == ({"changes": kinds, "safety_copy": ""}, before)
    assert web.client.post(f"{API}/restore", files=upload).json() == {"changes": kinds, "safety_copy": str(path)}
    assert web.told() == ("backup.restored", "x" * 100, "")


def test_accounts_tokens_and_sessions_by_the_api(web: Kept) -> None:
    access = web.services.access
    ada = access.accounts.add("ada", Role.ADMIN, GOOD)
    kim = sent(web, "POST", "/users", {"name": "kim", "role": "approver", "external_id": "https://i sub"}, 201)
    assert kim == {
        "id": kim["id"],
        "name": "kim",
        "role": "approver",
        "disabled": False,
        "second_factor": False,
        "external_id": "https://i sub",
        "language": "",
        "created_at": NOW,
        "changed_at": NOW,
        "logged_in_at": None,
    }
    assert web.told() == ("user.added", "kim", "role approver")
    assert (
        sent(web, "POST", "/users", {"name": "x"}, 422)["detail"] == "an account has a password, or an identity of single sign-on"
    )
    user = f"/users/{kim['id']}"
    tag = web.client.get(f"{API}{user}").headers["etag"]
    assert [one["name"] for one in got(web, "/users")["items"]] == ["ada", "kim"]
    changes = (
        ({"name": "kate"}, ("user.renamed", "kim", "name kate"), {"name": "kate"}),
        ({"role": "viewer"}, ("user.role", "kate", "role viewer"), {"role": "viewer"}),
        ({"disabled": True}, ("user.disabled", "kate", ""), {"disabled": True}),
        ({"disabled": False}, ("user.enabled", "kate", ""), {"disabled": False}),
        ({"password": GOOD}, ("user.password", "kate", ""), {}),
        ({"external_id": "https://i two"}, ("user.linked", "kate", "https://i two"), {"external_id": "https://i two"}),
        ({"external_id": ""}, ("user.unlinked", "kate", ""), {"external_id": ""}),
        ({"second_factor": False}, ("user.second-factor-removed", "kate", ""), {"second_factor": False}),
    )
    for body, told, facts in changes:
        answer = web.client.patch(f"{API}{user}", json=body, headers={"if-match": tag})
        assert ({key: answer.json()[key] for key in facts}, web.told()) == (facts, told)
        assert (answer.headers["etag"] == tag) == ("second_factor" in body)
        tag = answer.headers["etag"]
    sent(web, "PATCH", user, {"second_factor": True}, 422)
    sent(web, "PATCH", user, {"name": "x"}, 412, if_match='"x"')
    _, session = access.sessions.open(ada, "n", "a")
    web.who.identity = Identity("ada", WebRole.ADMIN, CSRF, account_id=ada.account_id, session=session)
    own = sent(web, "POST", "/tokens", {"name": "job", "scope": "approve", "lifetime_s": 60}, 201)
    assert own == {
        "id": own["id"],
        "account": "ada",
        "name": "job",
        "scope": "approve",
        "created_at": NOW,
        "expires_at": NOW + 60,
        "used_at": None,
        "token": own["token"],
    }
    assert (web.told(), access.tokens.find(own["token"]) is not None) == (
        ("token.added", "job", "account ada, scope approve"),
        True,
    )
    kate = access.account(kim["id"])
    _, theirs = access.tokens.add(kate, "theirs", Scope.READ, None)
    assert [(one["account"], one["name"]) for one in got(web, "/tokens")["items"]] == [("ada", "job"), ("kate", "theirs")]
    web.who.identity = Identity("kate", WebRole.VIEWER, CSRF, account_id=kate.account_id, session=session)
    assert [one["name"] for one in got(web, "/tokens")["items"]] == ["theirs"]
    sent(web, "DELETE", f"/tokens/{own['id']}", None, 404)
    web.who.identity = Identity("kate", WebRole.VIEWER, account_id=kate.account_id)
    for method, path in (("POST", "/tokens"), ("DELETE", f"/tokens/{theirs.token_id}")):
        detail = sent(web, method, path, {"name": "x"}, 403)["detail"]
        assert detail == "a token needs the scope admin to make or remove tokens"
    assert sent(web, "DELETE", "/session", None, 409)["detail"] == "a token has no session"
    web.who.identity = Identity("ada", WebRole.ADMIN, account_id=ada.account_id)
    sent(web, "DELETE", f"/tokens/{theirs.token_id}", None, 204)
    assert web.told() == ("token.removed", "theirs", "")
    web.who.identity = Identity("kate", WebRole.APPROVER, CSRF, "zh", account_id=kate.account_id, session=session)
    assert got(web, "/session") == {"name": "kate", "role": "approver", "language": "zh", "csrf": CSRF}
    answer = web.client.delete(f"{API}/session")
    assert (answer.status_code, 'gatewayfilter-session=""' in answer.headers["set-cookie"]) == (204, True)
    assert session.public_id not in {one.public_id for one in web.services.store.sessions.of_account(ada.account_id)}
    web.who.identity = ADMIN
    sent(web, "DELETE", user, None, 412, if_match='"x"')
    sent(web, "DELETE", user, None, 204)
    assert web.told() == ("user.removed", "kate", "")


def test_changes_are_listed_by_the_api(web: Kept) -> None:
    trail = web.services.access.trail
    first, second = (trail.record(APPROVER.actor, "test.done", f"s{n}", "d", {"kind": "x"} if n else None) for n in range(2))
    listed = got(web, "/audit", who="Pat", action="test.", limit=1)
    assert listed["items"] == [
        {
            "id": second,
            "at": NOW,
            "who": "Pat",
            "via": "session",
            "via_detail": "",
            "action": "test.done",
            "subject": "s1",
            "detail": "d",
            "undoable": True,
            "undone_at": None,
            "undone_by": "",
        },
    ]
    assert listed["next"] == str(second)
    rest = got(web, "/audit", after=listed["next"], action="test.")
    assert ([(one["id"], one["undoable"]) for one in rest["items"]], rest["next"]) == ([(first, False)], None)
    sent(web, "POST", "/groups", {"name": "g"}, 201)
    entry = web.last_change.entry_id
    assert entry in [one["id"] for one in got(web, "/audit/undoable")["items"]]
    undone = sent(web, "POST", f"/audit/{entry}/undo")
    assert (undone["undone_by"], undone["undone_at"], undone["undoable"]) == ("Ada", NOW, False)
    assert datetime.fromtimestamp(undone["at"], UTC).year == 2027


def test_a_log_in_by_the_api(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    access = web.services.access
    account = access.accounts.add("lea", Role.APPROVER, None, external_id="https://i lea")
    session = access.sessions.open(account, "n", "a")[1]
    web.who.identity = None
    done = LogInResult(LogInStatus.DONE, account, session, "s3cret", "m4rk")
    code = LogInResult(LogInStatus.CODE_NEEDED, account, pending="p")
    wrong = LogInResult(LogInStatus.WRONG)
    results: list[LogInResult] = []
    asked: list[tuple[Any, ...]] = []

    def answered(*given: Any) -> LogInResult:
        asked.append(given[:2])
        return results.pop(0)

    monkeypatch.setattr(access.log_in, "with_password", answered)
    monkeypatch.setattr(access.log_in, "with_code", answered)
    body = {"name": "lea", "password": "p", "code": "1"}
    shown = {"name": "lea", "role": "approver", "language": "", "csrf": session.csrf}
    for found, status, detail in (
        ([wrong], 401, "name, password or code is wrong"),
        ([code, code], 401, "name, password or code is wrong"),
        ([LogInResult(LogInStatus.DONE, account)], 401, "name, password or code is wrong"),
        ([LogInResult(LogInStatus.DONE, session=session)], 401, "name, password or code is wrong"),
        ([code, LogInResult(LogInStatus.WAIT, wait_s=1.2)], 429, "too many attempts: wait 2 s"),
    ):
        results[:] = found
        answer = web.client.post(f"{API}/session", json=body)
        assert (answer.status_code, answer.json()["detail"], results) == (status, detail, [])
        assert ("set-cookie" in answer.headers, answer.headers.get("retry-after")) == (False, "2" if status == 429 else None)
    for found in ([done], [code, done]):
        results[:] = found
        answer = web.client.post(f"{API}/session", json=body)
        assert (answer.status_code, answer.json(), len(answer.headers.get_list("set-cookie"))) == (200, shown, 2)
    web.client.cookies.clear()
    assert asked[-2:] == [("lea", "p"), ("p", "1")]
    access.accounts.remove(account)
