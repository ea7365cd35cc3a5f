"""The pages of clients, policies and their times: what they show, what their forms change, and what is recorded of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from gatewayfilter.model import (
    DEFAULT,
    Client,
    EntryKind,
    Group,
    ListAction,
    Pause,
    PauseScope,
)
from gatewayfilter.use_cases.people.client_states import StateKind
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.web.pages.people import pauses
from gatewayfilter.web.pages.people.answers import Said
from gatewayfilter.web.pages.people.clients import Asked
from tests.web.pages.test_page_values import HTMX, NOW, Kept, kept
from tests.web.people_fakes import TABLET, address, household, requests_of
from tests.web.web_fakes import APPROVER


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("people"), filter__timezone="UTC") as web:
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    household(opened.services.store, NOW)
    opened.worker.begun.clear()
    yield opened

    def none(policies: Any) -> Any:
        kinds = (policies.pauses, policies.quotas, policies.schedules, policies.clients, policies.groups, policies.policies)
        return [(item, False) for kind in kinds for item in kind.values()]

    opened.services.store.policies.change(none, NOW)
    for rule in opened.services.store.lists.rules():
        opened.services.store.lists.remove_rule(rule.rule_id)


def policies(web: Kept) -> Any:
    return web.services.store.policies.read()


def put(web: Kept, *items: Any) -> None:
    web.services.store.policies.change(lambda _: [(item, True) for item in items], NOW)


def said(web: Kept) -> Said:
    found: Said = web.pages.values["said"]
    return found


def undo_of(web: Kept) -> str:
    return f"/audit/{web.last_change.entry_id}/undo"


def test_clients_are_shown_in_pages_with_what_belongs_to_them(web: Kept) -> None:
    put(web, Pause(PauseScope.ALL, "", NOW + 60), *(Client(f"c{n:02}", (address(f"198.51.100.{n}"),)) for n in range(48)))
    shown = web.get("/clients")
    names = [row.client.name for row in shown["rows"]]
    assert (len(names), names[0], names[-1]) == (50, "c00", "laptop")
    assert (shown["total"], shown["older"], shown["now"]) == (51, "/clients?after=laptop", NOW)
    assert shown["sizes"] == {"kids": 2, DEFAULT: 49}
    assert [group.name for group in shown["groups"]] == list(shown["group_of"]) == [DEFAULT, "guests", "kids"]
    assert shown["policy_names"] == [DEFAULT, "kids", "night"]
    assert [pause.name for pause in shown["pauses"]] == [Pause(PauseScope.ALL, "", 0.0).name]
    assert (sum(shown["counts_of"].values()), shown["counts_of"][StateKind.PAUSED], shown["present"]) == (51, 51, 0)
    assert (shown["active"], shown["partial"]) == ("people", False)
    assert said(web) == Said()
    last = web.get("/clients?after=laptop&q=192.0.2", headers=HTMX)
    assert [row.client.name for row in last["rows"]] == ["tv"]
    assert (last["older"], last["devices"], last["partial"], last["total"]) == ("", (), True, 51)
    assert last["asked"] == Asked("192.0.2", "", "laptop")
    fifty = web.get("/clients?q=.")
    assert fifty["older"] == "/clients?q=.&after=laptop"
    web.services.store.policies.change(lambda found: [(found.clients["c00"], False)], NOW)
    assert web.get("/clients?q=%20198%20")["asked"].q == "198"
    assert web.get("/clients")["older"] == ""
    kids = web.get("/clients?group=kids")
    assert [row.client.name for row in kids["rows"]] == [TABLET, "laptop"]
    assert kids["group_version"] == version_of(policies(web).groups["kids"])
    assert web.get("/clients?group=none")["group_version"] == ""


def test_devices_are_shown_where_nothing_is_looked_for(web: Kept) -> None:
    web.services.store.log.write(requests_of("192.0.2.99", NOW))
    assert "192.0.2.99" in {device.address for device in web.get("/clients")["devices"]}
    for query in ("q=x", "group=kids", "after=a"):
        assert web.get(f"/clients?{query}")["devices"] == ()
    asked = Asked("a b", "g", "c")
    assert (asked.url(), asked.url(after="z"), Asked().url()) == (
        "/clients?q=a+b&group=g", "/clients?q=a+b&group=g&after=z", "/clients",
    )  # fmt: skip


def test_a_device_is_named(web: Kept) -> None:
    web.post(
        "/clients", 303, "/clients/a%20b", name="a b", addresses="192.0.2.20, 192.0.2.21\nuser:x 192.0.2.20", note="n", icon="tv"
    )
    found = policies(web).clients["a b"]
    assert (list(map(str, found.matchers)), found.group, found.note, found.icon) == (
        ["192.0.2.20", "192.0.2.21", "user:x"], DEFAULT, "n", "tv",
    )  # fmt: skip
    assert web.told() == ("client.added", "a b", "")
    web.post("/clients", 200, headers=HTMX, name="b", addresses="192.0.2.22", group="kids")
    assert said(web) == Said("Added b.", undo_of(web), False)
    assert (web.pages.template, web.pages.values["asked"]) == ("people/clients.html", Asked())
    answer = web.post("/clients", 200, headers=HTMX, name="c", addresses="192.0.2.22")
    assert {name: answer.headers[name] for name in ("hx-retarget", "hx-reselect", "hx-reswap")} == {
        "hx-retarget": "#main", "hx-reselect": "#main", "hx-reswap": "outerHTML show:window:top",
    }  # fmt: skip
    assert (said(web).is_error, said(web).undo, said(web).text) == (True, "", "192.0.2.22 belongs to the client b already")
    web.post("/clients", 422, name="c", addresses="192.0.2.30", icon="none")
    assert said(web).is_error


def test_groups_are_changed_on_what_was_read(web: Kept) -> None:
    web.post("/groups", 303, "/clients?group=teens", name="teens", policy="kids", note="n")
    assert policies(web).groups["teens"] == Group("teens", "kids", "n")
    assert web.told() == ("group.added", "teens", "")
    web.post("/groups", 422, name="teens")
    assert (web.pages.values["asked"], said(web).is_error) == (Asked(), True)
    version = version_of(policies(web).groups["teens"])
    web.post("/groups/teens", 303, "/clients?group=teens", version=version, policy="night", note="older")
    assert policies(web).groups["teens"] == Group("teens", "night", "older")
    web.post("/groups/teens", 422, version=version, policy="kids", name="x")
    assert (web.pages.values["asked"].group, policies(web).groups["teens"].policy) == ("teens", "night")
    assert "somebody has changed this" in said(web).text
    web.post("/groups/teens", 200, headers=HTMX, name="big", policy="", note="")
    assert (web.pages.values["asked"].group, said(web)) == ("big", Said("Saved.", undo_of(web), False))
    assert web.told() == ("group.changed", "teens", "")
    web.post("/groups/none", 422, version="1", policy="", note="")
    web.post("/groups/big/remove", 303, "/clients")
    assert (web.told(), "big" in policies(web).groups) == (("group.removed", "big", ""), False)
    web.post("/groups/kids/remove", 422)
    assert (web.pages.values["asked"].group, "kids" in policies(web).groups) == ("kids", True)


def test_names_of_devices_are_looked_up(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, float]] = []
    monkeypatch.setattr("gatewayfilter.web.pages.people.clients.seen_devices", lambda *given: asked.append(given))
    web.post("/devices/look-up", 200, headers=HTMX)
    assert (said(web), web.pages.values["asked"]) == (Said("Looked for the names of devices."), Asked())
    web.post("/devices/look-up", 303, "/clients")
    assert asked == [(web.services.store, NOW)] * 2


def test_a_client_is_shown_with_its_nights_and_rules(web: Kept) -> None:
    for number in range(52):
        scope = f"client:{TABLET}" if number else "client:tv"
        web.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, f"h{number}.example", scope=scope)
    path = "/clients/Kim%27s%20tablet"
    shown = web.get(path)
    found = policies(web).clients[TABLET]
    assert (shown["client"], shown["version"], shown["row"].client, shown["now"]) == (found, version_of(found), found, NOW)
    assert (len(shown["rules"]), shown["more_rules"], shown["is_bedtime_open"], shown["bedtime"]) == (50, 1, False, None)
    assert {rule.scope for rule in shown["rules"]} == {f"client:{TABLET}"}
    assert shown["nights"] == {"from": "21:00", "to": "06:30", "free_from": "22:30", "free_to": "08:00"}
    assert (shown["group_names"], shown["policy_names"]) == ([DEFAULT, "guests", "kids"], [DEFAULT, "kids", "night"])
    assert (shown["view"].at, shown["view"].group) == (NOW, "kids")
    assert web.get(f"{path}?bedtime=1")["is_bedtime_open"] is True
    assert web.get("/clients/tv")["more_rules"] == 0
    nights = {"from": "20:00", "to": "24:00", "free_from": "22:05", "free_to": "08:30"}
    web.post(f"{path}/bedtime", 303, path, **nights)
    assert web.told() == ("bedtime.set", TABLET, "")
    shown = web.get(path)
    assert shown["nights"] == nights | {"to": "00:00"}
    assert [(one.begin, one.end, sorted(one.days)) for one in shown["bedtime"].windows] == [
        (1200, 1440, [0, 1, 2, 3, 6]), (1325, 510, [4, 5]),
    ]  # fmt: skip
    assert shown["bedtime"].timezone == "UTC"
    web.post(f"{path}/bedtime", 200, headers=HTMX, **nights)
    web.post(f"{path}/bedtime", 200, headers=HTMX, **nights | {"to": "06:00"})
    assert said(web) == Said(f"Bedtime is set for {TABLET}.", undo_of(web), False)
    web.post(f"{path}/bedtime/remove", 200, headers=HTMX)
    assert (web.told(), said(web).text, web.pages.values["bedtime"]) == (
        ("bedtime.removed", TABLET, ""), f"Bedtime is off for {TABLET}.", None,
    )  # fmt: skip
    web.post(f"{path}/bedtime", 422)
    web.post(f"{path}/bedtime/remove", 303, path)
    assert web.client.get("/clients/none").status_code == 404
    assert web.pages.values["detail"] == "There is no device or person of this name."


def test_a_client_is_changed_moved_and_removed(web: Kept) -> None:
    version = version_of(policies(web).clients["laptop"])
    form = {"version": version, "name": "laptop", "addresses": "192.0.2.11, 192.0.2.40\n192.0.2.39", "group": "", "note": "n"}
    web.post("/clients/laptop", 303, "/clients/laptop", **form, icon="laptop", policy="night")
    found = policies(web).clients["laptop"]
    assert list(map(str, found.matchers)) == ["192.0.2.11", "192.0.2.39", "192.0.2.40"]
    assert (found.group, found.note, found.icon, found.policy) == ("kids", "n", "laptop", "night")
    assert web.told() == ("client.changed", "laptop", "")
    web.post("/clients/laptop", 422, **form)
    assert (said(web).is_error, web.pages.template, web.pages.values["client"].name) == (True, "people/client.html", "laptop")
    form |= {"version": version_of(found), "name": "book", "group": "guests"}
    web.post("/clients/laptop", 200, headers=HTMX, **form)
    assert (said(web), web.pages.values["client"].name) == (Said("Saved.", undo_of(web), False), "book")
    assert policies(web).clients["book"].group == "guests"
    web.post("/clients/none", 404, **form)
    web.post("/clients/book/group", 200, headers=HTMX, group="kids")
    assert (said(web), web.told()) == (
        Said("book is in the group kids now.", undo_of(web), False), ("client.changed", "book", ""),
    )  # fmt: skip
    assert web.pages.values["asked"] == Asked()
    web.post("/clients/book/group", 303, "/clients", group="guests")
    web.post("/clients/book/remove", 200, headers=HTMX)
    assert (said(web).text, web.told()) == ("Removed book.", ("client.removed", "book", ""))
    assert "book" not in policies(web).clients
    web.post("/clients/tv/remove", 303, "/clients")


def test_pauses_return_to_where_they_were_started(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    web.who.identity = APPROVER
    try:
        web.post("/pauses", 303, "/clients/tv", minutes="15", whom="client:tv", next="/clients/tv")
        (pause,) = policies(web).pauses.values()
        assert (pause.scope, pause.target, pause.until, pause.harm_too) == (PauseScope.CLIENT, "tv", NOW + 900, False)
        assert web.told()[:2] == ("pause.started", pause.name)
        web.post("/pauses", 200, headers=HTMX, minutes="1.5", scope="group", target="kids", next="/clients/tv")
        assert (web.pages.template, web.pages.values["client"].name) == ("people/client.html", "tv")
        assert said(web) == Said("Filtering is paused for 1.5 minutes.", undo_of(web), False)
        web.post("/pauses", 200, headers=HTMX, minutes="5", next="/")
        values = web.pages.values
        assert (web.pages.template, values["told"], values["undo"], values["paused"]) == (
            "traffic/_pauses.html",
            "",
            undo_of(web),
            True,
        )
        assert (values["may_pause"], values["answered"], len(values["pauses"])) == (True, True, 3)
        assert (values["names"], values["groups"]) == ([TABLET, "laptop", "tv"], ["guests", "kids"])
        monkeypatch.setattr(pauses, "_MOST_NAMES", 2)
        web.post("/pauses", 200, headers=HTMX, minutes="5", next="/")
        assert web.pages.values["names"] == [TABLET, "laptop"]
        refreshed = web.post("/pauses/end", 200, headers=HTMX, scope="group", target="kids", next="/log")
        assert (refreshed.headers["hx-refresh"], web.told()[0]) == ("true", "pause.ended")
        web.post("/pauses/end", 200, headers=HTMX, whom="client:tv", next="/")
        assert (web.pages.values["paused"], web.pages.values["told"]) == (False, "tv")
        web.post("/pauses/end", 200, headers=HTMX, next="/clients")
        assert (web.pages.template, said(web).text) == ("people/clients.html", "Filtering goes on.")
        assert not policies(web).pauses
        web.post("/pauses", 303, "/log", minutes="5", next="/log")
        web.post("/pauses", 303, "/clients", minutes="5", next="//evil.example")
        web.post("/pauses", 422, minutes="0", next="/log")
        assert web.pages.values["detail"] == "a pause lasts more than nothing and at most a year"
        web.post("/pauses", 422, minutes="0", next="/clients")
        assert (web.pages.template, said(web).is_error) == ("people/clients.html", True)
        web.post("/pauses", 422, minutes="5", scope="world")
        assert web.pages.values["detail"] == "a pause is for all, a group or a client"
    finally:
        web.who.identity = type(APPROVER)("Ada", APPROVER.role.ADMIN, APPROVER.csrf)
