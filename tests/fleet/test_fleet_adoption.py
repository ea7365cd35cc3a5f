"""What a follower adopts of a bundle, beside what local people have, and what it leaves; stores are lists in memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from gatewayfilter.fleet.adoption import Adopter, Adoption
from gatewayfilter.fleet.bundle import Bundle
from gatewayfilter.interfaces import ListStore, PolicyStore
from gatewayfilter.model import (
    FLEET,
    FLEET_LOCKED,
    EntryKind,
    Group,
    ListAction,
    ManualRule,
    Policy,
    PolicyItem,
    PolicySet,
    Schedule,
    ScheduleEffect,
)

KIDS, PUPILS = Policy("kids", block_all=True), Group("pupils", "kids")
NIGHT = Schedule("night", "kids", ScheduleEffect.USE_POLICY, (), "UTC", "strict")


class Stores:
    """The rules and policy items of a follower, and what was written."""

    def __init__(self, items: Sequence[PolicyItem] = (), rules: Sequence[ManualRule] = ()) -> None:
        self.items, self.kept = PolicySet.of(items), list(rules)
        self.added: list[list[ManualRule]] = []
        self.removed: list[int] = []
        self.changes: list[float] = []
        self.known: dict[str, str] = {}

    def read(self) -> PolicySet:
        return self.items

    def change(self, edit: Callable[[PolicySet], Sequence[tuple[PolicyItem, bool]]], now: float) -> PolicySet:
        self.changes.append(now)
        self.items = self.items.changed(edit(self.items))
        return self.items

    def rules(self) -> list[ManualRule]:
        return self.kept

    def add_rules(self, rules: list[ManualRule]) -> None:
        self.added.append(rules)

    def remove_rule(self, number: int) -> None:
        self.removed.append(number)

    def adopt(self, *items: PolicyItem, rules: Sequence[ManualRule] = (), locked: Sequence[str] = ()) -> Adoption:
        adopter = Adopter(cast("ListStore", self), cast("PolicyStore", self))
        done = adopter.adopt(Bundle(tuple(rules), items, frozenset(locked)), self.known, 7.0)
        self.known = dict(done.items)
        return done


def rule(number: int, pattern: str, group: str = FLEET, **facts: object) -> ManualRule:
    return ManualRule(number, ListAction.BLOCK, EntryKind.DOMAIN, pattern, group=group, **facts)  # type: ignore[arg-type]


def test_items_are_put_once_and_counted() -> None:
    stores = Stores()
    done = stores.adopt(KIDS, PUPILS)
    assert (done.changed, done.exceptions, stores.changes) == (2, (), [7.0])
    assert list(stores.items) == [PUPILS, KIDS]
    assert sorted(done.items) == ["group:pupils", "policy:kids"]
    assert {len(digest) for digest in done.items.values()} == {32}
    again = stores.adopt(KIDS, PUPILS)
    assert (again, stores.changes) == (replace(done, changed=0), [7.0]), "nothing is written that is there"
    same = Stores([PUPILS]).adopt(PUPILS)
    assert (same.changed, same.exceptions) == (0, ())


def test_an_item_is_the_same_in_whatever_order_its_parts_are() -> None:
    kids, turned = replace(KIDS, services={"a": True, "b": False}), replace(KIDS, services={"b": False, "a": True})
    stores = Stores()
    first = stores.adopt(kids)
    stores.items = PolicySet.of([turned])
    done = stores.adopt(replace(kids, block_all=False))
    assert (done.changed, done.exceptions) == (1, ()), "nobody changed it here"
    assert stores.adopt(turned).items == first.items


def test_items_of_local_people_stay_unless_they_are_locked() -> None:
    mine = replace(PUPILS, note="mine")
    stores = Stores([mine, Policy("a")])
    done = stores.adopt(KIDS, PUPILS, replace(Policy("a"), block_all=True))
    assert (done.changed, done.exceptions) == (1, ("group:pupils", "policy:a")), "they were there before, under the same name"
    assert stores.items.groups["pupils"] == mine
    locked = stores.adopt(KIDS, PUPILS, locked=["pupils"])
    assert (locked.changed, locked.exceptions, stores.items.groups["pupils"]) == (1, (), PUPILS)


def test_a_newer_version_is_taken_where_nobody_changed_the_older_one() -> None:
    stores = Stores()
    stores.adopt(KIDS, PUPILS)
    stores.items = stores.items.changed([(replace(PUPILS, note="mine"), True)])
    done = stores.adopt(replace(KIDS, block_all=False), replace(PUPILS, note="theirs"))
    assert (done.changed, done.exceptions) == (1, ("group:pupils",))
    assert (stores.items.policies["kids"].block_all, stores.items.groups["pupils"].note) == (False, "mine")


def test_what_the_publisher_no_longer_has_goes() -> None:
    stores = Stores([Group("local", "kept"), Group("other", "spare")])
    stores.adopt(KIDS, PUPILS, Policy("kept"), Policy("strict"), Policy("other"), NIGHT)
    stores.items = stores.items.changed([(Policy("other", block_all=True), True)])
    done = stores.adopt(NIGHT)
    assert sorted(done.items) == ["schedule:night"]
    assert (done.changed, done.exceptions) == (1, ()), "what local or newer items name stays, and what was changed here"
    assert sorted(stores.items.policies) == ["kept", "kids", "other", "strict"]
    assert list(stores.items.groups) == ["local", "other"]
    assert stores.adopt(NIGHT).changed == 0, "what stayed is of local people from now on"
    removed = Stores()
    removed.adopt(KIDS, Policy("strict"), NIGHT)
    removed.items = removed.items.changed([(KIDS, False)])
    assert removed.adopt().changed == 2, "one is gone already"
    assert list(removed.items) == []


def test_rules_of_the_publisher_are_those_of_its_groups_alone() -> None:
    mine = rule(1, ".mine.example", group="")
    stores = Stores(
        rules=[mine, rule(2, ".a.example"), rule(3, ".b.example", FLEET_LOCKED), rule(4, ".c.example", scope="group:kids")]
    )
    same = [rule(0, ".a.example"), rule(0, ".b.example", FLEET_LOCKED), rule(0, ".c.example", scope="group:kids")]
    assert (stores.adopt(rules=same).changed, stores.added, stores.removed) == (0, [], [])
    changed = [replace(same[0], comment="why"), rule(0, ".b.example"), rule(0, ".c.example"), rule(0, ".mine.example")]
    assert stores.adopt(rules=changed).changed == 6
    assert (stores.added, stores.removed) == ([changed], [3, 4])
    for facts in ({"action": ListAction.ALLOW}, {"expires_at": 5.0}, {"enabled": False}, {"kind": EntryKind.HOST}):
        other = Stores(rules=[rule(2, ".a.example")])
        new = replace(rule(0, ".a.example"), **facts)
        assert (other.adopt(rules=[new]).changed, other.added, other.removed) == (
            *((2, [[new]], [2]) if "kind" in facts else (1, [[new]], [])),
        )
