"""A state folder in which nothing is wrong."""

import subprocess
from pathlib import Path

import pytest

from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.config import Settings
from gatewayfilter.wiring import open_store, publish_now


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with all that `run` makes; copied by each test that breaks it."""
    folder = tmp_path_factory.mktemp("healthy") / "state"
    settings = Settings(data_dir=folder)
    store = open_store(settings)
    publish_now(settings, store)
    store.close()
    ensure_ca(folder / "ca")
    return folder


@pytest.fixture
def state(healthy: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    subprocess.run(["cp", "-a", str(healthy), str(folder)], check=True)
    return folder
