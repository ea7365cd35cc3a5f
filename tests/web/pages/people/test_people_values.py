"""The pages of clients, policies and their times: what they show, what their forms change, and what is recorded of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from gatewayfilter.model import (
    ALL_DAYS,
    DEFAULT,
    CategoryAction,
    Client,
    EntryKind,
    Group,
    ListAction,
    Pause,
    PauseScope,
    Policy,
    Quota,
    QuotaKind,
    Schedule,
    ScheduleEffect,
    Window,
    policy_values,
)
from gatewayfilter.use_cases.network_facts import known_categories
from gatewayfilter.use_cases.people.client_states import StateKind
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.web.pages.people.answers import Said
from gatewayfilter.web.pages.people.clients import Asked
from gatewayfilter.web.pages.people.policies import Choice, View, url_of
from tests.web.pages.test_page_values import HTMX, NOW, Kept, kept
from tests.web.people_fakes import TABLET, address, household, requests_of
from tests.web.web_fakes import APPROVER

ALLOW, BLOCK = CategoryAction.ALLOW, CategoryAction.BLOCK


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


def test_pauses_return_to_where_they_were_started(web: Kept) -> None:
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


def test_policies_are_shown_with_who_has_them(web: Kept) -> None:
    put(
        web,
        Policy(
            "kids", categories={"social": BLOCK, "ads": ALLOW, "adult": BLOCK}, services={"tiktok": True, "roblox": False},
        ),
        Quota("play", "kids", QuotaKind.SERVICE, "roblox", 60, "UTC"),
    )  # fmt: skip
    shown = web.get("/policies")
    assert (shown["active"], shown["group_names"]) == ("policies", [DEFAULT, "guests", "kids"])
    rows = {row.policy.name: row for row in shown["rows"]}
    assert list(rows) == [DEFAULT, "kids", "night"]
    kids = rows["kids"]
    assert (kids.services, kids.categories, kids.schedules, kids.quotas) == (("tiktok",), ("adult", "social"), 0, 1)
    assert (list(kids.users.groups), rows["night"].schedules, rows["night"].quotas) == (["kids"], 1, 0)
    one = web.get("/policies/kids")
    assert (one["active"], one["policy"].name, one["view"], one["own"]) == (
        "policies", "kids", View(), policy_values(policies(web).policies["kids"]),
    )  # fmt: skip
    assert ([one.name for one in one["schedules"]], [one.name for one in one["quotas"]]) == ([], ["play"])
    assert list(one["users"].groups) == ["kids"]
    categories = {choice.key: choice for choice in one["categories"]}
    assert categories["category.social"] == Choice("category.social", "block", "block")
    assert categories["category.gambling"] == Choice("category.gambling", "", "block")
    assert list(categories) == sorted(categories)
    blocking = {entry.category_id for entry in web.services.categories if entry.action is ListAction.BLOCK}
    known = blocking | known_categories(web.services.settings) | {"social", "ads", "adult"}
    assert set(categories) == {f"category.{name}" for name in known}
    assert [one.name for one in web.get("/policies/night")["schedules"]] == ["nights"]
    assert web.get("/policies/kids?tab=more&q=%20x%20")["view"] == View("more", "x")
    assert web.get("/policies/kids?tab=times")["view"] == View("services")
    assert web.client.get("/policies/none").status_code == 404
    assert web.pages.values["detail"] == "There is no policy of this name."
    assert (url_of("a b"), url_of("a", tab="more", q="")) == ("/policies/a%20b", "/policies/a?tab=more")


def test_services_are_shown_by_kind_with_what_is_inherited(web: Kept) -> None:
    put(web, Policy(DEFAULT, services={"steam": True}, categories={"social": ALLOW, "own-one": CategoryAction.REVIEW}))
    shown = web.get("/policies/kids")
    by_id = {service.service_id: (group, choice) for group, rows in shown["service_groups"].items() for service, choice in rows}
    assert set(by_id) == set(web.services.services)
    assert by_id["steam"][1] == Choice("service.steam", "", "block")
    assert by_id["tiktok"][1] == Choice("service.tiktok", "block", "allow")
    assert all(web.services.services[name].group == group for name, (group, _) in by_id.items())
    groups = list(shown["service_groups"])
    assert groups == sorted(groups)
    for rows in shown["service_groups"].values():
        names = [service.name.casefold() for service, _ in rows]
        assert names == sorted(names)
    assert shown["inherited"] == policy_values(policies(web).policies[DEFAULT])
    assert {choice.key: choice for choice in shown["categories"]}["category.social"].inherited == "allow"
    default = web.get("/policies/default")
    assert (default["inherited"], {one.key: one.own for one in default["categories"]}["category.social"]) == ({}, "allow")
    assert "category.own-one" in {one.key for one in default["categories"]}
    chinese = next(one for one in web.services.services.values() if one.name_zh and one.name_zh != one.name)
    for q in (chinese.name.upper(), chinese.name_zh, chinese.service_id):
        found = web.get("/policies/kids", params={"q": q})["service_groups"]
        assert chinese.service_id in [service.service_id for rows in found.values() for service, _ in rows]
    assert web.get("/policies/kids?q=nothing-at-all")["service_groups"] == {}
    put(web, Group(DEFAULT, "night"), Policy("night", services={"roblox": True}))
    assert web.get("/policies/kids")["inherited"] == {"service.roblox": "block"}
    web.services.store.policies.change(lambda found: [(found.groups[DEFAULT], False)] if DEFAULT in found.groups else [], NOW)


def test_policies_are_added_changed_and_removed(web: Kept) -> None:
    web.post("/policies", 303, "/policies/new%20one", name="new one", group=["guests", ""])
    assert (policies(web).groups["guests"].policy, web.told()) == ("new one", ("policy.added", "new one", ""))
    web.post("/policies", 422, name="kids")
    assert (web.pages.template, said(web).is_error) == ("people/policies.html", True)
    web.post("/policies", 200, headers=HTMX, name="x")
    assert (web.pages.template, web.pages.values["policy"].name, said(web)) == (
        "people/policy.html", "x", Said("Added x.", undo_of(web), False),
    )  # fmt: skip
    form = {"was:youtube": "", "youtube": "strict", "tab": "more", "q": "abc"}
    web.post("/policies/x", 303, "/policies/x?tab=more&q=abc", **form)
    assert (policy_values(policies(web).policies["x"]), web.told()) == ({"youtube": "strict"}, ("policy.changed", "x", ""))
    web.post("/policies/x", 422, **form | {"youtube": "moderate", "tab": "none"})
    assert said(web).text == "youtube: somebody has changed this since; the page shows what is in force"
    assert web.pages.values["view"] == View("services", "abc")
    web.post("/policies/x", 303, "/policies/x?tab=more&q=abc", **form)  # as it is already
    before = web.changes
    web.post("/policies/x", 303, "/policies/x?tab=services", **{"was:youtube": "strict", "youtube": "strict"})
    assert web.changes == before
    words = {"was:search-terms": "", "search-terms": "one, two\nthree,, "}
    web.post("/policies/x", 200, headers=HTMX, **words)
    assert policy_values(policies(web).policies["x"])["search-terms"] == "one,two,three"
    assert said(web) == Said("Saved. It is in force.", undo_of(web), False)
    web.post("/policies/x/services?group=games&action=block", 303, "/policies/x")
    games = {f"service.{one.service_id}" for one in web.services.services.values() if one.group == "games"}
    assert {key for key in policy_values(policies(web).policies["x"]) if key.startswith("service.")} == games
    assert web.told() == ("policy.changed", "x", "")
    web.post("/policies/x/services?group=games&action=allow", 200, headers=HTMX)
    assert (web.pages.values["view"], said(web).text) == (View("services"), "Saved. It is in force.")
    web.post("/policies/x/services?group=none&action=block", 303, "/policies/x")
    web.post("/policies/kids/remove", 422)
    assert (web.pages.template, web.pages.values["policy"].name, web.pages.values["view"]) == (
        "people/policy.html",
        "kids",
        View(),
    )
    web.post("/policies/x/remove", 200, headers=HTMX)
    assert (web.pages.template, said(web).text, web.told()) == ("people/policies.html", "Removed x.", ("policy.removed", "x", ""))
    web.post("/groups/guests", 303, "/clients?group=guests", policy="", note="")
    web.post("/policies/new one/remove", 303, "/policies")


def test_times_are_shown_with_the_schedule_that_is_edited(web: Kept) -> None:
    rows = tuple(Window(60 * n, 60 * n + 30, ALL_DAYS) for n in range(9))
    put(
        web,
        Schedule("many", "night", ScheduleEffect.BLOCK_CATEGORY, rows, "UTC", "social"),
        Schedule("of kids", "kids", ScheduleEffect.BLOCK_ALL, (Window(600, 660, ALL_DAYS),), "UTC"),
        Quota("play", "night", QuotaKind.SERVICE, "roblox", 60, "UTC"),
    )
    shown = web.get("/policies/night/times")
    times = shown["times"]
    assert (shown["view"], times.edited, times.version, times.what) == (View("times"), None, "", "")
    assert times.rows == (Window(1260, 390, ALL_DAYS), None)
    assert (list(times.hours), times.zone, times.used) == (["many", "nights"], "UTC", {"play": []})
    assert (times.policies, list(times.categories)) == ((DEFAULT, "kids"), sorted(times.categories))
    assert "games" in times.counted
    assert list(times.counted) == sorted(times.counted)
    times = web.get("/policies/night/times?edit=many")["times"]
    many = policies(web).schedules["many"]
    assert (times.edited, times.version, times.what, times.rows) == (many, version_of(many), "block-category:social", rows[:8])
    times = web.get("/policies/night/times?edit=nights")["times"]
    assert (times.what, times.rows) == ("block-all", (*policies(web).schedules["nights"].windows, None))
    assert web.get("/policies/night/times?edit=of+kids")["times"].edited is None
    new = web.get("/policies/night/times?edit=:new")
    assert new["view"] == View("times", edit=":new")
    assert (new["times"].edited.name, new["times"].version, new["times"].what) == ("", "", "block-all")
    assert (new["times"].edited.policy, new["times"].edited.timezone) == ("night", "UTC")


def test_schedules_are_saved_painted_and_removed(web: Kept) -> None:
    rows = {
        "begin-0": "00:00", "end-0": "00:00", "days-0": ["0", "6", "7", "12"], "begin-1": "10:00", "days-1": "1",
        "begin-2": "10:00", "end-2": "11:00", "begin-7": "10:00", "end-7": "11:00", "days-7": "3",
        "begin-8": "12:00", "end-8": "13:00", "days-8": "3",
    }  # fmt: skip
    web.post("/policies/kids/schedules", 303, "/policies/kids/times", name="s", what="block-service:tiktok", **rows)
    found = policies(web).schedules["s"]
    assert (found.effect, found.target, found.timezone, found.policy) == (ScheduleEffect.BLOCK_SERVICE, "tiktok", "UTC", "kids")
    assert found.windows == (Window(0, 1440, frozenset({0, 6})), Window(600, 660, frozenset({3})))
    assert web.told() == ("schedule.added", "s", "")
    change = {"schedule": "s", "version": version_of(found), "what": "allow-category:social", "timezone": "Asia/Shanghai"}
    web.post("/policies/kids/schedules", 200, headers=HTMX, **change, **rows)
    assert (said(web), web.pages.values["view"], web.told()) == (
        Said("Saved. It is in force.", undo_of(web), False), View("times"), ("schedule.changed", "s", ""),
    )  # fmt: skip
    changed = policies(web).schedules["s"]
    assert (changed.timezone, changed.target) == ("Asia/Shanghai", "social")
    web.post("/policies/kids/schedules", 422, **change, **rows)
    assert (web.pages.values["view"].edit, web.pages.values["times"].edited) == ("s", changed)
    web.post("/policies/kids/schedules", 422, **change | {"version": version_of(changed)})
    assert said(web).text == "Give at least one time from and to."
    for what in ("block-all:x", "block-service", "sleep", ""):
        web.post("/policies/kids/schedules", 422, name="t", what=what, **rows)
        assert said(web).text == f"{what!r} is nothing that a schedule does"
    assert web.pages.values["view"].edit == ":new"
    web.post("/policies/kids/schedules", 422, **change | {"schedule": "gone", "version": "1"}, **rows)
    hours = ["6-23", "0-0", "2-9", "2-10", "1-100", "x-1", "1-x", "3"]
    web.post("/policies/kids/week", 422, schedule="s", version="1", hour=hours)
    assert (web.pages.values["view"].edit, said(web).is_error) == ("s", True)
    web.post("/policies/kids/week", 303, "/policies/kids/times", schedule="s", version=version_of(changed), hour=hours)
    painted = policies(web).schedules["s"]
    assert painted.windows == (Window(540, 660, frozenset({2})), Window(1380, 60, frozenset({6})))
    assert (painted.target, web.told()) == ("social", ("schedule.changed", "s", ""))
    web.post("/policies/kids/week", 422, schedule="s")
    assert said(web).text == "Paint at least one hour, or remove the schedule."
    for name, schedule in (("kids", "none"), ("night", "s")):
        web.post(f"/policies/{name}/week", 422, schedule=schedule, hour=hours)
        assert said(web).text == "There is no schedule of this name."
    web.post("/policies/kids/week", 200, headers=HTMX, schedule="s", hour="3-3")
    assert (said(web).text, web.pages.values["view"].edit) == ("Saved. It is in force.", "")
    web.post("/policies/kids/schedules/remove", 200, headers=HTMX, schedule="s")
    assert (said(web).text, web.told(), "s" in policies(web).schedules) == ("Removed s.", ("schedule.removed", "s", ""), False)
    web.post("/policies/kids/bedtime", 303, "/policies/kids/times")
    bedtime = policies(web).schedules["bedtime kids"]
    assert (bedtime.effect, bedtime.timezone, len(bedtime.windows), web.told()) == (
        ScheduleEffect.BLOCK_ALL, "UTC", 2, ("schedule.added", "kids", ""),
    )  # fmt: skip
    assert set().union(*(window.days for window in bedtime.windows)) == set(range(7))
    web.post("/policies/kids/bedtime", 200, headers=HTMX)
    assert (said(web).text, "bedtime kids 2" in policies(web).schedules) == ("Saved. It is in force.", True)
    put(web, Policy("l" * 95))
    web.post(f"/policies/{'l' * 95}/bedtime", 303, f"/policies/{'l' * 95}/times")
    assert f"bedtime {'l' * 82}" in policies(web).schedules


def test_quotas_are_saved_and_removed(web: Kept) -> None:
    web.post("/policies/kids/quotas", 303, "/policies/kids/times", name="q", target="service:roblox", minutes="60", weekend="90")
    found = policies(web).quotas["q"]
    assert (found.policy, found.kind, found.target, found.minutes, found.timezone) == (
        "kids",
        QuotaKind.SERVICE,
        "roblox",
        60,
        "UTC",
    )
    assert (dict(found.other_days), web.told()) == ({5: 90, 6: 90}, ("quota.added", "q", ""))
    web.post("/policies/kids/quotas", 200, headers=HTMX, quota="q", minutes="70")
    assert (said(web), web.told()) == (Said("Saved. It is in force.", undo_of(web), False), ("quota.changed", "q", ""))
    assert (policies(web).quotas["q"].minutes, dict(policies(web).quotas["q"].other_days)) == (70, {})
    for weekend, why in (
        ("99999", None),
        ("000090", "'000090' is no number of minutes"),
        ("\u0663", "'\u0663' is no number of minutes"),
        ("1.5", "'1.5' is no number of minutes"),
    ):
        web.post("/policies/kids/quotas", 422, quota="q", minutes="70", weekend=weekend)
        assert said(web).text == (why or "a quota has 1 to 1,440 minutes a day")
    web.post("/policies/kids/quotas", 422, name="r", target="roblox", minutes="70")
    assert said(web).text == "Choose what the minutes are for."
    web.post("/policies/kids/quotas/remove", 303, "/policies/kids/times", quota="q")
    assert (web.told(), policies(web).quotas) == (("quota.removed", "q", ""), {})
    web.post("/policies/kids/quotas/remove", 422, quota="q")
    assert said(web).is_error
