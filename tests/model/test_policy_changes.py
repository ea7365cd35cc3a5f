"""What goes with an item that is removed or renamed, which names there are, and values that only the items' own files hold."""

import pytest

from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.model import (
    Client,
    Group,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    Quota,
    Schedule,
    ScheduleEffect,
    Window,
    from_record,
    to_record,
)
from gatewayfilter.model.policy import QuotaKind, Spent
from gatewayfilter.model.policy_set import check_name, key_of_client
from gatewayfilter.model.services.service_values import service_values, with_service, with_services_blocked

WINDOWS = (Window(60, 120, frozenset({5})),)
ANNA, BEN, TOM = Client("anna", group="kids", policy="strict"), Client("ben", group="kids"), Client("tom")
KIDS, STRICT, LOOSE = Group("kids", "strict"), Policy("strict"), Policy("loose")
ANNAS_PAUSE, KIDS_PAUSE, ALL_PAUSE = (
    Pause(PauseScope.CLIENT, "anna", 9.0),
    Pause(PauseScope.GROUP, "kids", 9.0),
    Pause(PauseScope.ALL, "", 9.0),
)
GAMES = Quota("games", "strict", QuotaKind.CATEGORY, "games", 60, "UTC", {5: 90})
CHAT = Quota("chat", "default", QuotaKind.SERVICE, "chat", 30, "UTC")
ANNAS, BENS = Spent("games", key_of_client("anna"), 1.0, 2.0), Spent("chat", key_of_client("ben"), 1.0, 2.0)
BEDTIME = Schedule("bedtime", "strict", ScheduleEffect.BLOCK_ALL, WINDOWS, "UTC")
LATER = Schedule("later", "strict", ScheduleEffect.USE_POLICY, WINDOWS, "UTC", "loose")
ITEMS: tuple[PolicyItem, ...] = (
    *(ANNA, BEN, TOM, KIDS, STRICT, LOOSE, ANNAS_PAUSE, KIDS_PAUSE, ALL_PAUSE, GAMES, CHAT, ANNAS, BENS, BEDTIME, LATER),
)
POLICIES = PolicySet.of(ITEMS).checked()


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{type(item).__name__} {item.name}")
def test_one_item_makes_a_set_and_is_kept(item: PolicyItem) -> None:
    assert bool(PolicySet.of([item]))
    assert [*PolicySet.of([item])] == [item]
    assert from_record(to_record(item)) == item
    assert [*PolicySet.of([item]).changed([(item, False)])] == []


def test_an_unnamed_policy_is_none_of_the_chain() -> None:
    policies = PolicySet.of([Group("default", "loose"), Group("kids"), Policy("loose")])
    assert [(origin, policy.name) for origin, policy in policies.chain(Client("a", group="kids"))] == [("default", "loose")]
    gone = Client("a", group="gone", policy="gone")
    assert [(origin, policy.name) for origin, policy in policies.chain(gone)] == [("default", "loose")]
    same = Client("a", group="kids", policy="loose")
    assert [(origin, policy.name) for origin, policy in policies.chain(same)] == [("client a", "loose")]
    empty = PolicySet.of([Group("default")])  # the group of an earlier release, without a policy
    assert [(origin, policy.name) for origin, policy in empty.chain(None)] == [("default", "default")]
    assert (empty.policy("none"), empty.group("none")) == (None, None)


def test_what_goes_with_a_client() -> None:
    assert POLICIES.without_client("anna") == (ANNA, ANNAS_PAUSE, ANNAS)
    assert POLICIES.without_client("tom") == (TOM,)
    renamed = POLICIES.changed(POLICIES.with_client_renamed("anna", "eve")).checked()
    assert "anna" not in renamed.clients
    assert renamed.without_client("eve") == (
        Client("eve", group="kids", policy="strict"),
        Pause(PauseScope.CLIENT, "eve", 9.0),
        Spent("games", "client:eve", 1.0, 2.0),
    )
    assert len([*renamed]) == len(ITEMS)


def test_what_goes_with_a_group() -> None:
    renamed = POLICIES.changed(POLICIES.with_group_renamed("kids", "teens")).checked()
    assert {name: client.group for name, client in renamed.clients.items()} == {"anna": "teens", "ben": "teens", "tom": "default"}
    assert renamed.groups == {"teens": Group("teens", "strict")}
    assert {pause.target for pause in renamed.pauses.values()} == {"anna", "teens", ""}
    steps = POLICIES.with_group_renamed("kids", "teens")
    for done in range(len(steps)):  # no client is ever in a group that does not exist
        POLICIES.changed(steps[: done + 1]).checked()
    alone = POLICIES.changed([(ANNA, False), (BEN, False)])
    assert alone.without_group("kids") == (KIDS, KIDS_PAUSE)


