"""Compiled policies: which client a request comes from, and what is in force for it at which instant."""

from datetime import datetime

from gatewayfilter.engine.policies.client_policies import ClientPolicies
from gatewayfilter.engine.policies.compilation import HORIZON_S, MANY_SCHEDULES, SHORT_HORIZON_S, compile_policies
from gatewayfilter.engine.policies.effective_policy import EffectivePolicy, ListSelection
from gatewayfilter.model import (
    HARMFUL_CATEGORIES,
    CategoryAction,
    Client,
    Group,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    Reason,
    Schedule,
    ScheduleEffect,
    Source,
    UnknownAction,
    Window,
    parse_matcher,
)
from tests.case_tables import all_cases

NOW = datetime.fromisoformat("2026-05-04T12:00+00:00").timestamp()  # a Monday
HOUR_S = 3600.0
EVENING = (Window(21 * 60, 6 * 60),)
BLOCK, ALLOW, REVIEW = CategoryAction.BLOCK, CategoryAction.ALLOW, CategoryAction.REVIEW


def client(name: str, *matchers: str, group: str = "default", policy: str = "") -> Client:
    return Client(name, tuple(map(parse_matcher, matchers)), group, policy)


def schedule(
    name: str, effect: ScheduleEffect, target: str = "", policy: str = "kids", windows: tuple[Window, ...] = EVENING
) -> Schedule:
    return Schedule(name, policy, effect, windows, "UTC", target)


def compiled(*items: PolicyItem, neighbours: dict[str, str] | None = None, off: frozenset[str] = frozenset()) -> ClientPolicies:
    policies = PolicySet.of(items).checked()
    return compile_policies(policies, NOW, off_categories=off, neighbours=neighbours or {})


def name_of(policies: ClientPolicies, address: str, user: str = "") -> str:
    found = policies.find(address, user).client
    return found.name if found is not None else ""


CLIENTS = (
    client("wide", "10.0.0.0/8"),
    client("narrow", "10.1.0.0/16", "fd00:1::/32"),
    client("six", "fd00::/16"),
    client("exact", "10.1.2.3", "fe80::9"),
    client("mac", "aa:bb:cc:dd:ee:ff"),
    client("person", "user:anna"),
)
NEIGHBOURS = {"10.1.2.4": "aa:bb:cc:dd:ee:ff", "10.1.2.3": "aa:bb:cc:dd:ee:ff", "10.1.2.5": "00:00:00:00:00:01"}


@all_cases(
    ("address", "user", "name"),
    [
        ("10.9.9.9", "", "wide"),
        ("10.1.9.9", "", "narrow"),
        ("10.1.2.3", "", "exact"),
        ("::ffff:10.1.2.3", "", "exact"),
        ("fe80::9%eth0", "", "exact"),
        ("fd00:1::5", "", "narrow"),
        ("fd00:2::5", "", "six"),
        ("192.168.1.1", "", ""),
        ("", "", ""),
        ("no address", "", ""),
        ("192.168.1.1", "anna", "person"),
        ("10.1.2.3", "anna", "person"),
        ("10.1.2.3", "bert", "exact"),
    ],
)
def test_clients_are_found(address: str, user: str, name: str) -> None:
    policies = compiled(*CLIENTS)
    for _ in range(2):  # the second time from the cache
        assert name_of(policies, address, user) == name


def test_a_mac_outranks_an_address() -> None:
    policies = compiled(*CLIENTS, neighbours=NEIGHBOURS)
    assert [name_of(policies, address) for address in ("10.1.2.3", "10.1.2.4", "10.1.2.5")] == ["mac", "mac", "narrow"]
    assert name_of(policies, "10.1.2.4", "anna") == "person"
    assert policies.macs == {"aa:bb:cc:dd:ee:ff"}


def test_no_client_gets_the_default() -> None:
    policies = compiled(Policy("default", unknown=UnknownAction.BLOCK))
    assert policies.find("192.0.2.1").timeline.at(NOW).unknown is UnknownAction.BLOCK


def effective(*items: PolicyItem, at: float = NOW, off: frozenset[str] = frozenset()) -> EffectivePolicy:
    """What is in force for 10.0.0.2: the client `anna` of the group `kids`."""
    anna = client("anna", "10.0.0.2", group="kids", policy="own" if any(item.name == "own" for item in items) else "")
    policies = compiled(anna, Group("kids", "kids"), *items, off=off)
    return policies.find("10.0.0.2").timeline.at(at)


