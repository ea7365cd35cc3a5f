"""The frontier in Redis over a double of the library: what scripts are given, and how their answers are read."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from redis.exceptions import NoScriptError

from gatewayfilter.interfaces import CrawlRequest, Lease, Priority, QueuedUrl, QueueState
from gatewayfilter.scaleout.redis import frontier as module
from gatewayfilter.scaleout.redis import frontier_scripts as lua
from gatewayfilter.scaleout.redis.crawlers import RedisCrawlers
from gatewayfilter.scaleout.redis.frontier import MARK, PREFIX, RedisFrontier
from gatewayfilter.scaleout.redis.shared_state import RedisSharedState
from gatewayfilter.scaleout.sync.synchronizer import StreamPlace
from gatewayfilter.store.repositories.crawling.frontier import DEAD_KEEP_S, DEAD_REST_S, TASK_REST_S, USUAL_LENGTH
from gatewayfilter.store.repositories.crawling.frontier_holds import site_slot
from gatewayfilter.urls import digest_of

NOW = 1000.0
URL = "http://a.test/"
LEASE = Lease(URL, 10, 1, "redis-1", 1060.0)
BODIES = ("PUSH", "TAKE", "GIVE_BACK", "EXTEND", "STILL_HELD", "RELEASE", "SWEEP", "STATS", "PAGE", "REVIVE", "CLEAR")


class Server:
    """Answers each script from a list, and notes what it is given: name of the script, then arguments."""

    def __init__(self, **answers: list[Any]) -> None:
        self.answers = answers
        self.calls: list[tuple[Any, ...]] = []
        self.known: set[str] = set()

    def evalsha(self, sha: str, keys: int, key: str, *values: Any) -> Any:
        if sha not in self.known:
            raise NoScriptError
        return self._run(next(script for script in _scripts() if script.sha == sha), keys, key, values)

    def eval(self, text: str, keys: int, key: str, *values: Any) -> Any:
        script = next((script for script in _scripts() if script.text == text), None)
        if script is None:  # of another module
            self.calls.append((text, keys, key, *values))
            return self.answers["eval"].pop(0)
        self.known.add(script.sha)
        return self._run(script, keys, key, values)

    def _run(self, script: Any, keys: int, key: str, values: tuple[Any, ...]) -> Any:
        assert (keys, key) == (1, PREFIX)
        name = next(name for name in BODIES if script.text == lua.LIBRARY + getattr(lua, name))
        self.calls.append((name, *values))
        return self.answers[name].pop(0)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            self.calls.append((name, *values))
            return self.answers[name].pop(0)

        return call

    def use(self, work: Callable[[Any], Any]) -> Any:
        return work(self)

    def ask(self, work: Callable[[Any], Any], read: Callable[[Any], Any]) -> Any:
        return read(work(self))


def _scripts() -> list[Any]:
    return [getattr(module, f"_{name}") for name in BODIES]


def frontier(*, server_clock: bool = True, max_waiting: int = 200, **answers: list[Any]) -> tuple[RedisFrontier, Server]:
    server = Server(**answers)
    connection: Any = server
    return RedisFrontier(connection, max_waiting=max_waiting, clock=lambda: NOW, server_clock=server_clock), server


def test_urls_are_pushed_in_parts_and_the_queue_is_swept_once_a_minute() -> None:
    queue, server = frontier(SWEEP=[0, 0], PUSH=[(b"500", b"0"), (b"90", b"11"), (b"1", b"0"), (b"1", b"0")])
    assert queue.add([CrawlRequest(f"http://h{number}.test/") for number in range(601)], NOW) == 590
    assert queue.refused == 11
    (sweep, first, second), server.calls = server.calls, []
    assert sweep == ("SWEEP", repr(NOW), "1", 400, DEAD_KEEP_S, 2000)
    assert (first[:5], second[:5]) == (("PUSH", repr(NOW), "1", DEAD_REST_S, TASK_REST_S),) * 2
    assert (len(first) - 5, len(second) - 5) == (500 * 8, 101 * 8)
    queue.add([CrawlRequest(URL)], NOW + 59.9)
    queue.add([CrawlRequest(URL)], NOW + 60.0)
    assert [call[0] for call in server.calls] == ["PUSH", "SWEEP", "PUSH"]


def test_a_row_has_all_of_an_offer_and_its_bound() -> None:
    long = "http://a.test/" + "x" * (2 * USUAL_LENGTH - 14)
    bare = "no URL"
    offers = [
        CrawlRequest(URL, Priority.LINK, 5.5, "news", 3),
        CrawlRequest(long, Priority.LINK),
        CrawlRequest(bare, Priority.VISIT),
    ]
    queue, server = frontier(server_clock=False, SWEEP=[0], PUSH=[(b"3", b"0")])
    queue.add(offers, NOW)
    _, (_, _, mode, _, _, *row) = server.calls
    slots = [f"{site_slot(offer.url):04x}" for offer in offers]
    assert mode == "0"
    assert row[:8] == [digest_of(URL).hex(), URL, 100, "5.5", "news", 3, slots[0], 200.0]
    assert row[8:16] == [digest_of(long).hex(), long, 100, "0.0", "", 0, slots[1], 100.0]
    assert row[16:] == [digest_of(bare).hex(), bare, 10, "0.0", "", 0, "ffff", 400.0]


def test_leases_come_in_parts_until_there_are_no_more() -> None:
    def rows(count: int) -> list[list[bytes]]:
        return [[b"http://a.test/%d" % number, b"10", b"2", b"news", b"3"] for number in range(count)]

    queue, server = frontier(TAKE=[rows(1000), rows(200), rows(2), [], rows(1)])
    found = queue.lease(1500, 60.0, NOW, [1, 0xAB], "me")
    assert len(found) == 1200
    token = found[0].token
    assert found[1] == Lease("http://a.test/1", 10, 2, token, NOW + 60.0, "news", 3)
    assert token.startswith(MARK)
    assert len(token) == len(MARK) + 16
    assert server.calls == [
        ("TAKE", repr(NOW), "1", 1000, 60.0, token, "me", "000100abffff"),
        ("TAKE", repr(NOW), "1", 500, 60.0, token, "me", "000100abffff"),
    ]
    assert [len(queue.lease(2, 60.0, NOW)), len(queue.lease(2, 60.0, NOW, []))] == [2, 0]
    assert [call[-1] for call in server.calls[2:]] == ["", "ffff"]
    assert len(queue.lease(1, 60.0, NOW)) == 1
    assert queue.lease(0, 60.0, NOW) == []
    assert len(server.calls) == 5


def test_leases_are_given_back_with_their_new_state() -> None:
    queue, server = frontier(GIVE_BACK=[1, 0, 1, 1, 1, 1, 1, 1])
    assert queue.done(LEASE)
    assert not queue.done(LEASE, 9.5)
    assert queue.retry(LEASE, 8.5, "busy")
    assert queue.retry(LEASE, 8.5, "busy", counted=False)
    assert queue.again(LEASE, 7.5, Priority.RECHECK)
    assert queue.dead_letter(LEASE, "gone")
    other = Lease("http://b.test/", 10, 1, "redis-2", 1.0)
    queue.done_all([(LEASE, 0.0), (other, 6.5), (other, 0.0)])
    head, held, more = (repr(NOW), "1"), (digest_of(URL).hex(), "redis-1"), (digest_of(other.url).hex(), "redis-2")
    assert [call[1:] for call in server.calls] == [
        (*head, "", "0.0", "", "0", "", "", *held),
        (*head, "done", "9.5", "", "0", "", "", *held),
        (*head, "waiting", "8.5", "busy", "0", "", "1", *held),
        (*head, "waiting", "8.5", "busy", "-1", "", "1", *held),
        (*head, "waiting", "7.5", "", "", 50, "1", *held),
        (*head, "dead", "1060.0", "gone", "0", "", "", *held),
        (*head, "", "0.0", "", "0", "", "", *held, *more),
        (*head, "done", "6.5", "", "0", "", "", *more),
    ]


def test_leases_are_extended_released_and_looked_up() -> None:
    queue, server = frontier(EXTEND=[1, 0], RELEASE=[b"4", b"5"], STILL_HELD=[[b"1"], [b"0"]])
    assert queue.extend(LEASE, 30.0)
    assert not queue.extend(LEASE, 30.0)
    assert (queue.release(["a", "b"], 5.0), queue.release_except(["a"], 6.0)) == (4, 5)
    leases = [Lease(f"http://h{number}.test/", 10, 1, f"redis-{number}", 1.0) for number in range(501)]
    assert queue.still_held(leases) == [leases[1], leases[500]]
    extended, _, some, others, first, second = server.calls
    assert extended == ("EXTEND", repr(NOW), "1", 30.0, digest_of(URL).hex(), "redis-1")
    assert (some, others) == (("RELEASE", "5.0", "1", "1", "a", "b"), ("RELEASE", "6.0", "1", "0", "a"))
    assert (len(first), second) == (3 + 1000, ("STILL_HELD", repr(NOW), "1", digest_of(leases[500].url).hex(), "redis-500"))


def test_counts_and_the_oldest_that_waits() -> None:
    counts = [b"7", b"6", b"5", b"4", b"3", b"900.5", b"100.25"]
    queue, _ = frontier(STATS=[counts, counts, counts, [*counts[:5], b"", b"0"]])
    assert queue.stats(NOW) == {"waiting": 7, "due": 6, "leased": 5, "done": 4, "dead": 3}
    assert queue.waiting(800.25) == (7, 800.25)
    assert queue.waiting(800.0) == (7, None), "it is not due yet"
    assert queue.waiting(NOW) == (7, None)


def test_an_answer_with_other_counts_is_none() -> None:
    queue, _ = frontier(STATS=[[b"7", b"6", b"5", b"4"]])
    with pytest.raises(ValueError, match="zip"):
        queue.stats(NOW)
    server = Server(hmget=[[b"1"]])
    with pytest.raises(ValueError, match="zip"):
        RedisSharedState(cast("Any", server), "s").values(["a", "b"])


def test_pages_end_where_there_are_no_more_rows() -> None:
    def row(number: int, state: bytes = b"waiting", at: bytes = b"50.5") -> list[bytes]:
        place = b"%012x" % (number + 16)
        return [b"http://a.test/%d" % number, b"10", state, b"2", at, b"busy", b"news", b"3", b"50.5", place + b"~x"]

    two = [b"10.25", [row(0, b"done"), row(1, at=b"0")]]
    queue, server = frontier(PAGE=[two, two, [b"0", [row(0)]], [b"0", []], [b"0", [row(0)]]])
    first = QueuedUrl("http://a.test/0", 10, QueueState.DONE, 2, 40.25, "busy", "news", 3)
    second = QueuedUrl("http://a.test/1", 10, QueueState.WAITING, 2, 0.0, "busy", "news", 3)
    assert queue.page(1, QueueState.DONE, (10, 50.5, 15)) == ([first], (10, 50.5, 16))
    assert queue.page(2) == ([first, second], None)
    assert [found.url for found in queue.show(9, QueueState.DEAD)] == ["http://a.test/0"]
    assert queue.page(9) == ([], None)
    assert queue.page(0) == ([], None)
    head = ("PAGE", repr(NOW), "1")
    assert server.calls == [
        (*head, 2, "done", 10, "50.5", "00000000000f~"),
        (*head, 3, "", "", "", ""),
        (*head, 10, "dead", "", "", ""),
        (*head, 10, "", "", "", ""),
        (*head, 1, "", "", "", ""),
    ]


def test_the_whole_queue_is_changed_in_parts() -> None:
    queue, server = frontier(REVIVE=[500, 3, 0], CLEAR=[500, 0, 2, 0, 0])
    assert (queue.revive(), queue.clear(), queue.clear("news"), queue.clear("")) == (503, 500, 2, 0)
    assert server.calls[0] == ("REVIVE", repr(NOW), "1", 500)
    assert [call[3:] for call in server.calls[3:]] == [(500, "0", "")] * 2 + [(500, "1", "news")] * 2 + [(500, "1", "")]


def test_the_pause_and_tasks_are_read_from_hashes() -> None:
    queue, server = frontier(
        hsetnx=[1, 0], hdel=[1, 0], hget=[b"5.5", None], hgetall=[{b"waiting:news": b"3", b"dead:news": b"1", b"done:": b"2"}]
    )
    assert (queue.pause(5.5), queue.pause(6.0), queue.resume(), queue.resume()) == (True, False, True, False)
    assert (queue.paused_since(), queue.paused_since()) == (5.5, None)
    assert queue.tasks() == {"news": {"waiting": 3, "dead": 1}, "": {"done": 2}}
    assert server.calls[0] == ("hsetnx", f"{PREFIX}meta", "paused", "5.5")
    assert server.calls[2] == ("hdel", f"{PREFIX}meta", "paused")
    assert server.calls[4] == ("hget", f"{PREFIX}meta", "paused")


def test_a_script_is_sent_once_to_a_server_that_lacks_it() -> None:
    queue, server = frontier(EXTEND=[1, 1])
    queue.extend(LEASE, 1.0)
    known = set(server.known)
    queue.extend(LEASE, 1.0)
    assert len(known) == 1
    assert server.known == known
    assert len(server.calls) == 2


def test_heartbeats() -> None:
    server = Server(eval=[1, [b"b", b"a"], 1], zrem=[1, 0])
    crawlers = RedisCrawlers(cast("Any", server), clock=lambda: NOW, kind="gateways")
    crawlers.beat("a", 5.5)
    assert crawlers.alive(4.5) == ["a", "b"]
    assert (crawlers.leave("a"), crawlers.leave("a")) == (True, False)
    RedisCrawlers(cast("Any", server), server_clock=False).beat("a", 5.5)
    beat, alive, left, _, plain = server.calls
    assert beat[1:] == (1, f"{PREFIX}gateways", "5.5", "1", 10_000, 86_400.0, "a")
    assert alive[1:] == (1, f"{PREFIX}gateways", repr(NOW), "1", 10_000, 86_400.0, "4.5")
    assert left == ("zrem", f"{PREFIX}gateways", "a")
    assert plain[2:5] == (f"{PREFIX}crawlers", "5.5", "0")


def test_the_state_that_gateways_share() -> None:
    server = Server(
        eval=[[b"e", 7, 1, b"x", b"y"], [b"", 0, 0], 1, 1], hmget=[[b"1"] * 999 + [None], [b"2"]], hgetall=[{b"a": b"1"}]
    )
    state = RedisSharedState(cast("Any", server), "s", kept=100)
    assert state.after(StreamPlace("e", 5)) == (StreamPlace("e", 7), frozenset({"x", "y"}))
    assert state.after(StreamPlace()) == (StreamPlace("", 0), None)
    keys = tuple(f"{PREFIX}sync:s:{name}" for name in ("values", "stream", "number", "epoch"))
    assert server.calls[0][1:] == (4, *keys, "e", 5, 1000)
    names = [f"{number:04d}" for number in range(1001)]
    found = state.values(reversed(names))
    assert (len(found), found["0000"], found["1000"], "0999" in found) == (1000, b"1", b"2", False)
    assert server.calls[3] == ("hmget", keys[0], ["1000"])
    assert state.all() == {"a": b"1"}
    state.put({f"{number}": b"v" for number in range(201)})
    first, second = server.calls[-2:]
    assert (first[1:6], first[7:11]) == ((4, *keys), (400_000, 100, "0", b"v"))
    assert (len(first), second[7:]) == (9 + 400, (400_000, 100, "200", b"v"))
    assert len(first[6]) == 16
