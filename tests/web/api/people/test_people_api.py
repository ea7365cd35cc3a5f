"""The API of clients, groups, policies, schedules, quotas, pauses and services."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.model import Role as AccountRole
from gatewayfilter.use_cases.access.undo import Undo
from tests.web.people_fakes import HOSTILE, TABLET, household, requests_of
from tests.web.web_fakes import APPROVER, VIEWER, Dashboard, dashboard

API = "/api/v1"
NEW: dict[str, dict[str, Any]] = {
    "clients": {"name": "phone", "addresses": ["192.0.2.20"]},
    "groups": {"name": "staff", "policy": "kids"},
    "policies": {"name": "strict", "values": {"safesearch": "on", "service.tiktok": "block"}},
    "schedules": {
        "name": "school",
        "policy": "kids",
        "effect": "block-service",
        "target": "tiktok",
        "windows": [{"begin": "08:00", "end": "13:00", "days": ["mon", "tue"]}],
    },
    "quotas": {
        "name": "play",
        "policy": "kids",
        "kind": "category",
        "target": "games",
        "minutes": 60,
        "other_days": {"sat": 120},
    },
}
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "clients": ("patch", {"note": "red"}),
    "groups": ("patch", {"note": "red"}),
    "policies": ("patch", {"values": {"youtube": "strict", "safesearch": None}}),
    "schedules": ("put", {key: value for key, value in NEW["schedules"].items() if key != "name"} | {"target": "roblox"}),
    "quotas": ("patch", {"minutes": 90}),
}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Dashboard]:
    with dashboard(tmp_path) as opened:
        household(opened.services.store)
        yield opened


@pytest.mark.parametrize("subject", list(NEW))
def test_a_thing_is_added_read_changed_and_removed(subject: str, web: Dashboard) -> None:
    send, name = web.client, NEW[subject]["name"]
    added = send.post(f"{API}/{subject}", json=NEW[subject])
    assert (added.status_code, added.json()["name"]) == (201, name)
    assert send.post(f"{API}/{subject}", json=NEW[subject]).status_code == 409
    found = send.get(f"{API}/{subject}/{name}")
    assert (found.status_code, found.headers["etag"]) == (200, added.headers["etag"])
    method, change = CHANGES[subject]
    changed = send.request(method, f"{API}/{subject}/{name}", json=change, headers={"if-match": found.headers["etag"]})
    assert changed.status_code == 200, changed.text
    assert changed.headers["etag"] != found.headers["etag"]
    assert changed.json().items() != found.json().items()
    late = send.request(method, f"{API}/{subject}/{name}", json=change, headers={"if-match": found.headers["etag"]})
    assert (late.status_code, late.headers["content-type"]) == (412, "application/problem+json")
    assert send.delete(f"{API}/{subject}/{name}", headers={"if-match": found.headers["etag"]}).status_code == 412
    assert send.delete(f"{API}/{subject}/{name}").status_code == 204
    assert [send.request(one, f"{API}/{subject}/{name}", json=change).status_code for one in ("get", method, "delete")] == [
        404
    ] * 3


@pytest.mark.parametrize("subject", list(NEW))
def test_lists_are_paged_by_name(subject: str, web: Dashboard) -> None:
    web.client.post(f"{API}/{subject}", json=NEW[subject])
    names: list[str] = []
    after: str | None = ""
    while after is not None:
        page = web.client.get(f"{API}/{subject}", params={"after": after, "limit": 1}).json()
        assert len(page["items"]) <= 1
        names += [item["name"] for item in page["items"]]
        after = page["next"]
    assert names == sorted(set(names))
    assert NEW[subject]["name"] in names


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        ("clients", {"name": "a/b", "addresses": ["192.0.2.9"]}),
        ("clients", {"name": "..", "addresses": ["192.0.2.9"]}),
        ("clients", {"name": "x", "addresses": ["192.0.2.10"]}),
        ("clients", {"name": "x", "addresses": ["not an address"]}),
        ("clients", {"name": "x", "addresses": []}),
        ("clients", {"name": "x", "addresses": ["192.0.2.9"], "icon": "../../etc"}),
        ("clients", {"name": "x", "addresses": ["192.0.2.9"], "group": "none"}),
        ("clients", {"name": "x", "addresses": ["192.0.2.9"], "unknown": 1}),
        ("groups", {"name": "x", "policy": "none"}),
        ("policies", {"name": "x", "values": {"safesearch": "altavista"}}),
        ("policies", {"name": "x", "values": {"service.none": "block"}}),
        ("policies", {"name": "x", "groups": ["none"]}),
        ("schedules", NEW["schedules"] | {"windows": []}),
        ("schedules", NEW["schedules"] | {"windows": [{"begin": "25:00", "end": "13:00", "days": ["mon"]}]}),
        ("schedules", NEW["schedules"] | {"windows": [{"begin": "08:00", "end": "08:00", "days": ["mon"]}]}),
        ("schedules", NEW["schedules"] | {"windows": [{"begin": "08:00", "end": "09:00", "days": ["yesterday"]}]}),
        ("schedules", NEW["schedules"] | {"timezone": "../../etc/passwd"}),
        ("schedules", NEW["schedules"] | {"effect": "block-all"}),
        ("schedules", NEW["schedules"] | {"policy": "none"}),
        ("quotas", NEW["quotas"] | {"minutes": 0}),
        ("quotas", NEW["quotas"] | {"other_days": {"someday": 3}}),
        ("quotas", NEW["quotas"] | {"target": "none"}),
    ],
)
def test_what_cannot_be_is_refused_with_one_sentence(subject: str, body: dict[str, Any], web: Dashboard) -> None:
    before = web.services.store.policies.read()
    answer = web.client.post(f"{API}/{subject}", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json()["detail"]
    assert web.services.store.policies.read() == before


def test_what_is_used_cannot_be_removed(web: Dashboard) -> None:
    assert web.client.delete(f"{API}/groups/kids").status_code == 422
    assert web.client.delete(f"{API}/policies/kids").status_code == 422
    assert web.client.delete(f"{API}/groups/default").status_code == 422


def test_a_client_is_renamed_and_moved(web: Dashboard) -> None:
    change = {"name": "tablet", "group": "guests", "addresses": ["192.0.2.30", "user:kim"], "policy": "night", "icon": "phone"}
    answer = web.client.patch(f"{API}/clients/{TABLET}", json=change)
    assert answer.status_code == 200
    assert {key: answer.json()[key] for key in change} == change
    assert answer.json()["note"] == "blue"
    assert web.client.patch(f"{API}/clients/tablet", json={"name": "tv"}).status_code == 409
    assert web.client.get(f"{API}/clients/tablet").json()["state"]["kind"] == "blocked"


def test_a_group_is_renamed(web: Dashboard) -> None:
    send = web.client
    before = send.get(f"{API}/groups/kids")
    members = before.json()["clients"]
    assert members
    fresh = {"if-match": before.headers["etag"]}
    renamed = send.patch(f"{API}/groups/kids", json={"name": "children", "note": "red"}, headers=fresh)
    assert (renamed.status_code, renamed.json()["clients"], renamed.json()["note"]) == (200, members, "red")
    assert send.get(f"{API}/groups/children").headers["etag"] == renamed.headers["etag"]
    assert send.get(f"{API}/groups/kids").status_code == 404
    assert send.patch(f"{API}/groups/children", json={"name": "kids"}, headers=fresh).status_code == 412
    assert send.patch(f"{API}/groups/children", json={"name": "default"}).status_code == 409
    assert send.patch(f"{API}/groups/default", json={"name": "all"}).status_code == 422
    page = send.get("/clients?group=children").text
    version = page.partition('name="version" value="')[2].partition('"')[0]
    form = {"name": "little ones", "policy": "kids", "note": "", "version": version}
    assert send.post("/groups/children", data=form).status_code == 303
    assert send.get(f"{API}/groups/little ones").json()["clients"] == members
    assert send.post("/groups/little ones", data=form | {"name": "x"}).status_code == 422


def test_the_policy_of_a_client_at_a_time(web: Dashboard) -> None:
    now = web.client.get(f"{API}/clients/{TABLET}/policy").json()
    assert now["state"] | {"until": None} == {
        "kind": "filtered", "until": None, "cause": "", "schedules": [], "services": ["tiktok", "roblox"], "categories": [],
        "allowed": [], "used_up": [],
    }  # fmt: skip
    values = {value["key"]: (value["value"], value["origin"], value["policy"]) for value in now["values"]}
    assert values["safesearch"] == ("on", "group kids", "kids")
    assert values["youtube"] == ("off", "settings", "")
    bed = {"name": "bed", "policy": "kids", "effect": "block-all", "timezone": "UTC",
           "windows": [{"begin": "21:00", "end": "06:00", "days": ["thu"]}]}  # fmt: skip
    assert web.client.post(f"{API}/schedules", json=bed).status_code == 201
    for at, kind, until in ((75_599, "filtered", 75_600), (75_600, "blocked", 108_000), (108_000, "filtered", 680_400)):
        found = web.client.get(f"{API}/clients/{TABLET}/policy", params={"at": at}).json()  # 1 January 1970 was a Thursday
        assert (found["state"]["kind"], found["state"]["until"]) == (kind, until)
    assert found["schedules"] == ["bed"]


@pytest.mark.parametrize("at", ["-1", "nan", "inf", "1e18", "now"])
def test_times_beyond_the_calendar_are_refused(at: str, web: Dashboard) -> None:
    assert web.client.get(f"{API}/clients/{TABLET}/policy", params={"at": at}).status_code == 422


def test_pauses_of_approvers(web: Dashboard) -> None:
    web.who.identity = APPROVER
    assert web.client.post(f"{API}/pauses", json={"minutes": 15}).json()["scope"] == "all"
    assert web.client.post(f"{API}/pauses", json={"scope": "client", "target": TABLET, "minutes": 5}).status_code == 201
    assert web.client.post(f"{API}/pauses", json={"scope": "group", "target": "none", "minutes": 5}).status_code == 404
    assert web.client.post(f"{API}/pauses", json={"scope": "group", "minutes": 5}).status_code == 422
    assert web.client.post(f"{API}/pauses", json={"minutes": 1e99}).status_code == 422
    found = web.client.get(f"{API}/pauses").json()["items"]
    assert [(pause["scope"], pause["target"]) for pause in found] == [("client", TABLET), ("all", "")]
    assert web.client.get(f"{API}/clients/{TABLET}").json()["state"]["kind"] == "paused"
    assert web.client.delete(f"{API}/pauses", params={"scope": "client", "target": TABLET}).status_code == 204
    assert web.client.delete(f"{API}/pauses", params={"scope": "client", "target": TABLET}).status_code == 404
    assert len(web.client.get(f"{API}/pauses").json()["items"]) == 1


@pytest.mark.parametrize("subject", list(NEW))
def test_who_may_not_change_is_told_so(subject: str, web: Dashboard) -> None:
    for identity in (VIEWER, APPROVER):
        web.who.identity = identity
        assert web.client.get(f"{API}/{subject}").status_code == 200
        assert web.client.post(f"{API}/{subject}", json=NEW[subject]).status_code == 403
    web.who.identity = VIEWER
    assert web.client.post(f"{API}/pauses", json={"minutes": 15}).status_code == 403


def test_changes_are_recorded_and_can_be_undone(web: Dashboard) -> None:
    web.client.patch(f"{API}/clients/{TABLET}", json={"group": "guests"})
    entry = web.services.store.audit.page(limit=1)[0]
    assert (entry.actor.name, entry.action, entry.subject) == ("Ada", "client.changed", TABLET)
    undo = Undo(web.services.store, lambda: pytest.fail("no review"), lambda _: pytest.fail("no extraction rule"), time.time)
    undo.undo(entry.entry_id, APPROVER.actor, AccountRole.ADMIN)
    assert web.services.store.policies.read().clients[TABLET].group == "kids"


def test_devices_and_what_clients_did_today(web: Dashboard) -> None:
    now = time.time()
    web.services.store.log.write([*requests_of("192.0.2.10", now), *requests_of("192.0.2.99", now, 2)])
    tablet = web.client.get(f"{API}/clients/{TABLET}").json()
    assert (tablet["requests_today"], tablet["blocked_today"]) == (3, 1)
    assert now - 3600 <= tablet["last_at"] <= time.time()
    found = {device["address"]: device for device in web.client.get(f"{API}/devices").json()["items"]}
    assert (found["192.0.2.99"]["requests_today"], found["192.0.2.99"]["mac"]) == (2, "")
    assert "192.0.2.10" not in found


def test_services_and_their_icons(web: Dashboard) -> None:
    games = web.client.get(f"{API}/services", params={"group": "games", "limit": 1000}).json()["items"]
    assert len(games) > 10
    assert {service["group"] for service in games} == {"games"}
    assert web.client.get(f"{API}/services/roblox").json()["name"] == "Roblox"
    icon = web.client.get(f"{API}/services/roblox/icon")
    assert (icon.headers["content-type"], icon.text[:4]) == ("image/svg+xml", "<svg")
    assert web.client.get(f"{API}/services/none").status_code == 404


def test_hostile_names_come_back_as_they_are(web: Dashboard) -> None:
    name = HOSTILE.replace("/", "").replace("\\", "")
    assert web.client.post(f"{API}/clients", json={"name": name, "addresses": ["192.0.2.40"]}).status_code == 201
    assert name in [client["name"] for client in web.client.get(f"{API}/clients").json()["items"]]
