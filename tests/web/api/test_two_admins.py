"""Two admins edit one thing at the same time: one of them is told, whatever the thing is."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from starlette.testclient import TestClient

from gatewayfilter.web.api.lists import rules
from gatewayfilter.web.api.people import clients, groups, policies, quotas, schedules
from gatewayfilter.web.api.system import users
from tests.web.people_fakes import household
from tests.web.web_fakes import Dashboard, dashboard

API = "/api/v1"
SCHEDULE = {
    "policy": "kids",
    "effect": "block-service",
    "target": "tiktok",
    "windows": [{"begin": "08:00", "end": "13:00", "days": ["mon"]}],
}
QUOTA = {"policy": "kids", "kind": "category", "target": "games", "minutes": 60}
THINGS: dict[str, tuple[ModuleType, dict[str, Any], str, dict[str, Any], dict[str, Any]]] = {
    "clients": (clients, {"name": "phone", "addresses": ["192.0.2.20"]}, "PATCH", {"note": "a"}, {"note": "b"}),
    "groups": (groups, {"name": "staff"}, "PATCH", {"note": "a"}, {"name": "team"}),
    "policies": (policies, {"name": "strict"}, "PATCH", {"values": {"safesearch": "on"}}, {"values": {"unknown": "block"}}),
    "schedules": (
        schedules,
        {"name": "school", **SCHEDULE},
        "PUT",
        {**SCHEDULE, "target": "roblox"},
        {**SCHEDULE, "target": "youtube"},
    ),
    "quotas": (quotas, {"name": "play", **QUOTA}, "PATCH", {"minutes": 61}, {"minutes": 62}),
    "rules": (rules, {"patterns": ["a.example"], "action": "block"}, "PATCH", {"comment": "a"}, {"comment": "b"}),
    "users": (users, {"name": "kim", "password": "correct horse battery"}, "PATCH", {"role": "approver"}, {"disabled": True}),
}
"""Subject → its module, what is added, and two changes of it."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with dashboard(tmp_path_factory.mktemp("two")) as opened:
        household(opened.services.store)
        yield opened


class _Meeting:
    """Has checks of versions wait for each other, as long as two can be in one at the same time."""

    def __init__(self, check: Any) -> None:
        self._check = check
        self._barrier = threading.Barrier(2)

    def __call__(self, *values: Any) -> None:
        self._check(*values)
        with suppress(threading.BrokenBarrierError):
            self._barrier.wait(0.1)


@pytest.mark.parametrize("second", ["change", "remove"])
@pytest.mark.parametrize("subject", THINGS)
def test_one_of_two_is_told(subject: str, second: str, web: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    module, new, method, one, other = THINGS[subject]
    added = web.client.post(f"{API}/{subject}", json=new)
    assert added.status_code == 201, added.text
    body = added.json()
    name = body["items"][0]["rule"]["id"] if subject == "rules" else body["id"] if subject == "users" else body["name"]
    url = f"{API}/{subject}/{name}"
    fresh = {"if-match": web.client.get(url).headers["etag"]}
    monkeypatch.setattr(module, "check_version", _Meeting(module.check_version))

    def send(way: str, change: dict[str, Any] | None) -> int:
        browser = TestClient(web.client.app, base_url=str(web.client.base_url), headers=dict(web.client.headers))
        return browser.request(way, url, json=change, headers=fresh).status_code

    sent = [(method, one), (method, other) if second == "change" else ("DELETE", None)]
    with ThreadPoolExecutor(2) as pool:
        found = sorted(pool.map(lambda each: send(*each), sent))
    assert found[0] in {200, 204}
    assert found[1] in {404, 412}
    monkeypatch.undo()
    web.client.delete(url)
    web.client.delete(f"{API}/groups/team")
