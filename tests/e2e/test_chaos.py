"""Random kills for some seconds: the short form of `make chaos`."""

from pathlib import Path

import pytest

from tests.e2e.chaos import Chaos


@pytest.mark.slow
def test_random_kills_open_nothing_and_lose_nothing(tmp_path: Path) -> None:
    found = Chaos(tmp_path, seed=19, clients=2).run(kills=6, most_s=25.0)
    assert found.faults == [], found.report()
    assert sum(found.kills.values()) >= 1
    assert found.exchanges > 0
