"""Bedtime of one client: a schedule that blocks everything, in a policy of the client alone."""

import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from gatewayfilter.engine.policies.time_windows import find_zone
from gatewayfilter.errors import PolicyError
from gatewayfilter.interfaces import PolicyStore
from gatewayfilter.model import Policy, PolicyItem, PolicySet, Schedule, ScheduleEffect, Window

_BEDTIME: Final = "bedtime"
_LONGEST: Final = 90
"""Characters of a client's name that are part of the names of what is its own."""

type Steps = list[tuple[PolicyItem, bool]]


class Bedtimes:
    """Sets and removes the bedtime of clients; each method is one transaction.

    Args:
        store: of the items.
        clock: Unix seconds.
    """

    def __init__(self, store: PolicyStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    def put(self, client: str, windows: Sequence[Window], timezone: str) -> Schedule:
        """Sets the bedtime of a client, in place of an earlier one. Returns its schedule.

        A client without a policy of its own gets one that sets nothing else. One that shares its policy with others gets a copy,
        with copies of its schedules and quotas: theirs stay as they are.

        Raises:
            PolicyError: there is no such client, the time zone does not exist, or there is no window.
        """
        find_zone(timezone)
        if not windows:
            raise PolicyError("a bedtime has at least one window")
        found: list[Schedule] = []

        def edit(policies: PolicySet) -> Steps:
            policy, steps = own_policy(policies, client)
            after = policies.changed(steps)
            before = bedtime_of(after, client)
            name = before.name if before is not None else free_name(f"{_BEDTIME} {client[:_LONGEST]}".rstrip(), after.schedules)
            found.append(Schedule(name, policy, ScheduleEffect.BLOCK_ALL, tuple(windows), timezone))
            return [*steps, (found[0], True)]

        self._store.change(edit, self._clock())
        return found[0]

    def remove(self, client: str) -> bool:
        """Removes the bedtime of a client. Returns False when it has none of its own."""
        found: list[Schedule] = []

        def edit(policies: PolicySet) -> Steps:
            schedule = bedtime_of(policies, client)
            found.extend([schedule] if schedule is not None else [])
            return [(one, False) for one in found]

        self._store.change(edit, self._clock())
        return bool(found)


def bedtime_of(policies: PolicySet, client: str) -> Schedule | None:
    """Returns the schedule by which everything is blocked for a client alone, `None` for none."""
    found = policies.clients.get(client)
    if found is None or not found.policy or _is_shared(policies, found.policy, client):
        return None
    own = (one for one in policies.schedules.values() if one.policy == found.policy)
    return next((one for one in own if one.effect is ScheduleEffect.BLOCK_ALL), None)


def own_policy(policies: PolicySet, client: str) -> tuple[str, Steps]:
    """Returns the name of a policy that a client has for itself, and the steps that make it.

    Raises:
        PolicyError: there is no such client.
    """
    found = policies.clients.get(client)
    if found is None:
        raise PolicyError(f"there is no client {client!r}")
    if found.policy and not _is_shared(policies, found.policy, client):
        return found.policy, []
    name = free_name(client, {**policies.policies, "default": None})
    shared = policies.policy(found.policy) if found.policy else None
    steps: Steps = [(replace(shared, name=name) if shared is not None else Policy(name), True)]
    steps += [(item, True) for item in _copies(policies, found.policy, name)] if shared is not None else []
    return name, [*steps, (replace(found, policy=name), True)]


def free_name(wanted: str, taken: Container[str]) -> str:
    """Returns a name that is not taken: the wanted one, or with a number behind it."""
    names = (wanted if number == 1 else f"{wanted[:_LONGEST].rstrip()} {number}" for number in count(1))
    return next(name for name in names if name not in taken)


def _copies(policies: PolicySet, source: str, name: str) -> Iterator[PolicyItem]:
    for kind in (policies.schedules, policies.quotas):
        taken = set(kind)
        for item in kind.values():
            if item.policy == source:
                copied = free_name(f"{item.name} {name}"[:_LONGEST].rstrip(), taken)
                taken.add(copied)
                yield replace(item, name=copied, policy=name)


def _is_shared(policies: PolicySet, policy: str, client: str) -> bool:
    return (
        any(one.policy == policy and one.name != client for one in policies.clients.values())
        or any(group.policy == policy for group in policies.groups.values())
        or policy == "default"
        or any(one.effect is ScheduleEffect.USE_POLICY and one.target == policy for one in policies.schedules.values())
    )
