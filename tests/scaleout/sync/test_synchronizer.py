"""Gateways in step: every change reaches all, none comes back, and outages, conflicts and forged values do no harm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from gatewayfilter.model import APPROVED, FLEET, Group, Policy
from gatewayfilter.scaleout.sync.shared_values import SyncCodec, SyncError, shared_of
from tests.case_tables import all_cases
from tests.scaleout.sync.shared_gateways import KEY, Gateway, MemoryState, settle


@pytest.fixture
def shared() -> MemoryState:
    return MemoryState()


@pytest.fixture
def make(tmp_path: Path, shared: MemoryState) -> Iterator[Callable[..., Gateway]]:
    with ExitStack() as stack:

        def gateway(name: str, key: bytes = KEY) -> Gateway:
            found = Gateway(tmp_path / name, shared, key)
            stack.enter_context(closing(found.store))
            return found

        yield gateway


def test_gateways_of_all_releases_write_the_same_value() -> None:
    codec = SyncCodec(b"k" * 32)
    assert codec.space == "30929d75"
    assert codec.seal("item:group:é", "null", 258).hex() == "ead58c75dcdd75d840aa4866cb920ae000000000000001026e756c6c"


@pytest.mark.slow
def test_changes_reach_all_and_come_to_rest(make: Callable[..., Gateway], shared: MemoryState) -> None:
    north, south = make("north"), make("south")
    north.block("old.test", group=APPROVED)
    south.block("own.test")
    south.block("publisher.test", group=FLEET)
    settle(north, south)
    assert north.rules() == {(".old.test", ""), (".own.test", "")}
    assert south.rules() == {(".old.test", ""), (".own.test", ""), (".publisher.test", "")}

    north.store.policies.change(lambda _: [(Policy("night"), True), (Group("kids", "night"), True)], 1.0)
    south.sources.add("https://lists.example/hosts.txt", name="hosts", category="ads", fetch=False)
    settle(north, south)
    assert {"night"} <= set(south.store.policies.read().policies)
    assert south.store.policies.read().groups["kids"].policy == "night"
    assert north.names() == south.names() == {"hosts"}
    south.sources.disable("hosts")
    south.store.policies.change(lambda found: [(found.groups["kids"], False), (found.policies["night"], False)], 2.0)
    south.store.lists.remove_rule(next(rule.rule_id for rule in south.store.lists.rules() if rule.pattern == ".old.test"))
    settle(north, south)
    assert not north.sources.get("hosts").definition.enabled
    assert north.published
    assert "kids" not in north.store.policies.read().groups
    assert north.rules() == {(".own.test", "")}
    south.sources.remove("hosts")
    settle(north, south)
    assert north.names() == set()

    # one change here is one entry in the stream: nothing is sent back
    number = shared.number
    north.block("new.test")
    settle(north, south)
    assert shared.number == number + 1
    # what was removed stays so for a gateway that comes later, and may be made again
    east = make("east")
    north.block("old.test", "again")
    settle(north, south, east)
    assert east.rules() == north.rules() == {(".own.test", ""), (".new.test", ""), (".old.test", "again")}


@pytest.mark.slow
def test_conflicts_settle_in_favour_of_what_came_first(make: Callable[..., Gateway]) -> None:
    north, south = make("north"), make("south")
    north.block("a.test", "north")
    south.block("a.test", "south")
    settle(north, south)
    assert north.rules() == south.rules() == {(".a.test", "north")}
    for number in range(3):  # each at the same time
        north.block("a.test", f"north {number}")
        south.block("a.test", f"south {number}")
        settle(south, north)
        assert north.rules() == south.rules() == {(".a.test", f"south {number}")}
    # an item that contradicts what is here is refused alone, and nothing is sent back
    north.store.policies.change(lambda _: [(Policy("p"), True), (Policy("q"), True)], 1.0)
    settle(north, south)
    south.store.policies.change(lambda found: [(found.policies["q"], False)], 2.0)
    north.store.policies.change(lambda _: [(Group("g", "q"), True)], 2.0)
    settle(north, south)
    settle(south, north)
    assert settle(north, south) == 0


@pytest.mark.slow
def test_outages_catch_up_and_a_trimmed_or_lost_stream_compares_all(make: Callable[..., Gateway], shared: MemoryState) -> None:
    north, south = make("north"), make("south")
    settle(north, south)
    north.block("one.test")
    settle(north)
    resyncs = south.counters.as_dict()["sync_resyncs"]
    settle(south)  # from its last place
    assert south.counters.as_dict()["sync_resyncs"] == resyncs
    assert (".one.test", "") in south.rules()

    shared.kept = 2
    for number in range(5):
        north.block(f"h{number}.test")
    south.block("local.test")
    settle(north)
    settle(south, north)
    assert south.counters.as_dict()["sync_resyncs"] == resyncs + 1
    assert north.rules() == south.rules()
    assert len(north.rules()) == 7

    shared.held.clear()  # Redis was emptied
    shared.stream.clear()
    shared.number, shared.epoch = 0, "f"
    settle(north, south)
    assert len(shared.held) == 7
    assert len(north.rules()) == len(south.rules()) == 7

    south.begun()  # the process starts again: what was removed meanwhile is removed everywhere
    south.store.lists.remove_rule(next(rule.rule_id for rule in south.store.lists.rules() if rule.pattern == ".one.test"))
    settle(south, north)
    assert len(north.rules()) == 6

    for rule in south.store.lists.rules():  # the database was lost: it gets all again, and takes nothing away
        south.store.lists.remove_rule(rule.rule_id)
    south.begun()
    settle(south, north)
    assert north.rules() == south.rules()
    assert len(north.rules()) == 6


@pytest.mark.slow
def test_forged_values_and_other_keys_are_refused(make: Callable[..., Gateway], shared: MemoryState) -> None:
    north, south, thief = make("north"), make("south"), make("thief", b"x" * 32)
    thief.block("stolen.test")
    settle(thief)
    north.block("a.test")
    settle(north, south)
    assert south.rules() == {(".a.test", "")}
    assert south.counters.as_dict()["sync_refused"]
    name = next(iter(name for name in shared.held if "a.test" in name))
    shared.held[name] = shared.held[name][:-1] + b"x"
    south.sync.step(whole=True)
    assert south.rules() == {(".a.test", "")}
    settle(north, south)


@pytest.mark.slow
def test_an_older_value_that_is_written_back_is_refused(make: Callable[..., Gateway], shared: MemoryState) -> None:
    north, south = make("north"), make("south")
    north.block("a.test", "first")
    north.block("gone.test")
    settle(north, south)
    old = dict(shared.held)
    north.block("a.test", "second")
    south.store.lists.remove_rule(next(rule.rule_id for rule in south.store.lists.rules() if rule.pattern == ".gone.test"))
    settle(north, south)
    for whole in (False, True, True):
        replayed = south.counters.as_dict().get("sync_replayed", 0)
        shared.held.clear()  # the stream tells of the change, or nothing but the next comparison finds it
        shared.put(old) if not whole else shared.held.update(old)
        south.begun().step() if whole else south.sync.step()  # what was met is remembered over a start
        assert south.counters.as_dict()["sync_replayed"] == replayed + 2
        settle(north, south)
        assert north.rules() == south.rules() == {(".a.test", "second")}
        assert shared.held.keys() == old.keys()
    late = make("late")
    settle(late, north, south)
    assert late.rules() == {(".a.test", "second")}


def test_a_gateway_that_refused_the_newest_value_does_not_help_an_older_one_back(
    make: Callable[..., Gateway], shared: MemoryState
) -> None:
    north, south = make("north"), make("south")
    north.store.policies.change(lambda _: [(Policy("p"), True), (Policy("q"), True), (Group("g", "p"), True)], 1.0)
    settle(north, south)
    old = {name: value for name, value in shared.held.items() if name == "item:group:g"}
    south.store.policies.change(lambda found: [(found.policies["q"], False)], 2.0)
    north.store.policies.change(lambda _: [(Group("g", "q"), True)], 2.0)
    settle(north, south)
    assert [one.store.policies.read().groups["g"].policy for one in (north, south)] == ["q", "p"]
    for whole in (False, True):
        shared.put(old)
        south.sync.step(whole=whole)
        settle(south, north)
        assert north.store.policies.read().groups["g"].policy == "q"
        assert shared.held["item:group:g"] != old["item:group:g"]


def test_what_was_removed_is_shared_again_after_a_loss(make: Callable[..., Gateway], shared: MemoryState) -> None:
    north, late = make("north"), make("late")
    for number in range(6):
        north.block(f"h{number}.test", f"{number}")
    settle(north, late)
    for rule in north.store.lists.rules():
        north.store.lists.remove_rule(rule.rule_id)
    north.sync.step()
    shared.held.clear()
    shared.stream.clear()
    shared.number, shared.epoch = 0, "f"
    settle(north, late)  # it was away while the rule was removed
    assert north.rules() == late.rules() == set()
    assert settle(north, late) == 0


@all_cases(
    ("field", "text"),
    [
        ('rule:["domain",".a.test","",""]', "[]"),
        ('rule:["domain",".a.test","",""]', '["block","c",1e999,true]'),
        ('rule:["domain",".a.test","",""]', '["block","c",NaN,true]'),
        ('rule:["domain",".a.test","",""]', '["block","\\u001b[2J",null,true]'),
        ('rule:["domain",".a.test","",""]', '["block","c",null,1]'),
        ('rule:["regex","(a+)+$\\\\1","",""]', '["block","",null,true]'),
        ('rule:["domain","","",""]', '["block","",null,true]'),
        ('rule:["domain",".a.test","fleet-locked",""]', '["allow","",null,true]'),
        ("rule:" + "[" * 2_000, '["block","",null,true]'),
        ("source:a", '["file:///etc/passwd","ads","block",0,true]'),
        ("source:a", '["/etc/passwd","ads","block",0,true]'),
        ("item:policy:a", '{"kind":"policy","name":"b"}'),
        ("item:pause:a", '{"kind":"pause","name":"a","until":1}'),
        ("spent:a", "{}"),
        ("", "{}"),
    ],
)
def test_values_that_cannot_be_are_refused(field: str, text: str) -> None:
    with pytest.raises(SyncError):
        shared_of(field, text)


def test_values_are_bound_to_their_field() -> None:
    codec = SyncCodec(KEY)
    value = codec.seal("source:a", "null", 7)
    assert codec.open("source:a", value) == ("null", 7)
    for field, other in (
        ("source:b", value),
        ("source:a", value[:5]),
        ("source:a", value[:16] + bytes(8) + value[24:]),
        ("source:a", b""),
        ("source:a", value + b" " * 70_000),
    ):
        with pytest.raises(SyncError):
            codec.open(field, other)
    assert SyncCodec(b"x" * 32).space != codec.space
