"""The network that a module's tests share."""

from collections.abc import Iterator

import pytest

from tests.netns.netns_network import Network, network_in, why_not


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Client, gateway and origin; no filter, no rules."""
    if reason := why_not():
        pytest.skip(reason)
    with network_in(tmp_path_factory.mktemp("netns")) as made:
        yield made
