import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.store import Store, upgrade


@pytest.fixture(scope="session")
def migrated_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "empty.sqlite3"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def store(migrated_database: Path, tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{shutil.copy(migrated_database, tmp_path / 'gatewayfilter.sqlite3')}")) as store:
        yield store
