"""A state folder with an empty database, made once and copied."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.store import Store, upgrade
from gatewayfilter.wiring import open_store


@pytest.fixture(scope="session")
def empty_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state")
    upgrade(f"sqlite:///{folder}/gatewayfilter.sqlite3")
    return folder


@pytest.fixture
def settings(empty_state: Path, tmp_path: Path) -> Settings:
    folder = tmp_path / "state"
    shutil.copytree(empty_state, folder)
    return Settings(data_dir=folder)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    opened = open_store(settings)
    yield opened
    opened.close()
