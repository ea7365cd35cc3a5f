"""What the shared cache asks of Redis, over a double of the library: commands, nodes, scripts that were lost, and answers."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pytest
from redis.exceptions import NoScriptError

from gatewayfilter.model import Classification, ContentId, ContentKind, Fingerprint
from gatewayfilter.scaleout.redis import fingerprint_cache
from gatewayfilter.scaleout.redis.cached_value import HEAD_BYTES, JSON, MOST_BYTES, ValueCodec, key_of, tag_of
from gatewayfilter.scaleout.redis.fingerprint_cache import RedisFingerprintCache
from gatewayfilter.telemetry import Counters

CODEC = ValueCodec(b"k" * 32)
SAID = Classification("gambling", 42.5, 20.0, {"gambling": 42.5}, (), "Casino")


def content(number: int) -> ContentId:
    return ContentId(ContentKind.PAGE, bytes([number % 64]) + number.to_bytes(15), number.to_bytes(16))


def judged(number: int, until: float = 900.0, said: Classification = SAID) -> Fingerprint:
    return Fingerprint(content(number), said, "", "w", "http://a.test/", 7.0, until)


class Node:
    """A server: has values, a script once it is loaded, and notes what it is sent."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.has_script = True
        self._queued: list[tuple[Any, ...]] = []

    @contextmanager
    def pipeline(self, *, transaction: bool) -> Iterator["Node"]:
        assert not transaction
        self._queued = []
        yield self

    def script_load(self, script: str) -> None:
        self.calls.append(("load", script))
        self.has_script = True

    def evalsha(self, sha: str, count: int, *values: Any) -> None:
        self._queued.append((sha, count, *values))

    def execute(self) -> list[bytes]:
        if not self.has_script:
            raise NoScriptError
        self.calls += self._queued
        return [
            _packed([self.values.get(key, b"") for key in keys]) for _, count, *rest in self._queued for keys in [rest[:count]]
        ]


def _packed(values: list[bytes]) -> bytes:
    head = bytes([0x90 | len(values)]) if len(values) < 16 else b"\xdc" + len(values).to_bytes(2)
    return head + b"".join(b"\xda" + len(value).to_bytes(2) + value for value in values)


class Servers:
    """A connection to one node, or to two of a cluster that share the tags by their last bit."""

    def __init__(self, count: int = 1) -> None:
        self.nodes = [Node() for _ in range(count)]
        self.is_cluster = count > 1
        self.is_away = self.is_closed = False
        self.uses = 0

    def use(self, work: Callable[[Any], Any]) -> Any:
        self.uses += 1
        return work(self)

    def by_node(self, client: Any, slots: Mapping[str, int]) -> dict[str, list[str]]:
        assert client is self
        assert all(slots[tag] == fingerprint_cache._SLOTS[tag] for tag in slots)
        found: dict[str, list[str]] = {}
        for tag in slots:
            found.setdefault(str(int(tag, 16) % len(self.nodes)), []).append(tag)
        return found

    def of_node(self, _: Any, name: str) -> Node:
        return self.nodes[int(name or 0)]

    def close(self) -> None:
        self.is_closed = True

    def hold(self, *fingerprints: Fingerprint) -> None:
        for found in fingerprints:
            value = CODEC.encode(found)
            assert value is not None
            self.nodes[found.content.digest[0] % len(self.nodes)].values[key_of(CODEC.space, found.content)] = value

    def taken(self) -> list[tuple[Any, ...]]:
        found = [call for node in self.nodes for call in node.calls]
        for node in self.nodes:
            node.calls = []
        return found


def over(servers: Servers) -> tuple[RedisFingerprintCache, Counters]:
    counters = Counters()
    return RedisFingerprintCache(cast("Any", servers), CODEC, counters), counters


@pytest.mark.parametrize("count", [1, 2])
def test_hits_misses_and_refused_values_are_counted(count: int) -> None:
    servers = Servers(count)
    cache, counters = over(servers)
    servers.hold(judged(1), judged(2, until=100.0), judged(65))
    servers.nodes[3 % count].values[key_of(CODEC.space, content(3))] = b"1C" + b"x" * 60
    wanted = [content(number) for number in (1, 2, 3, 4, 65)]
    assert cache.find_all(wanted, 99.9) == {content(1): judged(1), content(2): judged(2, until=100.0), content(65): judged(65)}
    assert (counters["cache_hits"], counters["cache_misses"], counters["cache_refused"]) == (3, 2, 1)
    assert content(2) not in cache.find_all(wanted, 100.0), "it has expired"
    assert (counters["cache_hits"], counters["cache_misses"], counters["cache_refused"]) == (5, 5, 2)
    calls = servers.taken()
    tags = {tag_of(found) for found in wanted}
    assert len(calls) == (2 if count == 1 else 2 * len(tags))
    assert all(len({key.partition("}")[0] for key in keys}) == 1 for _, _, *keys in calls) is (count == 2)


def test_many_are_asked_for_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint_cache, "_BATCH", 2)
    servers = Servers()
    cache, counters = over(servers)
    servers.hold(*(judged(number) for number in range(5)))
    assert len(cache.find_all([content(number) for number in range(5)], 1.0)) == 5
    assert [count for _, count, *_ in servers.taken()] == [2, 2, 1]
    assert servers.uses == 3
    assert cache.find_all([], 1.0) == {}
    assert (servers.uses, counters["cache_hits"], counters["cache_misses"]) == (3, 5, 0)


