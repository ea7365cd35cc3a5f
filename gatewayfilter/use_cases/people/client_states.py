"""What each client may at an instant: paused, everything blocked, or filtered, since what and until when."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gatewayfilter.config import Settings
from gatewayfilter.engine.policies.client_policies import ClientPolicies, Timeline
from gatewayfilter.engine.policies.compilation import compile_policies
from gatewayfilter.engine.policies.effective_policy import EffectivePolicy
from gatewayfilter.engine.policies.service_index import ServiceIndex
from gatewayfilter.model import CategoryAction, Pause, PolicySet, Reason
from gatewayfilter.use_cases.network_facts import known_categories, neighbours_now


class StateKind(StrEnum):
    """What holds for a client as a whole."""

    PAUSED = "paused"
    """Nothing is filtered but lists of malware, phishing and fraud, unless the pause includes them."""
    BLOCKED = "blocked"
    """Everything is blocked but what manual rules allow."""
    FILTERED = "filtered"
    """Lists, services and rules decide."""


@dataclass(frozen=True, slots=True)
class ClientState:
    """What a client may at an instant.

    Attributes:
        until: Unix seconds at which `kind` changes, `None` when not within eight days.
        pause: in force, `None` for none.
        cause: the schedule or policy that blocks everything, `""` for none.
        by_schedule: whether `cause` is a schedule.
        schedules: names of the schedules with an open window.
        services: ids of the services that are blocked.
        categories: blocked by a policy or schedule on purpose.
        allowed: categories that a policy or schedule allows.
        used_up: names of the quotas that are used up.
    """

    kind: StateKind
    until: float | None = None
    pause: Pause | None = None
    cause: str = ""
    by_schedule: bool = False
    schedules: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    used_up: tuple[str, ...] = ()


def compiled(settings: Settings, policies: PolicySet, services: ServiceIndex, at: float) -> ClientPolicies:
    """Returns the policies of all clients from an instant on, as a running filter has them."""
    return compile_policies(
        policies,
        at,
        off_categories=frozenset(settings.filter.disabled_categories),
        neighbours=neighbours_now(),
        services=services,
        listed=frozenset(known_categories(settings)),
    )


def state_at(timeline: Timeline, at: float) -> ClientState:
    """Returns what holds for the client of a timeline at an instant."""
    found = timeline.at(at)
    kind = _kind(found)
    verdicts = [verdict for verdict in found.services.values() if verdict is not None]
    return ClientState(
        kind,
        _until(timeline, at, kind),
        found.pause,
        found.block_all.rule if found.block_all is not None else "",
        found.block_all is not None and found.block_all.reason is Reason.SCHEDULE,
        found.schedules,
        tuple(name for name, verdict in found.services.items() if verdict is not None),
        _categories(found, (CategoryAction.BLOCK,)),
        _categories(found, (CategoryAction.ALLOW, CategoryAction.REVIEW)),
        tuple(dict.fromkeys(one.rule for one in [*verdicts, *found.used_up.values()] if one.reason is Reason.QUOTA and one.rule)),
    )


def _kind(found: EffectivePolicy) -> StateKind:
    if found.pause is not None:
        return StateKind.PAUSED
    return StateKind.BLOCKED if found.block_all is not None else StateKind.FILTERED


def _until(timeline: Timeline, at: float, kind: StateKind) -> float | None:
    """Returns when the kind changes next."""
    pairs = zip(timeline.instants, timeline.effective[1:], strict=True)
    return next((instant for instant, effective in pairs if instant > at and _kind(effective) is not kind), None)


def _categories(found: EffectivePolicy, actions: Sequence[CategoryAction]) -> tuple[str, ...]:
    return tuple(sorted(category for category, action in found.actions.items() if action in actions))
