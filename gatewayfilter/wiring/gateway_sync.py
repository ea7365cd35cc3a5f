"""Wiring of gateways that keep rules, policies and sources in step by `sync.url`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gatewayfilter.wiring.filtering import publish_now
from gatewayfilter.wiring.shared import fingerprint_key, need_redis
from gatewayfilter.wiring.storage import subscriptions

if TYPE_CHECKING:
    from gatewayfilter.config import Settings
    from gatewayfilter.interfaces import Crawlers
    from gatewayfilter.scaleout.sync.synchronizer import Synchronizer
    from gatewayfilter.store import Store
    from gatewayfilter.telemetry import Counters


def gateway_sync(settings: Settings, store: Store, counters: Counters) -> tuple[Synchronizer, Crawlers]:
    """Returns what keeps this gateway in step with those that share `sync.url`, and the heartbeats of all.

    Raises:
        StartupError: the extra `redis` is not installed, or the key cannot be read.
    """
    need_redis("sync.url")
    from gatewayfilter.learn import load_key
    from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker
    from gatewayfilter.scaleout.redis.connection import RedisConnection
    from gatewayfilter.scaleout.redis.crawlers import RedisCrawlers
    from gatewayfilter.scaleout.redis.shared_state import RedisSharedState
    from gatewayfilter.scaleout.sync.local_state import LocalState
    from gatewayfilter.scaleout.sync.shared_values import SyncCodec
    from gatewayfilter.scaleout.sync.synchronizer import Synchronizer

    breaker = CircuitBreaker("the state that gateways share (sync.url)", "this gateway goes on with what it has")
    connection = RedisConnection(settings.sync.url.get_secret_value(), settings.sync.timeout_s, breaker)
    store.also_close(connection.close)
    codec = SyncCodec(load_key(fingerprint_key(settings)))
    local = LocalState(
        store.lists,
        store.policies,
        store.feed,
        subscriptions(settings),
        settings.data_dir / "sources",
        partial(publish_now, settings, store),
    )
    state = RedisSharedState(connection, codec.space)
    found = Synchronizer(state, local, codec, settings.data_dir / "sync.json", counters)
    return found, RedisCrawlers(connection, kind=f"gateways:{codec.space}")