@pytest.mark.parametrize("count", [1, 2])
def test_a_script_that_is_lost_is_loaded_where_it_is_asked_for(count: int) -> None:
    servers = Servers(count)
    cache, _ = over(servers)
    servers.hold(judged(1), judged(3))
    for node in servers.nodes:
        node.has_script = False
    assert len(cache.find_all([content(1), content(3)], 1.0)) == 2
    loads = [call for call in servers.taken() if call[0] == "load"]
    assert loads == [("load", fingerprint_cache._READ)]
    assert servers.nodes[0].has_script is (count == 1)


def test_values_are_written_for_the_time_that_is_left() -> None:
    servers = Servers(2)
    cache, _ = over(servers)
    long = Classification("", 1.0, 20.0, title="x" * MOST_BYTES)
    cache.put_all([judged(1, 100.0), judged(2, 50.0), judged(3, 50.0005), judged(4, said=long), judged(6, 51.5)], 50.0)
    load, *calls = servers.taken()
    put = load[1]
    written = {
        key: (value, left_ms) for _, count, key, value, left_ms in (call for call in calls if call[0] != "load") if count == 1
    }
    expected = {1: (100.0, 50_000), 3: (50.0005, 1), 6: (51.5, 1500)}
    assert written == {
        key_of(CODEC.space, content(number)): (CODEC.encode(judged(number, until)), left_ms)
        for number, (until, left_ms) in expected.items()
    }
    assert {call[0] for call in calls} == {"load", fingerprint_cache._sha_of(put)}
    assert [call[1] for call in calls if call[0] == "load"] == [put], "each node gets the script first"
    cache.put_all([judged(2, 50.0)], 50.0)
    cache.touch({}, 60.0, 50.0)
    cache.remove([])
    assert (servers.taken(), servers.uses) == ([], 1), "nothing to do is nothing sent"


def test_hits_and_removals_are_sent_with_their_arguments() -> None:
    servers = Servers()
    cache, _ = over(servers)
    cache.touch({content(1): 3, content(2): 1}, 60.25, 50.0)
    _, *calls = servers.taken()
    keys = [key_of(CODEC.space, content(number)) for number in (1, 2)]
    assert [call[1:] for call in calls] == [(1, keys[0], 3, "60.250", 10_250), (1, keys[1], 1, "60.250", 10_250)]
    cache.touch({content(1): 3}, 40.0, 50.0)
    assert servers.taken()[1][-1] == 1
    cache.remove([content(1)])
    load, call = servers.taken()
    assert "DEL" in load[1]
    assert call[1:] == (1, keys[0])
    servers.is_away = True
    assert cache.is_away
    cache.close()
    assert servers.is_closed


@pytest.mark.parametrize(("size", "is_written"), [(MOST_BYTES, True), (MOST_BYTES + 1, False)])
def test_the_longest_value(size: int, *, is_written: bool) -> None:
    """A text with NUL has no binary form, so each character of the title is a byte more of JSON."""
    empty = CODEC.encode(judged(1, said=Classification("", 1.0, 20.0, title="\0")))
    assert empty is not None
    assert empty[:1] == JSON
    value = CODEC.encode(judged(1, said=Classification("", 1.0, 20.0, title="\0" + "x" * (size - len(empty)))))
    assert (value is not None) is is_written
    if value is not None:
        assert len(value) == size
        assert CODEC.decode(content(1), value) is not None


def test_numbers_of_a_value_are_bounded() -> None:
    for hits, until, head in ((2**40, 1e12, b"800000009999999999.000"), (0, -5.0, b"000000000000000000.000")):
        found = Fingerprint(content(1), SAID, "", "w", "u", 7.0, until, hits)
        value = CODEC.encode(found)
        assert value is not None
        assert value[18:HEAD_BYTES] == head


@pytest.mark.parametrize("answers", [[], [b"\x91\xa0", b"\x91\xa0"]])
def test_a_server_that_gives_another_number_of_answers_is_no_miss(answers: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers()
    cache, counters = over(servers)
    monkeypatch.setattr(servers.nodes[0], "execute", lambda: answers)
    with pytest.raises(ValueError, match="zip"):
        cache.find_all([content(1)], 1.0)
    assert counters["cache_misses"] == 0


def test_texts_of_an_answer_have_the_three_heads_of_messagepack() -> None:
    for size in (0, 31, 32, 255, 256, 65_535):
        text = b"x" * size
        heads = [b"\xda" + size.to_bytes(2)]
        heads += [b"\xd9" + bytes([size])] if size < 256 else []
        heads += [bytes([0xA0 | size])] if size < 32 else []
        for head in heads:
            assert list(fingerprint_cache._values(b"\x91" + head + text, 1)) == [text]
    for count in (0, 1, 15, 16, 17, 2_000):
        texts = [b"%d" % number for number in range(count)]
        assert list(fingerprint_cache._values(_packed(texts), count)) == texts
    for mark in (0x9F, 0xC0, 0xD8, 0xDB):
        with pytest.raises(ValueError, match="no text"):
            list(fingerprint_cache._values(bytes([0x91, mark]) + b"x" * 40, 1))
    with pytest.raises(ValueError, match="not an array"):
        list(fingerprint_cache._values(b"\x92\xa0\xa0", 1))
    with pytest.raises(ValueError, match="lengths"):
        list(fingerprint_cache._values(b"\x91\xa0\xa0", 1))
