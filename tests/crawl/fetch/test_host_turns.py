"""The order in which requests for one host have its places."""

import asyncio

from gatewayfilter.crawl.fetch.politeness import Politeness
from tests.crawl.crawl_origin import loopback_settings


async def test_those_who_wait_are_let_in_in_their_order() -> None:
    turns = Politeness(loopback_settings(per_host_concurrency=2))
    inside: list[int] = []
    leave = [asyncio.Event() for _ in range(7)]

    async def work(number: int) -> None:
        async with turns.turn("a.test", urgent=True, patience_s=9.0):
            inside.append(number)
            await leave[number].wait()

    tasks = [asyncio.create_task(work(number)) for number in range(7)]
    for number in range(7):
        for _ in range(5):
            await asyncio.sleep(0)
        assert inside == list(range(min(number + 2, 7)))
        leave[number].set()
    await asyncio.gather(*tasks)
