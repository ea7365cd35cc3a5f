"""Changes of clients, groups, policies, schedules and pauses, as commands request them."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from gatewayfilter.engine.policies.time_windows import day_at, find_zone, zone_of
from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.interfaces import PolicyStore
from gatewayfilter.model import (
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
    check_name,
    check_service,
    parse_matcher,
    with_value,
)

_OF_CATEGORIES: Final = frozenset({ScheduleEffect.BLOCK_CATEGORY, ScheduleEffect.ALLOW_CATEGORY})
_OF_SERVICES: Final = frozenset({ScheduleEffect.BLOCK_SERVICE, ScheduleEffect.ALLOW_SERVICE})
LONGEST_QUOTA: Final = 1_440
"""Minutes of a day."""
LONGEST_PAUSE_S: Final = 366 * 86_400.0


class PolicyEditor:
    """Changes policy items; each method is one transaction and returns the set afterwards, or raises `PolicyError`.

    Args:
        store: of the items.
        clock: Unix seconds.
    """

    def __init__(self, store: PolicyStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    def _put(self, make: Callable[[PolicySet], Iterable[PolicyItem]]) -> PolicySet:
        return self._store.change(lambda policies: [(item, True) for item in make(policies)], self._clock())

    def _remove(self, find: Callable[[PolicySet], Iterable[PolicyItem]]) -> PolicySet:
        return self._store.change(lambda policies: [(item, False) for item in find(policies)], self._clock())

    def add_client(self, client: Client) -> PolicySet:
        """Adds a client."""

        def make(policies: PolicySet) -> Sequence[PolicyItem]:
            _check_new(client.name, policies.clients, "client")
            return [client]

        return self._put(make)

    def set_client(
        self,
        name: str,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
        group: str | None = None,
        note: str | None = None,
        icon: str | None = None,
        policy: str | None = None,
    ) -> PolicySet:
        """Changes a client; `None` keeps a value. `add` and `remove` are matchers as typed; the policy `""` is none."""

        def make(policies: PolicySet) -> Sequence[PolicyItem]:
            client = _existing(policies.clients, name, "client")
            gone = [parse_matcher(text) for text in remove]
            for matcher in gone:
                if matcher not in client.matchers:
                    raise PolicyError(f"the client {name} does not have {matcher}")
            kept = [matcher for matcher in client.matchers if matcher not in gone]
            matchers = tuple(dict.fromkeys([*kept, *map(parse_matcher, add)]))
            if not matchers:
                raise PolicyError(f"the client {name} would have no address; use `client remove`")
            group_name = client.group if group is None else group
            kept_note, kept_icon = client.note if note is None else note, client.icon if icon is None else icon
            own = client.policy if policy is None else policy
            return [replace(client, matchers=matchers, group=group_name, note=kept_note, icon=kept_icon, policy=own)]

        return self._put(make)

    def rename_client(self, name: str, renamed: str) -> PolicySet:
        """Gives a client another name. Its rules, its pause and what it has used of quotas go with it."""
        check_name(renamed)
        return self._store.rename_client(name, renamed)

    def remove_client(self, name: str) -> PolicySet:
        """Removes a client, its pause and its manual rules."""
        return self._remove(lambda policies: policies.without_client(name))

    def add_group(self, group: Group) -> PolicySet:
        """Adds a group."""

        def make(policies: PolicySet) -> Sequence[PolicyItem]:
            _check_new(group.name, {**policies.groups, "default": None}, "group")
            return [group]

        return self._put(make)

    def set_group(self, name: str, *, policy: str | None, note: str | None) -> PolicySet:
        """Changes a group; `None` keeps a value."""

        def make(policies: PolicySet) -> Sequence[PolicyItem]:
            group = policies.group(name)
            if group is None:
                raise _missing(name, policies.groups, "group")
            return [Group(name, group.policy if policy is None else policy, group.note if note is None else note)]

        return self._put(make)

    def rename_group(self, name: str, renamed: str) -> PolicySet:
        """Gives a group another name; its clients, its manual rules and its pause go with it."""
        check_name(renamed)
        return self._store.rename_group(name, renamed)

    def remove_group(self, name: str) -> PolicySet:
        """Removes a group without clients, its pause and its manual rules."""
        return self._remove(lambda policies: policies.without_group(name))

    def add_policy(self, name: str, *, groups: Sequence[str] = (), clients: Sequence[str] = ()) -> PolicySet:
        """Adds a policy, and gives it to groups and clients."""

        def make(policies: PolicySet) -> Sequence[PolicyItem]:
            _check_new(name, {**policies.policies, "default": None}, "policy")
            return [
                Policy(name),
                *(policies.with_group_policy(group, name) for group in groups),
                *(policies.with_client_policy(client, name) for client in clients),
            ]

        return self._put(make)

    def set_policy(
        self,
        name: str,
        values: Sequence[tuple[str, str]],
        *,
        groups: Sequence[str] = (),
        clients: Sequence[str] = (),
        known_categories: Collection[str],
        known_sources: Collection[str],
        known_services: Collection[str] = (),
    ) -> PolicySet:
        """Sets values of a policy (key and text, an empty text unsets), and gives it to groups and clients."""

        def make(policies: PolicySet) -> Sequence[PolicyItem]:
            policy = policies.policy(name)
            if policy is None:
                raise _missing(name, policies.policies, "policy")
            for key, text in values:
                policy = with_value(
                    policy, key, text, categories=known_categories, sources=known_sources, services=known_services
                )
            return [
                policy,
                *(policies.with_group_policy(group, name) for group in groups),
                *(policies.with_client_policy(client, name) for client in clients),
            ]

        return self._put(make)

    def remove_policy(self, name: str) -> PolicySet:
        """Removes a policy that nothing uses, and its schedules."""
        return self._remove(lambda policies: policies.without_policy(name))

    def add_schedule(
        self, schedule: Schedule, known_categories: Collection[str], known_services: Collection[str] = ()
    ) -> PolicySet:
        """Adds a schedule."""
        _check_schedule(schedule, known_categories, known_services)

        def make(policies: PolicySet) -> Sequence[PolicyItem]:
            _check_new(schedule.name, policies.schedules, "schedule")
            return [schedule]

        return self._put(make)

    def set_schedule(
        self, schedule: Schedule, known_categories: Collection[str], known_services: Collection[str] = ()
    ) -> PolicySet:
        """Puts a schedule in place of the one of its name."""
        _check_schedule(schedule, known_categories, known_services)

        def make(policies: PolicySet) -> Sequence[PolicyItem]:
            _existing(policies.schedules, schedule.name, "schedule")
            return [schedule]

        return self._put(make)

    def remove_schedule(self, name: str) -> PolicySet:
        """Removes a schedule."""
        return self._remove(lambda policies: [_existing(policies.schedules, name, "schedule")])

    def add_quota(self, quota: Quota, known_categories: Collection[str], known_services: Collection[str]) -> PolicySet:
        """Adds a quota."""
        find_zone(quota.timezone)
        _check_minutes(quota)
        if quota.kind is QuotaKind.SERVICE:
            check_service(quota.target, known_services)
        elif quota.target not in known_categories:
            raise _missing(quota.target, known_categories, "category")

        def make(policies: PolicySet) -> Sequence[PolicyItem]:
            _check_new(quota.name, policies.quotas, "quota")
            return [quota]

        return self._put(make)

    def set_quota(self, name: str, daily: DailyMinutes) -> PolicySet:
        """Changes the minutes of a quota. Clients that have used it up may go on if those of today become more."""

        def edit(policies: PolicySet) -> list[tuple[PolicyItem, bool]]:
            quota = _existing(policies.quotas, name, "quota")
            changed = replace(quota, minutes=daily.minutes, other_days=daily.other_days)
            _check_minutes(changed)
            steps: list[tuple[PolicyItem, bool]] = [(changed, True)]
            today, _ = day_at(self._clock(), zone_of(quota.timezone))
            if changed.minutes_of(today) > quota.minutes_of(today):
                steps += [(spent, False) for spent in policies.spent_of(name)]
            return steps

        return self._store.change(edit, self._clock())

    def remove_quota(self, name: str) -> PolicySet:
        """Removes a quota."""
        return self._remove(lambda policies: [_existing(policies.quotas, name, "quota"), *policies.spent_of(name)])

    def pause(self, scope: PauseScope, target: str, duration_s: float, *, harm_too: bool) -> Pause:
        """Pauses filtering, in place of an earlier pause of the same scope. Returns the pause."""
        if not 0 < duration_s <= LONGEST_PAUSE_S:
            raise PolicyError("a pause lasts more than nothing and at most a year")
        found = Pause(scope, target, self._clock() + duration_s, harm_too)
        self._put(lambda _: [found])
        return found

    def resume(self, scope: PauseScope, target: str) -> bool:
        """Ends a pause. Returns False when there was none in force."""
        wanted = Pause(scope, target, 0.0).name
        found: list[Pause] = []

        def find(policies: PolicySet) -> Sequence[PolicyItem]:
            found.extend(pause for pause in policies.pauses_at(self._clock()) if pause.name == wanted)
            return found

        self._remove(find)
        return bool(found)


def checked_icon(icon: str) -> str:
    """Returns the icon of a client.

    Raises:
        PolicyError: there is no such icon.
    """
    if icon and icon not in ICONS:
        raise PolicyError(f"there is no icon {icon[:100]!r}; there are {', '.join(ICONS)}")
    return icon


def _check_minutes(quota: Quota) -> None:
    if not all(0 < minutes <= LONGEST_QUOTA for minutes in (quota.minutes, *quota.other_days.values())):
        raise PolicyError(f"a quota has 1 to {LONGEST_QUOTA:,} minutes a day")


def _check_schedule(schedule: Schedule, known_categories: Collection[str], known_services: Collection[str]) -> None:
    find_zone(schedule.timezone)
    if schedule.effect in _OF_CATEGORIES and schedule.target not in known_categories:
        raise _missing(schedule.target, known_categories, "category")
    if schedule.effect in _OF_SERVICES:
        check_service(schedule.target, known_services)


def _existing[Item](items: Mapping[str, Item], name: str, what: str) -> Item:
    found = items.get(name)
    if found is None:
        raise _missing(name, items, what)
    return found


def _check_new(name: str, items: Collection[str], what: str) -> None:
    check_name(name)
    if name in items:
        raise PolicyError(f"there is a {what} {name!r} already; `{what} set` changes it")


def _missing(name: str, items: Iterable[str], what: str) -> PolicyError:
    near = get_close_matches(name, list(items))
    sentence = f"there is no {what} {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    return PolicyError(sentence) if what == "category" else MissingItemError(sentence)
