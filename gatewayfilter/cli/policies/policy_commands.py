"""`gatewayfilter policy`: what holds for clients and groups."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import hint, print_json, print_table, say
from gatewayfilter.cli.ui.quota_view import show_left
from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.model import DEFAULT, Policy, inherited_values, policy_values

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import PolicySet
    from gatewayfilter.store import Store


@click.group(
    "policy",
    cls=FilterGroup,
    short_help="What is blocked for whom.",
    examples=("gatewayfilter policy set kids category.social=block", "gatewayfilter policy show --client tablet"),
)
def policy_group() -> None:
    """Policies: what is blocked for the clients and groups that have them.

    A value that a client's policy does not set is taken from its group's policy, then from the policy default, then from the
    settings. Values: category.NAME=block|review|allow, source.NAME=on|off, unknown=allow|hold|block, block-all=on|off,
    safesearch=on|off|ENGINE,…, youtube=off|moderate|strict, search-terms=WORD,…, file-types=TYPE,…, max-download-mb=N,
    strictness=relaxed|standard|strict, tls=intercept|sni-only|page-only, log-privacy=full|no-query|host|off,
    services=ID,ID… (all that are blocked), service.ID=block|allow.
    """


@policy_group.command(
    "add",
    examples=("gatewayfilter policy add strict --group kids", "gatewayfilter policy add anna --client anna"),
    audited="policy.added",
)
@click.argument("name")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="It becomes the policy of this group.")
@click.option("--client", "clients", multiple=True, metavar="NAME", help="It becomes the own policy of this client.")
@click.pass_obj
def add_policy(invocation: Invocation, *, name: str, groups: tuple[str, ...], clients: tuple[str, ...]) -> None:
    """Add a policy that sets nothing yet."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        PolicyEditor(store.policies).add_policy(name, groups=groups, clients=clients)
    hint(f"Added the policy {name}. Set values: gatewayfilter policy set {name} KEY=VALUE")


@policy_group.command(
    "set",
    examples=(
        "gatewayfilter policy set strict category.social=block category.ads=allow unknown=hold",
        "gatewayfilter policy set strict source.easylist=off category.social=",
        "gatewayfilter policy set kids safesearch=on youtube=moderate file-types=programs",
        "gatewayfilter policy set strict services=tiktok,roblox",
        "gatewayfilter policy set strict --client tablet",
    ),
    prints_data=True,
    audited="policy.changed",
)
@click.argument("name")
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="It becomes the policy of this group.")
@click.option("--client", "clients", multiple=True, metavar="NAME", help="It becomes the own policy of this client.")
@click.pass_obj
def set_policy(
    invocation: Invocation, *, name: str, values: tuple[str, ...], groups: tuple[str, ...], clients: tuple[str, ...]
) -> None:
    """Set values of a policy; `KEY=` unsets one. In force in every worker within a second."""
    from gatewayfilter.use_cases.network_facts import known_categories, known_services, known_sources
    from gatewayfilter.use_cases.policies import PolicyEditor

    settings = invocation.settings()
    pairs = [_pair(value) for value in values]
    with invocation.store() as store:
        policies = PolicyEditor(store.policies).set_policy(
            name,
            pairs,
            groups=groups,
            clients=clients,
            known_categories=known_categories(settings),
            known_sources=known_sources(settings),
            known_services=known_services(settings, [key for key, _ in pairs]),
        )
    _show_own(invocation, policies.policies[name])


def _pair(text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not mark:
        raise PolicyError(f"{text!r} is no KEY=VALUE, such as category.social=block")
    return key.strip(), value.strip()


@policy_group.command(
    "show",
    examples=("gatewayfilter policy show strict", "gatewayfilter policy show --client tablet --json"),
    prints_data=True,
)
@click.argument("name", required=False)
@click.option("--client", metavar="NAME", help="All that holds for this client, and where it comes from.")
@click.pass_obj
def show_policy(invocation: Invocation, *, name: str | None, client: str | None) -> None:
    """Show the values of a policy, or each value that holds for a client and where it comes from."""
    if (name is None) == (client is None):
        raise PolicyError("name a policy, or a client by --client")
    with invocation.store() as store:
        policies = store.policies.read()
        if client is not None:
            _show_client(invocation, policies, client, store)
            return
    policy = policies.policy(name or "")
    if policy is None:
        raise MissingItemError(f"there is no policy {name!r}")
    _show_own(invocation, policy)


def _show_own(invocation: Invocation, policy: Policy) -> None:
    values = policy_values(policy)
    if invocation.json:
        print_json({"name": policy.name, "values": values})
    elif not values:
        say(f"The policy {policy.name} sets nothing.")
    else:
        print_table(("value", "set to"), list(values.items()))


def _show_client(invocation: Invocation, policies: PolicySet, name: str, store: Store) -> None:
    from gatewayfilter.use_cases.network_facts import quotas_left

    client = policies.clients.get(name)
    if client is None:
        raise MissingItemError(f"there is no client {name!r}")
    chain = policies.chain(client)
    values = inherited_values(chain)
    names = [policy.name for _, policy in chain]
    schedules = sorted(schedule.name for schedule in policies.schedules.values() if schedule.policy in names)
    quotas = quotas_left(store, policies, client, "", time.time())
    if invocation.json:
        found = {"client": name, "group": client.group, "policies": names, "values": values, "schedules": schedules}
        print_json({**found, "quotas": quotas})
        return
    say(f"{name}: group {client.group}, policies {', '.join(names)}")
    if schedules:
        say(f"schedules: {', '.join(schedules)}")
    show_left(quotas)
    if values:
        rows = [(value.key, value.value, value.origin, value.policy) for value in values]
        print_table(("value", "set to", "comes from", "policy"), rows)
    else:
        say("No policy sets a value: the settings hold.")


@policy_group.command("remove", examples=("gatewayfilter policy remove strict",), audited="policy.removed")
@click.argument("name")
@click.pass_obj
def remove_policy(invocation: Invocation, *, name: str) -> None:
    """Remove a policy that no client, group or schedule uses, with its own schedules."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        PolicyEditor(store.policies).remove_policy(name)
    say(f"Removed the policy {name}.")


@policy_group.command("list", examples=("gatewayfilter policy list --json",), prints_data=True)
@click.pass_obj
def list_policies(invocation: Invocation) -> None:
    """Show all policies and who has them."""
    with invocation.store() as store:
        policies = store.policies.read()
    names = [DEFAULT, *sorted(policies.policies.keys() - {DEFAULT})]
    found = {name: policies.policy(name) for name in names}
    if invocation.json:
        print_json(
            [
                {"name": name, "values": policy_values(one), "used_by": _users(policies, name)}
                for name, one in found.items()
                if one
            ]
        )
        return
    rows = [
        (name, ", ".join(f"{key}={value}" for key, value in policy_values(one).items()), ", ".join(_users(policies, name)))
        for name, one in found.items()
        if one
    ]
    print_table(("name", "values", "used by"), rows)


def _users(policies: PolicySet, name: str) -> list[str]:
    groups = [group for group in (policies.group(known) for known in {DEFAULT, *policies.groups}) if group is not None]
    found = [f"group {group.name}" for group in groups if group.policy == name]
    return sorted([*found, *(f"client {client.name}" for client in policies.clients.values() if client.policy == name)])
