"""What each error of a poll is called in the follower's state."""

import pytest

from gatewayfilter.errors import FleetError, GatewayFilterError, PolicyError, SnapshotError, StoreError
from gatewayfilter.fleet.download import ContentError, DiskError
from gatewayfilter.fleet.follower import RefusedError, _fault_of
from gatewayfilter.fleet.follower_state import Fault
from gatewayfilter.fleet.transport import TransportError


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        *((RefusedError(fault, "x"), fault) for fault in Fault),
        (ContentError("x"), Fault.CONTENT),
        (DiskError("x"), Fault.DISK),
        (SnapshotError("x"), Fault.DISK),
        (TransportError("x"), Fault.UNREACHABLE),
        (TransportError("x", 400), Fault.UNREACHABLE),
        (TransportError("x", 401), Fault.REFUSED_TOKEN),
        (TransportError("x", 403), Fault.REFUSED_TOKEN),
        (TransportError("x", 402), Fault.UNREACHABLE),
        (PolicyError("x"), Fault.POLICIES),
        (StoreError("x"), Fault.STORE),
        (FleetError("x"), Fault.UNREACHABLE),
    ],
)
def test_faults(error: GatewayFilterError, fault: Fault) -> None:
    assert _fault_of(error) is fault
