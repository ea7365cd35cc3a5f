"""Policy items: matchers, references, inheritance, records."""

import pytest

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import (
    CategoryAction,
    Client,
    Group,
    MatcherKind,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    Schedule,
    ScheduleEffect,
    UnknownAction,
    Window,
    from_record,
    inherited_values,
    parse_matcher,
    policy_values,
    to_record,
    with_value,
)

WINDOWS = (Window(21 * 60, 6 * 60, frozenset({0, 4})),)
ITEMS: tuple[PolicyItem, ...] = (
    Group("kids", "strict", "in the house"),
    Policy("strict", {"ut1": False}, {"social": CategoryAction.BLOCK}, UnknownAction.HOLD, block_all=False),
    Policy("anna", {}, {"social": CategoryAction.ALLOW}),
    Schedule("bedtime", "strict", ScheduleEffect.BLOCK_ALL, WINDOWS, "Europe/Berlin"),
    Schedule("homework", "strict", ScheduleEffect.USE_POLICY, WINDOWS, "UTC", "anna"),
    Client("anna", (parse_matcher("10.0.0.2"), parse_matcher("aa:bb:cc:00:11:22")), "kids", "anna", "tablet"),
    Client("lab", (parse_matcher("10.0.0.0/24"),)),
    Pause(PauseScope.CLIENT, "anna", 5.5, harm_too=True),
    Pause(PauseScope.ALL, "", 7.0),
)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("192.168.1.20", MatcherKind.ADDRESS, "192.168.1.20"),
        ("::FFFF:10.0.0.1", MatcherKind.ADDRESS, "10.0.0.1"),
        ("2001:DB8::0:1", MatcherKind.ADDRESS, "2001:db8::1"),
        ("fe80::1%eth0", MatcherKind.ADDRESS, "fe80::1"),
        ("10.0.0.0/8", MatcherKind.NETWORK, "10.0.0.0/8"),
        ("10.0.0.1/32", MatcherKind.ADDRESS, "10.0.0.1"),
        ("fd00::/8", MatcherKind.NETWORK, "fd00::/8"),
        ("::ffff:10.0.0.1/128", MatcherKind.ADDRESS, "10.0.0.1"),
        ("::ffff:10.0.0.0/104", MatcherKind.NETWORK, "10.0.0.0/8"),
        ("AA-BB-CC-DD-EE-FF", MatcherKind.MAC, "aa:bb:cc:dd:ee:ff"),
        ("aabb.ccdd.eeff", MatcherKind.MAC, "aa:bb:cc:dd:ee:ff"),
        ("aabbccddeeff", MatcherKind.MAC, "aa:bb:cc:dd:ee:ff"),
        ("user:Anna", MatcherKind.USER, "Anna"),
    ],
)
def test_matchers_are_canonical(text: str, kind: MatcherKind, value: str) -> None:
    found = parse_matcher(text)
    assert (found.kind, found.value) == (kind, value)
    assert parse_matcher(str(found)) == found


@pytest.mark.parametrize(
    "text", ["", "10.0.0.1/8", "10.0.0.0/33", "host.example", "user:", "user:a:b", "aa:bb:cc:dd:ee", "10.0.0"]
)
def test_bad_matchers_are_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        parse_matcher(text)


def test_records_keep_every_item() -> None:
    assert tuple(from_record(to_record(item)) for item in ITEMS) == ITEMS


def test_a_set_of_items_is_consistent() -> None:
    policies = PolicySet.of(ITEMS).checked()
    assert [origin for origin, _ in policies.chain(policies.clients["anna"])] == ["client anna", "group kids", "default"]
    assert [policy.name for _, policy in policies.chain(policies.clients["lab"])] == ["default"]
    assert [policy.name for _, policy in policies.chain(None)] == ["default"]
    assert not PolicySet()


