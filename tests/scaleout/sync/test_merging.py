"""The three-way merge over a gateway in memory: what is sent, taken over, refused, remembered and told."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.model import EntryKind, Group, ListAction, ManualRule, Policy
from gatewayfilter.scaleout.sync import synchronizer as module
from gatewayfilter.scaleout.sync.shared_values import (
    GONE,
    MOST_BYTES,
    Shared,
    SharedSource,
    SyncCodec,
    SyncError,
    digest_of_text,
    field_of,
    shared_of,
    text_of,
)
from gatewayfilter.scaleout.sync.synchronizer import StreamPlace, Synchronizer
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases
from tests.scaleout.sync.shared_gateways import KEY, MemoryState

CODEC = SyncCodec(KEY)


class Here:
    """What a gateway has, as texts."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.is_changed = False
        self.reads = 0
        self.applied: list[dict[str, Shared | None]] = []
        self.refuses: dict[str, str] = {}

    def has_changed(self) -> bool:
        found, self.is_changed = self.is_changed, False
        return found

    def read(self) -> dict[str, str]:
        self.reads += 1
        return dict(self.texts)

    def apply(self, changes: Mapping[str, Shared | None]) -> dict[str, str]:
        self.applied.append(dict(changes))
        for name, one in changes.items():
            if name in self.refuses:
                continue
            if one is None:
                self.texts.pop(name, None)
            else:
                self.texts[name] = text_of(one)
        return {name: why for name, why in self.refuses.items() if name in changes}


def named(host: str, comment: str = "") -> tuple[str, str]:
    rule = ManualRule(0, ListAction.BLOCK, EntryKind.DOMAIN, f".{host}", comment)
    return field_of(rule), text_of(rule)


A, FIRST = named("a.test")
_, SECOND = named("a.test", "second")
B, OTHER = named("b.test")


class Machine:
    """A gateway in memory over a shared state."""

    def __init__(self, file: Path, shared: MemoryState, **texts: str) -> None:
        self.here, self.shared, self.file = Here(), shared, file
        self.here.texts = dict(texts)
        self.counters = Counters()
        self.sync = self.begun()

    def begun(self) -> Synchronizer:
        local: Any = self.here
        self.sync = Synchronizer(self.shared, local, CODEC, self.file, self.counters)
        return self.sync

    def change(self, name: str, text: str | None) -> None:
        if text is None:
            self.here.texts.pop(name)
        else:
            self.here.texts[name] = text
        self.here.is_changed = True

    def count(self, name: str) -> int:
        return self.counters.as_dict().get(f"sync_{name}", 0)


def others(shared: MemoryState, name: str, text: str, version: int) -> None:
    """Another gateway changes a value."""
    shared.put({name: CODEC.seal(name, text, version)})


def held(shared: MemoryState) -> dict[str, tuple[str, int]]:
    return {name: CODEC.open(name, value) for name, value in shared.held.items()}


@pytest.fixture
def shared() -> MemoryState:
    return MemoryState()


@pytest.fixture
def one(tmp_path: Path, shared: MemoryState) -> Machine:
    return Machine(tmp_path / "sync.json", shared, **{A: FIRST})


def test_the_first_step_shares_all_and_the_next_has_nothing_to_do(one: Machine, shared: MemoryState) -> None:
    assert (one.sync.place, one.sync.size) == (StreamPlace(), 0)
    assert one.sync.step() == 1
    assert held(shared) == {A: (FIRST, 1)}
    assert (one.count("sent"), one.count("resyncs"), one.sync.size) == (1, 1, 1)
    assert one.sync.place == StreamPlace("e", 0), "what it wrote itself is read again"
    reads = one.here.reads
    assert one.sync.step() == 0
    assert one.here.reads == reads + 1
    assert one.sync.step() == 0
    assert one.here.reads == reads + 1, "nothing has changed: not even that is read"
    assert one.sync.place == StreamPlace("e", 1)
    assert (one.count("sent"), one.count("resyncs"), shared.number) == (1, 1, 1)
    assert one.sync.step(whole=True) == 0
    assert (one.count("resyncs"), shared.number) == (2, 1)


