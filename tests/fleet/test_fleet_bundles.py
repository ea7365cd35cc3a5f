"""Bundles: what is written is read again, what is locked, and each bound from both sides."""

import json
from dataclasses import replace

import pytest

from gatewayfilter.engine.state.manual_rules import MAX_PATTERN_LENGTH
from gatewayfilter.errors import FleetError
from gatewayfilter.fleet import bundle
from gatewayfilter.fleet.bundle import Bundle, read_bundle, shared_bundle, write_bundle
from gatewayfilter.model import (
    FLEET,
    FLEET_LOCKED,
    Client,
    EntryKind,
    Group,
    ListAction,
    ManualRule,
    PauseScope,
    Policy,
    PolicySet,
    Schedule,
    ScheduleEffect,
)
from gatewayfilter.settings import FleetSettings

RULE = ManualRule(0, ListAction.ALLOW, EntryKind.DOMAIN, ".a.example", "why", FLEET, 9.0, scope="group:kids")
LOCKED = ManualRule(0, ListAction.BLOCK, EntryKind.HOST, "b.example", "", FLEET_LOCKED)
NIGHT = Schedule("night", "kids", ScheduleEffect.BLOCK_ALL, (), "UTC")
ROW = ["block", "domain", ".x.example", "", False, 0, ""]
LAST = 253_402_300_799


def read(*rows: list[object], items: object = (), locked: object = ()) -> Bundle:
    return read_bundle(json.dumps({"rules": rows, "items": items, "locked": locked}).encode())


def row(place: int, value: object) -> list[object]:
    return [*ROW[:place], value, *ROW[place + 1 :]]


def test_what_is_written_is_read_again() -> None:
    whole = Bundle((RULE, LOCKED), (Group("kids", "kids", "é"), Policy("kids"), NIGHT), frozenset({"b", "a"}))
    data = write_bundle(whole)
    assert read_bundle(data) == whole
    turned = Bundle((LOCKED, RULE), whole.items[::-1], frozenset({"a", "b"}))
    assert write_bundle(turned) == data, "equal bundles have equal files"
    assert b'"locked":["a","b"]' in data
    assert "é".encode() in data
    assert b": " not in data
    assert write_bundle(Bundle((replace(RULE, comment="\ud800"),))).count(b"?") == 1


def test_what_followers_cannot_change() -> None:
    some, every = Bundle(locked=frozenset({"kids"})), Bundle(locked=frozenset({"*"}))
    for item in (Policy("kids"), Group("kids"), NIGHT):
        assert (some.is_locked(item), every.is_locked(item), Bundle().is_locked(item)) == (True, True, False)
    for other in (Policy("a"), Group("night"), replace(NIGHT, name="kids", policy="a")):
        assert (some.is_locked(other), every.is_locked(other)) == (False, True)
    assert (some.is_locked(Client("kids")), every.is_locked(Client("kids"))) == (False, False)


@pytest.mark.parametrize(("groups", "locked"), [((), []), (("mine",), [2]), (("*",), [0, 1, 2])])
def test_shared_rules_are_in_the_groups_of_a_fleet(groups: tuple[str, ...], locked: list[int]) -> None:
    known = [
        replace(RULE, rule_id=5, group="", scope=""),
        replace(RULE, rule_id=6, group="other", scope=""),
        replace(RULE, rule_id=7, group="mine", scope=""),
    ]
    found = shared_bundle(known, PolicySet(), FleetSettings(locked_groups=groups, locked_policies=("kids",)))
    assert [rule.group for rule in found.rules] == [FLEET_LOCKED if number in locked else FLEET for number in range(3)]
    assert found.rules[0] == replace(known[0], rule_id=0, group=found.rules[0].group)
    assert found.locked == {"kids"}


@pytest.mark.parametrize(
    ("place", "good", "bad"),
    [
        (2, "x" * MAX_PATTERN_LENGTH, "x" * (MAX_PATTERN_LENGTH + 1)),
        (2, "x", ""),
        (2, ".x.example", ".x\n.example"),
        (5, LAST, LAST + 1),
        (5, 0, -1),
        (6, "group:" + "x" * 194, "group:" + "x" * 195),
        (6, "client:a", "clients:a"),
        (6, "group:a", "group:a\n"),
        (6, "", "a"),
        (6, "", 5),
        (0, "allow", "warn"),
        (1, "host", "hosts"),
    ],
)
def test_bounds_of_a_rule(place: int, good: object, bad: object) -> None:
    (found,) = read(row(place, good)).rules
    assert (found.rule_id, found.enabled, found.group, found.expires_at) == (*(0, True, FLEET, (place == 5 and good) or None),)
    with pytest.raises(FleetError):
        read(row(place, bad))


def test_texts_of_a_rule_are_cut() -> None:
    assert read(row(3, "a\nb" + "x" * 2_000)).rules[0].comment == "ab" + "x" * 1_997
    assert read(row(4, 1)).rules[0].group == FLEET_LOCKED
    assert read(locked=["x" * 201]).locked == {"x" * 200}
    (group,) = read(items=[{"kind": "group", "name": "a", "note": "\t\x07" + "x" * 10_000}]).items
    assert group == Group("a", note="\t" + "x" * 9_998)


def test_bounds_of_a_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"kind": "group", "name": "a"}
    monkeypatch.setattr(bundle, "MOST_RULES", 2)
    monkeypatch.setattr(bundle, "MOST_ITEMS", 1)
    assert (len(read(ROW, ROW, items=[item]).rules), len(read(items=[item]).items)) == (2, 1)
    for rows, items in (([ROW] * 3, [item]), ([ROW], [item, item])):
        with pytest.raises(FleetError, match="too many rules or policies"):
            read(*rows, items=items)
    data = write_bundle(Bundle((RULE,)))
    monkeypatch.setattr(bundle, "LARGEST_BUNDLE", len(data))
    assert read_bundle(data).rules == (RULE,)
    monkeypatch.setattr(bundle, "LARGEST_BUNDLE", len(data) - 1)
    with pytest.raises(FleetError, match="are too long"):
        read_bundle(data)


def test_what_does_not_travel_is_refused() -> None:
    client = {"kind": "client", "name": "a", "matchers": []}
    pause = {"kind": "pause", "name": "x", "scope": PauseScope.ALL, "target": "", "until": 5.0}
    assert read(items=[client]).items == (Client("a"),)
    with pytest.raises(FleetError, match="what does not travel"):
        read(items=[client, pause])
    with pytest.raises(FleetError, match=r"cannot be read: a rule is for neither a client nor a group$"):
        read(row(6, "a"))
    with pytest.raises(FleetError, match=r"cannot be read$"):
        read([])
