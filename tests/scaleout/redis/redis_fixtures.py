"""Fixtures of the tests that share state; `conftest.py` of their rooms import them."""

from collections.abc import Iterator

import pytest

from tests.scaleout.redis.redis_servers import Server, server, why_not


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if why_not():
        pytest.skip(why_not())
    with server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def redis(redis_server: Server) -> Server:
    """A server with no keys."""
    redis_server.client().flushall()
    return redis_server