def test_changes_here_are_sent_once_with_a_higher_version(one: Machine, shared: MemoryState) -> None:
    one.sync.step()
    one.change(A, SECOND)
    one.change(B, OTHER)
    assert one.sync.step() == 2
    assert held(shared) == {A: (SECOND, 2), B: (OTHER, 1)}
    one.change(A, None)
    assert one.sync.step() == 1
    assert held(shared)[A] == (GONE, 3)
    one.here.is_changed = True
    assert one.sync.step() == 0
    one.change(A, FIRST)
    assert one.sync.step() == 1
    assert held(shared)[A] == (FIRST, 4)
    assert one.count("sent") == 5
    assert one.here.applied == []


def test_changes_of_others_are_taken_over_and_not_sent_back(one: Machine, shared: MemoryState) -> None:
    one.sync.step()
    others(shared, A, SECOND, 2)
    others(shared, B, OTHER, 1)
    number = shared.number
    assert one.sync.step() == 2
    assert one.here.texts == {A: SECOND, B: OTHER}
    assert (one.count("applied"), one.sync.size) == (2, 2)
    others(shared, A, GONE, 3)
    assert one.sync.step() == 1
    assert one.here.applied[-1] == {A: None}
    assert one.here.texts == {B: OTHER}
    assert (shared.number, one.count("sent"), one.count("applied")) == (number + 1, 1, 3)
    one.change(A, SECOND)
    assert one.sync.step() == 1
    assert held(shared)[A] == (SECOND, 4)


def test_what_both_have_alike_is_neither_applied_nor_sent(one: Machine, shared: MemoryState) -> None:
    others(shared, A, FIRST, 7)
    others(shared, B, GONE, 3)
    assert one.sync.step() == 0
    assert (one.here.applied, one.count("sent"), one.sync.size) == ([], 0, 2)
    one.change(A, SECOND)
    one.sync.step()
    assert held(shared)[A] == (SECOND, 8)


def test_what_reached_the_shared_state_first_stands(one: Machine, shared: MemoryState) -> None:
    one.sync.step()
    one.change(A, SECOND)
    _, third = named("a.test", "third")
    others(shared, A, third, 2)
    assert one.sync.step() == 1
    assert one.here.texts == {A: third}
    assert held(shared)[A] == (third, 2)


def test_what_is_refused_here_stays_and_is_not_sent(one: Machine, shared: MemoryState, caplog: pytest.LogCaptureFixture) -> None:
    one.sync.step()
    one.here.refuses = {A: "it contradicts"}
    others(shared, A, SECOND, 2)
    others(shared, B, OTHER, 1)
    assert one.sync.step() == 1
    assert (one.count("applied"), one.count("refused")) == (1, 1)
    assert caplog.messages == ["a change of another gateway is not taken over: it contradicts"]
    assert one.here.texts == {A: FIRST, B: OTHER}
    one.here.is_changed = True
    assert one.sync.step() == 0
    assert held(shared)[A] == (SECOND, 2)


def test_a_forged_or_older_value_is_refused_and_the_newest_is_shared_again(
    one: Machine, shared: MemoryState, caplog: pytest.LogCaptureFixture
) -> None:
    one.sync.step()
    old = dict(shared.held)
    one.change(A, SECOND)
    one.sync.step()
    shared.put({A: b"x" * 40})
    assert one.sync.step() == 0
    assert (one.count("refused"), one.count("replayed")) == (1, 0)
    shared.put(old)
    assert one.sync.step() == 1
    assert (one.count("refused"), one.count("replayed")) == (1, 1)
    assert held(shared)[A] == (SECOND, 3)
    assert one.here.texts == {A: SECOND}
    assert len(caplog.messages) == 2
    one.begun()
    shared.put(old)
    assert one.sync.step() == 1, "what was met is remembered"
    assert held(shared)[A] == (SECOND, 4)
    one.change(A, FIRST)
    one.here.is_changed = False
    shared.put({A: CODEC.seal(A, SECOND, 3)})
    assert one.sync.step() == 1
    assert held(shared)[A] == (FIRST, 5), "changed here meanwhile"


def test_who_does_not_have_the_newest_value_is_silent(one: Machine, shared: MemoryState) -> None:
    one.sync.step()
    old = dict(shared.held)
    one.here.refuses = {A: "it contradicts"}
    others(shared, A, SECOND, 2)
    one.sync.step()
    shared.put(old)
    for whole in (False, True):
        assert one.sync.step(whole=whole) == 0
        assert held(shared)[A] == (FIRST, 1)
    assert one.count("replayed") == 2


