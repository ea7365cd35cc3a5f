"""The shared cache of fingerprints in Redis or Redis Cluster.

Source: [page-dedup] a Redis cluster keeps MD5 fingerprints with verdict and a validity of one month; a hit refreshes it.
Deviation: keys carry one of 64 hash tags, so that a batch costs one pipeline a node with one read a tag, and not one routed
command a key (docs/scale-out-redis.md).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha1
from typing import Any, Final

from redis import Redis
from redis.exceptions import NoScriptError

from gatewayfilter.model import ContentId, Fingerprint
from gatewayfilter.scaleout.redis.cached_value import HEAD_BYTES, MOST_BYTES, TAGS, ValueCodec, key_of, tag_of
from gatewayfilter.scaleout.redis.connection import Client, RedisConnection, tag_slots
from gatewayfilter.telemetry import Counters

_SLOTS: Final = tag_slots(TAGS)
_BATCH: Final = 2000
"""Keys of one round, so that an answer stays within some megabytes."""

# As MGET, but a value of another type is none, one that is too long is cut, so that it stays in the server, and all come as one
# text: MessagePack, as the server writes it in C (joined in Lua they cost it twice as much). An answer of many texts is what the
# library reads slowly.
_READ: Final = f"""
local found = {{}}
for k, key in ipairs(KEYS) do
  local value = redis.pcall('GETRANGE', key, 0, {MOST_BYTES})
  if type(value) ~= 'string' then value = '?' end
  found[k] = value
end
return cmsgpack.pack(found)
"""
# A reviewer's decision is replaced by a reviewer's only.
_PUT: Final = """
local old = redis.pcall('GETRANGE', KEYS[1], 0, 1)
if old == '1P' and string.sub(ARGV[1], 2, 2) ~= 'P' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_TOUCH: Final = f"""
local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'string' or #value <= {HEAD_BYTES} then return 0 end
local hits = tonumber(string.sub(value, 19, 26), 16)
local expires = tonumber(string.sub(value, 27, {HEAD_BYTES}))
if not hits or not expires then return 0 end
hits = math.min(hits + tonumber(ARGV[1]), 2147483648)
local later = tonumber(ARGV[2]) > expires
if later then expires = tonumber(ARGV[2]) end
value = string.sub(value, 1, 18) .. string.format('%08x%014.3f', hits, expires) .. string.sub(value, {HEAD_BYTES + 1})
if later then redis.call('SET', KEYS[1], value, 'PX', ARGV[3]) else redis.call('SET', KEYS[1], value, 'KEEPTTL') end
return 1
"""


