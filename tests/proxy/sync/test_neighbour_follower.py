import logging

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
