"""`gatewayfilter service` and `quota`, services in policies and schedules, the bedtime preset, `check --service`."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.model import QuotaUse
from gatewayfilter.wiring import open_store
from tests.cli.conftest import Cli, prepare

TABLET = "192.168.7.20"


@pytest.fixture
def family(cli: Cli, state: Path, made: Path) -> Cli:
    """A tablet in the group `kids` with the policy `kids`."""
    prepare(
        cli,
        state,
        made,
        ("group", "add", "kids"),
        ("client", "add", "tablet", "--address", TABLET, "--group", "kids"),
        ("policy", "add", "kids", "--group", "kids"),
    )
    return cli


def values(cli: Cli) -> dict[str, str]:
    found = cli("policy", "show", "kids", "--json").json["values"]
    assert isinstance(found, dict)
    return found


def test_services_are_listed_and_shown(family: Cli, tmp_path: Path) -> None:
    family("policy", "set", "kids", "services=roblox")
    listed = {one["service_id"]: one for one in family("service", "list", "--json").json}
    assert len(listed) >= 110
    assert listed["roblox"]["blocked_by"] == ["kids"]
    games = family("service", "list", "--group", "games").out
    assert "roblox" in games
    assert "youtube" not in games
    assert "there is no group" in family("service", "list", "--group", "none").complains()
    icon = tmp_path / "icon.svg"
    shown = family("service", "show", "youtube", "--icon", str(icon), "--json").json
    assert shown["icon"] == icon.read_text(encoding="utf-8")
    assert "googlevideo.com" in family("service", "show", "youtube").out
    assert "did you mean 'youtube'" in family("service", "show", "youtub").complains()
    assert "cannot write" in family("service", "show", "youtube", "--icon", str(tmp_path / "none" / "a.svg")).complains()


def test_a_policy_blocks_and_allows_services(family: Cli) -> None:
    assert family("policy", "set", "kids", "services=tiktok, roblox").code == 0
    assert values(family) == {"service.roblox": "block", "service.tiktok": "block"}
    family("policy", "set", "kids", "service.youtube=allow", "services=tiktok")
    assert values(family) == {"service.tiktok": "block", "service.youtube": "allow"}
    family("policy", "set", "kids", "service.tiktok=")
    assert values(family) == {"service.youtube": "allow"}
    family("policy", "set", "default", "services=youtube,tiktok")
    shown = {one["key"]: one["origin"] for one in family("policy", "show", "--client", "tablet", "--json").json["values"]}
    assert shown == {"service.youtube": "group kids", "service.tiktok": "default"}
    family("policy", "set", "default", "services=")
    assert family("policy", "show", "default", "--json").json["values"] == {}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("services=tiktoc", "did you mean 'tiktok'"),
        ("services=tiktok,,zzzzzz", "`gatewayfilter service list` shows all"),
        ("service.youtube=off", "block, allow"),
        ("service.=block", "there is no service ''"),
    ],
)
def test_wrong_services_are_refused(family: Cli, value: str, message: str) -> None:
    assert message in family("policy", "set", "kids", value).complains()
    assert values(family) == {}


def test_every_host_of_a_service_is_checked(family: Cli) -> None:
    assert family("check", "--service", "tiktok", "--client", "tablet").code == 0
    family("policy", "set", "kids", "services=tiktok")
    found = family("check", "--service", "tiktok", "--client", "tablet", "--json")
    assert (found.code, found.json["blocked"]) == (1, True)
    assert {(host["action"], host["reason"]) for host in found.json["hosts"]} == {("deny", "service")}
    assert "blocked as a whole" in family("check", "--service", "tiktok", "--client", "tablet").out
    assert family("check", "--service", "tiktok").code == 0
    assert "name a URL, or a service" in family("check", "x.example", "--service", "tiktok").complains()
    assert "there is no service" in family("check", "--service", "nothing").complains()
    checked = family("check", "https://www.tiktok.com/", "--client", "tablet")
    assert checked.code == 1
    assert "BLOCK (service)" in checked.out


def test_an_own_service(family: Cli, state: Path) -> None:
    own = state / "services.toml"
    own.write_text("[club]\nhosts = ['club.example']\n", encoding="utf-8")
    family("policy", "set", "kids", "services=club")
    assert family("check", "--service", "club", "--client", "tablet").code == 1
    own.write_text("[club]\nhosts = ['com']\n", encoding="utf-8")
    assert "public suffix" in family("service", "list").complains()
    assert family("check", "https://x.example/").code == 0


def test_schedules_of_services(family: Cli) -> None:
    add = ("schedule", "add", "study", "--policy", "kids", "--daily", "00:00-24:00")
    assert "there is no service" in family(*add, "--block", "service:none").complains()
    assert family(*add, "--block", "service:youtube").code == 0
    assert "blocks the service youtube" in family("schedule", "list").out
    assert "BLOCK (schedule)" in family("check", "https://www.youtube.com/", "--client", "tablet").out
    family("schedule", "remove", "study")
    family("policy", "set", "kids", "services=youtube")
    assert "allows the service youtube" in family(*add, "--allow", "service:youtube").out
    assert family("check", "https://www.youtube.com/", "--client", "tablet").code == 0


BEDTIMES = [
    ((), "21:00-06:30 mon,tue,wed,thu,sun, 22:30-08:00 fri,sat"),
    (("20:00-06:00",), "20:00-06:00 daily"),
    (("20:00-06:00", "--weekend", "23:00-09:00"), "20:00-06:00 mon,tue,wed,thu,sun, 23:00-09:00 fri,sat"),
    (("20:00-06:00", "--days", "weekdays"), "20:00-06:00 weekdays"),
]


@pytest.mark.parametrize(("more", "windows"), BEDTIMES)
def test_bedtime(family: Cli, more: tuple[str, ...], windows: str) -> None:
    out = family("schedule", "add", "night", "--policy", "kids", "--timezone", "UTC", "--bedtime", *more).out
    assert out == f"night: blocks everything, {windows}, UTC\n"


def test_bedtime_blocks_all_but_what_is_allowed(family: Cli) -> None:
    family("schedule", "add", "night", "--policy", "kids", "--timezone", "UTC", "--bedtime")
    family("list", "add", "--allow", "school.example", "--for", "group:kids")
    for at, code in (("2026-05-04T22:00Z", 1), ("2026-05-04T20:00Z", 0), ("2026-05-08T22:00Z", 0), ("2026-05-08T23:00Z", 1)):
        assert family("check", "x.example", "--client", "tablet", "--at", at).code == code
        assert family("check", "school.example", "--client", "tablet", "--at", at).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bedtime", "--daily", "20:00-21:00"), "has windows and an effect of its own"),
        (("--bedtime", "--block", "all"), "has windows and an effect of its own"),
        (("--weekend", "20:00-21:00", "--block", "all"), "--weekend belongs to --bedtime"),
        (("--block", "all"), "give --daily"),
        (("--bedtime", "9pm"), "is no window"),
    ],
)
def test_wrong_bedtimes_are_refused(family: Cli, arguments: tuple[str, ...], message: str) -> None:
    assert message in family("schedule", "add", "night", "--policy", "kids", *arguments).complains()


def used(state: Path, *minutes: int) -> None:
    store = open_store(Settings(data_dir=state))
    store.usage.add([QuotaUse("client:tablet", "videos", minute) for minute in minutes])
    store.close()


def test_quotas(family: Cli, state: Path) -> None:
    assert family("quota", "list").out == "There are no quotas.\n"
    added = family("quota", "add", "videos", "--policy", "kids", "--minutes", "60", "--service", "youtube", "--timezone", "UTC")
    assert added.out == "videos: 60 minutes a day of the service youtube, policy kids\n"
    family("quota", "add", "play", "--policy", "kids", "--minutes", "30", "--category", "games", "--timezone", "UTC")
    assert family("quota", "set", "videos", "--minutes", "2").code == 0
    quotas = {one["name"]: one for one in family("quota", "list", "--json").json}
    assert (quotas["videos"]["minutes"], quotas["play"]["target"]) == (2, "games")
    assert family("quota", "remove", "play").code == 0
    assert "videos" in family("quota", "list").out

    noon = int(time.time() // 86_400) * 1440 + 720
    page = ("check", "https://www.youtube.com/", "--client", "tablet", "--at")
    used(state, noon)
    assert "quota videos: 1 of 2 minutes of youtube used today" in family(*page, _text(noon + 1)).out
    used(state, noon + 5)
    before, after, tomorrow = (family(*page, _text(minute)) for minute in (noon + 5, noon + 6, noon + 1440))
    assert (before.code, after.code, tomorrow.code) == (0, 1, 0)
    assert "BLOCK (quota)" in after.out
    assert "again from" in after.out
    shown = family("policy", "show", "--client", "tablet", "--json").json["quotas"]
    assert [(one["quota"], one["used"], one["minutes"]) for one in shown] == [("videos", 2, 2)]
    assert "2 of 2 minutes" in family("policy", "show", "--client", "tablet").out
    assert "tablet 2" in family("quota", "list").out


def test_quotas_of_weekends(family: Cli) -> None:
    add = ("quota", "add", "videos", "--policy", "kids", "--service", "youtube", "--timezone", "UTC", "--minutes")
    out = family(*add, "60", "--weekend", "120").out
    assert out == "videos: weekdays=60,weekend=120 minutes a day of the service youtube, policy kids\n"
    assert family("quota", "list", "--json").json[0]["other_days"] == {"sat": 120, "sun": 120}
    assert family("quota", "set", "videos", "--minutes", "mon-thu=45,fri=90,sat-sun=120").code == 0
    assert "mon,tue,wed,thu=45,fri=90,weekend=120" in family("quota", "list").out
    assert "are missing" in family("quota", "set", "videos", "--minutes", "mon-thu=45").complains()
    assert "1 to 1,440" in family("quota", "set", "videos", "--minutes", "45", "--weekend", "0").complains()
    assert "mon,tue,wed,thu=45" in family("quota", "list").out


def _text(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%MZ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--minutes", "60"), "give --service or --category"),
        (("--minutes", "60", "--service", "youtube", "--category", "games"), "give --service or --category"),
        (("--minutes", "0", "--service", "youtube"), "1 to 1,440 minutes"),
        (("--minutes", "60", "--service", "youtub"), "did you mean 'youtube'"),
        (("--minutes", "60", "--category", "gamez"), "did you mean 'games'"),
        (("--minutes", "60", "--service", "youtube", "--timezone", "Mars/Base"), "there is no time zone"),
    ],
)
def test_wrong_quotas_are_refused(family: Cli, arguments: tuple[str, ...], message: str) -> None:
    assert message in family("quota", "add", "q", "--policy", "kids", *arguments).complains()
    assert message or family("quota", "list", "--json").json == []


def test_a_quota_has_one_name_and_a_policy(family: Cli) -> None:
    add = ("quota", "add", "q", "--minutes", "1", "--service", "youtube", "--policy")
    assert "there is no policy" in family(*add, "none").complains()
    assert family(*add, "kids").code == 0
    assert "there is a quota" in family(*add, "kids").complains()
    assert "there is no quota" in family("quota", "remove", "other").complains()
    assert "there is no quota" in family("quota", "set", "other", "--minutes", "3").complains()
