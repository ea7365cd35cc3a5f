"""What a gateway has of the shared state, over doubles: when it may have changed, what is read, and how changes are made."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.errors import GatewayFilterError, PolicyError, SourceError, StoreError
from gatewayfilter.model import (
    FLEET,
    FLEET_LOCKED,
    ChangeKind,
    Client,
    EntryKind,
    Group,
    ListAction,
    ManualRule,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    Schedule,
    ScheduleEffect,
)
from gatewayfilter.scaleout.sync.local_state import LocalState
from gatewayfilter.scaleout.sync.shared_values import MOST_BYTES, Shared, SharedSource, field_of, text_of

WEB = "https://lists.example/hosts.txt"
SOURCE = SharedSource("hosts", WEB, "ads", ListAction.BLOCK, 24.0, enabled=True)


def rule(number: int, host: str, comment: str = "", group: str = "") -> ManualRule:
    return ManualRule(number, ListAction.BLOCK, EntryKind.DOMAIN, f".{host}", comment, group)


class Here:
    """Rules, items, changes and sources in memory, which note what is done to them."""

    def __init__(self, folder: Path, *, rules: list[ManualRule] | None = None, items: list[PolicyItem] | None = None) -> None:
        self.held_rules, self.items = rules or [], items or []
        self.sources: dict[str, Any] = {}
        self.pages: list[list[Any]] = []
        self.calls: list[tuple[Any, ...]] = []
        self.refused: set[str] = set()
        self.fails: dict[str, Exception] = {}
        parts: Any = self
        self.state = LocalState(parts, _Policies(self), parts, _Sources(self), folder, self._publish)

    def last_seq(self) -> int:
        return 40

    def read(self, seq: int, limit: int) -> list[Any]:
        self.calls.append(("read", seq, limit))
        return self.pages.pop(0) if self.pages else []

    def rules(self) -> list[ManualRule]:
        return self.held_rules

    def remove_rule(self, number: int) -> None:
        self.calls.append(("remove_rule", number))

    def add_rules(self, rules: list[ManualRule]) -> None:
        self.calls.append(("add_rules", rules))

    def _publish(self) -> None:
        self.calls.append(("publish",))
        if "publish" in self.fails:
            raise self.fails["publish"]

    def taken(self) -> list[tuple[Any, ...]]:
        found, self.calls = self.calls, []
        return found


def _Policies(here: Here) -> Any:  # noqa: N802  a double of the store's part, that has the same items
    def change(steps: Callable[[Any], list[tuple[PolicyItem, bool]]], now: float) -> None:
        assert now > 1e9
        pairs = [(item.name, put) for item, put in steps(here.items)]
        here.calls.append(("change", pairs))
        for name, _ in pairs:
            if name in here.refused:
                raise PolicyError(f"{name} contradicts")

    return SimpleNamespace(read=lambda: here.items, change=change)


def _Sources(here: Here) -> Any:  # noqa: N802  likewise
    def note(name: str) -> Callable[..., None]:
        def call(*values: Any, **named: Any) -> None:
            here.calls.append((name, *values, *named.items()))
            if name in here.fails:
                raise here.fails[name]

        return call

    return SimpleNamespace(
        all=lambda: list(here.sources.values()), **{name: note(name) for name in ("add", "remove", "enable", "disable")}
    )


def subscription(**other: Any) -> Any:
    values = {"name": "hosts", "address": WEB, "category": "ads", "action": ListAction.BLOCK, "interval_h": 24}
    return SimpleNamespace(definition=SimpleNamespace(**{**values, "enabled": True, "bundled": False, **other}))


def page(*kinds: ChangeKind, seq: int) -> list[Any]:
    return [SimpleNamespace(kind=kind, seq=seq + number) for number, kind in enumerate(kinds)]


def test_rules_and_items_that_changed_are_noticed_and_learned_entries_are_none(tmp_path: Path) -> None:
    here = Here(tmp_path)
    assert here.state.has_changed(), "the first time"
    assert not here.state.has_changed()
    assert here.taken() == [("read", 40, 1000)] * 2
    here.pages = [page(ChangeKind.LEARNED_ADDED, ChangeKind.LEARNED_REMOVED, seq=41)]
    assert not here.state.has_changed()
    assert here.taken() == [("read", 40, 1000), ("read", 42, 1000)]
    for kind in (ChangeKind.MANUAL_ADDED, ChangeKind.MANUAL_REMOVED, ChangeKind.POLICY_PUT, ChangeKind.POLICY_REMOVED):
        here.pages = [page(ChangeKind.LEARNED_ADDED, kind, seq=50), page(ChangeKind.LEARNED_ADDED, seq=60)]
        assert here.state.has_changed()
        assert not here.state.has_changed()
    assert here.taken()[-1] == ("read", 60, 1000)


def test_a_change_is_noticed_though_the_database_refuses_meanwhile(tmp_path: Path) -> None:
    here = Here(tmp_path)
    here.state.has_changed()
    read, fails = here.read, [False, True]

    def refuse(seq: int, limit: int) -> list[Any]:
        if fails and fails.pop(0):
            raise StoreError("no database")
        return read(seq, limit)

    here.read = refuse  # type: ignore[method-assign]
    changes = page(ChangeKind.MANUAL_ADDED, seq=41)
    here.pages = [changes]
    with pytest.raises(StoreError):
        here.state.has_changed()
    here.pages = [changes]
    assert here.state.has_changed()
    assert here.taken()[-2:] == [("read", 40, 1000), ("read", 41, 1000)]


def test_sources_that_changed_are_noticed_by_one_look(tmp_path: Path) -> None:
    here = Here(tmp_path / "sources")
    here.state.has_changed()
    assert not here.state.has_changed(), "there is no folder"
    one, other = tmp_path / "sources" / "one", tmp_path / "sources" / "other"
    one.mkdir(parents=True)
    other.mkdir()
    assert not here.state.has_changed()
    (other / "source.json").write_text("{}")
    assert here.state.has_changed()
    assert not here.state.has_changed()
    (other / "source.json").unlink()
    assert here.state.has_changed()


def test_all_that_is_shared_is_read(tmp_path: Path) -> None:
    items: list[PolicyItem] = [Group("kids"), Pause(PauseScope.GROUP, "kids", 5.0), Policy("night")]
    rules = [rule(1, "a.test", "x"), rule(2, "b.test", group=FLEET), rule(3, "c.test", group=FLEET_LOCKED)]
    here = Here(tmp_path, rules=rules, items=items)
    here.sources = {
        "hosts": subscription(),
        "plain": subscription(name="plain", address="http://lists.example/", enabled=False, interval_h=0.5),
        "ours": subscription(name="ours", bundled=True),
        "file": subscription(name="file", address="/etc/hosts"),
    }
    plain = SharedSource("plain", "http://lists.example/", "ads", ListAction.BLOCK, 0.5, enabled=False)
    shared: list[Shared] = [Group("kids"), Policy("night"), rules[0], SOURCE, plain]
    assert here.state.read() == {field_of(one): text_of(one) for one in shared}
    bare = len(text_of(rule(1, "a.test")))
    for length, is_read in ((MOST_BYTES // 2 - 1, True), (MOST_BYTES // 2, False)):
        here.held_rules = [rule(1, "a.test", "x" * (length - bare))]
        assert (field_of(rules[0]) in here.state.read()) is is_read


def test_items_are_put_before_what_names_them_and_removed_behind(tmp_path: Path) -> None:
    here = Here(tmp_path, items=[Group("kids"), Policy("night"), Client("tv"), Pause(PauseScope.CLIENT, "tv", 5.0)])
    changes: dict[str, Shared | None] = {
        "item:client:pc": Client("pc"),
        "item:policy:night": None,
        "item:schedule:s": Schedule("s", "p", ScheduleEffect.BLOCK_ALL, (), "UTC"),
        "item:group:new": Group("new"),
        "item:policy:p": Policy("p"),
        "item:client:tv": None,
        "item:group:kids": None,
        "item:group:gone": None,
    }
    assert here.state.apply(changes) == {}
    puts = [("new", True), ("p", True), ("pc", True), ("s", True)]
    assert here.taken() == [("change", [*puts, ("tv", False), ("night", False), ("kids", False)])]


def test_an_item_that_contradicts_what_is_here_is_refused_alone(tmp_path: Path) -> None:
    here = Here(tmp_path, items=[Group("kids")])
    here.refused = {"p"}
    changes: dict[str, Shared | None] = {
        "item:client:pc": Client("pc"),
        "item:policy:p": Policy("p"),
        "item:group:kids": None,
        "item:group:new": Group("new"),
    }
    assert here.state.apply(changes) == {"item:policy:p": "p contradicts"}
    singles = [("kids", False), ("new", True), ("p", True), ("pc", True)]
    assert here.taken()[1:] == [("change", [step]) for step in singles]


def test_rules_are_added_and_removed_and_a_publishers_stay(tmp_path: Path) -> None:
    held = [rule(1, "a.test"), rule(2, "b.test", group=FLEET), rule(3, "c.test")]
    here = Here(tmp_path, rules=held)
    new, changed = rule(0, "new.test"), rule(0, "c.test", "why")
    changes: dict[str, Shared | None] = {field_of(held[0]): None, field_of(held[1]): None, field_of(new): new}
    changes |= {field_of(changed): changed, field_of(rule(0, "gone.test")): None}
    assert here.state.apply(changes) == {}
    assert here.taken() == [("remove_rule", 1), ("add_rules", [new, changed])]
    here.state.apply({field_of(held[0]): None})
    assert here.taken() == [("remove_rule", 1)]
    assert here.state.apply({}) == {}
    assert here.taken() == []


def _changed(**other: Any) -> SharedSource:
    values = {"name": "hosts", "address": WEB, "category": "ads", "action": ListAction.BLOCK, "interval_h": 24.0, "enabled": True}
    return SharedSource(**{**values, **other})


ADDED = ("add", WEB, ("name", "hosts"), ("category", "ads"), ("action", ListAction.BLOCK), ("interval_h", 24.0), ("fetch", False))


@pytest.mark.parametrize(
    ("wanted", "calls"),
    [
        (_changed(), []),
        (_changed(enabled=False), ["disable"]),
        (None, ["remove"]),
        (_changed(address="https://b.example/"), ["remove", "add", "enable"]),
        (_changed(category="adult"), ["remove", "add", "enable"]),
        (_changed(action=ListAction.ALLOW), ["remove", "add", "enable"]),
        (_changed(interval_h=1.0, enabled=False), ["remove", "add", "disable"]),
    ],
)
def test_a_source_is_brought_to_its_value(tmp_path: Path, wanted: SharedSource | None, calls: list[str]) -> None:
    here = Here(tmp_path)
    here.sources = {"hosts": subscription()}
    changes: Mapping[str, Shared | None] = {"source:hosts": wanted}
    assert here.state.apply(changes) == {}
    found = here.taken()
    assert [call[0] for call in found] == [*calls, "publish"]
    assert all("hosts" in (call[1], *(dict(call[2:]).get("name", ""),)) for call in found[:-1])
    here.sources = {}
    here.state.apply(changes)
    found = here.taken()
    if wanted is None:
        assert found == [("publish",)], "there is none to remove"
    else:
        switch = "enable" if wanted.enabled else "disable"
        assert [call[0] for call in found] == ["add", switch, "publish"]
        assert found[1] == (switch, "hosts")
        assert found[0] == ADDED or wanted != _changed(enabled=wanted.enabled)


def test_a_source_that_cannot_be_added_is_refused_and_a_broken_database_is_no_refusal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = Here(tmp_path)
    here.fails = {"add": SourceError("no such place"), "publish": GatewayFilterError("the disk is full")}
    changes: dict[str, Shared | None] = {"source:hosts": _changed(), "source:other": None}
    assert here.state.apply(changes) == {"source:hosts": "no such place"}
    assert [call[0] for call in here.taken()] == ["add", "publish"]
    assert "the lists are published later: the disk is full" in caplog.text
    here.fails = {"add": StoreError("no database")}
    with pytest.raises(StoreError):
        here.state.apply(changes)
    assert cast("Any", here.taken())[-1][0] == "add"
