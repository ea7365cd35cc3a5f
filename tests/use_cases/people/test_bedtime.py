"""The bedtime of one client, whatever policy it had or shared before."""

from typing import cast

import pytest

from gatewayfilter.errors import PolicyError
from gatewayfilter.interfaces import PolicyStore
from gatewayfilter.model import (
    ALL_DAYS,
    Client,
    Group,
    Policy,
    PolicyItem,
    PolicySet,
    Schedule,
    ScheduleEffect,
    Window,
)
from gatewayfilter.use_cases.people.bedtime import Bedtimes, bedtime_of, free_name, own_policy
from gatewayfilter.use_cases.people.schedule_windows import FREE, PRESET, bedtime_windows, read_window

NIGHT = (Window(1260, 390, ALL_DAYS),)


class Items:
    """A store of items in memory."""

    def __init__(self, *items: PolicyItem) -> None:
        self.policies = PolicySet.of(items)
        self.at: list[float] = []

    def change(self, edit: object, now: float) -> None:
        assert callable(edit)
        self.at.append(now)
        self.policies = self.policies.changed(edit(self.policies))


def _bedtimes(items: Items) -> Bedtimes:
    return Bedtimes(cast("PolicyStore", items), lambda: 7.0)


def schedule(name: str, policy: str, effect: ScheduleEffect = ScheduleEffect.BLOCK_ALL, target: str = "") -> Schedule:
    return Schedule(name, policy, effect, NIGHT, "UTC", target)


def test_a_client_without_a_policy_gets_one_of_its_own() -> None:
    items = Items(Client("kim"), Client("lee"))
    made = _bedtimes(items).put("kim", NIGHT, "Europe/Berlin")
    assert made == Schedule("bedtime kim", "kim", ScheduleEffect.BLOCK_ALL, NIGHT, "Europe/Berlin")
    assert (items.policies.clients["kim"].policy, items.policies.clients["lee"].policy) == ("kim", "")
    assert items.policies.policies == {"kim": Policy("kim")}
    assert items.policies.schedules == {"bedtime kim": made}
    assert bedtime_of(items.policies, "kim") == made
    assert bedtime_of(items.policies, "lee") is bedtime_of(items.policies, "nobody") is None
    later = _bedtimes(items).put("kim", (Window(0, 60, ALL_DAYS),), "UTC")  # in place of the first one
    assert (later.name, [*items.policies.schedules]) == ("bedtime kim", ["bedtime kim"])
    assert items.at == [7.0, 7.0]
    assert _bedtimes(items).remove("kim") is True
    assert items.policies.schedules == {}
    assert _bedtimes(items).remove("kim") is False
    assert _bedtimes(items).remove("lee") is False


@pytest.mark.parametrize(
    "other",
    [
        [Client("lee", policy="strict")],
        [Group("kids", "strict")],
        [Policy("else"), schedule("at noon", "else", ScheduleEffect.USE_POLICY, "strict")],
    ],
)
def test_whoever_shares_a_policy_keeps_it_as_it_is(other: list[PolicyItem]) -> None:
    strict = Policy("strict", block_all=True)
    items = Items(strict, Client("kim", policy="strict"), schedule("nights", "strict"), *other)
    assert bedtime_of(items.policies, "kim") is None  # it is not its alone
    made = _bedtimes(items).put("kim", NIGHT, "UTC")
    assert (made.name, made.policy) == ("nights kim", "kim")  # the copy is the bedtime now
    assert items.policies.policies["kim"] == Policy("kim", block_all=True)
    assert items.policies.policies["strict"] == strict
    assert items.policies.schedules["nights"] == schedule("nights", "strict")
    assert [*items.policies.schedules][-1:] == ["nights kim"]
    assert _bedtimes(items).remove("kim") is True
    assert "nights" in items.policies.schedules


