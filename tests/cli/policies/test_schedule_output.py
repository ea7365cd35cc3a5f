"""What `schedule`, `quota`, `service`, `pause` and `resume` print, in full: `gatewayfilter.cli.policies.schedule_commands`,
`gatewayfilter.cli.policies.quota_commands`, `gatewayfilter.cli.policies.service_commands`,
`gatewayfilter.cli.policies.pause_commands`.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.model import Pause, PauseScope, PolicySet, Quota, QuotaKind, Schedule, ScheduleEffect, Service, Window
from tests.cli.policies.test_policy_output import DAY, EDITED, EFFECTS, Editor, asked, read
from tests.cli.test_command_doubles import MOMENT, Doubled, called, table, texts

__all__ = ["asked"]  # a fixture


def test_schedules_are_shown() -> None:
    rows = table(texts(Doubled(read()), "schedule", "list")[1])
    assert rows[0] == ["name", "policy", "effect", "windows", "timezone"]
    assert [row[2] for row in rows[1:]] == list(EFFECTS.values())
    assert rows[1][3:] == ["21:00-06:30 daily, 08:05-10:00 weekend", "UTC"]
    assert [one["name"] for one in called(Doubled(read()), "schedule", "list", "--json").json] == [f"s{one}" for one in range(6)]
    assert texts(Doubled(read(PolicySet())), "schedule", "list") == (0, "There are no schedules.\n", "")


ADDED: tuple[tuple[tuple[str, str], ScheduleEffect, str], ...] = (
    (("--block", "all"), ScheduleEffect.BLOCK_ALL, ""),
    (("--block", "ads"), ScheduleEffect.BLOCK_CATEGORY, "ads"),
    (("--allow", "ads"), ScheduleEffect.ALLOW_CATEGORY, "ads"),
    (("--block", "service:tiktok"), ScheduleEffect.BLOCK_SERVICE, "tiktok"),
    (("--allow", "service:tiktok"), ScheduleEffect.ALLOW_SERVICE, "tiktok"),
    (("--use", "strict"), ScheduleEffect.USE_POLICY, "strict"),
)


def test_schedules_are_added(asked: list[Any]) -> None:
    for options, effect, target in ADDED:
        arguments = ("schedule", "add", "s", "--policy", "kids", "--daily", "21:00-06:30", "--days", "sat,sun", *options)
        code, out, _ = texts(Doubled(EDITED), *arguments)
        schedule = Schedule("s", "kids", effect, (Window(1_260, 390, frozenset({5, 6})),), "UTC", target)
        assert asked.pop() == ("add_schedule", schedule, "known_categories", ("services", effect.value.rpartition("-")[2]))
        assert (code, out) == (0, f"s: {EFFECTS[effect].replace(' x', f' {target}')}, 21:00-06:30 weekend, UTC\n")
    add = ("schedule", "add", "s", "--policy", "kids")
    document = called(Doubled(EDITED), *add, "--bedtime", "--timezone", "Asia/Tokyo", "--json").json
    schedule = asked.pop()[1]
    assert (schedule.effect, schedule.target, schedule.timezone, document["timezone"]) == (
        ScheduleEffect.BLOCK_ALL,
        "",
        *["Asia/Tokyo"] * 2,
    )
    assert len(schedule.windows) == 2
    for wrong, why in (
        (("--bedtime", "--daily", "1:00-2:00"), "--bedtime has windows and an effect of its own"),
        (("--bedtime", "--block", "all"), "--bedtime has windows and an effect of its own"),
        (("--bedtime", "--use", "x"), "--bedtime has windows and an effect of its own"),
        (("--block", "all", "--daily", "1:00-2:00", "--weekend", "1:00-2:00"), "--weekend belongs to --bedtime"),
        (("--block", "all"), "give --daily HH:MM-HH:MM, or --bedtime"),
        (("--daily", "01:00-02:00"), "give one of --block, --allow and --use"),
        (("--daily", "01:00-02:00", "--block", "all", "--use", "x"), "give one of --block, --allow and --use"),
    ):
        assert called(Doubled(EDITED), *add, *wrong).complains().startswith(why)
    assert texts(Doubled(EDITED), "schedule", "remove", "s") == (0, "Removed the schedule s.\n", "")
    assert asked == [("remove_schedule", "s")]


def test_quotas_are_changed_and_shown(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.wiring.services", lambda _settings: "catalogue")
    add = ("quota", "add", "films", "--policy", "strict", "--minutes", "60")
    shown = "films: {} minutes a day of the {}, policy strict\n"
    assert texts(Doubled(EDITED), *add, "--service", "youtube")[1] == shown.format("60", "service youtube")
    made = Quota("films", "strict", QuotaKind.SERVICE, "youtube", 60, "UTC")
    assert asked.pop() == ("add_quota", made, "counted_categories", "catalogue")
    document = called(Doubled(EDITED), *add, "--category", "video", "--weekend", "120", "--timezone", "Asia/Tokyo", "--json").json
    quota = asked.pop()[1]
    assert (quota.kind, quota.target, quota.timezone, quota.other_days[5], document["minutes"]) == (
        QuotaKind.CATEGORY, "video", "Asia/Tokyo", 120, 60,
    )  # fmt: skip
    for wrong in ((), ("--service", "a", "--category", "b")):
        assert called(Doubled(EDITED), *add, *wrong).complains() == "give --service or --category"
    changed = texts(Doubled(EDITED), "quota", "set", "films", "--minutes", "90")[1]
    assert changed.startswith("films: ")
    assert changed.endswith("minutes a day of the category video, policy strict\n")
    assert asked.pop()[:2] == ("set_quota", "films")
    assert texts(Doubled(EDITED), "quota", "remove", "films")[1] == "Removed the quota films.\n"
    used = [SimpleNamespace(quota="films", client="client:tv", used=5), SimpleNamespace(quota="films", client="10.0.0.9", used=7)]
    days: list[float] = []

    def sums(now: float) -> list[SimpleNamespace]:
        days.append(now)
        return used

    store = read(usage=SimpleNamespace(sums=sums))
    head, first, second = table(texts(Doubled(store), "quota", "list")[1])
    assert (head, first) == (
        ["name", "policy", "counts", "minutes a day", "used today", "timezone"],
        ["a", "own", "service:youtube", "5", "UTC"],
    )
    assert (second[:3], second[4:], days) == (["films", "strict", "category:video"], ["tv 5, 10.0.0.9 7", "UTC"], [MOMENT])
    assert called(Doubled(store), "quota", "list", "--json").json[1]["used"] == {"client:tv": 5, "10.0.0.9": 7}
    assert texts(Doubled(read(PolicySet(), usage=SimpleNamespace(sums=sums))), "quota", "list")[1] == "There are no quotas.\n"


HOSTS = "y.example", "z.example"
SERVICES = {
    "youtube": Service(
        "youtube", "YouTube", "油管", "video", HOSTS, ("m.example",), ("y*.example",), (443, 80), "google", "s"
    ),
    "vimeo": Service("vimeo", "Vimeo", "维", "video", ("v.example",), own=True),
    "chess": Service("chess", "Chess", "棋", "games", ("c.example",)),
}  # fmt: skip


def test_services_are_listed_and_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("gatewayfilter.wiring.services", lambda _settings: SERVICES)
    monkeypatch.setattr("gatewayfilter.sources.service_icons.service_icon", lambda service: f"<svg>{service.name}")
    head = ["service", "name", "Chinese name", "group", "hosts", "blocked by"]
    rows = [
        ["chess", "Chess", "棋", "games", "1"],
        ["vimeo", "Vimeo", "维", "video", "1"],
        ["youtube", "YouTube", "油管", "video", "2", "strict"],
    ]
    last = "{}. Block: gatewayfilter policy set POLICY services=ID,ID"
    assert table(texts(Doubled(read()), "service", "list")[1]) == [head, *rows, [last.format("3 services")]]
    assert table(texts(Doubled(read()), "service", "list", "--group", "games")[1]) == [head, rows[0], [last.format("1 service")]]
    listed = called(Doubled(read()), "service", "list", "--group", "video", "--json").json
    assert [(one["service_id"], one["blocked_by"]) for one in listed] == [("vimeo", []), ("youtube", ["strict"])]
    code, _, err = texts(Doubled(read()), "service", "list", "--group", "zz")
    assert (code, err) == (1, "gatewayfilter: there is no group 'zz'; there are games, video\n")
    assert table(texts(Doubled(), "service", "show", "youtube")[1]) == [
        ["youtube"],
        ["name", "YouTube, 油管"],
        ["group", "video"],
        ["hosts", "y.example, z.example"],
        ["played from", "m.example"],
        ["patterns", "y*.example"],
        ["ports", "443, 80"],
        ["part of", "google"],
        ["chosen by", "s"],
        ["from", "the bundled catalogue"],
    ]
    icon = tmp_path / "icon.svg"
    assert table(texts(Doubled(), "service", "show", "vimeo", "--icon", icon)[1])[-1] == [
        "from",
        "services.toml in the state folder",
    ]
    assert icon.read_text(encoding="utf-8") == "<svg>Vimeo"
    assert called(Doubled(), "service", "show", "vimeo", "--json").json["icon"] == "<svg>Vimeo"
    assert "cannot write" in called(Doubled(), "service", "show", "vimeo", "--icon", tmp_path / "no" / "x").complains()


def test_pauses_begin_and_end(asked: list[Any]) -> None:
    Editor.answer = Pause(PauseScope.ALL, "", MOMENT)
    for options, scope, target, whom in (
        ((), PauseScope.ALL, "", "everybody"),
        (("--client", "tv"), PauseScope.CLIENT, "tv", "the client tv"),
        (("--group", "kids"), PauseScope.GROUP, "kids", "the group kids"),
    ):
        assert texts(Doubled(EDITED), "pause", "1h", *options) == (0, f"Filtering is paused for {whom} until {DAY}.\n", "")
        assert asked.pop() == ("pause", scope, target, 3_600.0, ("harm_too", False))
    assert called(Doubled(EDITED), "pause", "5min", "--include-malware", "--json").json["until"] == MOMENT
    assert asked.pop() == ("pause", PauseScope.ALL, "", 300.0, ("harm_too", True))
    assert called(Doubled(EDITED), "pause", "x").complains() == "'x' is no duration; write 30min, 1h or 1h30min"
    for command in (("pause", "1h"), ("resume",)):
        both = called(Doubled(EDITED), *command, "--client", "a", "--group", "b").complains()
        assert both == "give --client or --group, not both"
    Editor.answer = True
    assert texts(Doubled(EDITED), "resume", "--group", "kids") == (0, "Filtering goes on for the group kids.\n", "")
    assert asked.pop() == ("resume", PauseScope.GROUP, "kids")
    Editor.answer = False
    pauses = {MOMENT: (Pause(PauseScope.ALL, "", MOMENT), Pause(PauseScope.CLIENT, "big tv", MOMENT))}

    class Policies(str):
        """Policies with pauses in force."""

        __slots__ = ()

        def read(self) -> SimpleNamespace:
            return SimpleNamespace(pauses_at=pauses.__getitem__)

    others: Any = SimpleNamespace(policies=Policies("policies"))
    assert texts(Doubled(others), "resume") == (
        1,
        (
            "There is no pause for everybody.\nPaused is everybody: gatewayfilter resume\n"
            "Paused is the client big tv: gatewayfilter resume --client 'big tv'\n"
        ),
        "",
    )
    answer = called(Doubled(others), "resume", "--json")
    assert (answer.code, answer.json) == (1, {"ended": False})
