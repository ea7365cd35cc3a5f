"""The pages of clients: what they show, what their forms do, with and without scripts."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.model import DEFAULT, Client, PauseScope, ScheduleEffect
from tests.web.people_fakes import HOSTILE, TABLET, address, household, requests_of
from tests.web.web_fakes import APPROVER, VIEWER, Dashboard, dashboard

NIGHTS: dict[str, Any] = {"from": "20:00", "to": "06:00", "free_from": "22:00", "free_to": "08:30"}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Dashboard]:
    with dashboard(tmp_path) as opened:
        household(opened.services.store)
        yield opened


def post(web: Dashboard, path: str, *, htmx: Any = False, **fields: Any) -> Any:
    return web.client.post(path, data=fields, headers={"hx-request": "true"} if htmx else {})


def clients_of(web: Dashboard) -> dict[str, Client]:
    return dict(web.services.store.policies.read().clients)


def test_every_client_is_shown_with_what_it_may_now(web: Dashboard) -> None:
    web.services.store.log.write(requests_of("192.0.2.10", time.time(), 4))
    page = web.client.get("/clients").text
    assert "Filtered, without" in page
    assert "Nothing is allowed" in page
    assert page.count('<a class="device" href="/clients/') == 3
    row = re.search(r"<tr>(?:(?!</tr>).)*Kim&#39;s tablet.*?</tr>", page, re.DOTALL)
    assert row is not None
    assert "25%" in row[0]


@pytest.mark.parametrize(
    ("query", "shown"), [("", 3), ("?q=TABLET", 1), ("?q=192.0.2.12", 1), ("?q=blue", 1), ("?group=kids", 2), ("?q=zz", 0)]
)
def test_the_address_holds_what_is_looked_for(query: str, shown: int, web: Dashboard) -> None:
    assert web.client.get(f"/clients{query}").text.count('<a class="device" href="/clients/') == shown


def test_hundreds_of_clients_are_shown_page_by_page(web: Dashboard) -> None:
    clients = [Client(f"c{number:03}", (address(f"198.51.100.{number}"),)) for number in range(250)]
    web.services.store.policies.change(lambda _: [(client, True) for client in clients], 0.0)
    url, seen = "/clients", []
    while url:
        page = web.client.get(url).text
        seen += re.findall(r'<a class="device" href="/clients/([^"]+)"', page)
        older = re.search(r'rel="next" href="([^"]+)"', page)
        url = older[1].replace("&amp;", "&") if older else ""
    assert len(seen) == len(set(seen)) == 253


def test_a_new_device_gets_a_name_in_one_step(web: Dashboard) -> None:
    web.services.store.log.write(requests_of("192.0.2.99", time.time()))
    page = web.client.get("/clients").text
    assert 'name="addresses" value="192.0.2.99"' in page
    answer = post(web, "/clients", name="phone", addresses="192.0.2.99", group="kids")
    assert (answer.status_code, answer.headers["location"]) == (303, "/clients/phone")
    assert clients_of(web)["phone"].group == "kids"
    assert 'value="192.0.2.99"' not in web.client.get("/clients").text


def test_what_cannot_be_is_said_on_the_page(web: Dashboard) -> None:
    answer = post(web, "/clients", name="tv", addresses="192.0.2.50")
    assert answer.status_code == 422
    assert "notice--bad" in answer.text
    partial = post(web, "/clients", htmx=True, name="", addresses="nothing")
    assert (partial.status_code, partial.headers["hx-retarget"]) == (200, "#main")
    assert len(clients_of(web)) == 3


def test_bedtime_and_back(web: Dashboard) -> None:
    answer = post(web, f"/clients/{TABLET}/bedtime", **NIGHTS)
    assert (answer.status_code, answer.headers["location"]) == (303, "/clients/Kim%27s%20tablet")
    policies = web.services.store.policies.read()
    own = policies.clients[TABLET].policy
    (bedtime,) = (one for one in policies.schedules.values() if one.policy == own)
    assert bedtime.effect is ScheduleEffect.BLOCK_ALL
    assert {(window.begin, window.end, len(window.days)) for window in bedtime.windows} == {(1200, 360, 5), (1320, 510, 2)}
    assert policies.clients["laptop"].policy == ""
    page = web.client.get(f"/clients/{TABLET}").text
    assert "20:00\u201306:00" in page
    assert 'value="22:00"' in page
    post(web, f"/clients/{TABLET}/bedtime", **(NIGHTS | {"from": "21:00"}))
    assert len(web.services.store.policies.read().schedules) == 2
    post(web, f"/clients/{TABLET}/bedtime/remove")
    assert list(web.services.store.policies.read().schedules) == ["nights"]


@pytest.mark.parametrize(
    "fields", [{}, {"from": "20:00"}, NIGHTS | {"to": "99:99"}, NIGHTS | {"from": "06:00"}, NIGHTS | {"to": HOSTILE}]
)
def test_a_bedtime_that_is_none_changes_nothing(fields: dict[str, Any], web: Dashboard) -> None:
    before = web.services.store.policies.read()
    assert post(web, f"/clients/{TABLET}/bedtime", **fields).status_code == 422
    assert web.services.store.policies.read() == before


def test_a_bedtime_of_one_is_none_of_those_who_share_its_policy(web: Dashboard) -> None:
    store = web.services.store
    store.policies.change(lambda policies: [(policies.with_client_policy("laptop", "night"), True)], 0.0)
    post(web, "/clients/laptop/bedtime", **NIGHTS)
    policies = store.policies.read()
    assert (policies.clients["tv"].policy, policies.clients["laptop"].policy) == ("night", "laptop")
    assert policies.schedules["nights"].policy == "night"
    assert {one.policy for one in policies.schedules.values()} == {"night", "laptop"}


def test_pauses_with_their_time_left(web: Dashboard) -> None:
    web.who.identity = APPROVER
    assert post(web, "/pauses", minutes="15", scope="client", target=TABLET, next=f"/clients/{TABLET}").status_code == 303
    assert "Left: 15 minutes" in web.client.get("/clients").text
    assert "Not filtered until" in web.client.get(f"/clients/{TABLET}").text
    assert post(web, "/pauses/end", scope="client", target=TABLET).headers["location"] == "/clients"
    assert not [one for one in web.services.store.policies.read().pauses.values() if one.scope is PauseScope.CLIENT]


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example", "clients"])
def test_a_pause_leads_to_no_other_site(target: str, web: Dashboard) -> None:
    assert post(web, "/pauses", minutes="5", next=target).headers["location"] == "/clients"


@pytest.mark.parametrize("fields", [{"minutes": "0"}, {"minutes": "nan"}, {"minutes": "x"}, {"minutes": "5", "scope": "world"},
                                    {"minutes": "5", "scope": "client", "target": "nobody"}])  # fmt: skip
def test_a_pause_that_is_none(fields: dict[str, Any], web: Dashboard) -> None:
    assert post(web, "/pauses", **fields).status_code == 422
    assert not web.services.store.policies.read().pauses


def test_rename_move_and_remove_with_undo(web: Dashboard) -> None:
    page = web.client.get("/clients/tv").text
    version = re.search(r'name="version" value="([0-9a-f]+)"', page)
    assert version is not None
    fields = {
        "name": "television",
        "group": "guests",
        "addresses": "192.0.2.12\nuser:tv",
        "icon": "tv",
        "note": "n",
        "policy": "",
    }
    assert post(web, "/clients/tv", version=version[1], **fields).headers["location"] == "/clients/television"
    changed = clients_of(web)["television"]
    assert (changed.group, changed.policy, len(changed.matchers)) == ("guests", "", 2)
    assert post(web, "/clients/television", version=version[1], **fields).status_code == 422
    answer = post(web, "/clients/television/remove", htmx=True)
    undo = re.search(r'hx-post="/audit/(\d+)/undo"', answer.text)
    assert undo is not None
    assert "television" not in clients_of(web)
    assert post(web, f"/audit/{undo[1]}/undo").status_code in {200, 303}
    assert clients_of(web)["television"] == changed


def test_groups_are_added_changed_and_removed(web: Dashboard) -> None:
    post(web, "/groups", name="teens", policy="kids")
    post(web, "/groups/teens", policy="night", note="older")
    post(web, f"/clients/{TABLET}/group", group="teens")
    assert clients_of(web)[TABLET].group == "teens"
    assert post(web, "/groups/teens/remove").status_code == 422
    post(web, f"/clients/{TABLET}/group", group=DEFAULT)
    assert post(web, "/groups/teens/remove").status_code == 303
    assert "teens" not in web.services.store.policies.read().groups


def test_what_a_role_may_not_do_is_absent(web: Dashboard) -> None:
    for identity, pauses in ((VIEWER, False), (APPROVER, True)):
        web.who.identity = identity
        for path in ("/clients", f"/clients/{TABLET}"):
            page = web.client.get(path).text
            assert ('action="/pauses"' in page) is pauses
            assert not re.findall(r'action="/(?!pauses|clients"|logout)[^"]*"', page)
            assert 'method="post" action="/clients' not in page
        assert post(web, "/clients", name="x", addresses="192.0.2.50").status_code == 403
        assert post(web, "/clients/tv/remove").status_code == 403
        assert post(web, "/clients/tv/bedtime", **NIGHTS).status_code == 403
    web.who.identity = VIEWER
    assert post(web, "/pauses", minutes="5").status_code == 403


def test_hostile_names_and_notes_are_text(web: Dashboard) -> None:
    name = HOSTILE.replace("/", "")
    note = "\u202e" + "<script>alert(1)</script>" * 50
    web.services.store.policies.change(lambda _: [(Client(name, (address("192.0.2.60"),), note=note), True)], 0.0)
    for path in ("/clients", f"/clients/{name.replace('%', '%25')}", "/policies"):
        page = web.client.get(path)
        assert page.status_code == 200
        assert "<img src=x" not in page.text
        assert "<script>alert" not in page.text
    assert web.client.get("/clients/nobody").status_code == 404


def test_chinese(web: Dashboard) -> None:
    web.client.headers["accept-language"] = "zh-CN"
    page = web.client.get("/clients").text
    assert "过滤中" in page
    assert "分组" in page
