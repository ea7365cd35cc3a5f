"""Services in force: which services are blocked for a client at an instant, and what its quotas count."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gatewayfilter.engine.policies.effective_policy import Chain, EffectivePolicy, QuotaCount
from gatewayfilter.engine.policies.time_windows import day_at, zone_of
from gatewayfilter.model import (
    Action,
    CategoryAction,
    Policy,
    Quota,
    QuotaKind,
    Reason,
    Schedule,
    ScheduleEffect,
    Service,
    Spent,
    Verdict,
)

_BY_SCHEDULE: Final = ((ScheduleEffect.ALLOW_SERVICE, False), (ScheduleEffect.BLOCK_SERVICE, True))
"""In one policy, a schedule that allows a service outranks one that blocks it."""


@dataclass(frozen=True, slots=True)
class QuotaState:
    """A quota of a client at an instant.

    Attributes:
        spent: `None` while minutes are left.
    """

    quota: Quota
    spent: Spent | None = None


def chain_with_quotas(chain: Chain, quotas: Sequence[QuotaState], listed: frozenset[str]) -> Chain:
    """Returns a chain with a last, weakest policy: lists of a category with a quota allow until it is used up, then block.

    Args:
        chain: the policies of the client.
        quotas: those of these policies.
        listed: the categories of which there are lists.
    """
    actions: dict[str, CategoryAction] = {}
    for state in quotas:
        target = state.quota.target
        if state.quota.kind is QuotaKind.CATEGORY and target in listed and actions.get(target) is not CategoryAction.BLOCK:
            actions[target] = CategoryAction.ALLOW if state.spent is None else CategoryAction.BLOCK
    return (*chain, ("quota", Policy("", categories=actions))) if actions else chain


def with_services(
    found: EffectivePolicy,
    chain: Chain,
    active: Sequence[Schedule],
    targets: Mapping[str, Policy],
    quotas: Sequence[QuotaState],
    services: Mapping[str, Service],
) -> EffectivePolicy:
    """Returns what is in force with the services that are blocked, and what the quotas count; as it is while paused.

    A block by a schedule outranks the values of policies; the nearest policy counts. A quota that is used up blocks whatever
    policies and schedules allow.

    Args:
        found: what is in force but for services.
        chain: the policies of the client, the nearest first.
        active: the schedules of these policies with an open window.
        targets: all policies, by name.
        quotas: those of the policies in the chain.
        services: the catalogue.
    """
    if found.pause is not None:
        return found
    blocked = _by_values(chain, active, targets, services) | _by_schedules(chain, active, services)
    verdicts = dict(blocked)
    used_up: dict[str, Verdict] = {}
    count = QuotaCount()
    explicit = {category for _, policy in chain for category in policy.categories}
    for state in quotas:
        members = _members(state.quota, services)
        if state.spent is None:
            count = _counted(count, state.quota, members)
            continue
        verdict = _used_up(state.quota, state.spent)
        for name in members:
            verdicts[name] = verdicts.get(name) or verdict
        if state.quota.kind is QuotaKind.CATEGORY and state.quota.target not in explicit:
            used_up.setdefault(state.quota.target, verdict)
    return replace(found, services=verdicts, used_up=used_up, quotas=count if count.services or count.categories else None)


def _by_values(
    chain: Chain, active: Sequence[Schedule], targets: Mapping[str, Policy], services: Mapping[str, Service]
) -> dict[str, Verdict | None]:
    """Returns the services that policies set: id → the verdict that blocks it, `None` where it is allowed."""
    found: dict[str, Verdict | None] = {}
    for _, policy in chain:
        for schedule in active:
            if schedule.policy == policy.name and schedule.effect is ScheduleEffect.USE_POLICY and schedule.target in targets:
                for name, blocked in targets[schedule.target].services.items():
                    found.setdefault(name, _by_schedule(schedule, name, services) if blocked else None)
    for _, policy in chain:
        for name, blocked in policy.services.items():
            found.setdefault(name, _by_policy(policy, name, services) if blocked else None)
    return found


def _by_schedules(chain: Chain, active: Sequence[Schedule], services: Mapping[str, Service]) -> dict[str, Verdict | None]:
    found: dict[str, Verdict | None] = {}
    for _, policy in chain:
        own = [schedule for schedule in active if schedule.policy == policy.name]
        for effect, blocked in _BY_SCHEDULE:
            for schedule in own:
                if schedule.effect is effect:
                    found.setdefault(schedule.target, _by_schedule(schedule, schedule.target, services) if blocked else None)
    return found


def _by_policy(policy: Policy, name: str, services: Mapping[str, Service]) -> Verdict:
    return _verdict(Reason.SERVICE, name, f"the policy {policy.name} blocks {_title(name, services)}")


def _title(name: str, services: Mapping[str, Service]) -> str:
    return services[name].name if name in services else name


def _by_schedule(schedule: Schedule, name: str, services: Mapping[str, Service]) -> Verdict:
    return _verdict(Reason.SCHEDULE, schedule.name, f"{schedule.name} blocks {_title(name, services)}")


def _members(quota: Quota, services: Mapping[str, Service]) -> tuple[str, ...]:
    """Returns the services that a quota counts."""
    if quota.kind is QuotaKind.SERVICE:
        return (quota.target,)
    return tuple(name for name, service in services.items() if service.group == quota.target)


def _counted(count: QuotaCount, quota: Quota, members: Iterable[str]) -> QuotaCount:
    services = dict(count.services)
    categories = dict(count.categories)
    for name in members:
        services[name] = (*services.get(name, ()), quota.name)
    if quota.kind is QuotaKind.CATEGORY:
        categories[quota.target] = (*categories.get(quota.target, ()), quota.name)
    return QuotaCount(services, categories)


def _used_up(quota: Quota, spent: Spent) -> Verdict:
    zone = zone_of(quota.timezone)
    again = datetime.fromtimestamp(spent.until, zone)
    minutes = quota.minutes_of(day_at(spent.until - 1.0, zone)[0])
    return _verdict(Reason.QUOTA, quota.name, f"{minutes} minutes of {quota.target} are used up until {again:%Y-%m-%d %H:%M}")


def _verdict(reason: Reason, rule: str, detail: str) -> Verdict:
    return Verdict(Action.BLOCK, reason, rule=rule, detail=detail)
