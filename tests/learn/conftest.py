import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from uuid import uuid4

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


@pytest.fixture
def new_store(migrated_database: Path, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Makes another empty store each time."""
    with ExitStack() as stores:

        def make() -> Store:
            path = shutil.copy(migrated_database, tmp_path / f"{uuid4()}.sqlite3")
            return stores.enter_context(closing(Store.open(f"sqlite:///{path}")))

        yield make