@pytest.mark.parametrize(
    ("item", "word"),
    [
        (Client("x", (parse_matcher("10.0.0.2"),)), "belongs to the client anna"),
        (Client("x", (parse_matcher("10.0.0.0/24"),)), "belongs to the client lab"),
        (Client("x", group="nobody"), "no group 'nobody'"),
        (Client("x", policy="none"), "no policy 'none'"),
        (Client("a:b"), "contains :"),
        (Client(""), "cannot be a name"),
        (Group("x", "none"), "no policy 'none'"),
        (Schedule("x", "none", ScheduleEffect.BLOCK_ALL, WINDOWS, "UTC"), "no policy 'none'"),
        (Schedule("x", "strict", ScheduleEffect.USE_POLICY, WINDOWS, "UTC", "none"), "no policy 'none'"),
        (Schedule("x", "strict", ScheduleEffect.USE_POLICY, WINDOWS, "UTC", "strict"), "its own policy"),
        (Pause(PauseScope.GROUP, "none", 1.0), "no group 'none'"),
        (Pause(PauseScope.CLIENT, "none", 1.0), "no client 'none'"),
    ],
)
def test_inconsistent_items_are_refused(item: PolicyItem, word: str) -> None:
    with pytest.raises(PolicyError, match=word):
        PolicySet.of(ITEMS).changed([(item, True)]).checked()


def test_networks_may_contain_each_other() -> None:
    PolicySet.of(ITEMS).changed([(Client("x", (parse_matcher("10.0.0.0/16"),)), True)]).checked()


def test_what_is_in_use_is_not_removed() -> None:
    policies = PolicySet.of(ITEMS)
    with pytest.raises(PolicyError, match="still has clients: anna"):
        policies.without_group("kids")
    with pytest.raises(PolicyError, match="used by client anna, schedule homework"):
        policies.without_policy("anna")
    for what in (policies.without_group, policies.without_policy):
        with pytest.raises(PolicyError, match="default cannot be removed"):
            what("default")
    assert [item.name for item in policies.without_client("anna")] == ["anna", "client:anna"]
    rest = policies.changed((item, False) for item in policies.without_client("anna"))
    rest = rest.changed((item, False) for item in rest.without_group("kids")).checked()
    assert [item.name for item in rest.without_policy("strict")] == ["strict", "bedtime", "homework"]


def test_values_are_set_and_traced() -> None:
    known = {"categories": ["social", "games"], "sources": ["ut1"]}
    policy = with_value(Policy("p"), "category.social", "review", **known)
    policy = with_value(policy, "block-all", "on", **known)
    policy = with_value(with_value(policy, "source.ut1", "off", **known), "unknown", "block", **known)
    assert policy_values(policy) == {"block-all": "on", "unknown": "block", "category.social": "review", "source.ut1": "off"}
    for key in policy_values(policy):
        policy = with_value(policy, key, "", **known)
    assert policy == Policy("p")
    policies = PolicySet.of(ITEMS)
    found = {value.key: (value.value, value.origin) for value in inherited_values(policies.chain(policies.clients["anna"]))}
    assert found == {
        "block-all": ("off", "group kids"),
        "category.social": ("allow", "client anna"),
        "source.ut1": ("off", "group kids"),
        "unknown": ("hold", "group kids"),
    }


@pytest.mark.parametrize(
    ("key", "text", "word"),
    [
        ("category.socal", "block", "did you mean 'social'"),
        ("category.social", "deny", "one of block, review, allow"),
        ("source.x", "on", "no source 'x'"),
        ("source.ut1", "yes", "on or off"),
        ("unknown", "x", "one of allow, hold, block"),
        ("strict", "on", "no value 'strict'"),
    ],
)
def test_bad_values_are_refused(key: str, text: str, word: str) -> None:
    with pytest.raises(PolicyError, match=word):
        with_value(Policy("p"), key, text, categories=["social"], sources=["ut1"])


def test_unknown_names_can_be_unset() -> None:
    policy = Policy("p", {"gone": True}, {"gone": CategoryAction.BLOCK})
    for key in ("category.gone", "source.gone"):
        policy = with_value(policy, key, "", categories=[], sources=[])
    assert policy == Policy("p")


def test_pauses_that_have_ended_are_not_in_force() -> None:
    made = (Pause(PauseScope.ALL, "", 200.0), Pause(PauseScope.CLIENT, "tablet", 100.0))
    policies = PolicySet.of(made)
    assert policies.pauses_at(99.0) == made
    assert policies.pauses_at(100.0) == made[:1]
    assert policies.pauses_at(200.0) == ()