def test_what_goes_with_a_policy() -> None:
    free = POLICIES.changed([(ANNA, False), (KIDS, False), (BEN, False), (KIDS_PAUSE, False), (ANNAS_PAUSE, False)])
    assert free.without_policy("strict") == (STRICT, BEDTIME, LATER, GAMES, ANNAS)
    assert free.changed([(LATER, False)]).without_policy("loose") == (LOOSE,)
    assert POLICIES.spent_of("chat") == (BENS,)
    many = PolicySet.of([STRICT, *(Client(name, policy="strict") for name in "edcba")])
    with pytest.raises(PolicyError, match="used by client a, client b, client c and 2 more"):
        many.without_policy("strict")
    three = PolicySet.of([STRICT, *(Client(name, policy="strict") for name in "cba")])
    with pytest.raises(PolicyError, match=r"used by client a, client b, client c$"):
        three.without_policy("strict")


def test_which_policy_an_item_has() -> None:
    assert POLICIES.with_client_policy("tom", "loose") == Client("tom", policy="loose")
    assert POLICIES.with_group_policy("kids", "") == Group("kids")
    assert POLICIES.with_group_policy("default", "loose") == Group("default", "loose")


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (lambda: POLICIES.without_client("none"), "no client 'none'"),
        (lambda: POLICIES.with_client_renamed("none", "x"), "no client 'none'"),
        (lambda: POLICIES.without_group("none"), "no group 'none'"),
        (lambda: POLICIES.with_group_renamed("none", "x"), "no group 'none'"),
        (lambda: POLICIES.without_policy("none"), "no policy 'none'"),
        (lambda: POLICIES.with_client_policy("none", "x"), "no client 'none'"),
        (lambda: POLICIES.with_group_policy("none", "x"), "no group 'none'"),
        (lambda: POLICIES.changed([(Quota("q", "gone", QuotaKind.SERVICE, "a", 1, "UTC"), True)]).checked(), "no policy 'gone'"),
    ],
)
def test_what_is_missing_is_named(ask: object, word: str) -> None:
    assert callable(ask)
    with pytest.raises(MissingItemError, match=word):
        ask()


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (lambda: POLICIES.with_client_renamed("anna", "ben"), "a client 'ben' already"),
        (lambda: POLICIES.with_group_renamed("default", "x"), "default cannot be renamed"),
        (lambda: POLICIES.with_group_renamed("kids", "default"), "a group 'default' already"),
        (lambda: POLICIES.with_group_renamed("kids", "kids"), "a group 'kids' already"),
        (lambda: POLICIES.without_policy("loose"), "used by schedule later"),
        (lambda: POLICIES.without_policy("strict"), "used by client anna, group kids"),
    ],
)
def test_what_is_taken_is_named(ask: object, word: str) -> None:
    assert callable(ask)
    with pytest.raises(PolicyError, match=word):
        ask()


@pytest.mark.parametrize("name", ["a", "a" * 100, "Übung 1", "a.b", ".a", "-", "孩子"])
def test_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", " a", "a ", "a" * 101, "a\tb", "a\u202eb", ".", "..", "a,b", "a:b", "a/b", "a\\b", 'a"b'])
def test_no_names(name: str) -> None:
    with pytest.raises(PolicyError, match="cannot be a name"):
        check_name(name)


def test_whose_use_is_counted() -> None:
    assert (key_of_client("anna", "10.0.0.2"), key_of_client("", "10.0.0.2")) == ("client:anna", "address:10.0.0.2")
    assert ANNAS.name == "games:client:anna"


def test_days_have_minutes_of_their_own() -> None:
    saturday = 6  # 1 January of year 1, day 1, was a Monday
    assert [GAMES.minutes_of(day) for day in (1, saturday - 1, saturday, saturday + 1, saturday + 7)] == [60, 60, 90, 60, 90]


KNOWN = frozenset(f"s{number}" for number in range(600))


def test_services_of_a_policy() -> None:
    policy = Policy("p", services={"s1": True, "s2": False, "s3": False})
    assert service_values(policy) == {"service.s1": "block", "service.s2": "allow", "service.s3": "allow"}
    assert with_services_blocked(policy, " s3, s4,,s4", KNOWN).services == {"s2": False, "s3": True, "s4": True}
    assert with_services_blocked(policy, "", KNOWN).services == {"s2": False, "s3": False}
    assert with_service(policy, "service.s1", "allow", KNOWN).services == {"s1": False, "s2": False, "s3": False}
    assert with_service(policy, "service.s4", "block", KNOWN).services == {**policy.services, "s4": True}
    assert with_service(policy, "service.s1", "", []).services == {"s2": False, "s3": False}
    with pytest.raises(PolicyError, match=r"service\.s1 is one of block, allow, not 'on'"):
        with_service(policy, "service.s1", "on", KNOWN)
    with pytest.raises(PolicyError, match="s600"):
        with_service(policy, "service.s600", "block", KNOWN)
    with pytest.raises(PolicyError, match="'x'"):
        with_services_blocked(policy, "x", KNOWN)


def test_the_most_services_of_a_policy() -> None:
    most = with_services_blocked(Policy("p"), ",".join(f"s{number}" for number in range(500)), KNOWN)
    assert len(most.services) == 500
    assert with_service(most, "service.s0", "allow", KNOWN).services["s0"] is False
    with pytest.raises(PolicyError, match="at most 500"):
        with_service(most, "service.s500", "block", KNOWN)
    with pytest.raises(PolicyError, match="at most 500"):
        with_services_blocked(Policy("p"), ",".join(f"s{number}" for number in range(501)), KNOWN)
