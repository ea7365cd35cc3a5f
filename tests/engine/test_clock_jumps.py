"""The clock of the filter jumps, forward and back, across the ends of schedules, pauses and quota days: the wall clock counts."""

from dataclasses import replace
from datetime import datetime

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.model import Pause, PauseScope, PolicyItem, Quota, QuotaKind, Service, Spent, key_of_client
from tests.engine.test_policy_decision import BEDTIME, NIGHT, NOON, outcome, policy, snapshot

DAY_S = 86_400
MIDNIGHT = datetime.fromisoformat("2026-05-05T00:00+00:00").timestamp()
CLOSED = policy(block_all=True)
PAUSE = Pause(PauseScope.CLIENT, "child", NOON + 3_600)
HOUR = Quota("hour", "kids", QuotaKind.SERVICE, "clips", 60, "UTC")
CLIPS = Service("clips", "Clips", "", "video", ("clips.example",))
SPENT = Spent("hour", key_of_client("child"), NOON - 60, MIDNIGHT)


@pytest.mark.parametrize(
    ("items", "host", "steps"),
    [
        pytest.param(
            (policy(), BEDTIME),
            "x.example",
            [
                (NOON, "allow unknown"),
                (NIGHT, "block schedule"),
                (NOON, "allow unknown"),
                (NIGHT - 40 * DAY_S, "block schedule"),  # before and beyond the timelines
                (NIGHT + 40 * DAY_S, "block schedule"),
                (NOON - 40 * DAY_S, "allow unknown"),
                (NOON + 4_000 * DAY_S, "allow unknown"),
            ],
            id="schedule",
        ),
        pytest.param(
            (CLOSED, PAUSE),
            "x.example",
            [(NOON, "allow pause"), (NOON + 7_200, "block policy"), (NOON, "allow pause"), (PAUSE.until, "block policy")],
            id="pause",
        ),
        pytest.param(
            (policy(), HOUR, SPENT),
            "clips.example",
            [
                (NOON, "block quota"),
                (MIDNIGHT, "allow unknown"),  # the next day has minutes of its own
                (NOON, "block quota"),
                (NOON - DAY_S, "allow unknown"),  # and so has the day before
                (NOON + 40 * DAY_S, "allow unknown"),
            ],
            id="quota",
        ),
    ],
)
def test_what_is_in_force_after_a_jump(items: tuple[PolicyItem, ...], host: str, steps: list[tuple[float, str]]) -> None:
    now = [steps[0][0]]
    found = FilterEngine(snapshot(*items), clock=lambda: now[0], services={"clips": CLIPS})
    for at, expected in steps:
        now[0] = at
        found.keep_time()  # as each worker does once a second
        assert outcome(found, host) == expected


def test_a_jump_within_the_timelines_counts_at_once() -> None:
    now = [NOON]
    found = FilterEngine(snapshot(policy(), BEDTIME, replace(PAUSE, until=NOON + 1)), clock=lambda: now[0])
    for at, expected in ((NIGHT, "block schedule"), (NOON + 2, "allow unknown"), (NIGHT + DAY_S, "block schedule")):
        now[0] = at
        assert outcome(found, "x.example") == expected
