"""A connection to Redis over doubles of the library: what it is opened with, which failures count, and what is said of them."""

import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from redis import RedisError
from redis.connection import Connection, SSLConnection
from redis.exceptions import AuthenticationError, NoPermissionError, RedisClusterException

from gatewayfilter.scaleout.redis import connection as module
from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker
from gatewayfilter.scaleout.redis.connection import RedisAwayError, RedisConnection, reason_of, tag_slots
from gatewayfilter.scaleout.redis.deadline import BoundedPools, BoundedSocket, OperationLimit


class Cluster:
    """In place of the library's client of a cluster."""

    made: tuple[str, dict[str, Any]] = ("", {})
    closed = 0

    def __init__(self) -> None:
        places = {"n0": object(), "n1": object()}
        self.nodes_manager = SimpleNamespace(
            nodes_cache=places, get_node_from_slot=lambda slot: SimpleNamespace(name=f"n{slot % 2}")
        )

    @classmethod
    def from_url(cls, url: str, **options: Any) -> "Cluster":
        Cluster.made = url, options
        return cls()

    def get_redis_connection(self, node: object) -> object:
        return "client of", node

    def close(self) -> None:
        Cluster.closed += 1


@pytest.fixture(autouse=True)
def _cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "RedisCluster", Cluster)
    yield
    Cluster.closed = 0


def connection(url: str, timeout_s: float = 0.5) -> RedisConnection:
    return RedisConnection(url, timeout_s, CircuitBreaker("Redis", "alone"))


def test_a_server_is_opened_with_what_its_url_tells() -> None:
    found = connection("rediss://ada%40x:hu%3Ash@a.test:7000/3")
    client = found.use(lambda client: client)
    pool = cast("Any", client).connection_pool
    kept = pool.connection_kwargs
    assert (kept["host"], kept["port"], kept["db"], kept["username"], kept["password"]) == ("a.test", 7000, 3, "ada@x", "hu:sh")
    assert (kept["socket_timeout"], kept["socket_connect_timeout"], kept["protocol"]) == (0.5, 0.5, 2)
    assert (pool.max_connections, kept["retry"].get_retries()) == (32, 0)
    assert issubclass(pool.connection_class, SSLConnection)
    assert found.use(lambda again: again) is client
    found.close()
    assert found.use(lambda again: again) is not client
    plain = cast("Any", connection("redis://[::1]").use(lambda client: client)).connection_pool
    kept = plain.connection_kwargs
    assert (kept["host"], kept["port"], kept["db"], kept["username"], kept["password"]) == ("::1", 6379, 0, None, None)
    assert not issubclass(plain.connection_class, SSLConnection)


def test_a_cluster_is_opened_with_all_its_nodes() -> None:
    found = connection("rediss-cluster://:hush@[::1],b.test:7001")
    assert found.is_cluster
    client = found.use(lambda client: client)
    url, options = Cluster.made
    assert url == "rediss://[::1]:6379"
    assert [(node.host, node.port) for node in options["startup_nodes"]] == [("::1", 6379), ("b.test", 7001)]
    assert (options["password"], options["username"], options["require_full_coverage"]) == ("hush", None, False)
    assert options["retry"].get_retries() == 1
    slots = {"a": 4, "b": 7, "c": 6}
    assert found.by_node(client, slots) == {"n0": ["a", "c"], "n1": ["b"]}
    of_node: Any = found.of_node(client, "n1")
    assert of_node == ("client of", cast("Any", client).nodes_manager.nodes_cache["n1"])
    connection("redis-cluster://b.test").use(lambda client: client)
    assert Cluster.made[0] == "redis://b.test:6379"


