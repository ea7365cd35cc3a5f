"""What holds for a client at an instant: its state, since what and until when, and where each value comes from."""

from datetime import UTC, datetime

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.engine.policies.service_index import ServiceIndex
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import (
    ALL_DAYS,
    Client,
    Group,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    Quota,
    QuotaKind,
    Schedule,
    ScheduleEffect,
    Window,
    parse_matcher,
)
from gatewayfilter.store import Store
from gatewayfilter.use_cases.people.client_policy import LATEST, ClientPolicyView, client_policy
from gatewayfilter.use_cases.people.client_states import StateKind

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC).timestamp()
HOUR_S = 3_600.0
KIM = Client("kim", (parse_matcher("10.0.0.1"),), "kids")
KIDS = Group("kids", "kids")
NIGHT = Schedule("night", "kids", ScheduleEffect.BLOCK_ALL, (Window(1260, 390, ALL_DAYS),), "UTC")
GAMES = Schedule("games", "kids", ScheduleEffect.BLOCK_CATEGORY, (Window(720, 780, ALL_DAYS),), "UTC", "games")


def view(settings: Settings, store: Store, items: list[PolicyItem], at: float = NOON, name: str = "kim") -> ClientPolicyView:
    return client_policy(settings, store, PolicySet.of(items), ServiceIndex({}), name, at)


def test_a_schedule_blocks_until_the_morning(settings: Settings, store: Store) -> None:
    items: list[PolicyItem] = [KIM, KIDS, Policy("kids"), NIGHT, GAMES, Schedule("else", "default", *_rest(NIGHT))]
    day = view(settings, store, items)
    assert (day.state.kind, day.state.until, day.state.cause, day.state.by_schedule) == (
        *(StateKind.FILTERED, NOON + 9 * HOUR_S, "", False),
    )
    assert (day.state.schedules, day.state.categories, day.state.allowed) == (("games",), ("games",), ())
    night = view(settings, store, items, NOON + 10 * HOUR_S).state
    assert (night.kind, night.until, night.cause, night.by_schedule, night.schedules) == (
        *(StateKind.BLOCKED, NOON + 18.5 * HOUR_S, "night", True, ("night", "else")),
    )
    assert (day.client, day.group, day.policies, day.at) == (KIM, "kids", ("kids", "default"), NOON)
    assert [schedule.name for schedule in day.schedules] == ["else", "games", "night"]


def _rest(schedule: Schedule) -> tuple[ScheduleEffect, tuple[Window, ...], str, str]:
    return ScheduleEffect.BLOCK_CATEGORY, schedule.windows, schedule.timezone, "news"


def test_a_policy_blocks_for_good_and_a_pause_lifts_it(settings: Settings, store: Store) -> None:
    items: list[PolicyItem] = [KIM, KIDS, Policy("kids", block_all=True)]
    blocked = view(settings, store, items).state
    assert (blocked.kind, blocked.until, blocked.cause, blocked.by_schedule) == (StateKind.BLOCKED, None, "kids", False)
    pause = Pause(PauseScope.CLIENT, "kim", NOON + HOUR_S)
    paused = view(settings, store, [*items, pause]).state
    assert (paused.kind, paused.until, paused.pause) == (StateKind.PAUSED, NOON + HOUR_S, pause)
    assert view(settings, store, [*items, pause], NOON + HOUR_S).state.kind is StateKind.BLOCKED


def test_values_with_their_origins(settings: Settings, store: Store) -> None:
    own = Policy("kids", requests={"safesearch": "on"})
    quota = Quota("films", "kids", QuotaKind.CATEGORY, "streaming", 60, "UTC")
    off = settings.filter.model_copy(update={"disabled_categories": ("ads",)})
    found = view(settings.model_copy(update={"filter": off}), store, [KIM, KIDS, own, quota])
    values = {value.key: (value.value, value.origin) for value in found.values}
    assert values["safesearch"][0] == "on"
    assert values["safesearch"][1] != "settings"
    assert (values["youtube"], values["category.ads"], values["block-all"]) == (
        *(("off", "settings"), ("allow", "settings"), ("off", "settings")),
    )
    assert [value.key for value in found.values].count("safesearch") == 1
    assert [(left.quota, left.minutes) for left in found.quotas] == [("films", 60)]


def test_clients_that_are_not_recognized(settings: Settings, store: Store) -> None:
    found = view(settings, store, [KIM, KIDS, Policy("kids"), NIGHT], NOON + 10 * HOUR_S, "")
    assert (found.client, found.group, found.policies, found.state.kind) == (None, "default", ("default",), StateKind.FILTERED)
    assert found.schedules == ()


def test_instants_and_clients_that_cannot_be(settings: Settings, store: Store) -> None:
    with pytest.raises(PolicyError, match="there is no client 'lee'"):
        view(settings, store, [KIM, KIDS, Policy("kids")], name="lee")
    for at in (-1.0, LATEST + 1):
        with pytest.raises(PolicyError, match="before 1970 or after 2099"):
            view(settings, store, [KIM, KIDS, Policy("kids")], at)
    assert view(settings, store, [KIM, KIDS, Policy("kids")], LATEST).at == LATEST
