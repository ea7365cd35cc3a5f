import logging
import threading
from collections.abc import Iterator

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import Change, ChangeKind, Client, parse_matcher
from gatewayfilter.proxy.sync.neighbour_follower import NeighbourFollower

MAC = "aa:bb:cc:dd:ee:ff"


def engine(matcher: str) -> FilterEngine:
    found = FilterEngine(Snapshot.from_bytes(SnapshotBuilder().build()))
    found.apply([Change(1, ChangeKind.POLICY_PUT, policy=Client("tablet", (parse_matcher(matcher),)))])
    return found


def client_at(found: FilterEngine, address: str) -> str:
    policies = found.state.policies
    assert policies is not None
    client = policies.find(address).client
    return client.name if client is not None else ""


def test_neighbours_reach_the_engine() -> None:
    found = engine(MAC)
    follower = NeighbourFollower(found, lambda: {"10.0.0.7": MAC})
    follower.start()
    follower.stop()
    assert not follower._thread.is_alive()
    assert (client_at(found, "10.0.0.7"), client_at(found, "10.0.0.8")) == ("tablet", "")


def test_the_table_is_not_read_in_vain() -> None:
    def read() -> dict[str, str]:
        raise AssertionError("nothing is recognized by its MAC")

    NeighbourFollower(engine("10.0.0.1"), read).follow_once()


def test_a_table_that_cannot_be_read_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def read() -> dict[str, str]:
        raise OSError("no rtnetlink")

    follower = NeighbourFollower(engine(MAC), read)
    with caplog.at_level(logging.WARNING):
        follower.follow_once()
        follower.follow_once()
    assert len(caplog.records) == 1


class Pauses:
    """Stands for an event that is set at the fourth wait."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return len(self.waits) == 4


def test_a_table_that_takes_long_to_read_is_read_less_often(caplog: pytest.LogCaptureFixture) -> None:
    follower, pauses = NeighbourFollower(engine(MAC), dict), Pauses()
    took: Iterator[float | RuntimeError] = iter([2.0, RuntimeError("broken"), 0.001])

    def follow_once() -> float:
        found = next(took)
        if isinstance(found, Exception):
            raise found
        return found

    follower._stop = pauses  # type: ignore[assignment]
    follower.follow_once = follow_once  # type: ignore[method-assign]
    with caplog.at_level(logging.ERROR):
        follower._run()
    assert pauses.waits == [1.0, 100.0, 100.0, 1.0]
    assert len(caplog.records) == 1


def test_how_long_reading_took_is_told() -> None:
    assert 0.0 < NeighbourFollower(engine(MAC), dict).follow_once() < 60.0
    assert NeighbourFollower(engine("10.0.0.1"), dict).follow_once() == 0.0
    assert NeighbourFollower(engine(MAC), dict)._thread.daemon


def test_the_table_is_followed_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.sync.neighbour_follower._EVERY_S", 0.0)
    again = threading.Event()
    read: list[int] = []

    def table() -> dict[str, str]:
        read.append(1)
        if len(read) == 3:
            again.set()
        return {}

    follower = NeighbourFollower(engine(MAC), table)
    follower.stop()
    follower = NeighbourFollower(engine(MAC), table)
    follower.start()
    assert again.wait(10)
    follower.stop()
    assert not follower._thread.is_alive()
