"""The compilation of policies: all clients, groups, policies, schedules, pauses and quotas to client policies with timelines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from gatewayfilter.engine.policies.client_policies import ClientPolicies, ClientPolicy, Timeline
from gatewayfilter.engine.policies.effective_policy import Chain, EffectivePolicy, ListSelection, resolve
from gatewayfilter.engine.policies.service_index import NO_SERVICES, ServiceIndex
from gatewayfilter.engine.policies.services_in_force import QuotaState, chain_with_quotas, with_services
from gatewayfilter.engine.policies.time_windows import Interval, intervals_of, zone_of
from gatewayfilter.model import DEFAULT, Client, Pause, PauseScope, PolicySet, Schedule, ScheduleEffect, Spent, key_of_client

_NO_NEIGHBOURS: Final[Mapping[str, str]] = MappingProxyType({})
_ADDRESS: Final = key_of_client("")
_OF_SERVICES: Final = frozenset({ScheduleEffect.BLOCK_SERVICE, ScheduleEffect.ALLOW_SERVICE})
HORIZON_S: Final = 8 * 86_400.0
"""How far timelines reach. Beyond it no window opens: they are compiled again every hour."""
MANY_SCHEDULES: Final = 500
"""With more, timelines reach `SHORT_HORIZON_S`: the cost of a change grows with schedules times instants."""
SHORT_HORIZON_S: Final = 4 * 3600.0


def compile_policies(
    policies: PolicySet,
    now: float,
    *,
    off_categories: frozenset[str] = frozenset(),
    neighbours: Mapping[str, str] = _NO_NEIGHBOURS,
    services: ServiceIndex = NO_SERVICES,
    listed: frozenset[str] = frozenset(),
) -> ClientPolicies:
    """Returns the policies of all clients from now on.

    A schedule whose time zone does not exist on this machine is read as UTC.

    Args:
        policies: everything that is stored.
        now: Unix seconds.
        off_categories: categories that are off unless a policy sets them.
        neighbours: address → MAC of the devices on this machine's links.
        services: the catalogue.
        listed: the categories of which there are lists.
    """
    return _Compilation(policies, now, off_categories, services, listed).all(neighbours)


@dataclass(slots=True)
class _Compilation:
    """One compilation, with the parts that several clients share."""

    policies: PolicySet
    now: float
    off_categories: frozenset[str]
    services: ServiceIndex
    listed: frozenset[str]
    intervals: dict[str, list[Interval]] = field(default_factory=dict)
    timelines: dict[tuple[object, ...], Timeline] = field(default_factory=dict)
    states: dict[tuple[object, ...], EffectivePolicy] = field(default_factory=dict)
    selections: dict[ListSelection, int] = field(default_factory=dict)
    by_client: dict[str, list[Spent]] | None = None

    def all(self, neighbours: Mapping[str, str]) -> ClientPolicies:
        clients = tuple(self.client_policy(client) for client in self.policies.clients.values())
        default = self.client_policy(None)
        strangers = {
            spent.client.removeprefix(_ADDRESS): self.client_policy(None, spent.client)
            for spent in self.policies.spent.values()
            if spent.client.startswith(_ADDRESS) and spent.until > self.now
        }
        return ClientPolicies(
            clients,
            default,
            neighbours,
            tuple(self.selections),
            services=self.services if self.uses_services() else NO_SERVICES,
            has_quotas=bool(self.policies.quotas),
            strangers=strangers,
        )

    def uses_services(self) -> bool:
        """Returns whether any policy, schedule or quota concerns services."""
        return (
            bool(self.policies.quotas)
            or any(policy.services for policy in self.policies.policies.values())
            or any(schedule.effect in _OF_SERVICES for schedule in self.policies.schedules.values())
        )

    def client_policy(self, client: Client | None, key_of_quotas: str = "") -> ClientPolicy:
        group = client.group if client is not None else DEFAULT
        chain = self.policies.chain(client)
        pauses = tuple(self.pauses_of(client, group))
        spent = tuple(self.spent_of(key_of_client(client.name) if client is not None else key_of_quotas))
        key = (tuple(policy.name for _, policy in chain), pauses, spent)
        timeline = self.timelines.get(key)
        if timeline is None:
            timeline = self.timelines[key] = self.timeline(chain, pauses, spent)
        return ClientPolicy(client, group, timeline)

    def spent_of(self, key_of_quotas: str) -> Iterator[Spent]:
        """Yields the quotas that a client has used up, and that were not begun again."""
        if self.by_client is None:
            self.by_client = {}
            for spent in self.policies.spent.values():
                if spent.until > self.now and spent.quota in self.policies.quotas:
                    self.by_client.setdefault(spent.client, []).append(spent)
        yield from self.by_client.get(key_of_quotas, ())

    def pauses_of(self, client: Client | None, group: str) -> Iterator[Pause]:
        """Yields the pauses of a client that have not ended, the nearest first."""
        names = [f"{PauseScope.CLIENT}:{client.name}"] if client is not None else []
        for name in (*names, f"{PauseScope.GROUP}:{group}", PauseScope.ALL.value):
            pause = self.policies.pauses.get(name)
            if pause is not None and pause.until > self.now:
                yield pause

    def timeline(self, chain: Chain, pauses: Sequence[Pause], spent: Sequence[Spent]) -> Timeline:
        names = {policy.name for _, policy in chain}
        schedules = [schedule for schedule in self.policies.schedules.values() if schedule.policy in names]
        opened: dict[float, set[str]] = {}
        closed: dict[float, set[str]] = {}
        for schedule in schedules:
            for interval in self.intervals_of(schedule):
                opened.setdefault(max(interval.begin, self.now), set()).add(schedule.name)
                closed.setdefault(interval.end, set()).add(schedule.name)
        ends = {pause.until for pause in pauses} | {instant for one in spent for instant in (one.since, one.until)}
        instants = sorted(instant for instant in opened.keys() | closed.keys() | ends if instant > self.now)
        active = opened.get(self.now, set())
        states = [self.effective(chain, schedules, active, pauses, spent, self.now)]
        for instant in instants:
            active = (active - closed.get(instant, set())) | opened.get(instant, set())
            states.append(self.effective(chain, schedules, active, pauses, spent, instant))
        return Timeline(tuple(instants), tuple(states))

    def intervals_of(self, schedule: Schedule) -> list[Interval]:
        found = self.intervals.get(schedule.name)
        if found is None:
            zone = zone_of(schedule.timezone)
            horizon_s = HORIZON_S if len(self.policies.schedules) <= MANY_SCHEDULES else SHORT_HORIZON_S
            found = self.intervals[schedule.name] = intervals_of(schedule, zone, self.now, self.now + horizon_s)
        return found

    def effective(
        self,
        chain: Chain,
        schedules: Sequence[Schedule],
        active: set[str],
        pauses: Sequence[Pause],
        spent: Sequence[Spent],
        at: float,
    ) -> EffectivePolicy:
        pause = next((pause for pause in pauses if pause.until > at), None)
        spent_now = tuple(one for one in spent if one.since <= at < one.until)
        key = (tuple(policy.name for _, policy in chain), frozenset(active), pause, spent_now)
        found = self.states.get(key)
        if found is None:
            now_active = [schedule for schedule in schedules if schedule.name in active]
            quotas = self.quotas_of(chain, spent_now)
            counted = chain_with_quotas(chain, quotas, self.listed)
            found = resolve(counted, now_active, pause, self.policies.policies, self.off_categories)
            found = with_services(found, chain, now_active, self.policies.policies, quotas, self.services.services)
            found = replace(found, lists_number=self.number(found.lists), watched_number=self.number(found.watched))
            self.states[key] = found
        return found

    def quotas_of(self, chain: Chain, spent: Sequence[Spent]) -> list[QuotaState]:
        """Returns the quotas of the policies in a chain."""
        names = {policy.name for _, policy in chain}
        of_quota = {one.quota: one for one in spent}
        return [QuotaState(one, of_quota.get(one.name)) for one in self.policies.quotas.values() if one.policy in names]

    def number(self, selection: ListSelection | None) -> int:
        if selection is None or selection == ListSelection(self.off_categories):
            return -1
        return self.selections.setdefault(selection, len(self.selections))