def test_of_two_values_of_one_version_one_stands_for_all(tmp_path: Path, shared: MemoryState) -> None:
    found = set()
    for number, (mine, theirs) in enumerate(((FIRST, SECOND), (SECOND, FIRST))):
        state = MemoryState()
        machine = Machine(tmp_path / f"{number}.json", state, **{A: mine})
        machine.sync.step()
        others(state, A, theirs, 1)
        machine.sync.step()
        found.add(machine.here.texts[A])
    assert len(found) == 1
    assert shared.held == {}


def test_what_the_shared_state_lost_is_shared_again_removals_included(one: Machine, shared: MemoryState) -> None:
    one.change(B, OTHER)
    one.sync.step()
    one.change(B, None)
    one.sync.step()
    one.sync.step()
    shared.held.clear()
    assert one.sync.step() == 0, "the stream tells of nothing"
    shared.epoch = "f"
    assert one.sync.step() == 2
    assert held(shared) == {A: (FIRST, 2), B: (GONE, 3)}


def test_a_database_that_was_lost_takes_all_over_again(
    one: Machine, shared: MemoryState, caplog: pytest.LogCaptureFixture
) -> None:
    one.change(B, OTHER)
    one.sync.step()
    one.here.texts = {}
    one.begun()
    assert one.sync.step() == 2
    assert one.here.texts == {A: FIRST, B: OTHER}
    assert "it is taken over again" in caplog.text
    one.here.texts = {B: OTHER}
    one.begun()
    assert one.sync.step() == 1, "one of them was removed while the gateway was away"
    assert held(shared)[A] == (GONE, 2)
    one.here.texts = {}
    one.here.is_changed = True
    assert one.sync.step() == 1, "the last one was removed: the process runs"
    assert held(shared)[B] == (GONE, 2)


def test_the_state_is_kept_and_a_damaged_one_compares_all(one: Machine, shared: MemoryState) -> None:
    one.sync.step()
    one.sync.step()
    kept = json.loads(one.file.read_text())
    digest = digest_of_text(FIRST)
    assert kept == {"epoch": "e", "number": 1, "base": {A: digest}, "newest": {A: [1, digest]}}
    again = one.begun()
    assert (again.place, again.size) == (StreamPlace("e", 1), 1)
    one.file.write_text(json.dumps({"epoch": "e", "number": 1, "base": {A: digest}}))
    assert one.begun().size == 1, "of the release before"
    for damaged in ("", "[]", "{}", '{"epoch": "e", "number": "x", "base": {}}', '{"epoch": "e", "number": 1, "base": []}'):
        one.file.write_text(damaged)
        assert (one.begun().place, one.sync.size) == (StreamPlace(), 0)
    one.file.unlink()
    assert one.begun().step() == 0
    assert shared.number == 1


