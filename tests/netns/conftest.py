"""The network that a module's tests share, and the limit of each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.netns.netns_network import Network, network_in, why_not

LIMIT_S = 400
"""Of each test here without one of its own: on a busy machine a filter alone may take `START_S` to start."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sets the limit, after tests/conftest.py has sorted the files by limits of their own."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_S))


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Client, gateway and origin; no filter, no rules."""
    if reason := why_not():
        pytest.skip(reason)
    with network_in(tmp_path_factory.mktemp("netns")) as made:
        yield made
