"""Who has a policy as their own: groups and clients, the group `default` also where nothing is stored of it."""

from gatewayfilter.model import Client, Group, PolicySet
from gatewayfilter.use_cases.people.policy_users import PolicyUsers, users_of

POLICIES = PolicySet.of(
    [
        Group("kids", "strict"),
        Group("babies", "strict"),
        Group("guests", ""),
        Client("zoe", group="kids", policy="strict"),
        Client("anna", group="kids", policy="strict"),
        Client("tom", group="kids", policy=""),
    ]
)


def test_groups_and_clients_are_named_in_order_and_heirs_are_not() -> None:
    assert users_of(POLICIES, "strict") == PolicyUsers(("babies", "kids"), ("anna", "zoe"))
    assert users_of(POLICIES, "none") == PolicyUsers((), ())


def test_the_group_default_has_the_policy_default_unless_it_has_another() -> None:
    assert users_of(POLICIES, "default") == PolicyUsers(("default",), ())
    for policy, of_default in (("", ("default",)), ("default", ("default",)), ("strict", ())):
        stored = PolicySet.of([Group("default", policy)])
        assert users_of(stored, "default") == PolicyUsers(of_default, ())
    assert users_of(PolicySet.of([Group("default", "strict")]), "strict") == PolicyUsers(("default",), ())
