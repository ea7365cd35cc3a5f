"""Wiring of what machines share: `cache.url` and `queue.url` choose Redis, `kafka.decisions` a topic for decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.errors import StartupError
from gatewayfilter.telemetry import Counters

if TYPE_CHECKING:
    from pathlib import Path

    from gatewayfilter.config import Settings
    from gatewayfilter.scaleout.kafka.decision_feed import DecisionFeed
    from gatewayfilter.store import Store


def fingerprint_key(settings: Settings) -> Path:
    """Returns the path of the key of the fingerprints."""
    return settings.cache.key_file or settings.data_dir / "fingerprints.key"


def share_fingerprints(settings: Settings, store: Store, counters: Counters | None = None) -> None:
    """Puts the shared cache before a store's fingerprints where `cache.url` is set; a second call has no effect.

    Raises:
        StartupError: the extra `redis` is not installed, or the key of the fingerprints cannot be read.
    """
    url = settings.cache.url.get_secret_value()
    if not url:
        return
    need_redis("cache.url")
    from gatewayfilter.learn import load_key
    from gatewayfilter.scaleout.redis.cached_fingerprints import CachedFingerprints
    from gatewayfilter.scaleout.redis.cached_value import ValueCodec
    from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker
    from gatewayfilter.scaleout.redis.connection import RedisConnection
    from gatewayfilter.scaleout.redis.fingerprint_cache import RedisFingerprintCache

    if isinstance(store.fingerprints, CachedFingerprints):
        return
    counted = counters or Counters()
    breaker = CircuitBreaker("the shared cache (cache.url)", "known content is looked up in this machine's database alone")
    connection = RedisConnection(url, settings.cache.timeout_s, breaker)
    cache = RedisFingerprintCache(connection, ValueCodec(load_key(fingerprint_key(settings))), counted)
    store.fingerprints = CachedFingerprints(store.fingerprints, cache, counted)
    store.also_close(connection.close)


def share_queue(settings: Settings, store: Store, counters: Counters | None = None) -> None:
    """Puts the shared queue before a store's frontier, and shared heartbeats before its crawlers, where `queue.url` is set.

    Raises:
        StartupError: the extra `redis` is not installed.
    """
    url = settings.queue.url.get_secret_value()
    if not url:
        return
    need_redis("queue.url")
    from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker
    from gatewayfilter.scaleout.redis.connection import RedisConnection
    from gatewayfilter.scaleout.redis.crawlers import RedisCrawlers
    from gatewayfilter.scaleout.redis.frontier import RedisFrontier
    from gatewayfilter.scaleout.redis.shared_queue import SharedCrawlers, SharedQueue

    breaker = CircuitBreaker("the shared queue (queue.url)", "this machine queues and crawls on its own")
    connection = RedisConnection(url, settings.queue.timeout_s, breaker)
    shared = RedisFrontier(connection, max_waiting=store.frontier.max_waiting)
    store.frontier = SharedQueue(shared, store.frontier, counters or Counters())
    store.crawlers = SharedCrawlers(RedisCrawlers(connection), store.crawlers)
    store.also_close(connection.close)


def decision_feed(settings: Settings, store: Store, counters: Counters) -> DecisionFeed:
    """Returns what sends the decisions of the log to `kafka.decisions`.

    Raises:
        StartupError: the extra `stream` is not installed.
        ConfigError: `kafka.config_file` cannot be read.
    """
    try:
        from gatewayfilter.scaleout.kafka.sender import KafkaSender
    except ImportError as error:
        raise StartupError("kafka.decisions needs the extra stream: pip install 'gatewayfilter[stream]'") from error
    from gatewayfilter.scaleout.kafka.decision_feed import DecisionFeed
    from gatewayfilter.scaleout.kafka.properties import read_properties

    kafka = settings.kafka
    sender = KafkaSender(kafka.brokers, read_properties(kafka.config_file) if kafka.config_file else {})
    store.also_close(sender.close)
    return DecisionFeed(store.log_followers, sender, kafka.decisions, counters)


def need_redis(setting: str) -> None:
    """Raises StartupError when the extra `redis` is not installed, which a setting needs."""
    try:
        import redis  # noqa: F401
    except ImportError as error:
        raise StartupError(f"{setting} needs the extra redis: pip install 'gatewayfilter[redis]'") from error