def test_copies_of_long_names_have_names_of_their_own() -> None:
    names = ["n" * 95 + mark for mark in "ab"]
    items = Items(
        Policy("strict"),
        Client("kim", policy="strict"),
        Client("lee", policy="strict"),
        *(schedule(name, "strict", ScheduleEffect.BLOCK_CATEGORY, "games") for name in names),
    )
    name, steps = own_policy(items.policies, "kim")
    copies = [item.name for item, _ in steps if isinstance(item, Schedule)]
    assert (name, copies) == ("kim", ["n" * 90, f"{'n' * 90} 2"])


def test_a_policy_that_is_the_clients_alone_is_used() -> None:
    items = Items(
        Policy("own"),
        Client("kim", policy="own"),
        schedule("games", "own", ScheduleEffect.USE_POLICY, "else"),
        schedule("else", "other"),
        Policy("kim"),
        Group("kids", "kim"),
    )
    assert own_policy(items.policies, "kim") == ("own", [])
    assert bedtime_of(items.policies, "kim") is None
    assert _bedtimes(items).put("kim", NIGHT, "UTC").policy == "own"
    assert bedtime_of(items.policies, "kim") is not None


def test_the_policy_of_all_is_nobodys_own() -> None:
    items = Items(Policy("default", block_all=True), Client("kim", policy="default"))
    name, steps = own_policy(items.policies, "kim")
    assert name == "kim"
    assert (Policy("kim", block_all=True), True) in steps


def test_what_a_bedtime_needs() -> None:
    items = Items(Client("kim"))
    for client, windows, zone, words in (
        ("eve", NIGHT, "UTC", "there is no client 'eve'"),
        ("kim", (), "UTC", "at least one window"),
        ("kim", NIGHT, "Mars/Crater", "Mars"),
    ):
        with pytest.raises(PolicyError, match=words):
            _bedtimes(items).put(client, windows, zone)
    assert items.policies == PolicySet.of([Client("kim")])


def test_names_that_are_taken_get_a_number() -> None:
    assert free_name("kim", {"lee"}) == "kim"
    assert free_name("kim", {"kim"}) == "kim 2"
    assert free_name("kim", {"kim", "kim 2"}) == "kim 3"
    assert free_name("k" * 200, {"k" * 200}) == f"{'k' * 90} 2"


def test_the_windows_of_nights() -> None:
    school, free = bedtime_windows(PRESET, None, ALL_DAYS)
    assert (school, free) == (Window(1260, 390, ALL_DAYS - FREE), Window(1350, 480, FREE))
    assert bedtime_windows("20:00-06:00", None, ALL_DAYS) == (Window(1200, 360, ALL_DAYS),)
    assert bedtime_windows("20:00-06:00", None, frozenset({0, 9})) == (Window(1200, 360, frozenset({0})),)
    assert bedtime_windows("20:00-06:00", "23:00-07:00", ALL_DAYS) == (
        Window(1200, 360, ALL_DAYS - FREE),
        Window(1380, 420, FREE),
    )
    assert bedtime_windows(PRESET, "23:00-07:00", FREE) == (Window(1380, 420, FREE),)
    assert bedtime_windows(PRESET, None, frozenset({0})) == (Window(1260, 390, frozenset({0})),)


@pytest.mark.parametrize(
    ("text", "minutes"), [("00:00-24:00", (0, 1440)), (" 23:59 - 0:01 ", (1439, 1)), ("00:59-1:00", (59, 60))]
)
def test_a_window_within_a_day(text: str, minutes: tuple[int, int]) -> None:
    assert read_window(text, ALL_DAYS) == Window(*minutes, ALL_DAYS)


@pytest.mark.parametrize(
    "text", ["24:00-06:00", "20:60-21:00", "20:60-22:00", "20:00-21:60", "20:00-24:01", "20:00-20:00", "20-21", ""]
)
def test_what_is_no_window(text: str) -> None:
    with pytest.raises(PolicyError):
        read_window(text, ALL_DAYS)
