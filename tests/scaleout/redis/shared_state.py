"""What machines share, over a server of the tests."""

from collections.abc import Callable

from gatewayfilter.interfaces import FingerprintStore
from gatewayfilter.scaleout.redis.cached_fingerprints import CachedFingerprints
from gatewayfilter.scaleout.redis.cached_value import ValueCodec
from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker
from gatewayfilter.scaleout.redis.connection import RedisConnection
from gatewayfilter.scaleout.redis.fingerprint_cache import RedisFingerprintCache
from gatewayfilter.scaleout.redis.frontier import RedisFrontier
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.scaleout.redis.redis_servers import Server

CODEC = ValueCodec(b"k" * 32)


def connection_to(server: Server, timeout_s: float = 20.0) -> RedisConnection:
    """A connection that waits for a busy machine; to a server that is gone it is refused at once."""
    return RedisConnection(server.url, timeout_s, CircuitBreaker("Redis", "alone"))


def cached_fingerprints(store: Store, server: Server, clock: Callable[[], float]) -> FingerprintStore:
    counters = Counters()
    connection = connection_to(server)
    store.also_close(connection.close)
    return CachedFingerprints(store.fingerprints, RedisFingerprintCache(connection, CODEC, counters), counters, clock)


def frontier_of(server: Server) -> RedisFrontier:
    """A frontier that takes the times of its callers as they are."""
    return RedisFrontier(connection_to(server), server_clock=False)
