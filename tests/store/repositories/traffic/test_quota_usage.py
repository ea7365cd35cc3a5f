"""The use of quotas in the database: minutes of several workers are merged, and what is used up reaches every worker."""

from datetime import datetime

import pytest
from sqlalchemy import select

from gatewayfilter.engine.state.overlay import Overlay
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import DailyMinutes, Policy, PolicySet, Quota, QuotaKind, QuotaSum, QuotaUse, Spent
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.traffic import quota_usage
from gatewayfilter.store.sql.database import Area
from gatewayfilter.store.sql.schema import QUOTA_USAGE
from gatewayfilter.use_cases.policies import PolicyEditor

CLIENT = "client:anna"


def minute(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() // 60)


NOON = minute("2026-05-04T12:00+00:00")


def with_quota(store: Store, minutes: int = 3, timezone: str = "UTC", target: str = "clips") -> PolicyEditor:
    editor = PolicyEditor(store.policies, lambda: NOON * 60.0)
    editor.add_policy("kids")
    editor.add_quota(Quota("hour", "kids", QuotaKind.SERVICE, target, minutes, timezone), (), {target})
    return editor


def followed(store: Store) -> PolicySet:
    """What a worker knows that has read the feed from the beginning."""
    return Overlay.over((), 0).changed(store.feed.read(0)).policies


def uses(*minutes: int, client: str = CLIENT, quota: str = "hour") -> list[QuotaUse]:
    return [QuotaUse(client, quota, one) for one in minutes]


def test_a_minute_counts_once_however_many_workers_report_it(store: Store) -> None:
    with_quota(store)
    assert store.usage.add(uses(NOON, NOON)) == store.usage.add(uses(NOON)) == store.usage.add([]) == 0
    assert store.usage.add(uses(NOON - 1)) == 0
    assert store.usage.sums(NOON * 60) == [QuotaSum(CLIENT, "hour", 2)]
    assert store.usage.sums((NOON + 1440) * 60) == []


def test_the_last_minute_uses_a_quota_up_until_the_next_day(store: Store) -> None:
    with_quota(store)
    assert store.usage.add(uses(NOON, NOON + 5)) == 0
    assert store.usage.add(uses(NOON + 7)) == 1
    assert store.usage.add(uses(NOON + 7)) == 0
    midnight = minute("2026-05-05T00:00+00:00") * 60.0
    expected = Spent("hour", CLIENT, (NOON + 8) * 60.0, midnight)
    assert followed(store).spent == store.policies.read().spent == {expected.name: expected}
    # The next day begins with none used, and the old end is replaced.
    assert store.usage.add(uses(*(NOON + 1440 + one for one in range(3)))) == 1
    assert followed(store).spent[expected.name].until == midnight + 86_400


def test_what_has_ended_is_forgotten_with_the_next_change(store: Store) -> None:
    with_quota(store, minutes=1)
    store.usage.add(uses(NOON))
    later = PolicyEditor(store.policies, lambda: (NOON + 1440) * 60.0)
    later.add_policy("other")
    assert not followed(store).spent
    assert not store.policies.read().spent


ZONES = [
    ("UTC", "2026-05-04T23:59+00:00", "2026-05-05T00:00+00:00"),
    ("Europe/Berlin", "2026-05-04T23:59+02:00", "2026-05-05T00:00+02:00"),
    ("America/New_York", "2026-05-04T00:00-04:00", "2026-05-05T00:00-04:00"),
    ("Europe/Berlin", "2026-03-29T12:00+02:00", "2026-03-30T00:00+02:00"),  # a day of 23 hours
    ("Europe/Berlin", "2026-10-25T23:30+01:00", "2026-10-26T00:00+01:00"),  # one of 25
    ("America/Santiago", "2026-09-06T05:00-03:00", "2026-09-07T00:00-03:00"),  # one that begins at 01:00
    ("Australia/Lord_Howe", "2026-04-05T12:00+10:30", "2026-04-06T00:00+10:30"),  # half an hour is repeated
    ("Asia/Shanghai", "2026-05-04T23:59+08:00", "2026-05-05T00:00+08:00"),
    ("Nowhere/Gone", "2026-05-04T23:59+00:00", "2026-05-05T00:00+00:00"),
]


@pytest.mark.parametrize(("timezone", "used", "until"), ZONES)
def test_a_day_ends_at_midnight_of_its_time_zone(store: Store, timezone: str, used: str, until: str) -> None:
    item = Quota("hour", "default", QuotaKind.SERVICE, "clips", 1, timezone)
    store.policies.change(lambda _: [(item, True)], 0.0)
    assert store.usage.add(uses(minute(used))) == 1
    (spent,) = store.policies.read().spent.values()
    assert spent.since == minute(used) * 60.0 + 60
    assert spent.until == datetime.fromisoformat(until).timestamp()
    assert store.usage.sums(minute(used) * 60.0) == [QuotaSum(CLIENT, "hour", 1)]
    assert store.usage.sums(spent.until) == []


def test_clients_are_counted_apart(store: Store) -> None:
    with_quota(store, minutes=2)
    store.usage.add([*uses(NOON, NOON + 1), *uses(NOON, client="client:bert")])
    assert [spent.client for spent in store.policies.read().spent.values()] == [CLIENT]
    assert store.usage.sums(NOON * 60) == [QuotaSum(CLIENT, "hour", 2), QuotaSum("client:bert", "hour", 1)]
    assert store.usage.add([*uses(NOON, client="client:cleo"), *uses(NOON + 1, client="client:bert")]) == 1


def test_what_is_gone_is_ignored(store: Store) -> None:
    editor = with_quota(store, minutes=1)
    assert store.usage.add(uses(NOON, quota="none")) == 0
    store.usage.add(uses(NOON))
    editor.remove_quota("hour")
    assert store.usage.add(uses(NOON + 1)) == 0
    assert not followed(store).spent
    assert not followed(store).quotas


def test_a_larger_quota_lets_its_clients_go_on(store: Store) -> None:
    editor = with_quota(store, minutes=1)
    store.usage.add(uses(NOON))
    assert store.policies.read().spent
    editor.set_quota("hour", DailyMinutes(2, {}))
    assert not followed(store).spent
    assert store.usage.add(uses(NOON + 1)) == 1
    editor.set_quota("hour", DailyMinutes(1, {}))
    assert store.policies.read().spent


def test_weekends_have_minutes_of_their_own(store: Store) -> None:
    editor = with_quota(store, timezone="Europe/Berlin")
    editor.set_quota("hour", DailyMinutes(1, {5: 2, 6: 2}))
    friday, saturday = minute("2026-05-08T23:59+02:00"), minute("2026-05-09T00:00+02:00")
    assert store.usage.add(uses(friday)) == 1
    assert store.usage.add(uses(saturday)) == 0
    assert store.usage.add(uses(saturday + 1)) == 1
    # More minutes for other days end nothing: the clock stands on Monday.
    editor.set_quota("hour", DailyMinutes(1, {5: 30, 6: 30}))
    assert store.policies.read().spent
    editor.set_quota("hour", DailyMinutes(1, {0: 5}))
    assert not store.policies.read().spent


def test_a_policy_goes_with_its_quotas(store: Store) -> None:
    editor = with_quota(store, minutes=1)
    store.usage.add(uses(NOON))
    editor.remove_policy("kids")
    assert followed(store) == store.policies.read() == PolicySet(policies={})


@pytest.mark.parametrize("minutes", [0, -1, 1441])
def test_a_quota_has_minutes_of_a_day(store: Store, minutes: int) -> None:
    with pytest.raises(PolicyError, match="1 to 1,440 minutes"):
        with_quota(store, minutes)


@pytest.mark.parametrize(
    ("quota", "message"),
    [
        (Quota("q", "none", QuotaKind.SERVICE, "clips", 1, "UTC"), "there is no policy 'none'"),
        (Quota("q", "default", QuotaKind.SERVICE, "clip", 1, "UTC"), "did you mean 'clips'"),
        (Quota("q", "default", QuotaKind.CATEGORY, "game", 1, "UTC"), "did you mean 'games'"),
        (Quota("q", "default", QuotaKind.SERVICE, "clips", 1, "Mars/Base"), "there is no time zone"),
        (Quota("a:b", "default", QuotaKind.SERVICE, "clips", 1, "UTC"), "cannot be a name"),
    ],
)
def test_what_a_quota_refers_to_has_to_exist(store: Store, quota: Quota, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        PolicyEditor(store.policies).add_quota(quota, {"games"}, {"clips"})
    assert Policy("default") == store.policies.read().policy("default")


def test_the_clients_of_a_day_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.store.repositories.traffic.quota_usage._MOST_CLIENTS", 3)
    with_quota(store)
    store.usage.add([QuotaUse(f"address:2001:db8::{number}", "hour", NOON) for number in range(10)])
    assert len(store.usage.sums(NOON * 60)) == 3
    store.usage.add([QuotaUse("client:child", "hour", NOON)])
    assert QuotaSum("client:child", "hour", 1) in store.usage.sums(NOON * 60)


def test_the_days_before_are_kept_for_two_days(store: Store) -> None:
    def days() -> list[int]:
        with store._database.read() as connection:
            return sorted(connection.scalars(select(QUOTA_USAGE.c.day)))

    for day in (10, 11, 12, 13):
        with store._database.write(Area.LISTS) as connection:
            quota_usage._merge(connection, ("client:kim", "films", day), [3])
    assert days() == [11, 12, 13]