def test_one_server_serves_all_tags() -> None:
    found = connection("redis://a.test")
    client = found.use(lambda client: client)
    assert not found.is_cluster
    assert found.by_node(client, {"a": 1, "b": 2}) == {"": ["a", "b"]}
    assert found.of_node(client, "") is client
    assert tag_slots(["123456789", "foo"]) == {"123456789": 12_739, "foo": 12_182}  # of Redis' own documentation


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AuthenticationError("hush"), "the password or its rights are refused"),
        (NoPermissionError("hush"), "the password or its rights are refused"),
        (RedisError("hush"), "RedisError"),
        (RedisClusterException("hush"), "RedisClusterException"),
        (OSError("hush"), "OSError"),
        (ValueError("hush"), "its answer cannot be used"),
        (KeyError("hush"), "its answer cannot be used"),
        (AttributeError("hush"), "its answer cannot be used"),
        (RecursionError("hush"), "its answer cannot be used"),
        (TypeError("hush"), "its answer cannot be used"),
    ],
)
@pytest.mark.parametrize("scheme", ["redis", "redis-cluster"])
def test_failures_are_told_without_words_of_the_server(scheme: str, error: Exception, reason: str) -> None:
    found = connection(f"{scheme}://a.test")

    def fail(_: Any) -> None:
        raise error

    assert reason_of(error) == reason
    with pytest.raises(RedisAwayError, match=f"^Redis failed: {reason}$"):
        found.use(fail)
    assert found.is_away
    assert Cluster.closed == (scheme == "redis-cluster"), "its topology may be another one now"
    with pytest.raises(RedisAwayError, match="a moment ago"):
        found.use(lambda _: None)


def test_an_answer_that_cannot_be_read_is_a_failure_and_a_fault_of_ours_is_none() -> None:
    found = connection("redis://a.test")
    assert found.ask(lambda _: b"7", int) == 7
    assert not found.is_away
    with pytest.raises(ZeroDivisionError):
        found.ask(lambda _: 1, lambda number: number // 0)
    assert not found.is_away
    with pytest.raises(RedisAwayError):
        found.ask(lambda _: b"x", int)
    assert found.is_away


class Wire:
    """A socket that notes how long it may wait, and gives what it has."""

    def __init__(self, *, waits_s: float | None) -> None:
        self.waits_s = waits_s
        self.sent = b""

    def gettimeout(self) -> float | None:
        return self.waits_s

    def settimeout(self, seconds: float | None) -> None:
        self.waits_s = seconds

    def recv(self, size: int) -> bytes:
        return b"x" * size

    def recv_into(self, buffer: Any) -> int:
        return len(buffer)

    def sendall(self, data: bytes) -> None:
        self.sent += data

    def fileno(self) -> int:
        return 77


def test_each_wait_of_a_socket_ends_with_the_operation() -> None:
    now = [0.0]
    limit = OperationLimit(most_bytes=10, clock=lambda: now[0])
    wire = Wire(waits_s=4.0)
    bounded: Any = BoundedSocket(cast("socket.socket", wire), limit)
    assert bounded.fileno() == 77
    with limit.within(6.0):
        assert bounded.recv(3) == b"xxx"
        assert wire.waits_s == 4.0
        now[0] = 4.0
        assert bounded.recv_into(bytearray(7)) == 7
        assert wire.waits_s == 2.0
        bounded.settimeout(1.0)
        bounded.sendall(b"get")
        assert (wire.waits_s, wire.sent) == (1.0, b"get")
        receives: list[Callable[[], object]] = [lambda: bounded.recv(1), lambda: bounded.recv_into(bytearray(1))]
        for receive in receives:
            with pytest.raises(TimeoutError, match="too long"):
                receive()
        now[0] = 6.0
        receives.append(lambda: bounded.sendall(b"set"))
        for call in receives:
            with pytest.raises(TimeoutError, match="took too long"):
                call()
    assert wire.sent == b"get"
    bounded.settimeout(None)
    bounded.sendall(b"")
    assert wire.waits_s is None


@pytest.mark.parametrize("kind", [Connection, SSLConnection])
def test_connecting_ends_with_the_operation(kind: type[Connection], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    limit = OperationLimit(clock=lambda: now[0])
    wire = Wire(waits_s=3.0)
    waits: list[float | None] = []

    def connect(self: Any) -> Any:
        waits.append(self.socket_connect_timeout)
        return wire

    monkeypatch.setattr(kind, "_connect", connect)
    pool = BoundedPools(limit)(connection_class=kind, host="a.test", port=1, socket_connect_timeout=2.0)
    made = cast("Any", pool.connection_class(**pool.connection_kwargs))
    assert issubclass(pool.connection_class, kind)
    assert issubclass(pool.connection_class, SSLConnection) is (kind is SSLConnection)
    with limit.within(3.0):
        assert isinstance(made._connect(), BoundedSocket)
        now[0] = 2.5
        made._connect()
    made._connect()  # the bound of an operation is not that of the next one
    assert waits == [2.0, 0.5, 2.0]
