"""The effective policy: all that is in force for a client at one instant, by its chain of policies and its schedules."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gatewayfilter.engine.policies.request_rules import RequestRules, first_values, request_rules
from gatewayfilter.model import (
    HARMFUL_CATEGORIES,
    Action,
    CategoryAction,
    Pause,
    Policy,
    PolicyStrictness,
    Reason,
    Schedule,
    ScheduleEffect,
    Source,
    UnknownAction,
    Verdict,
)

_CERTAIN: Final = 0.99
"""Certainty of the learned entries that count where a policy is relaxed: the level `certain`."""

type Chain = Sequence[tuple[str, Policy]]
"""The policies of a client, the nearest first, each with its origin (`PolicySet.chain`)."""


@dataclass(frozen=True, slots=True)
class AllBut:
    """The set of all texts except these."""

    excepted: frozenset[str]

    def __contains__(self, text: object) -> bool:
        return text not in self.excepted


@dataclass(frozen=True, slots=True)
class ListSelection:
    """The lists that count for a client. Equal selections share their caches.

    Attributes:
        off_categories: lists of these categories do not count.
        on_sources, off_sources: names of sources that count, or not, regardless of their category.
        only: if given, the only categories with lists that count; the other fields have no effect.
        least_certainty: learned blocks with a lower one do not count; those without one always do.
    """

    off_categories: frozenset[str] = frozenset()
    on_sources: frozenset[str] = frozenset()
    off_sources: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    least_certainty: float = 0.0

    def is_off(self, source: Source) -> bool:
        """Returns whether the entries of a source that blocks or splices do not count."""
        if self.only is not None:
            return source.category not in self.only
        if source.name in self.on_sources:
            return False
        return source.name in self.off_sources or source.category in self.off_categories

    @property
    def without(self) -> Container[str]:
        """The categories of which learned blocks do not count."""
        return self.off_categories if self.only is None else AllBut(self.only)


@dataclass(frozen=True, slots=True)
class QuotaCount:
    """What counts as use of quotas with minutes left.

    Attributes:
        services: id of a service → names of the quotas that it counts for.
        categories: category of a list → likewise.
    """

    services: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """What is in force for a client at an instant.

    Attributes:
        lists: the lists that block.
        watched: the lists of categories that the policy allows explicitly, `None` for none.
        lists_number, watched_number: their numbers in `ClientPolicies.selections`, -1 without one.
        actions: category → its effect, where a policy or schedule sets one.
        scheduled: category → the schedule because of which its lists block now.
        block_all: the verdict on everything that no manual rule allows, `None` when it is not blocked.
        unknown: treatment of URLs on no list, `None` for that of `proxy.unknown`.
        pause: the pause in force.
        schedules: names of the schedules with an open window.
        takes_requests: whether block pages take requests to unblock pages.
        requests: what acts on requests and responses; `None` for nothing.
        services: id of a service → the verdict that blocks it, `None` where it is allowed on purpose.
        used_up: category of which a quota is used up → the verdict in place of that of its lists.
        quotas: what counts as use of quotas, `None` for nothing.
    """

    lists: ListSelection
    watched: ListSelection | None = None
    actions: Mapping[str, CategoryAction] = field(default_factory=dict)
    scheduled: Mapping[str, str] = field(default_factory=dict)
    block_all: Verdict | None = None
    unknown: UnknownAction | None = None
    pause: Pause | None = None
    schedules: tuple[str, ...] = ()
    lists_number: int = -1
    watched_number: int = -1
    takes_requests: bool = True
    requests: RequestRules | None = None
    services: Mapping[str, Verdict | None] = field(default_factory=dict)
    used_up: Mapping[str, Verdict] = field(default_factory=dict)
    quotas: QuotaCount | None = None


def resolve(
    chain: Chain, active: Sequence[Schedule], pause: Pause | None, targets: Mapping[str, Policy], off_categories: frozenset[str]
) -> EffectivePolicy:
    """Returns what is in force.

    Schedules outrank the values of policies. Among schedules, and among values, the nearest policy of the chain counts; among
    schedules of one policy an allowed category outranks a blocked one. The values of a policy that a schedule puts in force
    outrank those of the chain.

    Args:
        chain: the policies of the client.
        active: the schedules of these policies with an open window.
        pause: in force.
        targets: the policies that schedules put in force, by name.
        off_categories: categories that are off unless a policy sets them (`filter.disabled_categories`).
    """
    ranked = [schedule for _, policy in chain for schedule in active if schedule.policy == policy.name]
    used = [(schedule, targets[schedule.target]) for schedule in ranked if _uses(schedule, targets)]
    layers = [policy for _, policy in used] + [policy for _, policy in chain]
    usual = _first_actions(policy for _, policy in chain)
    by_schedule = _scheduled_actions(chain, ranked)
    actions = _first_actions(layers) | {category: action for category, (action, _) in by_schedule.items()}
    names = {category: name for category, (_, name) in by_schedule.items()}
    for schedule, policy in reversed(used):
        names = {category: schedule.name for category in policy.categories if category not in by_schedule} | names
    blocked_now = {
        category: names[category]
        for category, action in actions.items()
        if action is CategoryAction.BLOCK and category in names and not _blocks(usual, category, off_categories)
    }
    off = {category for category, action in actions.items() if action is not CategoryAction.BLOCK}
    switches = _first_switches(layers)
    watched = ListSelection(only=frozenset(off)) if off else None
    values = first_values(layers)
    relaxed = values.get("strictness", ("",))[0] == PolicyStrictness.RELAXED
    return EffectivePolicy(
        _paused_lists(pause)
        if pause is not None
        else ListSelection(
            frozenset((off_categories - actions.keys()) | off),
            frozenset(source for source, on in switches.items() if on),
            frozenset(source for source, on in switches.items() if not on),
            least_certainty=_CERTAIN if relaxed else 0.0,
        ),
        watched if pause is None else None,
        actions,
        blocked_now,
        _block_all(ranked, used, chain),
        next((policy.unknown for policy in layers if policy.unknown is not None), None),
        pause,
        tuple(schedule.name for schedule in ranked),
        takes_requests=next((policy.takes_requests for policy in layers if policy.takes_requests is not None), True),
        requests=request_rules(values, paused=pause is not None),
    )


def _uses(schedule: Schedule, targets: Mapping[str, Policy]) -> bool:
    return schedule.effect is ScheduleEffect.USE_POLICY and schedule.target in targets


def _first_actions(policies: Iterable[Policy]) -> dict[str, CategoryAction]:
    found: dict[str, CategoryAction] = {}
    for policy in policies:
        for category, action in policy.categories.items():
            found.setdefault(category, action)
    return found


def _first_switches(policies: Iterable[Policy]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for policy in policies:
        for source, on in policy.sources.items():
            found.setdefault(source, on)
    return found


def _scheduled_actions(chain: Chain, ranked: Sequence[Schedule]) -> dict[str, tuple[CategoryAction, str]]:
    """Returns category → its effect by schedules, with the schedule's name."""
    found: dict[str, tuple[CategoryAction, str]] = {}
    for _, policy in chain:
        own = [schedule for schedule in ranked if schedule.policy == policy.name]
        for effect, action in (
            (ScheduleEffect.ALLOW_CATEGORY, CategoryAction.ALLOW),
            (ScheduleEffect.BLOCK_CATEGORY, CategoryAction.BLOCK),
        ):
            for schedule in own:
                if schedule.effect is effect:
                    found.setdefault(schedule.target, (action, schedule.name))
    return found


def _blocks(actions: Mapping[str, CategoryAction], category: str, off_categories: frozenset[str]) -> bool:
    action = actions.get(category)
    return action is CategoryAction.BLOCK if action is not None else category not in off_categories


def _paused_lists(pause: Pause) -> ListSelection:
    return ListSelection(only=frozenset() if pause.harm_too else HARMFUL_CATEGORIES)


def _block_all(ranked: Sequence[Schedule], used: Sequence[tuple[Schedule, Policy]], chain: Chain) -> Verdict | None:
    for schedule in ranked:
        if schedule.effect is ScheduleEffect.BLOCK_ALL:
            return _all_blocked(Reason.SCHEDULE, schedule.name)
    for schedule, policy in used:
        if policy.block_all is not None:
            return _all_blocked(Reason.SCHEDULE, schedule.name) if policy.block_all else None
    for _, policy in chain:
        if policy.block_all is not None:
            return _all_blocked(Reason.POLICY, policy.name) if policy.block_all else None
    return None


def _all_blocked(reason: Reason, name: str) -> Verdict:
    return Verdict(Action.BLOCK, reason, rule=name, detail="everything is blocked")
