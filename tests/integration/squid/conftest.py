"""Both ends of a helper that hands squid's sockets over."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.integration.squid import guard
from gatewayfilter.integration.squid.daemon import SquidHelpers, open_socket
from tests.integration.integration_engine import Records, decider_over
from tests.integration.squid.squid_ends import Daemon, Squid


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path / "d.sock")
    yield made
    made.close()


@pytest.fixture
def squid(tmp_path: Path) -> Iterator[Squid]:
    made = Squid(tmp_path / "d.sock")
    yield made
    made.close()


@pytest.fixture
async def served(listed: FilterEngine, tmp_path: Path) -> AsyncIterator[SquidHelpers]:
    helpers = SquidHelpers(decider_over(listed, Records())[0], decider_over(listed, Records())[1])
    server = await asyncio.get_running_loop().create_unix_server(helpers.connection, sock=open_socket(tmp_path / "d.sock", ""))
    async with server:
        yield helpers
        for transport in list(helpers.connections):
            transport.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks after the daemon every 0.05 s, and tries to reach it as often."""
    monkeypatch.setattr(guard, "_LOOKS", 400)
    monkeypatch.setattr(guard, "_AGAIN_S", 0.05)
