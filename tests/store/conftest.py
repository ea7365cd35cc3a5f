"""Stores to test with.

What is asked of an interface (`test_*_conformance.py`) runs over every implementation that stands in `BACKENDS`: SQLite always,
PostgreSQL where it is installed.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from gatewayfilter.interfaces import CrawlQueue, DecisionLog, ListStore, PublisherFeed, VerdictStore
from gatewayfilter.store import Store, upgrade
from tests.scaleout.redis.redis_fixtures import redis, redis_server
from tests.scaleout.redis.shared_state import frontier_of
from tests.store.postgres_cluster import cluster, why_not

__all__ = ["redis", "redis_server"]

BACKENDS = [
    "sqlite",
    pytest.param("postgresql", marks=[pytest.mark.real, pytest.mark.skipif(bool(why_not()), reason=why_not())]),
]


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "empty.sqlite3"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def scratch_url(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database for properties, which run many times in one test; each run cleans up."""
    return f"sqlite:///{shutil.copy(empty_database, tmp_path_factory.mktemp('scratch') / 'scratch.sqlite3')}"


@pytest.fixture
def sqlite_url(empty_database: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(empty_database, tmp_path / 'gatewayfilter.sqlite3')}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A server with a database `empty` in which the tables stand; the URL is that of its own database."""
    with cluster() as url:
        _administer(url, "CREATE DATABASE empty")
        upgrade(make_url(url).set(database="empty").render_as_string(hide_password=False))
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """A database of the test's own, copied from the empty one."""
    _administer(postgres_server, "CREATE DATABASE scratch TEMPLATE empty")
    yield make_url(postgres_server).set(database="scratch").render_as_string(hide_password=False)
    _administer(postgres_server, "DROP DATABASE scratch WITH (FORCE)")


def _administer(url: str, statement: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


@pytest.fixture(params=BACKENDS)
def store_url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return str(request.getfixturevalue("sqlite_url"))
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def open_store(store_url: str) -> Iterator[Callable[[], Store]]:
    """Opens the store under test; each call is a further user of the same data, like another process."""
    opened: list[Store] = []

    def open_one() -> Store:
        opened.append(Store.open(store_url))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    return open_store()


@pytest.fixture(params=[*BACKENDS, pytest.param("redis", marks=pytest.mark.services)])
def open_queue(request: pytest.FixtureRequest) -> Iterator[Callable[[], CrawlQueue]]:
    """Opens the queue under test; each call is a further user of the same queue, like another machine."""
    if request.param == "redis":
        server = request.getfixturevalue("redis")
        yield lambda: frontier_of(server)
        return
    url = str(request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url"))
    opened: list[Store] = []

    def open_one() -> CrawlQueue:
        opened.append(Store.open(url))
        return opened[-1].frontier

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def frontier(open_queue: Callable[[], CrawlQueue]) -> CrawlQueue:
    return open_queue()


@pytest.fixture
def lists(store: Store) -> ListStore:
    return store.lists


@pytest.fixture
def feed(store: Store) -> PublisherFeed:
    return store.feed


@pytest.fixture
def log(store: Store) -> DecisionLog:
    return store.log


@pytest.fixture
def verdicts(store: Store) -> VerdictStore:
    return store.verdicts
