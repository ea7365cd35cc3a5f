"""What the tests of this room share."""

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from tests.integration.integration_engine import engine


@pytest.fixture(scope="module")
def listed() -> FilterEngine:
    """An engine with a few lists, which no test changes."""
    return engine()
