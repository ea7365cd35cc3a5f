"""Connections to Redis and Redis Cluster, opened at the first use, with bounded waits and a circuit breaker.

No message holds the URL or an answer of the server: both may hold a password.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.connection import Connection, SSLConnection
from redis.crc import key_slot
from redis.exceptions import AuthenticationError, NoPermissionError, RedisClusterException
from redis.retry import Retry

from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker
from gatewayfilter.scaleout.redis.deadline import BoundedPools, OperationLimit

_PORT: Final = 6379
_MOST_CONNECTIONS: Final = 32
OPERATION: Final = 4.0
"""Longest duration of a whole operation, in longest waits for an answer: several nodes, commands and a changed topology."""

_GARBAGE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What the library and readers of answers raise when a server sends what is no answer of Redis."""

type Client = Redis | RedisCluster


class RedisAwayError(GatewayFilterError):
    """Redis does not answer, or refuses; the caller goes on without it."""


class RedisConnection:
    """A client of one server or of a cluster. Thread-safe.

    Args:
        url: as the settings `cache.url` and `queue.url`.
        timeout_s: longest wait for a connection, and for an answer; a whole operation takes `OPERATION` times this at most.
        breaker: refuses calls for a while after a failure.
    """

    def __init__(self, url: str, timeout_s: float, breaker: CircuitBreaker) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._breaker = breaker
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._limit = OperationLimit()
        self._pools = BoundedPools(self._limit)

    @property
    def is_cluster(self) -> bool:
        """Whether the URL names a cluster."""
        return self._url.partition("://")[0].endswith("-cluster")

    @property
    def is_away(self) -> bool:
        """Whether the last call failed."""
        return self._breaker.is_open

    def use[T](self, work: Callable[[Client], T]) -> T:
        """Returns the result of `work` with the client.

        Raises:
            RedisAwayError: Redis did not answer in time, refused, or failed a moment ago.
        """
        if not self._breaker.admits():
            raise RedisAwayError("Redis did not answer a moment ago")
        try:
            with self._limit.within(OPERATION * self._timeout_s):
                found = work(self._opened())
        except (RedisError, OSError, RedisClusterException, *_GARBAGE) as error:
            reason = reason_of(error)
            self._breaker.failed(reason)
            if self.is_cluster:
                self._forget()  # the topology may be another one now
            raise RedisAwayError(f"Redis failed: {reason}") from error
        self._breaker.succeeded()
        return found

    def ask[A, T](self, work: Callable[[Client], A], read: Callable[[A], T]) -> T:
        """Returns what `read` makes of the result of `work`; an answer that it cannot read is a failure of Redis, too.

        Raises:
            RedisAwayError: see `use`.
        """
        return self.use(lambda client: read(work(client)))

    def by_node(self, client: Client, slots: Mapping[str, int]) -> dict[str, list[str]]:
        """Returns hash tags by the node that serves them; one server serves all."""
        if not isinstance(client, RedisCluster):
            return {"": list(slots)}
        nodes: dict[str, list[str]] = {}
        for tag, slot in slots.items():
            nodes.setdefault(client.nodes_manager.get_node_from_slot(slot).name, []).append(tag)
        return nodes

    @staticmethod
    def of_node(client: Client, name: str) -> Redis:
        """Returns the client of one node of a cluster, or the client itself."""
        if not isinstance(client, RedisCluster):
            return client
        node = client.nodes_manager.nodes_cache[name]
        return client.get_redis_connection(node)

    def close(self) -> None:
        """Closes all connections."""
        self._forget()

    def _opened(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = self._open()
            return self._client

    def _forget(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _open(self) -> Client:
        parts = urlsplit(self._url)
        options: dict[str, Any] = {
            "username": unquote(parts.username) if parts.username else None,
            "password": unquote(parts.password) if parts.password else None,
            "socket_timeout": self._timeout_s,
            "socket_connect_timeout": self._timeout_s,
            "protocol": 2,
            "max_connections": _MOST_CONNECTIONS,
        }
        hosts = _hosts(parts.netloc)
        tls = parts.scheme.startswith("rediss")
        if self.is_cluster:
            nodes = [ClusterNode(host, port) for host, port in hosts]
            return RedisCluster.from_url(  # the library's only way to another class of pools
                f"{'rediss' if tls else 'redis'}://{_address(*hosts[0])}",
                startup_nodes=nodes,
                connection_pool_class=self._pools,
                require_full_coverage=False,
                retry=Retry(NoBackoff(), 1),
                **options,
            )
        host, port = hosts[0]
        number = int(parts.path.strip("/") or 0)
        kind = SSLConnection if tls else Connection
        pool = self._pools(connection_class=kind, host=host, port=port, db=number, retry=Retry(NoBackoff(), 0), **options)
        return Redis(connection_pool=pool)


def tag_slots(tags: Sequence[str]) -> dict[str, int]:
    """Returns the slot of each hash tag in a cluster."""
    return {tag: key_slot(tag.encode()) for tag in tags}


def reason_of(error: Exception) -> str:
    """Returns why Redis failed, without the words of the server, which may repeat a command with its password."""
    if isinstance(error, AuthenticationError | NoPermissionError):
        return "the password or its rights are refused"
    return "its answer cannot be used" if isinstance(error, _GARBAGE) else type(error).__name__


def _hosts(netloc: str) -> list[tuple[str, int]]:
    hosts = [urlsplit(f"//{host}") for host in netloc.rpartition("@")[2].split(",")]
    return [(host.hostname or "", host.port or _PORT) for host in hosts]


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
