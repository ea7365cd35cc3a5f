"""The pages of policies: values, services, schedules as a week, quotas; two people who edit one policy."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.model import ScheduleEffect, policy_values
from tests.web.people_fakes import household
from tests.web.web_fakes import APPROVER, VIEWER, Dashboard, dashboard


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Dashboard]:
    with dashboard(tmp_path) as opened:
        household(opened.services.store)
        yield opened


def post(web: Dashboard, path: str, *, htmx: Any = False, **fields: Any) -> Any:
    return web.client.post(path, data=fields, headers={"hx-request": "true"} if htmx else {})


def values_of(web: Dashboard, name: str = "kids") -> dict[str, str]:
    return policy_values(web.services.store.policies.read().policies[name])


def fields_of(page: str) -> dict[str, Any]:
    """The fields of a page's forms that hold values of a policy, as a browser without scripts sends them."""
    found = dict(re.findall(r'<input type="hidden" name="(was:[^"]+)" value="([^"]*)"', page))
    for name, options in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', page, re.DOTALL):
        selected = re.search(r'<option value="([^"]*)" selected', options)
        found[name] = selected[1] if selected else ""
    return found


@pytest.mark.parametrize("path", ["/policies", "/policies/kids", "/policies/default", "/policies/kids?tab=categories",
                                  "/policies/kids?tab=more", "/policies/kids?tab=%2e%2e", "/policies/night/times",
                                  "/policies/night/times?edit=nights", "/policies/night/times?edit=%3Anew",
                                  "/policies/night/times?edit=none"])  # fmt: skip
def test_every_page_opens_for_every_role(path: str, web: Dashboard) -> None:
    for identity in (web.who.identity, APPROVER, VIEWER):
        web.who.identity = identity
        answer = web.client.get(path)
        assert answer.status_code == 200
        assert "None" not in re.sub(r"<[^>]*>", "", answer.text).replace("None. Rules", "")
    assert 'method="post" action="/policies' not in answer.text


def test_missing_policies(web: Dashboard) -> None:
    assert web.client.get("/policies/none").status_code == 404
    assert web.client.get("/policies/none/times").status_code == 404


def test_all_services_are_tiles_and_the_search_finds_some(web: Dashboard) -> None:
    page = web.client.get("/policies/kids").text
    assert page.count('<select name="service.') == len(web.services.services)
    assert web.client.get("/policies/kids?q=roblox").text.count('<select name="service.') == 1
    assert fields_of(page)["service.tiktok"] == "block"


def test_a_choice_is_saved_at_once_and_alone(web: Dashboard) -> None:
    answer = post(web, "/policies/kids", htmx=True, **{"service.steam": "block", "was:service.steam": "", "tab": "services"})
    assert answer.status_code == 200
    assert re.search(r'hx-post="/audit/\d+/undo"', answer.text)
    assert values_of(web)["service.steam"] == "block"
    post(web, "/policies/kids", **{"service.tiktok": "", "was:service.tiktok": "block"})
    assert "service.tiktok" not in values_of(web)
    assert values_of(web)["service.roblox"] == "block"


def test_without_scripts_the_whole_form_changes_only_what_was_changed(web: Dashboard) -> None:
    for tab, key, value in (
        ("services", "service.steam", "allow"),
        ("categories", "category.gambling", "review"),
        ("more", "tls", "sni-only"),
    ):
        fields = fields_of(web.client.get(f"/policies/kids?tab={tab}").text) | {key: value, "tab": tab}
        before = values_of(web)
        assert post(web, "/policies/kids", **fields).status_code == 303
        assert values_of(web) == before | {key: value}


def test_two_people_edit_one_policy(web: Dashboard) -> None:
    mine = fields_of(web.client.get("/policies/kids?tab=more").text) | {"tab": "more"}
    post(web, "/policies/kids", **(mine | {"youtube": "strict"}))
    assert post(web, "/policies/kids", **(mine | {"strictness": "strict"})).status_code == 303  # another value
    late = post(web, "/policies/kids", **(mine | {"youtube": "moderate"}))
    assert late.status_code == 422
    assert "somebody has changed this since" in late.text
    assert (values_of(web)["youtube"], values_of(web)["strictness"]) == ("strict", "strict")


def test_words_and_types_are_read_from_lines(web: Dashboard) -> None:
    given: dict[str, Any] = {"search-terms": "one\r\ntwo words\r\n\r\n", "file-types": "exe, programs", "max-download-mb": "10"}
    fields = given | {f"was:{key}": "" for key in given} | {"tab": "more"}
    assert post(web, "/policies/kids", **fields).status_code == 303
    values = values_of(web)
    assert (values["search-terms"], values["file-types"], values["max-download-mb"]) == ("one,two words", "exe,programs", "10")
    bad = post(web, "/policies/kids", **{"max-download-mb": "many", "was:max-download-mb": "10", "tab": "more"})
    assert bad.status_code == 422
    assert values_of(web) == values


