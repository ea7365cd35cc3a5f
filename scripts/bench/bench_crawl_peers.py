"""The crawler beside a Scrapy project that does the same: fetch, classify with our classifier, keep what it says.

    python scripts/bench/bench_crawl_peers.py [--pages 600] [--rounds 3]

Each takes turns in a process of its own, over the same real pages from the same origin on loopback (bench_crawl.py). CPU time is
that of the process from the first request to the last entry; imports and the loading of words are left out. Both ask 16 hosts,
have 32 requests in flight, wait for no delay and ask each host for its robots.txt. Prints a Markdown table of medians.

- `fetching alone`: nothing is parsed or judged; ours leases from its queue in SQL and settles there, Scrapy's queue is in memory.
- `same parsing`: Scrapy's item pipeline judges each response with our classifier, its item exporter keeps what that says.
- `same work`: the pipeline also grows the lists, in the same kind of database.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench_crawl import HOSTS, ROOT, TimedSink, serve, until

from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.config import CrawlSettings, LearnSettings
from gatewayfilter.crawl import Backlog, CrawlWorker, PageBuffer, WarcArchive
from gatewayfilter.interfaces import Offer, Page
from gatewayfilter.learn import Growth, LearningSink
from gatewayfilter.model import Classification
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url

WORK = {
    "ours": "scrapy, same parsing",
    "ours, without archive": "scrapy, same work",
    "scrapy, same parsing": "",
    "scrapy, same work": "",
    "ours, fetching alone": "scrapy, fetching alone",
    "scrapy, fetching alone": "",
}
"""What is timed, each with its peer."""


class Nothing:
    """A sink that judges nothing."""

    def page(self, _page: Page) -> Classification | None:
        """Returns that the page is of no kind that is judged."""
        return None


def classifier() -> PageClassifier:
    """Returns the classifier that both sides use."""
    return PageClassifier(Lexicon.load([ROOT / "lists" / "words"]))


def run_ours(urls: list[str], folder: Path, *, archive: bool, judge: bool) -> float:
    """Returns the CPU seconds of our crawler."""
    store = Store.open(f"sqlite:///{folder}/bench.sqlite3")
    counters = Counters()
    settings = CrawlSettings(allow_networks=("127.0.0.0/8",), per_host_delay_s=0.0)
    growth = Growth(store.lists, store.verdicts, LearnSettings(), together=store.learning)
    timed = TimedSink(LearningSink(classifier(), growth, counters) if judge else Nothing())
    buffer = None
    if archive:
        warc = WarcArchive(folder / "archive", 1_000_000_000)
        buffer = PageBuffer(timed, warc, store.verdicts, 86_400.0, counters, Backlog(folder / "archive" / "backlog.log"))
    worker = CrawlWorker(store.frontier, buffer or timed, settings, counters, buffer=buffer, together=store.settling)

    async def crawl() -> float:
        stop = asyncio.Event()
        running = asyncio.create_task(worker.run(stop))
        await asyncio.sleep(0.2)
        begun = time.process_time()
        store.frontier.add([Offer(url) for url in urls], time.time())
        await until(lambda: len(timed.judged_at) >= len(urls), 300)
        await until(lambda: store.frontier.stats(0.0)["resting"] >= len(urls), 300)
        if buffer is not None:
            await asyncio.to_thread(buffer.flush)
        spent_s = time.process_time() - begun
        stop.set()
        await running
        return spent_s

    spent_s = asyncio.run(crawl())
    store.close()
    return spent_s


def run_scrapy(urls: list[str], folder: Path, *, judging: bool, grow: bool) -> float:
    """Returns the CPU seconds of a Scrapy project."""
    import scrapy  # noqa: PLC0415  the peer alone pays for it
    from scrapy.crawler import CrawlerProcess  # noqa: PLC0415

    spent: list[float] = []
    judge = classifier()
    store = Store.open(f"sqlite:///{folder}/bench.sqlite3") if grow else None
    growth = Growth(store.lists, store.verdicts, LearnSettings(), together=store.learning) if store is not None else None

    class Judge:
        """The item pipeline."""

        def process_item(self, item: Any) -> Any:
            """Judges a response."""
            page: Page = item.pop("page")
            if judging:
                found = judge.classify_page(page)
                item["category"], item["score"] = found.category, found.score
                if growth is not None:
                    growth.learn(page, found)
            return item

    class Pages(scrapy.Spider):  # type: ignore[misc, unused-ignore]
        """Fetches what it is given."""

        name = "pages"

        async def start(self) -> Any:
            """Yields the requests."""
            spent.append(time.process_time())
            for url in urls:
                yield scrapy.Request(url)

        def parse(self, response: Any) -> Any:
            """Yields the page as an item."""
            headers = {"content-type": response.headers.get("Content-Type", b"").decode()}
            yield {"url": response.url, "page": Page(response.url, response.url, response.status, headers, response.body)}

        def closed(self, _reason: str) -> None:
            """Notes the end."""
            spent.append(time.process_time())

    process = CrawlerProcess(
        {
            "LOG_LEVEL": "ERROR",
            "ROBOTSTXT_OBEY": True,
            "CONCURRENT_REQUESTS": 32,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
            "DOWNLOAD_DELAY": 0,
            "TELNETCONSOLE_ENABLED": False,
            "COOKIES_ENABLED": False,
            "ITEM_PIPELINES": {Judge: 1},
            "FEEDS": {str(folder / "items.jsonl"): {"format": "jsonlines"}},
        }
    )
    process.crawl(Pages)
    process.start()
    if len((folder / "items.jsonl").read_text().splitlines()) != len(urls):
        raise RuntimeError("Scrapy did not fetch all pages")
    return spent[1] - spent[0]


def turn(what: str, port: int, pages: int) -> float:
    """Does one round of one side in this process. Returns its CPU seconds."""
    urls = [parse_url(f"http://127.0.0.{2 + number % HOSTS}:{port}/{number}").text for number in range(pages)]
    with tempfile.TemporaryDirectory() as name:
        if what.startswith("scrapy"):
            return run_scrapy(urls, Path(name), judging=not what.endswith("alone"), grow=what.endswith("work"))
        return run_ours(urls, Path(name), archive=what == "ours", judge=not what.endswith("alone"))


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turn", nargs=2, metavar=("WHAT", "PORT"), help="one round, for this script itself")
    options = parser.parse_args(argv)
    if options.turn:
        print(json.dumps(turn(options.turn[0], int(options.turn[1]), options.pages)))
        return 0
    ours, theirs = multiprocessing.Pipe()
    origin = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    origin.start()
    try:
        port = ours.recv()
        spent: dict[str, list[float]] = {what: [] for what in WORK}
        for _ in range(options.rounds):
            for what, seconds in spent.items():
                command = [sys.executable, __file__, "--pages", str(options.pages), "--turn", what, str(port)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                seconds.append(json.loads(done.stdout.splitlines()[-1]))
    finally:
        origin.terminate()
        origin.join()
    speeds = {what: options.pages / statistics.median(seconds) for what, seconds in spent.items()}
    print("| crawler | pages a CPU second | peer | ratio |\n|---|---|---|---|")
    for what, peer in WORK.items():
        print(f"| {what} | {speeds[what]:.0f} | {peer} | {f'{speeds[what] / speeds[peer]:.2f}' if peer else ''} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
