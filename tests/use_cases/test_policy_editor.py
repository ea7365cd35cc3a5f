"""Changes of clients, groups, policies, schedules, quotas and pauses: what each makes, keeps and refuses."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest

from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.interfaces import PolicyStore
from gatewayfilter.model import (
    ALL_DAYS,
    ICONS,
    Client,
    DailyMinutes,
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
    Spent,
    Window,
    parse_matcher,
)
from gatewayfilter.store import Store
from gatewayfilter.use_cases.policies import LONGEST_PAUSE_S, PolicyEditor, checked_icon

NOW = 1_800_000_000.0
NIGHT = (Window(1260, 390, ALL_DAYS),)
ONE, TWO = parse_matcher("10.0.0.1"), parse_matcher("10.0.0.2")


class _Items:
    """A store of items in memory."""

    def __init__(self, *items: PolicyItem) -> None:
        self.policies = PolicySet.of(items)
        self.at: list[float] = []

    def change(self, edit: Callable[[PolicySet], Sequence[tuple[PolicyItem, bool]]], now: float) -> PolicySet:
        self.at.append(now)
        self.policies = self.policies.changed(edit(self.policies)).checked()
        return self.policies


def editor(*items: PolicyItem) -> PolicyEditor:
    return PolicyEditor(cast("PolicyStore", _Items(*items)), lambda: NOW)


def schedule(effect: ScheduleEffect = ScheduleEffect.BLOCK_ALL, target: str = "", zone: str = "UTC") -> Schedule:
    return Schedule("nights", "kids", effect, NIGHT, zone, target)


def quota(**values: int) -> Quota:
    return replace(Quota("films", "kids", QuotaKind.CATEGORY, "streaming", 60, "UTC"), **values)  # type: ignore[arg-type]


KIM = Client("kim", (ONE,), "kids", note="small", icon=ICONS[0])
KIDS = Group("kids", "kids", "the small ones")
HOUSEHOLD: tuple[PolicyItem, ...] = (KIM, KIDS, Policy("kids"), schedule(), quota())


def test_a_client_is_added_once() -> None:
    items = _Items(*HOUSEHOLD)
    lee = Client("lee", (TWO,))
    assert PolicyEditor(cast("PolicyStore", items), lambda: NOW).add_client(lee).clients == {"kim": KIM, "lee": lee}
    assert items.at == [NOW]
    with pytest.raises(PolicyError, match="a client 'kim' already; `client set` changes it"):
        editor(*HOUSEHOLD).add_client(Client("kim", (TWO,)))
    with pytest.raises(PolicyError):
        editor().add_client(Client("a\nb", (TWO,)))


def test_a_client_is_changed_and_keeps_the_rest() -> None:
    assert editor(*HOUSEHOLD).set_client("kim").clients["kim"] == KIM
    changed = editor(*HOUSEHOLD, Policy("own")).set_client(
        "kim", add=["10.0.0.2", "10.0.0.1"], group="default", note="", icon=ICONS[1], policy="own"
    )
    assert changed.clients["kim"] == Client("kim", (ONE, TWO), "default", "own", "", ICONS[1])
    with_policy = replace(KIM, policy="kids")
    assert editor(with_policy, *HOUSEHOLD[1:]).set_client("kim", policy="").clients["kim"] == KIM
    assert editor(with_policy, *HOUSEHOLD[1:]).set_client("kim", note="x").clients["kim"].policy == "kids"


def test_addresses_of_a_client_are_taken_away() -> None:
    both = replace(KIM, matchers=(ONE, TWO))
    assert editor(both, *HOUSEHOLD[1:]).set_client("kim", remove=["10.0.0.1"]).clients["kim"].matchers == (TWO,)
    with pytest.raises(PolicyError, match=r"kim does not have 10\.0\.0\.2"):
        editor(*HOUSEHOLD).set_client("kim", remove=["10.0.0.2"])
    with pytest.raises(PolicyError, match="would have no address; use `client remove`"):
        editor(*HOUSEHOLD).set_client("kim", remove=["10.0.0.1"])
    assert editor(*HOUSEHOLD).set_client("kim", add=["10.0.0.2"], remove=["10.0.0.1"]).clients["kim"].matchers == (TWO,)


def test_what_is_not_there_is_named_with_what_is_near() -> None:
    with pytest.raises(MissingItemError, match="no client 'kin'; did you mean 'kim'"):
        editor(*HOUSEHOLD).set_client("kin")
    with pytest.raises(MissingItemError, match="no group 'kid'; did you mean 'kids'"):
        editor(*HOUSEHOLD).set_group("kid", policy=None, note=None)
    with pytest.raises(MissingItemError, match=r"no policy 'x'$"):
        editor(*HOUSEHOLD).set_policy("x", [], known_categories=(), known_sources=())
    with pytest.raises(MissingItemError, match="no schedule 'night'; did you mean 'nights'"):
        editor(*HOUSEHOLD).remove_schedule("night")
    with pytest.raises(MissingItemError, match="no quota 'film'; did you mean 'films'"):
        editor(*HOUSEHOLD).remove_quota("film")
    with pytest.raises(MissingItemError):
        editor(*HOUSEHOLD).set_quota("film", DailyMinutes(60, {}))
    with pytest.raises(PolicyError) as caught:
        editor(*HOUSEHOLD).add_quota(replace(quota(), name="x", target="streamin"), ["streaming"], [])
    assert not isinstance(caught.value, MissingItemError), "a wrong value, not a missing item"


def test_groups_are_added_changed_and_removed() -> None:
    assert editor(*HOUSEHOLD).add_group(Group("guests")).groups == {"kids": KIDS, "guests": Group("guests")}
    for name in ("kids", "default"):
        with pytest.raises(PolicyError, match=f"a group '{name}' already; `group set`"):
            editor(*HOUSEHOLD).add_group(Group(name))
    assert editor(*HOUSEHOLD).set_group("kids", policy=None, note=None).groups["kids"] == KIDS
    assert editor(*HOUSEHOLD).set_group("kids", policy="", note=None).groups["kids"] == replace(KIDS, policy="")
    assert editor(*HOUSEHOLD).set_group("kids", policy=None, note="").groups["kids"] == replace(KIDS, note="")
    assert editor(*HOUSEHOLD, Group("empty")).remove_group("empty").groups == {"kids": KIDS}
    with pytest.raises(PolicyError):
        editor(*HOUSEHOLD).remove_group("kids")
    assert editor(*HOUSEHOLD).remove_client("kim").clients == {}


def test_policies_are_added_and_given_to_groups_and_clients() -> None:
    made = editor(*HOUSEHOLD).add_policy("strict", groups=["kids"], clients=["kim"])
    assert (made.policies["strict"], made.groups["kids"].policy, made.clients["kim"].policy) == (
        Policy("strict"),
        "strict",
        "strict",
    )
    for name in ("kids", "default"):
        with pytest.raises(PolicyError, match=f"a policy '{name}' already; `policy set`"):
            editor(*HOUSEHOLD).add_policy(name)
    values = [("safesearch", "on"), ("category.games", "block"), ("safesearch", "")]
    changed = editor(*HOUSEHOLD, Policy("strict")).set_policy(
        "strict", values, groups=["kids"], clients=["kim"], known_categories=["games"], known_sources=()
    )
    assert (changed.policies["strict"].requests, list(changed.policies["strict"].categories)) == ({}, ["games"])
    assert (changed.groups["kids"].policy, changed.clients["kim"].policy) == ("strict", "strict")
    with pytest.raises(PolicyError):
        editor(*HOUSEHOLD).set_policy("kids", [("category.gamez", "block")], known_categories=["games"], known_sources=())
    unused = editor(Policy("kids"), schedule())
    assert unused.remove_policy("kids") == PolicySet.of([])
    with pytest.raises(PolicyError):
        editor(*HOUSEHOLD).remove_policy("kids")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (schedule(zone="Mars/Crater"), "Mars/Crater"),
        (schedule(ScheduleEffect.BLOCK_CATEGORY, "gamez"), "no category 'gamez'; did you mean 'games'"),
        (schedule(ScheduleEffect.ALLOW_CATEGORY, "tiktok"), "no category 'tiktok'"),
        (schedule(ScheduleEffect.BLOCK_SERVICE, "games"), "games"),
        (schedule(ScheduleEffect.ALLOW_SERVICE, "tiktoc"), "tiktoc"),
    ],
)
def test_schedules_that_cannot_be(wrong: Schedule, sentence: str) -> None:
    for change in (editor(Policy("kids")).add_schedule, editor(Policy("kids"), schedule()).set_schedule):
        with pytest.raises(PolicyError, match=sentence):
            change(wrong, ["games"], ["tiktok"])


def test_schedules_are_added_and_changed() -> None:
    good = schedule(ScheduleEffect.BLOCK_CATEGORY, "games")
    assert editor(Policy("kids")).add_schedule(good, ["games"]).schedules == {"nights": good}
    good = schedule(ScheduleEffect.ALLOW_SERVICE, "tiktok")
    assert editor(*HOUSEHOLD).set_schedule(good, [], ["tiktok"]).schedules == {"nights": good}
    with pytest.raises(PolicyError, match="a schedule 'nights' already"):
        editor(*HOUSEHOLD).add_schedule(good, [], ["tiktok"])
    with pytest.raises(MissingItemError, match="no schedule 'other'"):
        editor(*HOUSEHOLD).set_schedule(replace(good, name="other"), [], ["tiktok"])
    assert editor(*HOUSEHOLD).remove_schedule("nights").schedules == {}


@pytest.mark.parametrize(("minutes", "fits"), [(0, False), (1, True), (1_440, True), (1_441, False)])
def test_a_quota_has_minutes_of_a_day(minutes: int, *, fits: bool) -> None:
    for made in (quota(minutes=minutes), replace(quota(), other_days={5: minutes})):
        if fits:
            assert editor(Policy("kids")).add_quota(made, ["streaming"], []).quotas == {"films": made}
        else:
            with pytest.raises(PolicyError, match="1 to 1,440 minutes"):
                editor(Policy("kids")).add_quota(made, ["streaming"], [])
            with pytest.raises(PolicyError, match="1 to 1,440 minutes"):
                editor(*HOUSEHOLD).set_quota("films", DailyMinutes(made.minutes, dict(made.other_days)))


def test_quotas_count_categories_or_services() -> None:
    service = replace(quota(), kind=QuotaKind.SERVICE, target="tiktok")
    assert editor(Policy("kids")).add_quota(service, [], ["tiktok"]).quotas == {"films": service}
    with pytest.raises(PolicyError):
        editor(Policy("kids")).add_quota(service, ["tiktok"], ["youtube"])
    with pytest.raises(PolicyError, match="no category 'streaming'"):
        editor(Policy("kids")).add_quota(quota(), ["games"], ["streaming"])
    with pytest.raises(PolicyError, match="a quota 'films' already"):
        editor(*HOUSEHOLD).add_quota(quota(), ["streaming"], [])
    with pytest.raises(PolicyError, match="Mars"):
        editor(Policy("kids")).add_quota(replace(quota(), timezone="Mars/Crater"), ["streaming"], [])


def test_who_has_used_a_quota_up_goes_on_when_there_is_more_of_today() -> None:
    spent = Spent("films", "client:kim", NOW - 60, NOW + 3_600)
    friday = int(NOW // 86_400 + 3) % 7
    for daily, ends in (
        (DailyMinutes(61, {}), True),
        (DailyMinutes(60, {}), False),
        (DailyMinutes(59, {}), False),
        (DailyMinutes(60, {friday: 61}), True),
        (DailyMinutes(90, {friday: 60}), False),
    ):
        after = editor(*HOUSEHOLD, spent).set_quota("films", daily)
        assert (after.quotas["films"].minutes, dict(after.quotas["films"].other_days)) == (daily.minutes, dict(daily.other_days))
        assert (not after.spent) is ends
    after = editor(*HOUSEHOLD, spent).remove_quota("films")
    assert (after.quotas, after.spent) == ({}, {})


def test_a_pause_lasts_up_to_a_year() -> None:
    items = _Items(*HOUSEHOLD)
    paused = PolicyEditor(cast("PolicyStore", items), lambda: NOW)
    found = paused.pause(PauseScope.GROUP, "kids", 60.0, harm_too=True)
    assert found == Pause(PauseScope.GROUP, "kids", NOW + 60, harm_too=True)
    assert list(items.policies.pauses.values()) == [found]
    assert paused.pause(PauseScope.GROUP, "kids", LONGEST_PAUSE_S, harm_too=False).until == NOW + LONGEST_PAUSE_S
    assert len(items.policies.pauses) == 1, "in place of the earlier one"
    for wrong in (0.0, -1.0, LONGEST_PAUSE_S + 1, float("nan")):
        with pytest.raises(PolicyError, match="at most a year"):
            paused.pause(PauseScope.ALL, "", wrong, harm_too=False)
    assert paused.resume(PauseScope.ALL, "") is False
    assert paused.resume(PauseScope.GROUP, "kids") is True
    assert paused.resume(PauseScope.GROUP, "kids") is False
    assert items.policies.pauses == {}


def test_names_are_changed_with_what_belongs_to_them(store: Store) -> None:
    real = PolicyEditor(store.policies, lambda: NOW)
    store.policies.change(lambda _: [(item, True) for item in HOUSEHOLD], NOW)
    assert list(real.rename_client("kim", "kimberly").clients) == ["kimberly"]
    renamed = real.rename_group("kids", "children")
    assert (list(renamed.groups), renamed.clients["kimberly"].group) == (["children"], "children")
    for rename in (real.rename_client, real.rename_group):
        with pytest.raises(PolicyError):
            rename("kimberly", "a\nb")


def test_icons() -> None:
    assert (checked_icon(""), checked_icon(ICONS[0])) == ("", ICONS[0])
    with pytest.raises(PolicyError, match=f"no icon 'x+'; there are {ICONS[0]}"):
        checked_icon("x" * 500)
