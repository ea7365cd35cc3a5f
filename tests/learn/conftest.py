from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path / 'gatewayfilter.sqlite3'}")) as store:
        yield store
