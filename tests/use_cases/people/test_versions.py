"""Versions of policy items: another one with each change of what belongs to the item, and with nothing else."""

from dataclasses import replace

from gatewayfilter.model import Policy, PolicySet, Quota, QuotaKind, Schedule, ScheduleEffect, Window
from gatewayfilter.use_cases.people.versions import policy_version, version_of

NIGHT = (Window(1_260, 360),)
KIDS = Policy("kids")
SCHEDULES = [Schedule(name, "kids", ScheduleEffect.BLOCK_ALL, NIGHT, "UTC") for name in ("a", "b")]
QUOTAS = [Quota(name, "kids", QuotaKind.CATEGORY, "games", 30, "UTC") for name in ("a", "b")]


def made(*items: Policy | Schedule | Quota) -> PolicySet:
    return PolicySet.of(items)


def test_a_policy_that_is_not_there_has_none() -> None:
    assert policy_version(made(Policy("adults"), *SCHEDULES), "kids") == ""


def test_what_belongs_to_a_policy_is_in_its_version() -> None:
    whole = policy_version(made(KIDS, *SCHEDULES, *QUOTAS), "kids")
    assert len(whole) == len(bytes.fromhex(whole)) * 2 == 16
    assert policy_version(made(*reversed(QUOTAS), *reversed(SCHEDULES), KIDS), "kids") == whole, "in whatever order"
    others = (Policy("adults"), replace(SCHEDULES[0], name="c", policy="adults"), replace(QUOTAS[0], name="c", policy="adults"))
    assert policy_version(made(KIDS, *SCHEDULES, *QUOTAS, *others), "kids") == whole
    changed = [
        policy_version(made(KIDS, SCHEDULES[0], *QUOTAS), "kids"),
        policy_version(made(KIDS, *SCHEDULES, QUOTAS[0]), "kids"),
        policy_version(made(replace(KIDS, block_all=True), *SCHEDULES, *QUOTAS), "kids"),
        policy_version(made(KIDS, *SCHEDULES, QUOTAS[0], replace(QUOTAS[1], minutes=31)), "kids"),
    ]
    assert len({whole, *changed}) == 5


def test_the_version_of_items() -> None:
    assert version_of(KIDS) == version_of(Policy("kids")) != version_of(Policy("adults"))
    assert version_of(*SCHEDULES) != version_of(*reversed(SCHEDULES))
