"""The membership of crawlers, and of gateways, in Redis: heartbeats by the clock of the server.

Source: [cloud-crawler] fetchers on a consistent-hash ring; one that fails is found by its missing heartbeat. The ring itself is
`crawl.frontier.hash_ring`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from gatewayfilter.scaleout.redis.connection import Client, RedisConnection
from gatewayfilter.scaleout.redis.frontier import PREFIX

_KEEP_S: Final = 86_400.0
_MOST: Final = 10_000

# ARGV: the caller's time, "1" for the server's clock, most members, how long a silent one is kept; a name, or a time.
_BEGIN: Final = """
local now, shift = tonumber(ARGV[1]), 0
if ARGV[2] == '1' then
  local t = redis.call('TIME')
  shift = tonumber(t[1]) + tonumber(t[2]) / 1000000 - now
end
"""
_BEAT: Final = (
    _BEGIN
    + """
redis.call('ZADD', KEYS[1], string.format('%.17g', now + shift), ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.17g', now + shift - tonumber(ARGV[4])))
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -tonumber(ARGV[3]) - 1)
return 1
"""
)
_ALIVE: Final = (
    _BEGIN
    + """
return redis.call('ZRANGEBYSCORE', KEYS[1], string.format('%.17g', tonumber(ARGV[5]) + shift), '+inf')
"""
)


class RedisCrawlers:
    """Implements `interfaces.Crawlers`. Each method raises `RedisAwayError` when Redis does not answer.

    Args:
        connection: to Redis.
        clock: Unix seconds.
        server_clock: `False` takes the callers' times as they are, for tests.
        kind: what the members are, as part of the key.
    """

    def __init__(
        self,
        connection: RedisConnection,
        *,
        clock: Callable[[], float] = time.time,
        server_clock: bool = True,
        kind: str = "crawlers",
    ) -> None:
        self._connection = connection
        self._key = f"{PREFIX}{kind}"
        self._clock = clock
        self._mode = "1" if server_clock else "0"

    def beat(self, name: str, now: float) -> None:
        """Records a heartbeat of a crawler now (Unix seconds)."""
        self._run(_BEAT, now, name, bool)

    def alive(self, since: float) -> list[str]:
        """Returns the names of those with a heartbeat since then (Unix seconds), in order."""
        return self._run(_ALIVE, self._clock(), repr(since), _names)

    def leave(self, name: str) -> bool:
        """Removes a crawler that ends. Returns False when it was not registered."""
        return bool(self._connection.use(lambda client: client.zrem(self._key, name)))

    def _run[T](self, script: str, now: float, value: str, read: Callable[[Any], T]) -> T:
        def evaluate(client: Client) -> Any:
            return client.eval(script, 1, self._key, repr(now), self._mode, _MOST, _KEEP_S, value)

        return self._connection.ask(evaluate, read)


def _names(found: Sequence[bytes]) -> list[str]:
    return sorted(name.decode(errors="replace") for name in found)
