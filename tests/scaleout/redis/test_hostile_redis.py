"""A server in the place of Redis that answers garbage, and keys of the queue that others removed or wrote."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.model import ContentId, ContentKind
from gatewayfilter.scaleout.redis import fingerprint_cache
from gatewayfilter.scaleout.redis.cached_value import ValueCodec
from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker
from gatewayfilter.scaleout.redis.connection import RedisAwayError, RedisConnection
from gatewayfilter.scaleout.redis.crawlers import RedisCrawlers
from gatewayfilter.scaleout.redis.deadline import OperationLimit
from gatewayfilter.scaleout.redis.fingerprint_cache import RedisFingerprintCache
from gatewayfilter.scaleout.redis.frontier import PREFIX, RedisFrontier
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases
from tests.scaleout.redis.redis_servers import Server, why_not
from tests.scaleout.redis.shared_state import connection_to

SECRET = "hunter2"
CONTENT = ContentId(ContentKind.PAGE, b"a" * 16, b"b" * 16)
ANSWERS = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no number": b":abc\r\n",
    "no length": b"$zzz\r\n",
    "length of exabytes": b"*99999999999999999999\r\n",
    "nested": b"*1\r\n" * 20_000,
    "words with a password": f"-ERR \x1b[2J AUTH {SECRET}\r\n".encode(),
    "moved in a circle": b"-MOVED 5 127.0.0.1:1\r\n",
    "rows of other types": b"*1\r\n*5\r\n$-1\r\n$3\r\nabc\r\n*0\r\n+x\r\n+y\r\n",
    "a map of lists": b"*2\r\n*0\r\n*0\r\n",
    "a text": b"$3\r\nabc\r\n",
    "no script for ever": b"-NOSCRIPT No matching script.\r\n",
    "a length that lies": b"$4\r\n\x91\xa9ab\r\n",
    "a text that ends early": b"$2\r\n\x91\xda\r\n",
    "more texts than keys": b"$5\r\n\x92\xa1a\xa1b\r\n",
    "no text": b"$2\r\n\x91\x01\r\n",
    "bytes": bytes(range(256)),
}
CALLS: list[Callable[[RedisConnection], object]] = [
    lambda there: RedisFingerprintCache(there, ValueCodec(b"k" * 32), Counters()).find_all([CONTENT], 1.0),
    lambda there: RedisFrontier(there).add([CrawlRequest("http://a.example/")], 1.0),
    lambda there: RedisFrontier(there).lease(3, 5.0, 1.0),
    lambda there: RedisFrontier(there).stats(1.0),
    lambda there: RedisFrontier(there).waiting(1.0),
    lambda there: RedisFrontier(there).page(3),
    lambda there: RedisFrontier(there).tasks(),
    lambda there: RedisFrontier(there).paused_since(),
    lambda there: RedisCrawlers(there).alive(1.0),
]


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A server that lets each client in, and gives the same answer to all that follows. Yields its port."""

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65_536):
                    greets = any(word in data for word in (b"AUTH", b"SETINFO", b"HELLO"))
                    connection.sendall(b"+OK\r\n" * max(1, data.count(b"SETINFO")) if greets else answer * 3)
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["redis", "redis-cluster"])
def test_a_server_that_answers_garbage_is_away(scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sentences: list[str] = []
    for name, answer in ANSWERS.items():
        with answering(answer) as port:
            for number, call in enumerate(CALLS):
                url = f"{scheme}://user:{SECRET}@127.0.0.1:{port}"
                with closing(RedisConnection(url, 0.03, CircuitBreaker("Redis", "without it"))) as there:
                    try:
                        call(there)
                    except RedisAwayError as away:
                        sentences.append(str(away))
                    except Exception as error:
                        raise AssertionError(f"{name}, call {number}") from error
    assert sentences
    assert all(text.isprintable() and SECRET not in text for text in sentences)
    assert SECRET not in caplog.text


@contextmanager
def dripping(begin: bytes, part: bytes, every_s: float) -> Iterator[int]:
    """A server that begins an answer to each command, and sends a part of it again and again. Yields its port."""

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65_536)
                connection.sendall(begin)
                while not ended.wait(every_s):
                    connection.sendall(part)
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    ended = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        ended.set()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["redis", "redis-cluster"])
@pytest.mark.parametrize(
    ("begin", "part", "every_s"),
    [(b"$1000000\r\n", b"x", 0.005), (b"", b"", 60.0), (b"*1000000\r\n", b":1\r\n", 0.005), (b"+", b"x" * 65_536, 0.0)],
    ids=["drips", "hangs", "drips rows", "never ends"],
)
def test_a_server_that_drips_holds_no_caller(scheme: str, begin: bytes, part: bytes, every_s: float) -> None:
    breaker = CircuitBreaker("Redis", "without it")
    with dripping(begin, part, every_s) as port, closing(RedisConnection(f"{scheme}://127.0.0.1:{port}", 0.03, breaker)) as there:
        began = time.monotonic()
        with pytest.raises(RedisAwayError):
            there.use(lambda client: client.get("a"))
        assert time.monotonic() - began < 20  # without a deadline it never ends
        with pytest.raises(RedisAwayError):  # and the breaker lets nobody else wait
            there.use(lambda client: client.get("a"))


