"""Compiled policies of an engine: when they are compiled again, and by which neighbours and clock."""

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Final

from gatewayfilter.engine.policies.client_policies import ClientPolicies
from gatewayfilter.engine.policies.compilation import compile_policies
from gatewayfilter.engine.policies.service_index import NO_SERVICES, ServiceIndex
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.model import Service

EVERY_S: Final = 3600.0
_MOST_JUMP_S: Final = 2.0
"""Difference of the two clocks since the compilation above which the wall clock was set."""


class CompiledPolicies:
    """Compiles the policies of an engine's state. To be used by one thread at a time.

    Args:
        off_categories: categories that are off unless a policy sets them.
        clock: Unix seconds.
        ticks: monotonic seconds.
    """

    def __init__(
        self, off_categories: frozenset[str], clock: Callable[[], float] = time.time, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self._off_categories = off_categories
        self._clock = clock
        self._ticks = ticks
        self._neighbours: Mapping[str, str] = {}
        self._services = NO_SERVICES
        self._compiled_at = 0.0
        self._compiled_tick = 0.0
        self._times = 0

    def put_into(self, state: EngineState) -> EngineState:
        """Returns the state with the policies of its overlay, compiled now; without any policy the state has none."""
        if not state.overlay.policies:
            return state if state.policies is None else state.with_policies(None)
        self._times += 1
        self._compiled_at, self._compiled_tick = self._clock(), self._ticks()
        compiled = compile_policies(
            state.overlay.policies,
            self._compiled_at,
            off_categories=self._off_categories,
            neighbours=self._neighbours,
            services=self._services,
            listed=frozenset(source.category for source in state.sources),
        )
        return state.with_policies(compiled)

    def mark(self, policies: ClientPolicies) -> tuple[int, int]:
        """Returns how often policies were compiled, and how many instants of these have passed."""
        return self._times, bisect_right(policies.instants, self._clock())

    def is_due(self) -> bool:
        """Returns whether policies have to be compiled again: an hour has passed, or the clock was set."""
        passed, ticked = self._clock() - self._compiled_at, self._ticks() - self._compiled_tick
        return ticked >= EVERY_S or abs(passed - ticked) > _MOST_JUMP_S

    @property
    def services(self) -> Mapping[str, Service]:
        """The catalogue of services."""
        return self._services.services

    def set_services(self, services: Mapping[str, Service]) -> None:
        """Takes in the catalogue of services."""
        self._services = ServiceIndex(services)

    def set_neighbours(self, neighbours: Mapping[str, str], policies: ClientPolicies | None) -> bool:
        """Takes in the neighbours (address → MAC). Returns whether clients of these policies are recognized by other ones now."""
        before, self._neighbours = self._neighbours, neighbours
        if policies is None or not policies.macs:
            return False
        return _of(before, policies.macs) != _of(neighbours, policies.macs)


def _of(neighbours: Mapping[str, str], macs: frozenset[str]) -> dict[str, str]:
    return {address: mac for address, mac in neighbours.items() if mac in macs}
