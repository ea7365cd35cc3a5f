import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.config import SourceSettings
from gatewayfilter.sources import Subscriptions
from tests.sources.list_server import BUNDLED, Clock, ListServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ListServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    listening = ListServer()
    yield listening
    listening.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def subscriptions(tmp_path: Path, clock: Clock) -> Subscriptions:
    settings = SourceSettings(max_bytes=1_000_000, timeout_s=60)
    return Subscriptions(tmp_path / "state" / "sources", settings, BUNDLED, clock=clock, sleep=lambda _: None)


@pytest.fixture
def real_data() -> Path:
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or BUNDLED.parent.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no folder of real lists (GATEWAYFILTER_TEST_DATA)")
    return folder
