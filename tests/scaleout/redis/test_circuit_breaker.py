import logging

import pytest

from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.scaleout.redis.circuit_breaker import LONGEST_PAUSE_S, CircuitBreaker
from gatewayfilter.scaleout.redis.connection import RedisAwayError, RedisConnection


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_opens_at_a_failure_and_admits_one_try_after_each_pause(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = Clock()
    breaker = CircuitBreaker("the cache", "alone", clock)
    assert breaker.admits()
    assert breaker.succeeded() is False
    breaker.failed("TimeoutError")
    pauses = []
    for _ in range(6):
        begun = clock.now
        while not breaker.admits():
            clock.now += 0.1
        pauses.append(round(clock.now - begun, 1))
        assert not breaker.admits(), "others wait for the outcome"
        breaker.failed("TimeoutError")
    assert pauses == pytest.approx([0.5, 1.0, 2.0, 4.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S], abs=0.2)
    clock.now += 10
    assert breaker.admits()
    assert breaker.succeeded()
    assert breaker.admits()
    assert caplog.records[0].message.startswith("the cache does not answer (")
    assert len(caplog.records) == 2


def test_an_unreachable_server_is_an_error_of_ours_and_is_not_tried_twice() -> None:
    connection = RedisConnection("redis://:hush@127.0.0.1:1", 0.2, CircuitBreaker("the cache", "alone"))
    for _ in range(2):
        with pytest.raises(RedisAwayError) as caught:
            connection.use(lambda client: client.ping())
        assert isinstance(caught.value, GatewayFilterError)
        assert "hush" not in str(caught.value)
    assert connection.is_away
    connection.close()


def test_pauses_double_up_to_a_bound_and_end_at_their_moment(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    clock.now = 1_000.0
    breaker = CircuitBreaker("the cache", "alone", clock)
    states = [breaker.is_open]
    for pause_s in (0.5, 1.0, 2.0, 4.0, 5.0, 5.0):
        breaker.failed("why")
        states.append(breaker.is_open)
        for _ in range(2):  # who tried may never tell of the outcome
            clock.now += pause_s - 0.25
            assert breaker.admits() is False
            clock.now += 0.25
            assert breaker.admits()
    assert breaker.succeeded()
    assert [*states, breaker.is_open] == [False, *[True] * 6, False]
    assert caplog.messages == ["the cache does not answer (why): alone", "the cache answers again after 35.0 s"]
    breaker.failed("why")
    clock.now += 0.5
    assert breaker.admits(), "the pauses begin anew"
