"""The compilation of policies: all clients, groups, policies, schedules and pauses to client policies with timelines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from types import MappingProxyType
from typing import Final

from gatewayfilter.engine.policies.client_policies import ClientPolicies, ClientPolicy, Timeline
from gatewayfilter.engine.policies.effective_policy import Chain, EffectivePolicy, ListSelection, resolve
from gatewayfilter.engine.policies.time_windows import Interval, find_zone, intervals_of
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import DEFAULT, Client, Pause, PauseScope, PolicySet, Schedule

_NO_NEIGHBOURS: Final[Mapping[str, str]] = MappingProxyType({})
HORIZON_S: Final = 8 * 86_400.0
"""How far timelines reach. Beyond, the last state stays in force: they are compiled again every hour."""


def compile_policies(
    policies: PolicySet,
    now: float,
    *,
    off_categories: frozenset[str] = frozenset(),
    neighbours: Mapping[str, str] = _NO_NEIGHBOURS,
) -> ClientPolicies:
    """Returns the policies of all clients from now on.

    A schedule whose time zone does not exist on this machine is read as UTC.

    Args:
        policies: everything that is stored.
        now: Unix seconds.
        off_categories: categories that are off unless a policy sets them.
        neighbours: address → MAC of the devices on this machine's links.
    """
    return _Compilation(policies, now, off_categories).all(neighbours)


@dataclass(slots=True)
class _Compilation:
    """One compilation, with the parts that several clients share."""

    policies: PolicySet
    now: float
    off_categories: frozenset[str]
    intervals: dict[str, list[Interval]] = field(default_factory=dict)
    timelines: dict[tuple[object, ...], Timeline] = field(default_factory=dict)
    states: dict[tuple[object, ...], EffectivePolicy] = field(default_factory=dict)
    selections: dict[ListSelection, int] = field(default_factory=dict)

    def all(self, neighbours: Mapping[str, str]) -> ClientPolicies:
        clients = tuple(self.client_policy(client) for client in self.policies.clients.values())
        default = self.client_policy(None)
        return ClientPolicies(clients, default, neighbours, tuple(self.selections))

    def client_policy(self, client: Client | None) -> ClientPolicy:
        group = client.group if client is not None else DEFAULT
        chain = self.policies.chain(client)
        pauses = tuple(self.pauses_of(client, group))
        key = (tuple(policy.name for _, policy in chain), pauses)
        timeline = self.timelines.get(key)
        if timeline is None:
            timeline = self.timelines[key] = self.timeline(chain, pauses)
        return ClientPolicy(client, group, timeline)

    def pauses_of(self, client: Client | None, group: str) -> Iterator[Pause]:
        """Yields the pauses of a client that have not ended, the nearest first."""
        names = [f"{PauseScope.CLIENT}:{client.name}"] if client is not None else []
        for name in (*names, f"{PauseScope.GROUP}:{group}", PauseScope.ALL.value):
            pause = self.policies.pauses.get(name)
            if pause is not None and pause.until > self.now:
                yield pause

    def timeline(self, chain: Chain, pauses: Sequence[Pause]) -> Timeline:
        names = {policy.name for _, policy in chain}
        schedules = [schedule for schedule in self.policies.schedules.values() if schedule.policy in names]
        opened: dict[float, set[str]] = {}
        closed: dict[float, set[str]] = {}
        for schedule in schedules:
            for interval in self.intervals_of(schedule):
                opened.setdefault(max(interval.begin, self.now), set()).add(schedule.name)
                closed.setdefault(interval.end, set()).add(schedule.name)
        ends = {pause.until for pause in pauses}
        instants = sorted(instant for instant in opened.keys() | closed.keys() | ends if instant > self.now)
        active = opened.get(self.now, set())
        states = [self.effective(chain, schedules, active, pauses, self.now)]
        for instant in instants:
            active = (active - closed.get(instant, set())) | opened.get(instant, set())
            states.append(self.effective(chain, schedules, active, pauses, instant))
        return Timeline(tuple(instants), tuple(states))

    def intervals_of(self, schedule: Schedule) -> list[Interval]:
        found = self.intervals.get(schedule.name)
        if found is None:
            try:
                zone = find_zone(schedule.timezone)
            except PolicyError:
                zone = UTC
            found = self.intervals[schedule.name] = intervals_of(schedule, zone, self.now, self.now + HORIZON_S)
        return found

    def effective(
        self, chain: Chain, schedules: Sequence[Schedule], active: set[str], pauses: Sequence[Pause], at: float
    ) -> EffectivePolicy:
        pause = next((pause for pause in pauses if pause.until > at), None)
        key = (tuple(policy.name for _, policy in chain), frozenset(active), pause)
        found = self.states.get(key)
        if found is None:
            now_active = [schedule for schedule in schedules if schedule.name in active]
            found = resolve(chain, now_active, pause, self.policies.policies, self.off_categories)
            found = replace(found, lists_number=self.number(found.lists), watched_number=self.number(found.watched))
            self.states[key] = found
        return found

    def number(self, selection: ListSelection | None) -> int:
        if selection is None or selection == ListSelection(self.off_categories):
            return -1
        return self.selections.setdefault(selection, len(self.selections))