def test_the_nearest_value_counts_each_by_itself() -> None:
    found = effective(
        Policy("own", categories={"social": ALLOW}),
        Policy("kids", {"ut1": False}, {"social": BLOCK, "games": REVIEW, "ads": BLOCK}, UnknownAction.HOLD),
        Policy("default", {"ut1": True, "easylist": True}, {"games": BLOCK}, UnknownAction.BLOCK, block_all=False),
        off=frozenset({"ads", "news"}),
    )
    assert found.actions == {"social": ALLOW, "games": REVIEW, "ads": BLOCK}
    assert found.lists == ListSelection(frozenset({"social", "games", "news"}), frozenset({"easylist"}), frozenset({"ut1"}))
    assert found.watched == ListSelection(only=frozenset({"social", "games"}))
    assert (found.unknown, found.block_all, found.scheduled) == (UnknownAction.HOLD, None, {})


def test_a_source_outranks_its_category() -> None:
    found = effective(Policy("kids", {"a": True, "b": False}, {"games": ALLOW, "social": BLOCK})).lists
    off = {
        name: found.is_off(Source(name, category=category))
        for name, category in [("a", "games"), ("b", "social"), ("c", "games")]
    }
    assert off == {"a": False, "b": True, "c": True}


def test_a_schedule_outranks_the_values() -> None:
    items = (
        Policy("own", categories={"social": ALLOW}),
        Policy("kids"),
        schedule("night", ScheduleEffect.BLOCK_CATEGORY, "social"),
    )
    assert effective(*items).actions == {"social": ALLOW}
    found = effective(*items, at=NOW + 10 * HOUR_S)
    assert (found.actions, found.scheduled, found.schedules) == ({"social": BLOCK}, {"social": "night"}, ("night",))


def test_a_category_that_is_blocked_anyway_is_not_the_schedules() -> None:
    items = (Policy("kids"), schedule("night", ScheduleEffect.BLOCK_CATEGORY, "social"))
    assert effective(*items, at=NOW + 10 * HOUR_S).scheduled == {}
    assert effective(*items, at=NOW + 10 * HOUR_S, off=frozenset({"social"})).scheduled == {"social": "night"}


def test_among_schedules_the_nearest_policy_counts_then_what_allows() -> None:
    night = NOW + 10 * HOUR_S
    far = schedule("far", ScheduleEffect.BLOCK_CATEGORY, "social")
    near = schedule("near", ScheduleEffect.ALLOW_CATEGORY, "social", "own")
    assert effective(Policy("own"), Policy("kids"), far, near, at=night).actions == {"social": ALLOW}
    nearer = schedule("nearer", ScheduleEffect.BLOCK_CATEGORY, "social", "own")
    allowed = schedule("allowed", ScheduleEffect.ALLOW_CATEGORY, "social")
    assert effective(Policy("own"), Policy("kids"), allowed, nearer, at=night).actions == {"social": BLOCK}
    assert effective(Policy("own"), Policy("kids"), allowed, far, at=night).actions == {"social": ALLOW}


@all_cases(
    ("hours", "blocked"), [(0, False), (8.99, False), (9, True), (12, True), (17.99, True), (18, False), (33, True), (42, False)]
)
def test_everything_is_blocked_in_its_window_alone(hours: float, blocked: bool) -> None:  # noqa: FBT001  a column
    verdict = effective(Policy("kids"), schedule("bedtime", ScheduleEffect.BLOCK_ALL), at=NOW + hours * HOUR_S).block_all
    assert (verdict is not None) is blocked
    if verdict is not None:
        assert (verdict.reason, verdict.rule) == (Reason.SCHEDULE, "bedtime")


def test_a_policy_may_block_everything() -> None:
    verdict = effective(Policy("kids", block_all=True)).block_all
    assert verdict is not None
    assert (verdict.reason, verdict.rule) == (Reason.POLICY, "kids")
    assert effective(Policy("own", block_all=False), Policy("kids", block_all=True)).block_all is None


