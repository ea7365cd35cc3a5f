from collections import Counter

import pytest

from gatewayfilter.crawl.net import proxy_pool
from gatewayfilter.crawl.net.proxy_pool import READMIT_S, ProxyPool, proxy_address, read_proxies
from gatewayfilter.errors import ConfigError
from tests.case_tables import all_cases

A, B, C = (f"http://{name}.example:3128" for name in "abc")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pool(clock: Clock) -> ProxyPool:
    pool = ProxyPool([A, B, C], clock=clock)
    for address, elapsed_ms in ((A, 300.0), (B, 100.0), (C, 200.0)):
        pool.succeeded(address, elapsed_ms)
    return pool


def test_a_domain_begins_with_the_best_and_sees_them_all(pool: ProxyPool) -> None:
    assert [pool.choose("www.one.example") for _ in range(4)] == [B, C, A, B]
    assert pool.choose("img.one.example") == C
    assert pool.choose("two.test") == B


def test_without_proxies_there_is_none() -> None:
    assert ProxyPool().choose("one.example") == ""


def test_a_slow_one_falls_behind(pool: ProxyPool) -> None:
    for _ in range(10):
        pool.succeeded(B, 5000.0)
    assert [pool.choose("one.example") for _ in range(3)] == [C, A, B]


def test_a_dead_one_is_dropped_and_comes_back_when_it_answers(pool: ProxyPool, clock: Clock) -> None:
    for _ in range(3):
        pool.failed(B)
    assert Counter(pool.choose("one.example") for _ in range(10)) == {C: 5, A: 5}
    assert pool.due() == []
    clock.now += READMIT_S
    assert pool.due() == [B]
    pool.succeeded(B, 100.0)
    assert pool.due() == []
    assert pool.choose("other.example") == B


def test_one_that_stays_dead_is_tried_less_and_less(pool: ProxyPool, clock: Clock) -> None:
    rests = []
    for _ in range(8):
        for _ in range(3):
            pool.failed(B)
        (proxy,) = [proxy for proxy in pool.proxies() if proxy.address == B]
        rests.append(proxy.dropped_until - clock.now)
    assert rests[0] == READMIT_S
    assert rests[1] > READMIT_S
    assert rests == sorted(rests)
    assert rests[-1] <= proxy_pool.READMIT_MOST_S


def test_one_failure_puts_a_proxy_behind_those_without(pool: ProxyPool) -> None:
    pool.failed(B)
    assert [pool.choose("one.example") for _ in range(3)] == [C, A, B]


def test_proxies_that_tell_whom_they_work_for_can_be_left_out() -> None:
    pool = ProxyPool([A, B], anonymous_only=True)
    pool.succeeded(A, 10.0, anonymous=False)
    pool.succeeded(B, 99.0, anonymous=True)
    assert {pool.choose("one.example") for _ in range(4)} == {B}
    pool.succeeded(A, 10.0)
    assert {pool.choose("one.example") for _ in range(4)} == {B}


def test_new_ones_are_due_and_known_ones_keep_what_is_known(pool: ProxyPool) -> None:
    assert pool.add(["d.example:80", "b.example:3128"]) == 1
    assert pool.due() == ["http://d.example:80"]
    assert len(pool) == 4
    assert pool.remove("d.example:80")
    assert not pool.remove("d.example:80")
    pool.failed("http://d.example:80")
    pool.succeeded("http://d.example:80", 1.0)
    assert [proxy.address for proxy in pool.proxies()] == [B, C, A]


def test_the_memory_of_domains_is_bounded(pool: ProxyPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_pool, "MAX_DOMAINS", 2)
    for domain in ("one.example", "two.test", "three.test"):
        pool.choose(domain)
    assert pool.choose("one.example") == B
    assert pool.choose("three.test") == C


@all_cases(
    ("text", "address"),
    [
        ("proxy.example:3128", "http://proxy.example:3128"),
        (" https://proxy.example:443/ ", "https://proxy.example:443"),
        ("http://user:pass@proxy.example:80", "http://user:pass@proxy.example:80"),
        ("[2001:db8::7]:80", "http://[2001:db8::7]:80"),
    ],
)
def test_addresses(text: str, address: str) -> None:
    assert proxy_address(text) == address


@all_cases("text", ["", "proxy.example", "proxy.example:0", "proxy.example:70000", "socks5://a:1", ":80", "http://a:80/path"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(ConfigError, match="not the address of a proxy"):
        proxy_address(text)


def test_a_list_of_proxies_names_the_lines_that_are_none() -> None:
    assert read_proxies("# mine\na.example:1\n\nnonsense\nb.example:2 # good\n") == (
        ["http://a.example:1", "http://b.example:2"],
        [4],
    )


def rated(pool: ProxyPool, address: str) -> proxy_pool.PooledProxy:
    return next(proxy for proxy in pool.proxies() if proxy.address == address)


def test_response_times_are_smoothed(pool: ProxyPool) -> None:
    pool.succeeded(A, 100.0)
    assert rated(pool, A).response_ms == pytest.approx(300.0 + 0.3 * (100.0 - 300.0))
    assert (rated(pool, A).successes, rated(pool, A).anonymous) == (2, None)
    pool.succeeded(A, 100.0, anonymous=True)
    pool.succeeded(A, 100.0)
    assert rated(pool, A).anonymous is True


def test_a_proxy_is_dropped_at_the_third_failure_for_three_times_as_long_each_time(pool: ProxyPool, clock: Clock) -> None:
    for _ in range(2):
        pool.failed(B)
    assert rated(pool, B).in_use
    rests = []
    for _ in range(13):
        pool.failed(B)
        rests.append(rated(pool, B).dropped_until - clock.now)
    assert rests == [60.0, 180.0, 540.0, 1620.0, 4860.0, 14_580.0, *[21_600.0] * 7]
    clock.now += 21_600.0 - 0.1
    assert pool.due() == []
    clock.now += 0.1
    assert pool.due() == [B]
    pool.succeeded(B, 10.0)
    assert (rated(pool, B).failures, rated(pool, B).dropped_until) == (0, 0.0)
    for _ in range(3):
        pool.failed(B)
    assert rated(pool, B).dropped_until - clock.now == READMIT_S


def test_one_that_never_answered_comes_behind_those_that_did(pool: ProxyPool) -> None:
    pool.add(["d.example:80"])
    assert [pool.choose("one.example") for _ in range(4)] == [B, C, A, "http://d.example:80"]
    pool.failed("http://d.example:80")
    assert pool.due() == []


@all_cases("text", ["a.example:1", "a.example:65535", "https://a:1"])
def test_the_first_and_the_last_port(text: str) -> None:
    assert proxy_address(text).endswith(text)


@all_cases("text", ["a.example:65536", "a.example:-1", "https://a:1/b", "http://a/b:80", "a:b:", "x" * 100])
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        proxy_address(text)
    assert str(raised.value).startswith(f"{text[:80]!r} is not")
