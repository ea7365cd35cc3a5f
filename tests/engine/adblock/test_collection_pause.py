"""The pause of the garbage collector ends as it began."""

import gc

import pytest

from gatewayfilter.engine.adblock.collection_pause import collection_paused
from gatewayfilter.engine.adblock.compiler import AdblockBuilder


@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_is_off_within_and_as_before_behind(was_on: bool) -> None:  # noqa: FBT001
    before = gc.isenabled()
    try:
        (gc.enable if was_on else gc.disable)()
        with collection_paused():
            assert not gc.isenabled()
        assert gc.isenabled() == was_on
        with pytest.raises(ValueError, match="source"):
            AdblockBuilder().add_list(-1, [])
        assert gc.isenabled() == was_on
    finally:
        (gc.enable if before else gc.disable)()