def test_a_schedule_may_use_another_policy() -> None:
    items = (
        Policy("own", categories={"games": ALLOW}),
        Policy("kids", categories={"news": ALLOW}),
        Policy("homework", {}, {"games": BLOCK}, UnknownAction.BLOCK),
        schedule("school", ScheduleEffect.USE_POLICY, "homework", windows=(Window(480, 780),)),
    )
    found = effective(*items)
    assert (found.actions, found.unknown) == ({"games": BLOCK, "news": ALLOW}, UnknownAction.BLOCK)
    assert (found.scheduled, found.schedules) == ({"games": "school"}, ("school",))
    found = effective(*items, at=NOW + 2 * HOUR_S)
    assert (found.actions, found.unknown, found.scheduled) == ({"games": ALLOW, "news": ALLOW}, None, {})
    strict = effective(
        Policy("kids"),
        Policy("closed", block_all=True),
        schedule("s", ScheduleEffect.USE_POLICY, "closed", windows=(Window(0, 1440),)),
    )
    assert strict.block_all is not None
    assert (strict.block_all.reason, strict.block_all.rule) == (Reason.SCHEDULE, "s")


@all_cases(
    ("pause", "paused"),
    [
        (Pause(PauseScope.CLIENT, "anna", NOW + 60), True),
        (Pause(PauseScope.GROUP, "kids", NOW + 60), True),
        (Pause(PauseScope.ALL, "", NOW + 60), True),
        (Pause(PauseScope.GROUP, "default", NOW + 60), False),
        (Pause(PauseScope.ALL, "", NOW), False),
    ],
)
def test_a_pause_ends_by_itself(pause: Pause, paused: bool) -> None:  # noqa: FBT001  a column
    items = (Policy("kids", block_all=True), pause)
    assert (effective(*items).pause == pause) is paused
    assert effective(*items, at=NOW + 60).pause is None


def test_the_nearest_pause_counts_while_it_lasts() -> None:
    own = Pause(PauseScope.CLIENT, "anna", NOW + 60, harm_too=True)
    everybody = Pause(PauseScope.ALL, "", NOW + 120)
    found = [effective(Policy("kids"), own, everybody, at=NOW + seconds) for seconds in (0, 60, 120)]
    assert [one.pause for one in found] == [own, everybody, None]
    assert [one.lists.only for one in found] == [frozenset(), HARMFUL_CATEGORIES, None]


def test_an_unknown_zone_is_read_as_utc() -> None:
    night = Schedule("night", "kids", ScheduleEffect.BLOCK_ALL, EVENING, "Gone/Zone")
    assert effective(Policy("kids"), night, at=NOW + 10 * HOUR_S).block_all is not None


def test_timelines_reach_eight_days() -> None:
    night = schedule("night", ScheduleEffect.BLOCK_ALL)
    for day in range(int(HORIZON_S // 86_400)):
        assert effective(Policy("kids"), night, at=NOW + (10 + 24 * day) * HOUR_S).block_all is not None
        assert effective(Policy("kids"), night, at=NOW + 24 * day * HOUR_S).block_all is None


def test_many_schedules_have_shorter_timelines_of_the_same_states() -> None:
    windows = [(Window(minute * 7 % 1440, (minute * 7 + 45) % 1440 or 1440),) for minute in range(MANY_SCHEDULES + 100)]
    usual = [schedule(f"s{number}", ScheduleEffect.BLOCK_CATEGORY, "games", windows=one) for number, one in enumerate(windows)]
    groups = (Group("kids", "kids"), Policy("kids"), client("pad", "10.0.0.1", group="kids"))
    few, many = compiled(*groups, *usual[:MANY_SCHEDULES]), compiled(*groups, *usual)
    assert max(few.instants) > NOW + HORIZON_S - 86_400
    assert max(many.instants) < NOW + SHORT_HORIZON_S + HOUR_S
    # Compiled every hour, they are as those that reach eight days.
    for minute in range(int(SHORT_HORIZON_S // 60)):
        expected = {one.name for one in usual if any(_is_open(window, 720 + minute) for window in one.windows)}
        assert set(many.find("10.0.0.1").timeline.at(NOW + 60 * minute).schedules) == expected


def _is_open(window: Window, minute: int) -> bool:
    now = minute % 1440
    return window.begin <= now < window.end or (window.end <= window.begin and (now >= window.begin or now < window.end))


def test_equal_selections_have_one_number() -> None:
    items = [Group(f"g{number}", f"p{number}") for number in range(9)]
    policies = [Policy(f"p{number}", categories={"social": ALLOW}) for number in range(9)]
    clients = [client(f"c{number}", f"10.0.0.{number}", group=f"g{number}") for number in range(9)]
    found = compiled(*items, *policies, *clients)
    assert len(found.selections) == 2  # what blocks, and what is watched
    assert {found.find(f"10.0.0.{number}").timeline.at(NOW).lists_number for number in range(9)} == {0}
    assert found.default.timeline.at(NOW).lists_number == -1
