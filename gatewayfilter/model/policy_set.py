"""The set of all policy items: clients, groups, policies, schedules, pauses, quotas. Immutable; a change returns another one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.model.client_matcher import Matcher
from gatewayfilter.model.policy import (
    DEFAULT,
    Client,
    Group,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    Quota,
    Schedule,
    ScheduleEffect,
    Spent,
)

_MOST_NAME_CHARACTERS: Final = 100
_FOREIGN: Final = frozenset(',:/\\"')
"""Characters that no name has: names stand in lists, in scopes such as `client:NAME`, and in URLs."""


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All items, by name.

    The group `default` and the policy `default` exist even when nothing is stored of them (`group`, `policy`).

    Attributes:
        pauses: by `Pause.name`; those that have ended may be among them.
        quotas: by name.
        spent: the quotas that clients have used up, by `Spent.name`; those of earlier days may be among them.
    """

    clients: Mapping[str, Client] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    pauses: Mapping[str, Pause] = field(default_factory=dict)
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    spent: Mapping[str, Spent] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Iterable[PolicyItem]) -> "PolicySet":
        """Returns the set of these items, as they were stored: nothing is checked."""
        return cls().changed((item, True) for item in items)

    def __bool__(self) -> bool:
        """Whether there is any item."""
        return any((self.clients, self.groups, self.policies, self.schedules, self.pauses, self.quotas, self.spent))

    def __iter__(self) -> Iterator[PolicyItem]:
        for items in (self.groups, self.policies, self.schedules, self.clients, self.pauses, self.quotas, self.spent):
            yield from items.values()

    def group(self, name: str) -> Group | None:
        """Returns a group, `None` for an unknown one; `default` always exists, with the policy `default`."""
        return self.groups.get(name) or (Group(DEFAULT, DEFAULT) if name == DEFAULT else None)

    def policy(self, name: str) -> Policy | None:
        """Returns a policy, `None` for an unknown one; `default` always exists."""
        return self.policies.get(name) or (Policy(DEFAULT) if name == DEFAULT else None)

    def chain(self, client: Client | None) -> tuple[tuple[str, Policy], ...]:
        """Returns the policies of a client, the nearest first, each with where it comes from.

        Args:
            client: `None` for one that is not recognized.

        Returns:
            Pairs such as (`client anna`, policy), (`group kids`, policy), (`default`, policy); a policy stands in it once.
        """
        found: dict[str, tuple[str, Policy]] = {}
        if client is not None and client.policy:
            self._link(found, f"client {client.name}", client.policy)
        group = self.group(client.group) if client is not None else None
        if group is not None and group.name != DEFAULT and group.policy:
            self._link(found, f"group {group.name}", group.policy)
        default = self.group(DEFAULT)
        if default is not None:
            self._link(found, DEFAULT, default.policy or DEFAULT)
        return tuple(found.values())

    def pauses_at(self, at: float) -> tuple[Pause, ...]:
        """Returns the pauses in force at a time (Unix seconds), the first one made first."""
        return tuple(pause for pause in self.pauses.values() if pause.until > at)

    def _link(self, found: dict[str, tuple[str, Policy]], origin: str, name: str) -> None:
        policy = self.policy(name)
        if policy is not None:
            found.setdefault(name, (origin, policy))

    def changed(self, steps: Iterable[tuple[PolicyItem, bool]]) -> "PolicySet":
        """Returns the set after steps: pairs of an item and whether it was put (else removed). Nothing is checked."""
        items: dict[type, dict[str, Any]] = {
            Client: dict(self.clients),
            Group: dict(self.groups),
            Policy: dict(self.policies),
            Schedule: dict(self.schedules),
            Pause: dict(self.pauses),
            Quota: dict(self.quotas),
            Spent: dict(self.spent),
        }
        for item, put in steps:
            if put:
                items[type(item)][item.name] = item
            else:
                items[type(item)].pop(item.name, None)
        return PolicySet(*items.values())

    def checked(self) -> "PolicySet":
        """Returns the set itself.

        Raises:
            PolicyError: a name cannot be used, an item refers to one that does not exist, or two clients have the same matcher.
        """
        for item in self:
            if not isinstance(item, Pause | Spent):
                check_name(item.name)
        owners: dict[Matcher, str] = {}
        for client in self.clients.values():
            self._check_client(client, owners)
        for group in self.groups.values():
            if group.policy and self.policy(group.policy) is None:
                raise MissingItemError(f"group {group.name}: there is no policy {group.policy!r}")
        for schedule in self.schedules.values():
            self._check_schedule(schedule)
        for pause in self.pauses.values():
            self._check_pause(pause)
        for quota in self.quotas.values():
            if self.policy(quota.policy) is None:
                raise MissingItemError(f"quota {quota.name}: there is no policy {quota.policy!r}")
        return self

    def _check_client(self, client: Client, owners: dict[Matcher, str]) -> None:
        if self.group(client.group) is None:
            raise MissingItemError(f"client {client.name}: there is no group {client.group!r}")
        if client.policy and self.policy(client.policy) is None:
            raise MissingItemError(f"client {client.name}: there is no policy {client.policy!r}")
        for matcher in client.matchers:
            owner = owners.setdefault(matcher, client.name)
            if owner != client.name:
                raise PolicyError(f"{matcher} belongs to the client {owner} already")

    def _check_schedule(self, schedule: Schedule) -> None:
        if self.policy(schedule.policy) is None:
            raise MissingItemError(f"schedule {schedule.name}: there is no policy {schedule.policy!r}")
        if schedule.effect is ScheduleEffect.USE_POLICY:
            if self.policy(schedule.target) is None:
                raise MissingItemError(f"schedule {schedule.name}: there is no policy {schedule.target!r}")
            if schedule.target == schedule.policy:
                raise PolicyError(f"schedule {schedule.name}: {schedule.policy} is its own policy already")

    def _check_pause(self, pause: Pause) -> None:
        known = {
            PauseScope.ALL: True,
            PauseScope.GROUP: self.group(pause.target) is not None,
            PauseScope.CLIENT: pause.target in self.clients,
        }[pause.scope]
        if not known:
            raise MissingItemError(f"there is no {pause.scope} {pause.target!r} to pause")

    def without_client(self, name: str) -> tuple[PolicyItem, ...]:
        """Returns the items that go with a client: itself, its pause and the quotas that it has used up.

        Raises:
            PolicyError: there is none.
        """
        client = self.clients.get(name)
        if client is None:
            raise MissingItemError(f"there is no client {name!r}")
        spent = (spent for spent in self.spent.values() if spent.client == key_of_client(name))
        return (client, *self._pauses_of(PauseScope.CLIENT, name), *spent)

    def with_client_renamed(self, name: str, renamed: str) -> list[tuple[PolicyItem, bool]]:
        """Returns the steps that give a client another name: its items as they were are removed, and put with the name.

        Raises:
            PolicyError: there is no such client, or the name is taken.
        """
        before = self.without_client(name)
        if renamed in self.clients:
            raise PolicyError(f"there is a client {renamed!r} already")
        after: list[PolicyItem] = []
        for item in before:
            match item:
                case Client():
                    after.append(replace(item, name=renamed))
                case Pause():
                    after.append(replace(item, target=renamed))
                case Spent():
                    after.append(replace(item, client=key_of_client(renamed)))
        return [*((item, False) for item in before), *((item, True) for item in after)]

    def with_group_renamed(self, name: str, renamed: str) -> list[tuple[PolicyItem, bool]]:
        """Returns the steps that give a group another name. Its clients are in it after each of them.

        Raises:
            PolicyError: there is no such group, it is `default`, or the name is taken.
        """
        group = self.groups.get(name)
        if name == DEFAULT:
            raise PolicyError("the group default cannot be renamed")
        if group is None:
            raise MissingItemError(f"there is no group {name!r}")
        if renamed in {DEFAULT, *self.groups}:
            raise PolicyError(f"there is a group {renamed!r} already")
        members = [replace(client, group=renamed) for client in self.clients.values() if client.group == name]
        pauses = self._pauses_of(PauseScope.GROUP, name)
        put: list[PolicyItem] = [replace(group, name=renamed), *members, *(replace(pause, target=renamed) for pause in pauses)]
        gone: list[PolicyItem] = [*pauses, group]
        return [*((item, True) for item in put), *((item, False) for item in gone)]

    def without_group(self, name: str) -> tuple[PolicyItem, ...]:
        """Returns the items that go with a group: itself and its pause.

        Raises:
            PolicyError: there is none, it is `default`, or it has clients.
        """
        group = self.groups.get(name)
        if name == DEFAULT:
            raise PolicyError("the group default cannot be removed")
        if group is None:
            raise MissingItemError(f"there is no group {name!r}")
        members = sorted(client.name for client in self.clients.values() if client.group == name)
        if members:
            raise PolicyError(f"the group {name} still has clients: {_first_of(members)}")
        return (group, *self._pauses_of(PauseScope.GROUP, name))

    def without_policy(self, name: str) -> tuple[PolicyItem, ...]:
        """Returns the items that go with a policy: itself, its schedules and its quotas.

        Raises:
            PolicyError: there is none, it is `default`, or a client, group or schedule of another policy uses it.
        """
        policy = self.policies.get(name)
        if name == DEFAULT:
            raise PolicyError("the policy default cannot be removed; `policy set default KEY=` unsets a value")
        if policy is None:
            raise MissingItemError(f"there is no policy {name!r}")
        users = [f"client {client.name}" for client in self.clients.values() if client.policy == name]
        users += [f"group {group.name}" for group in self.groups.values() if group.policy == name]
        users += [
            f"schedule {schedule.name}"
            for schedule in self.schedules.values()
            if schedule.effect is ScheduleEffect.USE_POLICY and schedule.target == name and schedule.policy != name
        ]
        if users:
            raise PolicyError(f"the policy {name} is used by {_first_of(sorted(users))}")
        quotas = [quota for quota in self.quotas.values() if quota.policy == name]
        spent = [spent for quota in quotas for spent in self.spent_of(quota.name)]
        return (policy, *(schedule for schedule in self.schedules.values() if schedule.policy == name), *quotas, *spent)

    def spent_of(self, quota: str) -> tuple[Spent, ...]:
        """Returns which clients have used up a quota."""
        return tuple(spent for spent in self.spent.values() if spent.quota == quota)

    def _pauses_of(self, scope: PauseScope, target: str) -> tuple[Pause, ...]:
        return tuple(pause for pause in self.pauses.values() if (pause.scope, pause.target) == (scope, target))

    def with_client_policy(self, name: str, policy: str) -> Client:
        """Returns a client with this policy.

        Raises:
            PolicyError: there is no such client.
        """
        client = self.clients.get(name)
        if client is None:
            raise MissingItemError(f"there is no client {name!r}")
        return replace(client, policy=policy)

    def with_group_policy(self, name: str, policy: str) -> Group:
        """Returns a group with this policy.

        Raises:
            PolicyError: there is no such group.
        """
        group = self.group(name)
        if group is None:
            raise MissingItemError(f"there is no group {name!r}")
        return replace(group, policy=policy)


def key_of_client(name: str, address: str = "") -> str:
    """Returns what the use of quotas is counted for: a client by its name, others (`""`) by their address."""
    return f"client:{name}" if name else f"address:{address}"


def check_name(name: str) -> None:
    """Checks the name of a client, group, policy, schedule or quota.

    Raises:
        PolicyError: it is empty, too long, or has characters that names cannot have.
    """
    if not name or name != name.strip() or len(name) > _MOST_NAME_CHARACTERS or not name.isprintable() or not name.strip("."):
        raise PolicyError(f"{name!r} cannot be a name: 1 to {_MOST_NAME_CHARACTERS} characters, none of them invisible")
    if foreign := sorted(_FOREIGN.intersection(name)):
        raise PolicyError(f"{name!r} cannot be a name: it contains {' '.join(foreign)}")


def _first_of(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
