"""Unfinished heads of many connections: what is kept of them has a bound together."""

import asyncio
import gc

import pytest

from gatewayfilter.proxy.mitm.http import head_budget
from gatewayfilter.proxy.mitm.http.head_budget import FREE_BYTES, HeadBudget, HeldBytes
from tests.proxy.proxy_fakes import Gateway


def test_a_client_and_all_together_have_a_bound() -> None:
    budget = HeadBudget(most_of_client=100_000, most=250_000)
    kept = [HeldBytes(budget, f"192.0.2.{number}") for number in range(5)]
    assert [held.hold(90_000) for held in kept] == [True, True, False, False, False]
    assert budget.held == 180_000
    assert not HeldBytes(budget, "192.0.2.0").hold(20_000)
    assert kept[0].hold(95_000)
    assert kept[0].hold(10)
    assert HeldBytes(budget, "192.0.2.0").hold(90_000)


def test_what_is_small_is_not_counted() -> None:
    budget = HeadBudget(most_of_client=0, most=0)
    held = HeldBytes(budget, "192.0.2.1")
    assert held.hold(FREE_BYTES)
    assert budget.held == 0
    assert not held.hold(FREE_BYTES + 1)


def test_addresses_of_one_ipv6_network_count_together() -> None:
    budget = HeadBudget(most_of_client=100_000, most=1_000_000)
    kept = [HeldBytes(budget, f"2001:db8::{number:x}") for number in range(3)]
    assert [held.hold(60_000) for held in kept] == [True, False, False]


def test_what_is_forgotten_is_given_back() -> None:
    budget = HeadBudget()
    held = HeldBytes(budget, "192.0.2.1")
    held.hold(50_000)
    del held
    gc.collect()
    assert (budget.held, budget._of_client) == (0, {})


@pytest.mark.slow
async def test_unfinished_heads_of_one_client_do_not_add_up(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = HeadBudget(most_of_client=2_000_000, most=4_000_000)
    monkeypatch.setattr(head_budget, "_HEADS", budget)
    head = b"GET http://ok.example/ HTTP/1.1\r\nHost: ok.example\r\nX: " + b"x" * 200_000
    opened = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(40)]
    for _, writer in opened:
        writer.write(head)
    refused = 0
    for reader, _ in opened:
        try:
            async with asyncio.timeout(1.0 if refused < 30 else 0.05):
                refused += (await reader.read(12)) == b"HTTP/1.1 431"
        except TimeoutError:
            continue
        except ConnectionResetError:  # the answer went by: there was more to read
            refused += 1
    assert refused >= 30
    assert 0 < budget.held <= 2_000_000
    for _, writer in opened:
        writer.close()
    async with asyncio.timeout(10):
        while budget.held:
            gc.collect()
            await asyncio.sleep(0.01)
