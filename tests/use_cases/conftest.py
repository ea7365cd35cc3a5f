"""Settings of a state folder of the test's own, and its database."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.config import Settings, load
from gatewayfilter.store import Store
from gatewayfilter.wiring import open_store


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a folder that holds nothing; no list is updated, no network is used."""
    return load(environ={}, options={"data_dir": tmp_path / "state", "learn.enabled": False}).settings


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with closing(open_store(settings)) as opened:
        yield opened
