"""The pages of policies and of their times: what they show, what their forms change, and what is recorded of it."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.model import (
    ALL_DAYS,
    DEFAULT,
    CategoryAction,
    Group,
    ListAction,
    Policy,
    Quota,
    QuotaKind,
    Schedule,
    ScheduleEffect,
    Window,
    policy_values,
)
from gatewayfilter.use_cases.network_facts import known_categories
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.web.pages.people.answers import Said
from gatewayfilter.web.pages.people.policies import Choice, View, url_of
from tests.web.pages.test_page_values import HTMX, NOW, Kept, kept
from tests.web.people_fakes import household

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


def test_what_was_used_today_stands_beside_its_quota(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    put(web, *(Quota(name, "night", QuotaKind.SERVICE, "roblox", 60, "UTC") for name in ("p", "q")))
    sums = [SimpleNamespace(quota=quota, client=f"client:{client}", used=5) for quota, client in (("p", "tv"), ("q", "car"))]
    monkeypatch.setattr(type(web.services.store.usage), "sums", lambda _, now: sums if now == NOW else [])
    assert web.get("/policies/night/times")["times"].used == {"p": [("tv", 5)], "q": [("car", 5)]}


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
