"""Answers of the API about people, traffic and the system: each field, the order, and what is recorded."""

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import (
    ALL_DAYS,
    DEFAULT,
    Pause,
    PauseScope,
    Quota,
    QuotaKind,
    Schedule,
    ScheduleEffect,
    Window,
)
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.web.api.people.models import WindowModel, page_of, read_windows, window_model
from tests.web.pages.test_page_values import NOW, Kept, kept
from tests.web.people_fakes import TABLET, household
from tests.web.web_fakes import ADMIN, APPROVER

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
    assert answer.content or "content-type" not in answer.headers
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
    assert got(web, "/audit", after=listed["next"], action="test.", limit=1) == rest
    sent(web, "POST", "/groups", {"name": "g"}, 201)
    entry = web.last_change.entry_id
    assert entry in [one["id"] for one in got(web, "/audit/undoable")["items"]]
    undone = sent(web, "POST", f"/audit/{entry}/undo")
    assert (undone["undone_by"], undone["undone_at"], undone["undoable"]) == ("Ada", NOW, False)
    assert datetime.fromtimestamp(undone["at"], UTC).year == 2027