def test_few_reasons_are_told_and_each_once(
    one: Machine, shared: MemoryState, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.here.refuses = {f"source:s{number}": f"reason {number} " + "x" * 400 for number in range(5)}
    for name in one.here.refuses:
        source = SharedSource(name[7:], "http://a.test/", "ads", ListAction.BLOCK, 1.0, enabled=True)
        others(shared, name, text_of(source), 1)
    one.sync.step()
    assert [message.partition(": ")[2][:9] for message in caplog.messages] == ["reason 0 ", "reason 1 ", "reason 2 "]
    assert {len(message.partition(": ")[2]) for message in caplog.messages} == {300}
    monkeypatch.setattr(module, "_MOST_TOLD", 9)
    one.sync._tell(set(one.here.refuses.values()))
    assert len(caplog.messages) == 3, "all of them are known"
    for number in (0, 1):
        one.sync._tell({f"{number} {more}" for more in range(1_000)})
    caplog.clear()
    one.sync._tell({"0 5", "1 5"})
    assert [message.partition(": ")[2] for message in caplog.messages] == ["1 5"], "what is remembered is bounded"


def test_a_long_name_is_told_by_its_begin(one: Machine, shared: MemoryState, caplog: pytest.LogCaptureFixture) -> None:
    source = SharedSource("s" * 200, "http://a.test/", "ads", ListAction.BLOCK, 1.0, enabled=True)
    name, text = field_of(source), text_of(source)
    for version in (2, 1):
        others(shared, name, text, version)
        one.sync.step()
    assert f"an older value of {name[:100]!r} was written back" in caplog.text


def test_values_have_bounds_and_one_form() -> None:
    head = 24
    assert CODEC.open(A, CODEC.seal(A, "", 5)) == ("", 5)
    longest = "x" * (MOST_BYTES - head)
    assert CODEC.open(A, CODEC.seal(A, longest, 2**63)) == (longest, 2**63)
    with pytest.raises(SyncError):
        CODEC.open(A, CODEC.seal(A, longest + "x", 1))
    sealed = CODEC.seal(A, FIRST, 5)
    assert len(sealed) == head + len(FIRST)
    for place in range(len(sealed)):
        with pytest.raises(SyncError, match="forged"):
            CODEC.open(A, sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :])
    assert field_of(ManualRule(9, ListAction.BLOCK, EntryKind.HOST, "é", group="g", scope="client:tv")) == (
        'rule:["host","\\u00e9","g","client:tv"]'
    )
    assert text_of(ManualRule(9, ListAction.ALLOW, EntryKind.HOST, "x", "c", expires_at=5.5, enabled=False)) == (
        '["allow","c",5.5,false]'
    )
    assert text_of(Group("g", "p", "n")) == '{"kind":"group","name":"g","note":"n","policy":"p"}'
    assert field_of(Policy("p")) == "item:policy:p"


def test_what_is_written_is_read_whole() -> None:
    rules = (
        ManualRule(0, ListAction.BLOCK, EntryKind.REGEX, "a+", "c\n\t", "g", 0.0, enabled=False, scope="group:kids"),
        ManualRule(0, ListAction.ALLOW, EntryKind.DOMAIN, ".a.test", expires_at=253_402_300_799.0),
        SharedSource("s", "http://a.test/", "ads", ListAction.ALLOW, 0.5, enabled=False),
        SharedSource("s", "https://a.test/", "", ListAction.BLOCK, 24.0, enabled=True),
        Group("g", "p", "n"),
    )
    for shared in rules:
        assert shared_of(field_of(shared), text_of(shared)) == shared
    assert shared_of(A, GONE) is None
    longest = ManualRule(0, ListAction.BLOCK, EntryKind.DOMAIN, ".a.test", "x" * MOST_BYTES)
    assert shared_of(field_of(longest), text_of(longest)) == longest


@all_cases(
    "text",
    [
        '["block","",-1,true]', '["block","",253402300799.5,true]', '["block","",true,true]', '["block","","5",true]',
        '["block","",null,0]', '["block","",null,true,1]', '["block","' + "x" * (MOST_BYTES + 1) + '",null,true]',
        '["block",7,null,true]', '["deny","",null,true]', '{"a": 1}', "5", "",
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(SyncError, match="a shared 'rule' cannot be read"):
        shared_of(A, text)


@all_cases(
    ("field", "text", "why"),
    [
        ('rule:["domain",".a.test","",7]', FIRST, "cannot be read"),
        ('rule:["domain",".a.test", "",""]', FIRST, "another name"),
        ('rule:["domain",".a.test","fleet",""]', FIRST, "'rule' cannot be read"),
        ("source:s", '["https://a.test/","ads","block",-1,true]', "'source' cannot be read"),
        ("source:s", '["https://a.test/","\\u0000","block",1,true]', "'source' cannot be read"),
        ("source:s", '["ftp://a.test/","ads","block",1,true]', "no web address"),
        ("source:s", '["https://a.test/","ads","block",1,"yes"]', "'source' cannot be read"),
        ("item:group:a", '{"kind":"group","name":"b"}', "another name"),
        ("item:pause:kids", '{"kind":"pause","name":"kids","scope":"group","target":"kids","until":5}', "is not shared"),
        ("a" * 40 + ":b", "{}", "'aaaaaaaaaa' cannot be read"),
    ],
)
def test_a_value_of_another_name_or_kind_is_refused(field: str, text: str, why: str) -> None:
    with pytest.raises(SyncError, match=why):
        shared_of(field, text)
