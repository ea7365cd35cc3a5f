"""A follower takes over what is signed, new and whole; anything else changes nothing."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayfilter.engine.snapshot.patch import patch_snapshot
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.fleet import download
from gatewayfilter.fleet.bundle import Bundle
from gatewayfilter.fleet.download import MOST_REQUESTS, runs_of
from gatewayfilter.fleet.follower_state import Fault
from gatewayfilter.fleet.health import read_report
from gatewayfilter.fleet.public_keys import write_public_key
from gatewayfilter.model import FLEET, FLEET_LOCKED, EntryKind, Group, ListAction, ManualRule, Policy
from gatewayfilter.settings import FleetSettings, Shared
from gatewayfilter.urls import digest_of
from tests.fleet.conftest import HOSTS
from tests.fleet.fleet_fakes import Gateway, Publisher, learned, publish_hosts


def test_lists_rules_and_policies_arrive(publisher: Publisher, gateway: Gateway) -> None:
    publisher.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".casino.example", comment="no")
    publisher.store.policies.change(lambda _: [(Policy("kids"), True), (Group("pupils", "kids"), True)], 0)
    gateway.store.lists.put_learned([learned("local.example/")])
    publisher.export()
    state = gateway.follower.poll()
    assert (state.fault, state.sentence) == (Fault.OK, "")
    assert gateway.blocks(".host-7.example")
    assert gateway.blocks("local.example/")
    assert not gateway.blocks(".other.example")
    snapshot, _ = gateway.snapshots.open_newest()
    assert [(rule.pattern, rule.group) for rule in snapshot.rules] == [(".casino.example", FLEET)]
    assert gateway.store.policies.read().groups["pupils"].policy == "kids"
    assert read_report(gateway.transport.reports[0]).sequence == state.in_force > 0


def test_an_unchanged_manifest_costs_nothing(publisher: Publisher, gateway: Gateway) -> None:
    publisher.export()
    gateway.follower.poll()
    fetched, current = gateway.transport.fetched, gateway.snapshots.current()
    assert not publisher.export()
    assert gateway.follower.poll().fault is Fault.OK
    assert (gateway.transport.fetched, gateway.snapshots.current()) == (fetched, current)


def test_only_changed_blocks_are_fetched(publisher: Publisher, gateway: Gateway) -> None:
    publisher.settings = FleetSettings(share=(Shared.LEARNED,))
    publisher.export()
    gateway.follower.poll()
    first = gateway.transport.fetched
    path = publisher.snapshots.current()
    assert path is not None
    old = Snapshot.open(path)

    entry = learned("found.example/")
    counters = publisher.snapshots.counters_of(path, old.mark)
    image = patch_snapshot(old, counters, {digest_of(entry.key): entry}, (), feed_seq=1, created_at=1_700_000_001.0)
    with publisher.snapshots.publishing() as put:
        put(image)
    publisher.export()
    assert gateway.follower.poll().fault is Fault.OK
    assert gateway.blocks("found.example/")
    assert gateway.transport.fetched - first < first * 0.7


def test_a_cut_transfer_is_resumed(publisher: Publisher, gateway: Gateway) -> None:
    publisher.export()
    gateway.transport.cut = 300_000
    assert gateway.follower.poll().fault is Fault.UNREACHABLE
    gateway.restarted()
    assert gateway.follower.poll().fault is Fault.OK
    size = (gateway.home / "fleet" / "base.gfs").stat().st_size
    assert gateway.transport.fetched < size + 2 * 65_536


def test_flipped_bits_are_refused(publisher: Publisher, gateway: Gateway) -> None:
    publisher.export()
    gateway.transport.flip = True
    assert gateway.follower.poll().fault is Fault.CONTENT
    assert gateway.snapshots.current() is None
    gateway.transport.flip = False
    assert gateway.follower.poll().fault is Fault.OK
    assert gateway.counters["fleet_rejected"] == 1


def test_an_older_manifest_is_refused_and_the_new_one_stays(publisher: Publisher, gateway: Gateway, tmp_path: Path) -> None:
    publisher.export()
    shutil.copytree(publisher.folder, tmp_path / "old")
    publish_hosts(publisher.snapshots, HOSTS[:100])
    publisher.export()
    gateway.follower.poll()
    gateway.transport.folder = tmp_path / "old"
    state = gateway.restarted().poll()
    assert state.fault is Fault.ROLLBACK
    assert not gateway.blocks(".host-500.example")


def test_another_publisher_is_refused(publisher: Publisher, gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Publisher(tmp_path / "other")
    publish_hosts(other.snapshots, HOSTS[:5])
    other.export()
    gateway.transport.folder = other.folder
    assert gateway.follower.poll().fault is Fault.SIGNATURE
    assert gateway.follower.state.sequence == 0


@pytest.mark.parametrize(("behind_s", "fault"), [(3_600.0, Fault.OK), (4 * 3_600.0, Fault.EXPIRED)])
def test_an_hour_between_clocks_expires_nothing(publisher: Publisher, gateway: Gateway, behind_s: float, fault: Fault) -> None:
    publisher.settings = FleetSettings(valid_h=1.0)
    publisher.export()
    gateway.now = publisher.now + 3_600 + behind_s
    assert gateway.follower.poll().fault is fault


def test_a_rotation_is_followed_and_the_old_key_ends(publisher: Publisher, gateway: Gateway) -> None:
    publisher.export()
    gateway.follower.poll()
    both = publisher.keys.rotate()
    assert publisher.export()
    assert gateway.follower.poll().trusted == tuple(map(write_public_key, both.public))
    publisher.keys.finish()
    publisher.export()
    assert gateway.restarted().poll().fault is Fault.OK
    publisher.keys._write(replace(both, secrets=both.secrets[:1]))
    publisher.export()
    assert gateway.follower.poll().fault is Fault.SIGNATURE


def test_a_full_disk_changes_nothing(publisher: Publisher, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher.export()
    monkeypatch.setattr(download, "ROOM_BYTES", 2**60)
    assert gateway.follower.poll().fault is Fault.DISK
    monkeypatch.undo()
    monkeypatch.setattr(os, "posix_fallocate", _full)
    assert gateway.restarted().poll().fault is Fault.DISK
    monkeypatch.undo()
    assert gateway.restarted().poll().fault is Fault.OK


def _full(*_: int) -> None:
    raise OSError(28, "No space left on device")


def test_a_publisher_away_is_polled_less_often(publisher: Publisher, gateway: Gateway) -> None:
    publisher.export()
    gateway.follower.poll()
    usual = gateway.follower.wait_s()
    gateway.transport.away = True
    for _ in range(8):
        assert gateway.follower.poll().fault is Fault.UNREACHABLE
    assert usual <= 75
    assert 600 < gateway.follower.wait_s() <= 1_125
    assert gateway.blocks(".host-7.example")


def test_a_rule_that_this_version_cannot_read_is_refused(publisher: Publisher, gateway: Gateway) -> None:
    bad = ManualRule(0, ListAction.BLOCK, EntryKind.REGEX, "(a+)+$(", group=FLEET)
    publisher.export(Bundle((bad,)))
    assert gateway.follower.poll().fault is Fault.CONTENT
    assert gateway.store.lists.rules() == []


def test_learned_entries_and_clients_stay_unless_they_are_shared(publisher: Publisher, gateway: Gateway) -> None:
    publish_hosts(publisher.snapshots, HOSTS, (learned("visited.example/secret"),))
    publisher.export()
    gateway.follower.poll()
    base = (gateway.home / "fleet" / "base.gfs").read_bytes()
    assert b"visited.example" not in base
    snapshot = Snapshot.from_bytes(base)
    assert snapshot.info.learned == 0
    assert not gateway.blocks("visited.example/secret")
    assert gateway.blocks(".host-7.example")
    publisher.settings = FleetSettings(share=tuple(Shared))
    publisher.export()
    gateway.follower.poll()
    assert gateway.blocks("visited.example/secret")


def test_local_exceptions_stay_and_locked_ones_do_not(publisher: Publisher, gateway: Gateway) -> None:
    publisher.store.policies.change(lambda _: [(Policy("kids"), True), (Policy("staff"), True)], 0)
    publisher.settings = FleetSettings(locked_policies=("kids",))
    publisher.export()
    gateway.follower.poll()
    changed = [(Policy(name, block_all=True), True) for name in ("kids", "staff")]
    gateway.store.policies.change(lambda _: changed, 0)
    state = gateway.follower.poll()
    found = gateway.store.policies.read().policies
    assert (found["kids"].block_all, found["staff"].block_all) == (None, True)
    assert state.exceptions == ("policy:staff",)
    publisher.store.policies.change(lambda _: [(Policy("kids"), False), (Policy("staff"), False)], 0)
    publisher.export()
    gateway.follower.poll()
    assert set(gateway.store.policies.read().policies) == {"staff"}


def test_locked_groups_of_rules(publisher: Publisher, gateway: Gateway) -> None:
    for group in ("district", "mine"):
        publisher.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, f".{group}.example", group=group)
    gateway.store.lists.add_rule(ListAction.ALLOW, EntryKind.DOMAIN, ".own.example")
    publisher.settings = FleetSettings(locked_groups=("district",))
    publisher.export()
    gateway.follower.poll()
    groups = {rule.pattern: rule.group for rule in gateway.store.lists.rules()}
    assert groups == {".district.example": FLEET_LOCKED, ".mine.example": FLEET, ".own.example": ""}
    for rule in publisher.store.lists.rules():
        publisher.store.lists.remove_rule(rule.rule_id)
    publisher.export()
    gateway.follower.poll()
    assert [rule.pattern for rule in gateway.store.lists.rules()] == [".own.example"]


def test_runs_are_few_and_cover_what_is_missing() -> None:
    assert runs_of([]) == []
    assert runs_of([1, 2, 3, 7]) == [range(1, 4), range(7, 8)]
    missing = [number * 3 + number % 2 for number in range(2_000)]
    runs = runs_of(missing)
    assert len(runs) <= MOST_REQUESTS
    assert set(missing) <= {number for run in runs for number in run}