def test_all_services_of_a_kind(web: Dashboard) -> None:
    games = {f"service.{one.service_id}" for one in web.services.services.values() if one.group == "games"}
    post(web, "/policies/night/services?group=games&action=block")
    assert set(values_of(web, "night")) == games
    post(web, "/policies/night/services?group=games&action=")
    assert values_of(web, "night") == {}
    assert post(web, "/policies/night/services?group=games&action=explode").status_code == 422


def test_a_schedule_is_added_changed_painted_and_removed(web: Dashboard) -> None:
    windows: dict[str, Any] = {
        "begin-0": "22:00",
        "end-0": "06:00",
        "days-0": ["0", "1"],
        "begin-1": "13:00",
        "end-1": "14:00",
        "days-1": ["5"],
    }
    post(web, "/policies/kids/schedules", name="quiet", what="block-category:social", timezone="Europe/Berlin", **windows)
    quiet = web.services.store.policies.read().schedules["quiet"]
    assert (quiet.effect, quiet.target, quiet.timezone) == (ScheduleEffect.BLOCK_CATEGORY, "social", "Europe/Berlin")
    assert [(one.begin, one.end, sorted(one.days)) for one in quiet.windows] == [(1320, 360, [0, 1]), (780, 840, [5])]
    page = web.client.get("/policies/kids/times?edit=quiet").text
    version = re.findall(r'name="version" value="([0-9a-f]+)"', page)[0]
    assert page.count('type="checkbox" name="hour"') == 168
    assert (
        post(web, "/policies/kids/week", schedule="quiet", version=version, hour=["6-23", "0-0", "2-9", "2-10"]).status_code
        == 303
    )
    painted = web.services.store.policies.read().schedules["quiet"].windows
    assert {(one.begin, one.end, tuple(sorted(one.days))) for one in painted} == {(540, 660, (2,)), (1380, 60, (6,))}
    late = post(web, "/policies/kids/schedules", schedule="quiet", version=version, what="block-all", **windows)
    assert late.status_code == 422
    assert post(web, "/policies/kids/week", schedule="quiet").status_code == 422
    post(web, "/policies/kids/schedules/remove", schedule="quiet")
    assert list(web.services.store.policies.read().schedules) == ["nights"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"what": "block-all:x"},
        {"what": "explode"},
        {"what": "block-service:none"},
        {"timezone": "../etc"},
        {"name": "nights"},
        {"begin-0": "9"},
        {"days-0": "9"},
        {"begin-0": "", "end-0": ""},
    ],
)
def test_a_schedule_that_is_none(fields: dict[str, Any], web: Dashboard) -> None:
    given = {"name": "x", "what": "block-all", "begin-0": "10:00", "end-0": "11:00", "days-0": "1"} if fields else {}
    assert post(web, "/policies/kids/schedules", **(given | fields)).status_code == 422
    assert list(web.services.store.policies.read().schedules) == ["nights"]


def test_the_usual_bedtime_is_one_click(web: Dashboard) -> None:
    post(web, "/policies/kids/bedtime")
    found = web.services.store.policies.read().schedules["bedtime kids"]
    assert (found.effect, len(found.windows)) == (ScheduleEffect.BLOCK_ALL, 2)


def test_quotas_with_minutes_of_the_weekend(web: Dashboard) -> None:
    post(web, "/policies/kids/quotas", name="play", target="category:games", minutes="60", weekend="120")
    found = web.services.store.policies.read().quotas["play"]
    assert (found.minutes, dict(found.other_days)) == (60, {5: 120, 6: 120})
    assert "60 minutes a day" in web.client.get("/policies/kids/times").text
    post(web, "/policies/kids/quotas", quota="play", minutes="90", weekend="90")
    assert dict(web.services.store.policies.read().quotas["play"].other_days) == {}
    for fields in ({"minutes": "0"}, {"minutes": "x"}, {"minutes": "60", "weekend": "-1"}):
        assert post(web, "/policies/kids/quotas", quota="play", **fields).status_code == 422
    assert post(web, "/policies/kids/quotas", name="y", minutes="5", target="planet:mars").status_code == 422
    post(web, "/policies/kids/quotas/remove", quota="play")
    assert not web.services.store.policies.read().quotas


def test_policies_are_added_and_removed(web: Dashboard) -> None:
    assert post(web, "/policies", name="strict", group="guests").headers["location"] == "/policies/strict"
    assert web.services.store.policies.read().groups["guests"].policy == "strict"
    assert post(web, "/policies/strict/remove").status_code == 422
    post(web, "/groups/guests", policy="", note="")
    assert post(web, "/policies/strict/remove").headers["location"] == "/policies"
    assert post(web, "/policies", name="kids").status_code == 422


def test_only_admins_change_policies(web: Dashboard) -> None:
    web.who.identity = APPROVER
    for path in ("/policies", "/policies/kids", "/policies/kids/services?group=games", "/policies/kids/schedules",
                 "/policies/kids/week", "/policies/kids/bedtime", "/policies/kids/quotas", "/policies/kids/remove"):  # fmt: skip
        assert post(web, path).status_code == 403
