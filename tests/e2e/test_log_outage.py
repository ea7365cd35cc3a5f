"""The log's database is locked, or its disk is full: requests are answered, and their decisions are stored afterwards.

Bounds are on behaviour; times under both are measured by `make bench ARGS=log_outage`.
"""

import http.client
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.e2e.e2e_gateway import ANSWER_S, GatewayProcess, until

pytestmark = pytest.mark.slow

REQUESTS = 400
_SMALL_BYTES = 8_192
"""Two pages of the database: no transaction of the log is shorter."""


@contextmanager
def locked(gateway: GatewayProcess) -> Iterator[None]:
    """Holds the write lock meanwhile."""
    file = gateway.state / "gatewayfilter.sqlite3"
    with closing(sqlite3.connect(file, isolation_level=None, timeout=0.0)) as connection:
        until("lock", lambda: begun(connection))
        yield
        connection.execute("ROLLBACK")


def begun(connection: sqlite3.Connection) -> bool:
    """Tries to take the lock, without SQLite's waiting, which loses against busy writers."""
    with suppress(sqlite3.OperationalError):
        connection.execute("BEGIN EXCLUSIVE")
    return connection.in_transaction


@contextmanager
def full(gateway: GatewayProcess) -> Iterator[None]:
    """Lets no file of the worker grow meanwhile."""
    worker = gateway.child("proxy-0")
    unlimited = worker.rlimit(resource.RLIMIT_FSIZE)
    worker.rlimit(resource.RLIMIT_FSIZE, (_SMALL_BYTES, unlimited[1]))
    yield
    worker.rlimit(resource.RLIMIT_FSIZE, unlimited)


def stored(state: Path, kind: str) -> list[str]:
    """Returns the URLs of an outage in the log, in the order of their rows."""
    with closing(sqlite3.connect(f"file:{state}/gatewayfilter.sqlite3?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT url FROM decisions WHERE url LIKE ? ORDER BY id", (f"%/outage/{kind}/%",))
        return [url for (url,) in rows]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    state = tmp_path_factory.mktemp("outage") / "state"
    made = GatewayProcess(state, learn__enabled="false", proxy__workers="1", log__level="warning")
    assert made.cli("list", "add", "--block", "blocked.test").returncode == 0
    with made:
        yield made


@pytest.mark.parametrize("disturbed", [locked, full])
def test_requests_are_answered_and_their_decisions_kept(
    disturbed: Callable[[GatewayProcess], AbstractContextManager[None]], gateway: GatewayProcess
) -> None:
    urls = [f"http://blocked.test/outage/{disturbed.__name__}/{number}" for number in range(REQUESTS)]

    def count(name: str) -> int:
        return int(gateway.status("proxy-0").get("counters", {}).get(name, 0))

    def told() -> int:
        return gateway.log.read_text().count("wait until it can be written")

    refused, told_before = count("store_errors"), told()
    host, _, port = gateway.address.rpartition(":")
    client = http.client.HTTPConnection(host, int(port), timeout=ANSWER_S)
    with disturbed(gateway):
        for url in urls:
            client.request("GET", url)
            answer = client.getresponse()
            answer.read()
            assert answer.status == 403
        until("refused batch", lambda: count("store_errors") > refused, 20.0)
        time.sleep(1.0)  # further tries
        client.request("GET", urls[0])
        assert client.getresponse().status == 403
        assert len(stored(gateway.state, disturbed.__name__)) < REQUESTS
    client.close()
    until("decisions", lambda: len(stored(gateway.state, disturbed.__name__)) > REQUESTS, 30.0)
    assert stored(gateway.state, disturbed.__name__) == [*urls, urls[0]]
    assert count("log_dropped") == 0
    assert told() - told_before <= 1
