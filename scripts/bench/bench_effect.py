"""How soon a change is in effect in all workers: from a first visit to the block page, and from a manual rule to the block page.

Each round takes a page of its own. It counts as in effect when eight connections in a row, spread over the workers by the kernel,
get the block page; one probe is sent every few milliseconds, so the figures are up to one round of probes too long.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from filter_process import Filter

ROUNDS = 40
IN_A_ROW = 8
CASINO = (
    b"<html><title>Golden Reef online casino</title><p>Play online slots, roulette and blackjack for real money. Take your no "
    b"deposit bonus and 100 free spins, place your bets in our sportsbook and hit the jackpot.</p></html>"
)
HARMLESS = b"<html><title>A garden in May</title><p>Sow beans when the soil is warm.</p></html>"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers as the origin: pages below /casino are harmful, robots.txt is absent."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ", 2)[1]
            body = CASINO if path.startswith(b"/casino") else HARMLESS
            status = b"404 Not Found" if path == b"/robots.txt" else b"200 OK"
            writer.write(b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def blocked(filter_: Filter, url: str) -> bool:
    """Asks once, on a connection of its own."""
    reader, writer = await asyncio.open_connection(filter_.host, filter_.port)
    host = url.partition("://")[2].partition("/")[0]
    writer.write(f"GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    status = await reader.readline()
    await reader.read()
    writer.close()
    return b" 403 " in status


async def until_blocked_ms(filter_: Filter, url: str, act: Callable[[], Awaitable[object]]) -> float:
    """Returns the milliseconds from the end of the act until the block page stands everywhere."""
    await act()
    began = time.monotonic()
    first, row = 0.0, 0
    while row < IN_A_ROW:
        asked = time.monotonic()
        if await blocked(filter_, url):
            first, row = (asked, 1) if not row else (first, row + 1)
        else:
            row = 0
            await asyncio.sleep(0.005)
    return (first - began) * 1000


def line(name: str, figures: list[float], budget: str) -> str:
    """Returns a row of the table."""
    ordered = sorted(figures)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"| {name} | {statistics.median(ordered):.0f} | {p99:.0f} | {budget} |"


async def measure() -> None:
    """Starts an origin and the filter, and measures both."""
    origin = await asyncio.start_server(answer, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{origin.sockets[0].getsockname()[1]}"
    with tempfile.TemporaryDirectory() as name:
        filter_ = Filter(Path(name) / "state", "--workers", "2", settings={"GATEWAYFILTER_CRAWL__ALLOW_NETWORKS": "127.0.0.0/8"})
        await asyncio.to_thread(filter_.start)
        try:
            visits, rules = [], []
            for number in range(ROUNDS):
                url = f"{base}/casino/{number}"
                visits.append(await until_blocked_ms(filter_, url, lambda url=url: blocked(filter_, url)))
                await asyncio.sleep(0.1)
            for number in range(ROUNDS):
                url = f"{base}/garden/{number}"
                add = lambda url=url: asyncio.to_thread(filter_.command, "list", "add", "--block", url)  # noqa: E731
                rules.append(await until_blocked_ms(filter_, url, add))
        finally:
            await asyncio.to_thread(filter_.stop)
    print("| from … to the block page in all workers | p50 ms | p99 ms | budget |\n|---|---|---|---|")
    print(line("first visit of an unknown harmful page, idle queue, loopback", visits, "p50 150 to the verdict, p99 1,000"))
    print(line("end of `gatewayfilter list add --block`", rules, "p99 1,000"))


def main() -> int:
    """Runs the benchmark."""
    asyncio.run(measure())
    return 0


if __name__ == "__main__":
    sys.exit(main())
