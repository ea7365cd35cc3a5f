"""The state that gateways share, in Redis: a hash of values, and a stream of the fields that changed.

Entries of the stream are numbered by a counter beside it, without gaps: a stream that was trimmed, or lost, is noticed by its
numbers. All keys lie in one slot, and each change is one script.
"""

import secrets
from collections.abc import Iterable, Mapping
from itertools import batched
from typing import Any, Final

from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.scaleout.redis.connection import Client, RedisConnection
from gatewayfilter.scaleout.redis.frontier import PREFIX
from gatewayfilter.scaleout.sync.synchronizer import StreamPlace

KEPT: Final = 10_000
"""Entries of the stream, about; a gateway that was away for more compares all values."""
_MOST_FIELDS: Final = 400_000
_PAGE: Final = 1_000
_PUT_AT_ONCE: Final = 200

_AFTER: Final = """
local last = tonumber(redis.call('GET', KEYS[3]) or '0')
local epoch = redis.call('GET', KEYS[4]) or ''
local after = tonumber(ARGV[2])
if epoch ~= ARGV[1] or last < after then return {epoch, last, 0} end
if last == after then return {epoch, last, 1} end
local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)
if not first[1] or tonumber(string.match(first[1][1], '^%d+')) > after + 1 then return {epoch, last, 0} end
local found = {epoch, after, 1}
local first_new = string.format('%.0f', after + 1) .. '-0'
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], first_new, '+', 'COUNT', tonumber(ARGV[3]))) do
  found[2] = tonumber(string.match(entry[1], '^%d+'))
  found[#found + 1] = entry[2][2]
end
return found
"""
_PUT: Final = """
if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[2]) then return 0 end
redis.call('SETNX', KEYS[4], ARGV[1])
for i = 4, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    local number = redis.call('INCR', KEYS[3])
    redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], string.format('%.0f', number) .. '-0', 'f', ARGV[i])
  end
end
return 1
"""


class RedisSharedState:
    """Implements `scaleout.sync.SharedState`. Each method raises `RedisAwayError` when Redis does not answer.

    Args:
        connection: to Redis.
        space: part of the names of keys: gateways with another key have another one.
        kept: entries of the stream, about.
    """

    def __init__(self, connection: RedisConnection, space: str, kept: int = KEPT) -> None:
        self._connection = connection
        self._keys = tuple(f"{PREFIX}sync:{space}:{name}" for name in ("values", "stream", "number", "epoch"))
        self._kept = kept

    def after(self, place: StreamPlace) -> tuple[StreamPlace, frozenset[str] | None]:
        """Returns the next place, and the fields that changed up to it; `None` where the stream does not reach back so far."""

        def ask(client: Client) -> Any:
            return client.eval(_AFTER, len(self._keys), *self._keys, place.epoch, place.number, _PAGE)

        return self._connection.ask(ask, _changes)

    def values(self, fields: Iterable[str]) -> dict[str, bytes]:
        """Returns the values of fields that there are."""
        found: dict[str, bytes] = {}
        for part in batched(sorted(fields), _PAGE):
            found |= self._connection.ask(_Values(self._keys[0], part).ask, _Values(self._keys[0], part).read)
        return found

    def all(self) -> dict[str, bytes]:
        """Returns all values."""
        return self._connection.ask(lambda client: client.hgetall(self._keys[0]), _texts)

    def put(self, values: Mapping[str, bytes]) -> None:
        """Sets values, and appends those that differ to the stream, at once for each.

        Raises:
            GatewayFilterError: there are too many.
        """
        for part in batched(values.items(), _PUT_AT_ONCE):
            flat = [text for pair in part for text in pair]

            def ask(client: Client, flat: list[Any] = flat) -> Any:
                return client.eval(_PUT, len(self._keys), *self._keys, secrets.token_hex(8), _MOST_FIELDS, self._kept, *flat)

            if not self._connection.ask(ask, int):
                raise GatewayFilterError(f"gateways share at most {_MOST_FIELDS:,} rules, policies and sources")


class _Values:
    """A read of some fields."""

    def __init__(self, key: str, fields: tuple[str, ...]) -> None:
        self._key = key
        self._fields = fields

    def ask(self, client: Client) -> Any:
        return client.hmget(self._key, list(self._fields))

    def read(self, values: Any) -> dict[str, bytes]:
        return {name: bytes(value) for name, value in zip(self._fields, values, strict=True) if value is not None}


def _changes(found: Any) -> tuple[StreamPlace, frozenset[str] | None]:
    epoch, number, reaches, *fields = found
    place = StreamPlace(epoch.decode(), int(number))
    return place, frozenset(name.decode() for name in fields) if reaches else None


def _texts(found: Any) -> dict[str, bytes]:
    return {name.decode(): bytes(value) for name, value in found.items()}
