"""Who has a policy."""

from dataclasses import dataclass

from gatewayfilter.model import DEFAULT, PolicySet


@dataclass(frozen=True, slots=True)
class PolicyUsers:
    """The groups and clients that have a policy, by name."""

    groups: tuple[str, ...]
    clients: tuple[str, ...]


def users_of(policies: PolicySet, name: str) -> PolicyUsers:
    """Returns who has a policy as their own; those who inherit from them are not among them."""
    groups = (group for group in map(policies.group, {DEFAULT, *policies.groups}) if group is not None)
    return PolicyUsers(
        tuple(sorted(group.name for group in groups if (group.policy or (DEFAULT if group.name == DEFAULT else "")) == name)),
        tuple(sorted(client.name for client in policies.clients.values() if client.policy == name)),
    )
