"""Unfinished heads of many connections: what is kept of them has a bound together."""

import asyncio
import gc
from typing import Any

import pytest
from mitmproxy.connection import Client

from gatewayfilter.proxy.mitm.http import head_budget
from gatewayfilter.proxy.mitm.http.head_budget import FREE_BYTES, HeadBudget, HeldBytes, held_by
from tests.proxy.proxy_fakes import Gateway


def test_a_client_and_all_together_have_a_bound() -> None:
    budget = HeadBudget(most_of_client=100_000, most=250_000)
    kept = [HeldBytes(budget, f"192.0.2.{number}") for number in range(5)]
    assert [held.hold(90_000) for held in kept] == [True, True, False, False, False]
    assert budget.held == 180_000
    assert HeldBytes(budget, "192.0.2.0").hold(20_000) is False
    assert kept[0].hold(95_000)
    assert kept[0].hold(10)
    assert HeldBytes(budget, "192.0.2.0").hold(90_000)


def test_the_bounds_may_be_met_exactly() -> None:
    budget = HeadBudget(most_of_client=20_000, most=30_000)
    one, other = HeldBytes(budget, "192.0.2.1"), HeldBytes(budget, "192.0.2.2")
    assert one.hold(20_000)
    assert one.hold(20_001) is False
    assert (budget.held, budget._of_client) == (0, {}), "what is refused is not kept"
    assert one.hold(20_000)
    assert other.hold(10_000)
    assert other.hold(10_001) is False
    assert (budget.held, budget._of_client) == (20_000, {"192.0.2.1": 20_000})


def test_what_gets_less_is_never_too_much() -> None:
    budget = HeadBudget(most_of_client=20_000, most=30_000)
    held = HeldBytes(budget, "192.0.2.1")
    assert held.hold(20_000)
    budget.add("192.0.2.1", 20_000)
    for size, kept in ((20_000, 40_000), (15_000, 35_000), (FREE_BYTES, 20_000), (FREE_BYTES, 20_000)):
        assert held.hold(size) is True
        assert (budget.held, budget._of_client) == (kept, {"192.0.2.1": kept})
    assert held.hold(9_000) is False


def test_a_client_without_an_address_is_counted_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_budget, "_HEADS", budget := HeadBudget())
    nowhere: Any = None
    kept = [held_by(Client(peername=peername, sockname=("192.0.2.9", 2))) for peername in (("192.0.2.1", 1), nowhere)]
    assert [held.hold(10_000) for held in kept] == [True, True]
    assert budget._of_client == {"192.0.2.1": 10_000, "": 10_000}


def test_what_is_small_is_not_counted() -> None:
    budget = HeadBudget(most_of_client=0, most=0)
    held = HeldBytes(budget, "192.0.2.1")
    assert held.hold(FREE_BYTES)
    assert budget.held == 0
    assert held.hold(FREE_BYTES + 1) is False


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
    answers = [asyncio.create_task(reader.read(12)) for reader, _ in opened]
    refused = 0
    async with asyncio.timeout(60):
        for coming in asyncio.as_completed(answers):
            try:
                refused += (await coming) == b"HTTP/1.1 431"
            except ConnectionResetError:  # the answer went by: there was more to read
                refused += 1
            if refused == 30:  # the others say nothing
                break
    assert refused == 30
    assert 0 < budget.held <= 2_000_000
    for answer in answers:
        answer.cancel()
    await asyncio.gather(*answers, return_exceptions=True)
    for _, writer in opened:
        writer.close()
    async with asyncio.timeout(10):
        while budget.held:
            gc.collect()
            await asyncio.sleep(0.01)


def test_each_byte_of_a_client_counts() -> None:
    budget = HeadBudget(5, 100)
    for count, over in ((1, False), (4, False), (1, True), (-1, False), (-5, False), (5, False), (1, True)):
        budget.add("192.0.2.1", count)
        assert budget.is_over("192.0.2.1") is over
    assert (budget.held, budget.is_over("192.0.2.2")) == (6, False)
