"""A follower takes changes in place of blocks where it can, and the same snapshot comes out whatever becomes of them."""

import hashlib
import json
from collections.abc import Callable

import pytest

from gatewayfilter.errors import SnapshotError
from gatewayfilter.fleet.deltas import catching_up, chain
from gatewayfilter.fleet.deltas.delta_file import write_delta
from gatewayfilter.fleet.follower_state import Fault
from tests.fleet.conftest import HOSTS
from tests.fleet.fleet_fakes import Gateway, Publisher, learned, publish_hosts


def manifest_of(publisher: Publisher) -> dict[str, object]:
    found: dict[str, object] = json.loads((publisher.folder / "manifest").read_bytes().partition(b"\n\n")[2])
    return found


def deltas_of(publisher: Publisher) -> list[list[object]]:
    found = manifest_of(publisher)["deltas"]
    assert isinstance(found, list)
    return found


@pytest.fixture
def following(publisher: Publisher, gateway: Gateway) -> Gateway:
    publisher.export()
    assert gateway.follower.poll().fault is Fault.OK
    gateway.transport.spans.clear()
    gateway.transport.blobs.clear()
    return gateway


def update(publisher: Publisher, number: int) -> None:
    publish_hosts(publisher.snapshots, [*HOSTS[100:], *(f"more-{number}-{host}.example" for host in range(100))])
    publisher.export()


def followed(gateway: Gateway, publisher: Publisher, number: int) -> bool:
    state = gateway.follower.poll()
    assert (state.fault, state.sentence) == (Fault.OK, "")
    assert gateway.blocks(f".more-{number}-7.example")
    assert gateway.blocks(".host-500.example")
    assert not gateway.blocks(".host-7.example")
    assert not any((gateway.home / "fleet" / "incoming").glob("*"))
    held = (gateway.home / "fleet" / "base.gfs").read_bytes()
    part = manifest_of(publisher)["snapshot"]
    assert isinstance(part, dict)
    return held == (publisher.folder / "blobs" / str(part["name"])).read_bytes()


def test_an_update_moves_its_changes_alone(publisher: Publisher, following: Gateway) -> None:
    update(publisher, 1)
    assert followed(following, publisher, 1)
    assert following.transport.spans == []
    assert sum(following.transport.blobs.values()) == following.follower.state.fetched < len(HOSTS) * 24 * 0.02


@pytest.mark.slow
def test_a_follower_that_was_off_takes_one_delta_after_the_other(publisher: Publisher, following: Gateway) -> None:
    for number in range(3):
        update(publisher, number)
    assert followed(following, publisher, 2)
    assert following.transport.spans == []
    assert len(following.transport.blobs) == 3


@pytest.mark.slow
def test_a_follower_that_was_off_for_long_fetches_blocks(
    publisher: Publisher, following: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "MOST_LINKS", 2)
    for number in range(4):
        update(publisher, number)
    assert len(deltas_of(publisher)) == 2
    assert len(list((publisher.folder / "blobs").iterdir())) == 2 + 2 + 1  # deltas, snapshots, rules
    assert followed(following, publisher, 3)
    assert following.transport.spans != []


@pytest.mark.parametrize("spoil", [lambda data: data[:-1], lambda data: data[:40] + b"X" + data[41:], lambda _: b""])
def test_a_damaged_delta_is_passed_over(publisher: Publisher, following: Gateway, spoil: Callable[[bytes], bytes]) -> None:
    update(publisher, 1)
    following.transport.spoil = spoil
    assert followed(following, publisher, 1)
    assert following.transport.spans != []
    assert following.counters["fleet_rejected"] == 0


def test_a_signed_delta_that_lies_is_passed_over(publisher: Publisher, following: Gateway) -> None:
    update(publisher, 1)
    older = deltas_of(publisher)[0][0]
    lie = write_delta(bytes(100), [])
    (publisher.folder / "blobs" / hashlib.sha256(lie).hexdigest()).write_bytes(lie)
    publisher.forge({"deltas": [[older, hashlib.sha256(lie).hexdigest(), len(lie)]]})
    assert followed(following, publisher, 1)
    assert following.transport.spans != []


@pytest.mark.slow
def test_without_the_file_of_a_delta_blocks_are_fetched(publisher: Publisher, following: Gateway) -> None:
    update(publisher, 1)
    (publisher.folder / "blobs" / str(deltas_of(publisher)[0][1])).unlink()
    assert followed(following, publisher, 1)


def test_without_room_for_it_blocks_are_fetched(
    publisher: Publisher, following: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    update(publisher, 1)
    monkeypatch.setattr(catching_up, "_FILES", 2**40)
    assert followed(following, publisher, 1)
    assert following.transport.blobs == {}


@pytest.mark.parametrize("error", [TypeError("x"), MemoryError(), SnapshotError("x")])
def test_whatever_a_delta_does_blocks_are_fetched(
    publisher: Publisher, following: Gateway, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    update(publisher, 1)
    monkeypatch.setattr(catching_up, "rebuild", fail)
    assert followed(following, publisher, 1)
    assert following.transport.spans != []


def test_a_delta_too_large_for_memory_is_not_fetched(
    publisher: Publisher, following: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    update(publisher, 1)
    monkeypatch.setattr(catching_up, "LARGEST_DELTA", 10)
    assert followed(following, publisher, 1)
    assert following.transport.blobs == {}


def test_a_manifest_of_an_earlier_program_has_no_deltas(publisher: Publisher, following: Gateway) -> None:
    update(publisher, 1)
    publisher.forge({"deltas": []})
    assert followed(following, publisher, 1)
    assert following.transport.blobs == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "deltas",
    [[["x", "y", 5]], [["0" * 64, "1" * 64, 0]], [["0" * 64, "1" * 64, 10**9]], [["0" * 64, "1" * 64, 1]] * 9, [["0" * 64]], 5],
)
def test_a_manifest_with_impossible_deltas_is_refused(publisher: Publisher, following: Gateway, deltas: object) -> None:
    update(publisher, 1)
    publisher.forge({"deltas": deltas})
    assert following.follower.poll().fault is Fault.SIGNATURE


@pytest.mark.slow
def test_the_lost_memory_of_a_publisher_costs_one_delta(publisher: Publisher, following: Gateway) -> None:
    update(publisher, 1)
    (publisher.folder / "state.json").write_bytes(b"{")
    update(publisher, 2)
    assert deltas_of(publisher) == []
    assert followed(following, publisher, 2)


@pytest.mark.slow
def test_what_is_learned_meanwhile_moves_no_list(publisher: Publisher, following: Gateway) -> None:
    publish_hosts(publisher.snapshots, HOSTS, tuple(learned(f"visited-{number}.example/") for number in range(300)))
    publisher.export()
    assert following.follower.poll().fault is Fault.OK
    assert not following.blocks("visited-7.example/")
    assert sum(following.transport.blobs.values()) < 5_000
    assert following.transport.spans == []
