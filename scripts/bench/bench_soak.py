"""Real requests through the running filter to a local parent proxy: verdicts against `gatewayfilter match`, and memory over time.

Needs the test data (`GATEWAYFILTER_TEST_DATA`, or `shared/data` beside the checkout): EasyList, EasyPrivacy and the UT1
categories are added as sources. Requests are sent as http, so that one local origin can answer for every host; `match` gets
the same URLs. Nothing is learned here: the hosts are not contacted.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from filter_process import Filter

CONNECTIONS = 16
REQUESTS_A_CONNECTION = 200
"""A browser's proxy connection lives for some pages, not for ever."""
DESTINATIONS = {
    "document": "document", "subdocument": "iframe", "stylesheet": "style", "script": "script", "image": "image", "font": "font",
    "media": "video", "object": "object", "xmlhttprequest": "empty", "ping": "report", "other": "manifest",
}  # fmt: skip
"""Resource type → Sec-Fetch-Dest."""
BODY = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000


def data_folder() -> Path | None:
    """Returns the folder of the test data, `None` where it is absent."""
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
    return folder if (folder / "requests" / "requests.jsonl").is_file() else None


def read_requests(folder: Path) -> list[dict[str, str]]:
    """Returns the requests as they are sent: over http, with a source only where a browser would name one."""
    found = []
    for line in (folder / "requests" / "requests.jsonl").read_text().splitlines():
        item = json.loads(line)
        url = "http://" + item["url"].partition("://")[2]
        source = item["source"] if item["source"].startswith("http") else ""
        if url.isascii() and source.isascii() and " " not in url + source and len(url) < 30_000:
            found.append({"url": url, "source": source, "type": item["type"] if item["type"] in DESTINATIONS else "other"})
    return found


async def answer_as_parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each request with 1 KB."""
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(BODY)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def fetch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, item: dict[str, str]) -> tuple[str, str]:
    """Sends one request and returns action and reason as the answer shows them."""
    host = item["url"].partition("://")[2].partition("/")[0]
    lines = [f"GET {item['url']} HTTP/1.1", f"Host: {host}", f"Sec-Fetch-Dest: {DESTINATIONS[item['type']]}"]
    if item["source"]:
        lines.append(f"Referer: {item['source']}")
    writer.write("\r\n".join([*lines, "", ""]).encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = re.search(r"\r\ncontent-length: (\d+)", head)
    if length:
        await reader.readexactly(int(length[1]))
    ours = re.search(r"\r\nx-gatewayfilter: (block|error); reason=(\S+)", head)
    if ours:
        return ours[1], ours[2]
    return ("allow", "") if head.startswith("http/1.1 200") else ("error", head.split("\r\n", 1)[0])


async def drive(filter_: Filter, items: list[dict[str, str]], expected: list[str]) -> Counter[str]:
    """Sends the requests over several connections; returns how many agreed, and each difference."""
    outcome: Counter[str] = Counter()
    numbers = iter(range(len(items)))

    async def client() -> None:
        reader, writer = await asyncio.open_connection(filter_.host, filter_.port, limit=1 << 20)
        for served, number in enumerate(numbers, 1):
            action, reason = await fetch(reader, writer, items[number])
            if action == expected[number]:
                outcome["equal"] += 1
            else:
                item = items[number]
                outcome[f"{item['url'][:100]} ({item['type']}): {action} {reason}, match says {expected[number]}"] += 1
            if action == "error" or served % REQUESTS_A_CONNECTION == 0:
                writer.close()
                reader, writer = await asyncio.open_connection(filter_.host, filter_.port, limit=1 << 20)
        writer.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return outcome


async def soak(filter_: Filter, items: list[dict[str, str]], expected: list[str], marks: list[int]) -> bool:
    """Drives up to each mark and prints verdicts and memory there. Returns whether all agreed and memory held still."""
    print("| requests | equal verdicts | different | requests/s | CPU ms/request | RSS (private) of each worker, MB |")
    print("|---|---|---|---|---|---|")
    sent, differences = 0, Counter[str]()
    resident: list[int] = []
    for mark in marks:
        part = [(sent + number) % len(items) for number in range(mark - sent)]
        began, cpu = time.monotonic(), sum(sum(worker.cpu_times()[:2]) for worker in filter_.workers())
        outcome = await drive(filter_, [items[number] for number in part], [expected[number] for number in part])
        cpu_ms = (sum(sum(worker.cpu_times()[:2]) for worker in filter_.workers()) - cpu) / len(part) * 1000
        rate = len(part) / (time.monotonic() - began)
        equal = outcome.pop("equal", 0)
        differences += outcome
        sent = mark
        memory = [worker.memory_full_info() for worker in filter_.workers()]
        resident.append(sum(item.rss for item in memory))
        sizes = ", ".join(f"{item.rss / 1e6:.0f} ({item.uss / 1e6:.0f})" for item in memory)
        print(f"| {mark:,} | {equal:,} | {len(part) - equal} | {rate:.0f} | {cpu_ms:.2f} | {sizes} |", flush=True)
    for text, count in differences.most_common(20):
        print(f"- {count}x {text}")
    list_growth = resident[-1] / resident[0] - 1
    print(f"\nGrowth of all workers together from {marks[0]:,} to {marks[-1]:,} requests: {list_growth:+.1%} (at most +10 %).")
    return not differences and list_growth <= 0.10


def add_sources(filter_: Filter, folder: Path) -> None:
    """Adds EasyList, EasyPrivacy and the UT1 categories."""
    for name in ("easylist", "easyprivacy"):
        category = "ads" if name == "easylist" else "trackers"
        filter_.command(
            "source", "add", str(folder / "lists" / f"{name}.txt"), "--name", name, "--category", category, "--no-publish"
        )
    for category in sorted(path for path in (folder / "categories").iterdir() if path.is_dir()):
        filter_.command(
            "source", "add", str(category), "--name", f"ut1-{category.name}", "--category", category.name, "--no-publish"
        )
    filter_.command("publish")


async def main_async(requests: int, workers: int) -> int:
    """Sets up and runs the soak."""
    folder = data_folder()
    if folder is None:
        print("skipped: the test data is absent")
        return 0
    parent = await asyncio.start_server(answer_as_parent, "127.0.0.1", 0, limit=1 << 20)
    address = f"http://127.0.0.1:{parent.sockets[0].getsockname()[1]}"
    items = read_requests(folder)
    with tempfile.TemporaryDirectory() as name:
        filter_ = Filter(Path(name) / "state", "--no-learn", "--workers", str(workers), "--mode", f"upstream:{address}")
        await asyncio.to_thread(add_sources, filter_, folder)
        feed = "\n".join(json.dumps(item) for item in items)
        matched = await asyncio.to_thread(lambda: filter_.command("match", "--requests", "-", feed=feed))
        expected = [json.loads(line)["action"] for line in matched.splitlines()]
        await asyncio.to_thread(filter_.start)
        try:
            good = await soak(filter_, items, expected, sorted({*range(10_000, requests, 20_000), requests}))
        finally:
            await asyncio.to_thread(filter_.stop)
    return int(not good)


def main() -> int:
    """Reads the options and runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    return asyncio.run(main_async(options.requests, options.workers))


if __name__ == "__main__":
    sys.exit(main())
