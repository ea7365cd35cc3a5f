"""When an engine's policies are compiled again: `gatewayfilter.engine.compiled_policies`."""

from datetime import datetime

import pytest

from gatewayfilter.engine.compiled_policies import EVERY_S, CompiledPolicies
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.policies import client_policies
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.model import Client, Policy, PolicyItem, PolicySet, Schedule, ScheduleEffect, Window, parse_matcher

NOON = datetime.fromisoformat("2026-05-04T12:00+00:00").timestamp()
MAC = "aa:bb:cc:dd:ee:ff"
NIGHT = Schedule("night", "default", ScheduleEffect.BLOCK_ALL, (Window(1_260, 360),), "UTC")
TABLET = Client("tablet", (parse_matcher(MAC),))
LAPTOP = Client("laptop", (parse_matcher("10.0.0.0/8"),))


class Clocks:
    """Wall clock and monotonic one, moved by hand."""

    def __init__(self) -> None:
        self.now, self.ticks = NOON, 50.0
        self.compiled = CompiledPolicies(frozenset(), lambda: self.now, lambda: self.ticks)

    def pass_(self, seconds: float, *, set_by: float = 0.0) -> None:
        """Lets time pass, and sets the wall clock."""
        self.now += seconds + set_by
        self.ticks += seconds


def state(*items: PolicyItem) -> EngineState:
    builder = SnapshotBuilder(created_at=0.0)
    if items:
        builder.set_policies(PolicySet.of(items))
    return FilterEngine(Snapshot.from_bytes(builder.build()), clock=lambda: NOON).state


def test_policies_are_due_after_an_hour_and_when_the_clock_was_set() -> None:
    for passed, set_by, due in (
        (0.0, 0.0, False), (EVERY_S - 1, 0.0, False), (EVERY_S, 0.0, True), (9.0, 2.0, False), (9.0, 2.5, True),
        (9.0, -2.0, False), (9.0, -2.5, True), (9.0, -86_400.0, True),
    ):  # fmt: skip
        clocks = Clocks()
        clocks.compiled.put_into(state(NIGHT, Policy("default")))
        clocks.pass_(passed, set_by=set_by)
        assert clocks.compiled.is_due() is due, (passed, set_by)
        clocks.compiled.put_into(state(NIGHT, Policy("default")))
        assert not clocks.compiled.is_due()


def test_the_mark_changes_with_each_compilation_and_each_instant() -> None:
    clocks = Clocks()
    policies = clocks.compiled.put_into(state(NIGHT, Policy("default"))).policies
    assert policies is not None
    times, passed = clocks.compiled.mark(policies)
    clocks.pass_(9 * 3_600.0 - 1)
    assert clocks.compiled.mark(policies) == (times, passed)
    clocks.pass_(1.0)
    assert clocks.compiled.mark(policies) == (times, passed + 1)
    clocks.compiled.put_into(state(NIGHT, Policy("default")))
    assert clocks.compiled.mark(policies) == (times + 1, passed + 1)


def test_a_state_without_policies_has_none() -> None:
    compiled, bare = Clocks().compiled, state()
    assert compiled.put_into(bare) is bare
    some = compiled.put_into(state(Policy("default"))).policies
    assert some is not None
    assert compiled.put_into(bare.with_policies(some)).policies is None


def test_only_neighbours_of_clients_count() -> None:
    compiled = Clocks().compiled
    policies = compiled.put_into(state(TABLET)).policies
    without = compiled.put_into(state(LAPTOP)).policies
    for neighbours, found, changed in (
        ({"10.0.0.9": "00:00:00:00:00:01"}, policies, False), ({"10.0.0.2": MAC}, policies, True),
        ({"10.0.0.2": MAC, "10.0.0.9": "00:00:00:00:00:02"}, policies, False), ({"10.0.0.3": MAC}, policies, True),
        ({"10.0.0.4": MAC}, None, False), ({"10.0.0.5": MAC}, without, False), ({"10.0.0.5": MAC}, policies, False),
        ({}, policies, True),
    ):  # fmt: skip
        assert compiled.set_neighbours(neighbours, found) is changed, neighbours


def test_the_addresses_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_policies, "_MOST_REMEMBERED", 4)
    exact = Client("exact", (parse_matcher("10.0.0.1"),))
    policies = Clocks().compiled.put_into(state(LAPTOP, exact)).policies
    assert policies is not None
    for number in range(2, 20):
        found = policies.find(f"10.0.0.{number}").client
        assert found is not None
        assert found.name == "laptop"
        assert {"", "10.0.0.1", f"10.0.0.{number}"} <= policies.known.keys()
        assert len(policies.known) <= 4
    assert policies.known.keys() == {"", "10.0.0.1", "10.0.0.18", "10.0.0.19"}