class RedisFingerprintCache:
    """Reads and writes fingerprints in Redis.

    Counts `cache_hits`, `cache_misses` and `cache_refused`. All methods raise `RedisAwayError` when Redis does not answer.

    Args:
        connection: to Redis.
        codec: of the values.
        counters: where it is counted.
    """

    def __init__(self, connection: RedisConnection, codec: ValueCodec, counters: Counters) -> None:
        self._connection = connection
        self._codec = codec
        self._space = codec.space
        self._counters = counters

    @property
    def is_away(self) -> bool:
        """Whether the last call failed."""
        return self._connection.is_away

    def find_all(self, contents: Sequence[ContentId], now: float) -> dict[ContentId, Fingerprint]:
        """Returns the fingerprints of these contents that are cached, valid and not expired (Unix seconds)."""
        found: dict[ContentId, Fingerprint] = {}
        for start in range(0, len(contents), _BATCH):
            part = contents[start : start + _BATCH]
            for content, value in self._connection.use(partial(self._read, part)):
                self._take(content, value, now, found)
        self._counters.add("cache_hits", len(found))
        self._counters.add("cache_misses", len(contents) - len(found))
        return found

    def put_all(self, fingerprints: Iterable[Fingerprint], now: float) -> None:
        """Writes fingerprints until their expiry; a reviewer's is replaced by a reviewer's only. Too long ones are left out."""
        values = {found.content: (self._codec.encode(found), found.expires_at - now) for found in fingerprints}
        calls = {
            content: (value, max(1, int(left_s * 1000)))
            for content, (value, left_s) in values.items()
            if value is not None and left_s > 0
        }
        self._run(_PUT, calls)

    def touch(self, hits: Mapping[ContentId, int], expires_at: float, now: float) -> None:
        """Counts hits and extends the expiry to at least this time (Unix seconds)."""
        left_ms = max(1, int((expires_at - now) * 1000))
        self._run(_TOUCH, {content: (more, f"{expires_at:.3f}", left_ms) for content, more in hits.items()})

    def remove(self, contents: Sequence[ContentId]) -> None:
        """Deletes fingerprints."""
        self._run("return redis.call('DEL', KEYS[1])", dict.fromkeys(contents, ()))

    def close(self) -> None:
        """Closes the connections."""
        self._connection.close()

    def _take(self, content: ContentId, value: bytes, now: float, found: dict[ContentId, Fingerprint]) -> None:
        if not value:
            return
        fingerprint = self._codec.decode(content, value)
        if fingerprint is None:
            self._counters.add("cache_refused")
        elif fingerprint.expires_at > now:
            found[content] = fingerprint

    def _read(self, contents: Sequence[ContentId], client: Client) -> list[tuple[ContentId, bytes]]:
        try:
            return self._ask(contents, client)
        except NoScriptError:  # of a server that began anew, or of a new master
            for node, _ in self._together(client, contents):
                node.script_load(_READ)
            return self._ask(contents, client)

    def _ask(self, contents: Sequence[ContentId], client: Client) -> list[tuple[ContentId, bytes]]:
        found: list[tuple[ContentId, bytes]] = []
        for node, groups in self._together(client, contents):
            with node.pipeline(transaction=False) as pipeline:
                for group in groups:
                    keys = [key_of(self._space, content) for content in group]
                    pipeline.evalsha(_READ_SHA, len(keys), *keys)
                for group, answer in zip(groups, pipeline.execute(), strict=True):
                    found += zip(group, _values(answer, len(group)), strict=True)
        return found

    def _together(self, client: Client, contents: Sequence[ContentId]) -> list[tuple[Redis, list[Sequence[ContentId]]]]:
        """Returns the contents that one command can read, by node: those of a tag in a cluster, all of one server."""
        if not self._connection.is_cluster:
            return [(self._connection.of_node(client, ""), [contents])]
        by_tag = _by_tag(contents)
        return [(node, [by_tag[tag] for tag in tags]) for node, tags in self._nodes(client, by_tag)]

    def _run(self, script: str, calls: Mapping[ContentId, Sequence[Any]]) -> None:
        """Runs a script for each content, in one pipeline a node. It is loaded with the pipeline: a new master lacks it."""
        if calls:
            self._connection.use(lambda client: self._write(client, script, calls))

    def _write(self, client: Client, script: str, calls: Mapping[ContentId, Sequence[Any]]) -> None:
        sha = _sha_of(script)
        by_tag = _by_tag(calls)
        for node, tags in self._nodes(client, by_tag):
            with node.pipeline(transaction=False) as pipeline:
                pipeline.script_load(script)
                for tag in tags:
                    for content in by_tag[tag]:
                        pipeline.evalsha(sha, 1, key_of(self._space, content), *calls[content])
                pipeline.execute()

    def _nodes(self, client: Client, by_tag: Mapping[str, object]) -> list[tuple[Redis, list[str]]]:
        tags = self._connection.by_node(client, {tag: _SLOTS[tag] for tag in by_tag})
        return [(self._connection.of_node(client, name), of_node) for name, of_node in tags.items()]


def _sha_of(script: str) -> str:
    return sha1(script.encode(), usedforsecurity=False).hexdigest()


def _values(answer: bytes, count: int) -> Iterator[bytes]:
    """Yields the values of an answer of the script that reads: an array of texts in MessagePack.

    Raises:
        ValueError, LookupError, TypeError: it is no such answer.
    """
    head = bytes([0x90 | count]) if count < 16 else b"\xdc" + count.to_bytes(2)
    if not answer.startswith(head):
        raise ValueError("not an array of these values")
    at = len(head)
    for _ in range(count):
        mark = answer[at]
        if mark == 0xDA:
            size, at = answer[at + 1] << 8 | answer[at + 2], at + 3
        elif mark == 0xD9:
            size, at = answer[at + 1], at + 2
        elif 0xA0 <= mark <= 0xBF:
            size, at = mark & 0x1F, at + 1
        else:
            raise ValueError("a value is no text")
        yield answer[at : at + size]
        at += size
    if at != len(answer):
        raise ValueError("the values do not have the lengths that are told")


_READ_SHA: Final = _sha_of(_READ)


def _by_tag(contents: Iterable[ContentId]) -> dict[str, list[ContentId]]:
    by_tag: dict[str, list[ContentId]] = {}
    for content in contents:
        by_tag.setdefault(tag_of(content), []).append(content)
    return by_tag
