"""Passwords are looked at in turns: what one client sends holds up no other."""

import asyncio
import threading

import pytest

from gatewayfilter.addresses.client_network import network_of
from gatewayfilter.proxy.auth import password_check_queue
from gatewayfilter.proxy.auth.password_check_queue import MOST_OF_NETWORK, MOST_WAITING, LoginTurns, Outcome
from tests.case_tables import all_cases


def _wrong() -> bool:
    return False


def _right() -> bool:
    return True


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_check_queue, "FIRST_PAUSE_S", 0.0)


async def test_wrong_passwords_of_one_client_do_not_hold_up_another() -> None:
    turns = LoginTurns()
    flood = [asyncio.create_task(turns.attempt("192.0.2.1", bytes([number]), _wrong)) for number in range(200)]
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        assert await turns.attempt("192.0.2.2", b"good", _right) is Outcome.RIGHT
    assert sum(not task.done() for task in flood) >= MOST_WAITING - 1
    for task in flood:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)


async def test_a_client_has_one_password_looked_at_at_a_time(no_pause: None) -> None:
    turns, now, most, lock = LoginTurns(), 0, 0, threading.Lock()

    def verify() -> bool:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.01)
        with lock:
            now -= 1
        return False

    found = await asyncio.gather(*(turns.attempt("192.0.2.1", bytes([number]), verify) for number in range(MOST_WAITING)))
    assert (set(found), most) == ({Outcome.WRONG}, 1)


async def test_more_than_may_wait_are_put_off_and_the_place_is_free_again(no_pause: None) -> None:
    turns = LoginTurns()
    found = await asyncio.gather(*(turns.attempt("192.0.2.1", bytes([number]), _right) for number in range(MOST_WAITING + 5)))
    assert [found.count(outcome) for outcome in (Outcome.RIGHT, Outcome.TOO_MANY)] == [MOST_WAITING, 5]
    assert await turns.attempt("192.0.2.1", b"new", _right) is Outcome.RIGHT
    assert turns._networks == {}


async def test_the_addresses_of_one_ipv6_network_have_a_bound_together(no_pause: None) -> None:
    turns = LoginTurns()
    addresses = [f"2001:db8::{number:x}" for number in range(MOST_OF_NETWORK + 9)]
    found = await asyncio.gather(*(turns.attempt(address, b"x", _right) for address in addresses))
    assert found.count(Outcome.TOO_MANY) == 9


async def test_a_wrong_password_that_comes_again_is_not_looked_at_again(no_pause: None) -> None:
    turns, looked = LoginTurns(), list[int]()

    def verify() -> bool:
        looked.append(1)
        return False

    for _ in range(5):
        assert await turns.attempt("192.0.2.1", b"old", verify) is Outcome.WRONG
    found = await asyncio.gather(*(turns.attempt("192.0.2.2", b"old", verify) for _ in range(5)))
    assert set(found) == {Outcome.WRONG}
    assert len(looked) == 2


async def test_the_pause_grows_with_each_failure_and_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []
    now = 1_000.0

    async def sleep(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr("gatewayfilter.proxy.auth.password_check_queue.asyncio.sleep", sleep)
    turns = LoginTurns(lambda: now)
    for number in range(6):
        await turns.attempt("192.0.2.1", bytes([number]), _wrong)
    await turns.attempt("192.0.2.2", b"x", _wrong)
    now += 61.0
    await turns.attempt("192.0.2.1", b"y", _wrong)
    assert paused == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 0.5, 0.5]


async def test_what_is_known_of_clients_is_bounded(no_pause: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_check_queue, "_MOST_CLIENTS", 10)
    turns = LoginTurns()
    for number in range(40):
        await turns.attempt(f"192.0.2.{number}", b"x", _wrong)
    for number in range(40):
        await turns.attempt("192.0.2.1", bytes([number]), _wrong)
    assert len(turns._clients) == 10
    assert len(turns._clients["192.0.2.1"].wrong) == password_check_queue._MOST_WRONG


async def test_a_wrong_password_that_comes_again_is_answered_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr("gatewayfilter.proxy.auth.password_check_queue.asyncio.sleep", sleep)
    turns = LoginTurns()
    for _ in range(3):
        assert await turns.attempt("192.0.2.1", b"old", _wrong) is Outcome.WRONG
    assert paused == [0.5, 0.5, 0.5]


async def test_clients_that_wait_are_not_forgotten_for_others(no_pause: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_check_queue, "_MOST_CLIENTS", 2)
    turns, may_go_on = LoginTurns(), threading.Event()

    def verify() -> bool:
        return may_go_on.wait(5)

    assert await turns.attempt("192.0.2.9", b"old", _wrong) is Outcome.WRONG
    waiting = [asyncio.create_task(turns.attempt(f"192.0.2.{number}", b"x", verify)) for number in (1, 2)]
    await asyncio.sleep(0)
    assert await turns.attempt("192.0.2.3", b"x", _right) is Outcome.TOO_MANY
    may_go_on.set()
    assert await asyncio.gather(*waiting) == [Outcome.RIGHT] * 2
    assert await turns.attempt("192.0.2.3", b"x", _right) is Outcome.RIGHT


@all_cases(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "20010db800010002/64"),
        ("2001:db8:1:2::1%eth0", "20010db800010002/64"),
        ("2001:db8:1:3::1", "20010db800010003/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("", ""),
    ],
)
def test_networks(address: str, network: str) -> None:
    assert network_of(address) == network