def packed(text: bytes) -> bytes:
    """A text in MessagePack."""
    size = len(text)
    if size < 32:
        return bytes([0xA0 | size]) + text
    return (b"\xd9" + bytes([size]) if size < 256 else b"\xda" + size.to_bytes(2)) + text


@all_cases("count", [0, 1, 15, 16, 300, 2000])
def test_values_of_any_length_come_apart(count: int) -> None:
    values = [b"x" * (number % 5 * 100) + b"y" * (number % 40) for number in range(count)]
    values[-1:] = [b"z" * 32_769][:count]
    head = bytes([0x90 | count]) if count < 16 else b"\xdc" + count.to_bytes(2)
    answer = head + b"".join(map(packed, values))
    assert list(fingerprint_cache._values(answer, count)) == values
    for wrong in (answer + b"x", answer[:-1], b"\xc0" + answer):
        with pytest.raises((ValueError, LookupError)):
            list(fingerprint_cache._values(wrong, count))


def test_the_limit_bounds_time_and_bytes_of_a_thread() -> None:
    now = [0.0]
    limit = OperationLimit(most_bytes=10, clock=lambda: now[0])
    assert limit.wait_s(3.0) == 3.0
    with limit.within(5.0):
        assert limit.wait_s(None) == 5.0
        now[0] = 4.0
        assert limit.wait_s(3.0) == 1.0
        limit.received(10)
        with pytest.raises(TimeoutError, match="too long"):
            limit.received(1)
        now[0] = 5.0
        with pytest.raises(TimeoutError, match="took too long"):
            limit.wait_s(3.0)
    assert limit.wait_s(None) is None
    limit.received(1_000)


@pytest.mark.services
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_urls_whose_record_is_gone_do_not_stop_the_queue(redis: Server) -> None:
    queue, now = RedisFrontier(connection_to(redis)), time.time()
    urls = [f"http://{name}.example/" for name in "abcdef"]
    queue.add(map(CrawlRequest, urls), now)
    leased = {lease.url for lease in queue.lease(2, 0.05, now)}
    assert len(leased) == 2
    removed = {url.encode() for url in (*leased, *urls[3:5])}
    with closing(redis.client()) as client:
        gone = [key for key in client.scan_iter(f"{PREFIX}u:*") if client.hget(key, "url") in removed]
        client.delete(*gone)
    time.sleep(0.1)
    left = set(urls) - leased - set(urls[3:5])
    assert {row.url for row in queue.show(10)} == left
    assert {lease.url for lease in queue.lease(9, 60.0, now)} == left
    assert queue.stats(now)["leased"] == len(left)
    assert not queue.stats(now)["waiting"]
