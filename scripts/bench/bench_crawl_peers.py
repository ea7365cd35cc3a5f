"""The crawler beside Scrapy, over the same real pages from the same origin on loopback (bench_crawl.py).

    python scripts/bench/bench_crawl_peers.py [--pages 600] [--rounds 3] [--compare]

Each takes turns in a process of its own. CPU time is that of the process from the first request to the last entry; imports and
the loading of words are left out. Both ask 16 hosts, have 32 requests in flight, wait for no delay and ask each host for its
robots.txt; Scrapy runs on asyncio, without logs, cookies, cache, throttle and telnet. Prints a Markdown table of medians.

- `same fields`: title, description, keywords, absolute links with their texts, images with theirs, main text and category of
  each page go into a file of JSON lines. Scrapy's side does it with Scrapy's own tools (scrapy_parsing.py), or, `quick links`,
  with links by hand in place of `LinkExtractor`, which takes half of its time. `ours, same fields, plain sum` does the same job
  and no other: parsing is ours, the category is found by the very function of Scrapy's side (its queue is in SQL, Scrapy's in
  memory). `ours, same fields` judges by all that our classifier knows; `the whole crawler` also archives each page, grows the
  lists and has a queue that outlives the process. `the whole job` is Scrapy doing that as well: it queues on disk (`JOBDIR`),
  and its item pipeline keeps each page in our archive and grows the lists by eight pages at once. Nothing differs in work where
  both judge by the plain sum (`plain sum, the whole crawler`), or both by our classifier (`the whole job, our judgement`): in
  the other rows ours judges by more than the peer. `--compare` prints how far the fields agree.
- `our classifier`: Scrapy's item pipeline judges each response with our classifier; with `and lists` it also grows the lists, in
  the same kind of database.
- `fetching alone`: nothing is parsed or judged; ours leases from its queue in SQL and settles there, Scrapy's queue is in memory.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench_crawl import HOSTS, ROOT, TimedSink, bodies, served, until

from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.config import CrawlSettings, LearnSettings
from gatewayfilter.crawl import Backlog, CrawlContext, CrawlWorker, PageBuffer, WarcArchive
from gatewayfilter.crawl.fetch.url_resolution import resolve
from gatewayfilter.documents.page_parts import PageParts, parts_of
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Classify, CrawlRequest, Page, PageSink
from gatewayfilter.learn import LearningPipeline, ListGrowth
from gatewayfilter.model import Classification
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url

WORK = {
    "ours, same fields, plain sum": ("scrapy, same fields", "scrapy, same fields, quick links"),
    "ours, same fields": ("scrapy, same fields", "scrapy, same fields, quick links"),
    "ours, same fields, plain sum, the whole crawler": (
        "scrapy, same fields, the whole job",
        "scrapy, same fields, the whole job, quick links",
    ),
    "ours, same fields, the whole crawler": (
        "scrapy, same fields, the whole job, our judgement",
        "scrapy, same fields, the whole job, our judgement, quick links",
        "scrapy, same fields, the whole job",
        "scrapy, same fields, the whole job, quick links",
        "scrapy, same fields",
        "scrapy, same fields, quick links",
    ),
    "scrapy, same fields": (),
    "scrapy, same fields, quick links": (),
    "scrapy, same fields, the whole job, our judgement": (),
    "scrapy, same fields, the whole job, our judgement, quick links": (),
    "scrapy, same fields, the whole job": (),
    "scrapy, same fields, the whole job, quick links": (),
    "ours, the whole crawler": ("scrapy, our classifier",),
    "scrapy, our classifier": (),
    "ours, without archive": ("scrapy, our classifier and lists",),
    "scrapy, our classifier and lists": (),
    "ours, fetching alone": ("scrapy, fetching alone",),
    "scrapy, fetching alone": (),
}
"""What is timed, each with its peers."""


class Nothing:
    """A sink that judges nothing."""

    def page(self, _page: Page) -> Classification | None:
        """Returns that the page is of no kind that is judged."""
        return None


def classifier() -> PageClassifier:
    """Returns the classifier that both sides use."""
    return PageClassifier(Lexicon.load([ROOT / "lists" / "words"]))


class FieldWriter:
    """Judges pages, and writes what stands on them as a line of JSON."""

    def __init__(self, judge: PageClassifier, path: Path, *, plain: bool = False) -> None:
        self._plain: Any = None
        if plain:
            from scrapy_parsing import WordSum  # noqa: PLC0415  it imports Scrapy

            self._plain = WordSum(judge.lexicon)
        self._judge = judge
        self._file = path.open("w", encoding="utf-8")

    def classify_page(self, page: Page) -> Classification:
        """Judges a page."""
        if self._plain is not None:
            parts = parts_of(page)
            category, score = self._plain.judge("\n".join((parts.title, parts.description, *parts.main)))
            found = Classification(category, score, 0.0, {}, ())
        else:
            found, parts = self._judge.classify_with_parts(page)
        item = {
            "url": page.url,
            "title": parts.title,
            "description": parts.description,
            "keywords": parts.keywords,
            "links": links(page, parts),
            "images": [(image.reference, image.alt) for image in parts.images],
            "main": parts.main,
            "category": found.category,
            "score": found.score,
        }
        self._file.write(json.dumps(item) + "\n")
        return found

    def classify_text(self, text: str) -> Classification:
        """Judges a text."""
        return self._judge.classify_text(text)

    def page(self, page: Page) -> Classification | None:
        """Does all of that and nothing else: a sink by itself."""
        return self.classify_page(page)

    def close(self) -> None:
        """Writes what is left."""
        self._file.close()


def links(page: Page, parts: PageParts) -> list[tuple[str, str]]:
    """Returns the links of a page, absolute and each once, with their texts."""
    base = parse_url(page.final_url)
    if parts.base:
        with contextlib.suppress(UrlError):
            base = resolve(base, parts.base)
    found: dict[str, str] = {}
    seen: set[str] = set()
    for link in parts.links:
        if link.on_page and link.reference not in seen:
            seen.add(link.reference)
            try:
                found.setdefault(resolve(base, link.reference).text, link.text)
            except UrlError:
                continue
    return list(found.items())


def run_ours(
    urls: list[str], folder: Path, *, archive: bool, lists: bool, judge: bool, fields: Path | None, plain: bool
) -> float:
    """Returns the CPU seconds of our crawler."""
    store = Store.open(f"sqlite:///{folder}/bench.sqlite3")
    counters = Counters()
    settings = CrawlSettings(allow_networks=("127.0.0.0/8",), per_host_delay_s=0.0, follow_links=0)  # the same pages as the peer
    list_growth = ListGrowth(store.lists, store.verdicts, LearnSettings(), together=store.learning)
    writer = FieldWriter(classifier(), fields, plain=plain) if fields is not None else None
    judging: Classify = writer if writer is not None else classifier()
    alone: PageSink = writer if writer is not None else Nothing()
    timed = TimedSink(LearningPipeline(judging, list_growth, counters) if judge and lists else alone)
    buffer = None
    if archive:
        warc = WarcArchive(folder / "archive", 1_000_000_000)
        buffer = PageBuffer(timed, warc, store.verdicts, 86_400.0, counters, Backlog(folder / "archive" / "backlog.log"))
    worker = CrawlWorker(
        CrawlContext(store.frontier, buffer or timed, settings, counters, buffer=buffer, together=store.settling)
    )

    async def crawl() -> float:
        stop = asyncio.Event()
        running = asyncio.create_task(worker.run(stop))
        await asyncio.sleep(0.2)
        begun = time.process_time()
        store.frontier.add([CrawlRequest(url) for url in urls], time.time())
        await until(lambda: len(timed.judged_at) >= len(urls), 300)
        await until(lambda: store.frontier.stats(0.0)["done"] >= len(urls), 300)
        if buffer is not None:
            await asyncio.to_thread(buffer.flush)
        if writer is not None:
            writer.close()
        spent_s = time.process_time() - begun
        stop.set()
        await running
        return spent_s

    spent_s = asyncio.run(crawl())
    store.close()
    return spent_s


class WholeJob:
    """What our crawler does with a page beside its fields, for Scrapy's item pipeline: archive and lists."""

    _TOGETHER = 8

    def __init__(self, folder: Path, list_growth: ListGrowth) -> None:
        self._archive = WarcArchive(folder / "archive", 1_000_000_000)
        self._list_growth = list_growth
        self._waiting: list[tuple[Page, Classification]] = []

    def take(self, page: Page, item: dict[str, Any]) -> None:
        """Archives a page, and lists it once there are enough of them."""
        self._archive.keep(page, time.time())
        self._waiting.append((page, Classification(item["category"], item["score"], 0.0, {}, ())))
        if len(self._waiting) >= self._TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Lists what is left."""
        self._list_growth.learn_all(self._waiting)
        self._waiting = []


def run_scrapy(  # noqa: C901
    urls: list[str], folder: Path, *, judging: bool, grow: bool, fields: Path | None, quick: bool, whole: bool, ours: bool
) -> float:
    """Returns the CPU seconds of a Scrapy project."""
    import scrapy  # noqa: PLC0415  the peer alone pays for it
    from scrapy.crawler import CrawlerProcess  # noqa: PLC0415
    from scrapy_parsing import Parser  # noqa: PLC0415

    spent: list[float] = []
    judge = classifier()
    parser = Parser(judge.lexicon, quick=quick, judging=not ours)
    items = fields or folder / "items.jsonl"
    store = Store.open(f"sqlite:///{folder}/bench.sqlite3") if grow else None
    list_growth = ListGrowth(store.lists, store.verdicts, LearnSettings(), together=store.learning) if store is not None else None

    job = WholeJob(folder, list_growth) if whole and list_growth is not None else None

    class Judge:
        """The item pipeline."""

        def process_item(self, item: Any) -> Any:
            """Judges a response."""
            if job is not None:
                kept: Page = item.pop("page")
                if ours:
                    judged = judge.classify_page(kept)
                    item["category"], item["score"] = judged.category, judged.score
                job.take(kept, item)
            if fields is not None:
                return item
            page: Page = item.pop("page")
            if judging:
                found = judge.classify_page(page)
                item["category"], item["score"] = found.category, found.score
                if list_growth is not None:
                    list_growth.learn(page, found)
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
            item = parser.fields(response) if fields is not None else {"url": response.url}
            if fields is None or job is not None:
                headers = {"content-type": response.headers.get("Content-Type", b"").decode()}
                item["page"] = Page(response.url, response.url, response.status, headers, response.body)
            yield item

        def closed(self, _reason: str) -> None:
            """Notes the end."""
            if job is not None:
                job.flush()
            spent.append(time.process_time())

    process = CrawlerProcess(
        {
            "ROBOTSTXT_OBEY": True,
            "CONCURRENT_REQUESTS": 32,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
            "DOWNLOAD_DELAY": 0,
            "TELNETCONSOLE_ENABLED": False,
            "COOKIES_ENABLED": False,
            "ITEM_PIPELINES": {Judge: 1},
            "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
            "LOG_ENABLED": False,
            "HTTPCACHE_ENABLED": False,
            "AUTOTHROTTLE_ENABLED": False,
            **({"JOBDIR": str(folder / "job")} if job is not None else {}),
            "FEEDS": {str(items): {"format": "jsonlines", "overwrite": True}},
        }
    )
    process.crawl(Pages)
    process.start()
    if len(items.read_text().splitlines()) != len(urls):
        raise RuntimeError("Scrapy did not fetch all pages")
    return spent[1] - spent[0]


def turn(what: str, port: int, pages: int, fields: Path | None) -> float:
    """Does one round of one side in this process. Returns its CPU seconds."""
    urls = [parse_url(f"http://127.0.0.{2 + number % HOSTS}:{port}/{number}").text for number in range(pages)]
    judge = not what.endswith("alone")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = (fields or folder / "fields.jsonl") if "same fields" in what else None
        if what.startswith("scrapy"):
            job, quick = "the whole job" in what, "quick" in what
            grow = job or what.endswith("lists")
            ours = "our judgement" in what
            return run_scrapy(urls, folder, judging=judge, grow=grow, fields=wanted, quick=quick, whole=job, ours=ours)
        whole = what.endswith("the whole crawler")
        lists = whole or what.endswith("without archive")
        return run_ours(urls, folder, archive=whole, lists=lists, judge=judge, fields=wanted, plain="plain" in what)


def compare(ours: Path, theirs: Path) -> None:
    """Prints how far the fields agree that both sides wrote."""
    pages = [{item["url"]: item for item in map(json.loads, path.read_text().splitlines())} for path in (ours, theirs)]
    pairs = [(pages[0][url], pages[1][url]) for url in pages[0]]
    titles = statistics.mean(ours["title"] == theirs["title"] for ours, theirs in pairs)
    links = [shared_links(ours["links"], theirs["links"]) for ours, theirs in pairs]
    images = statistics.mean(len(ours["images"]) == len(theirs["images"]) for ours, theirs in pairs)
    shared = [overlap(ours["main"], theirs["main"]) for ours, theirs in pairs]
    print(f"\n{theirs.name}: titles equal on {titles:.0%} of {len(pairs)} pages, as many images on {images:.0%};")
    print(f"links in common (F1), median {statistics.median(links):.3f}; words of the main text, {statistics.median(shared):.3f}")


def shared_links(ours: list[list[str]], theirs: list[list[str]]) -> float:
    """Returns the links that two lists have in common as F1, 0 to 1; what stands behind `#` does not count."""
    left, right = ({url.partition("#")[0] for url, _ in links} for links in (ours, theirs))
    return 2 * len(left & right) / (len(left) + len(right)) if left or right else 1.0


def overlap(ours: list[str], theirs: list[str]) -> float:
    """Returns the words that two texts have in common as F1, 0 to 1."""
    left, right = Counter(" ".join(ours).split()), Counter(" ".join(theirs).split())
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compare", action="store_true", help="also say how far the fields of both sides agree")
    parser.add_argument("--only", default="", metavar="WORDS", help="measure only what has these words in its name: same fields")
    parser.add_argument("--turn", nargs=3, metavar=("WHAT", "PORT", "FIELDS"), help="one round, for this script itself")
    options = parser.parse_args(argv)
    if options.turn:
        what, port, fields = options.turn
        print(json.dumps(turn(what, int(port), options.pages, Path(fields) if fields else None)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        chosen = [what for what in WORK if options.only in what]
        measure(chosen, options.pages, options.rounds, Path(folder) if options.compare else None)
    return 0


def measure(chosen: Sequence[str], pages: int, rounds: int, folder: Path | None) -> None:
    """Measures and prints; fields stay in the folder, if any, and are compared."""
    with served(bodies) as port:
        spent: dict[str, list[float]] = {what: [] for what in chosen}
        for _ in range(rounds):
            for what, seconds in spent.items():
                fields = str(folder / what) if folder is not None and "same fields" in what else ""
                command = [sys.executable, __file__, "--pages", str(pages), "--turn", what, str(port), fields]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                seconds.append(json.loads(done.stdout.splitlines()[-1]))
    speeds = {what: pages / statistics.median(seconds) for what, seconds in spent.items()}
    print("| crawler | pages a CPU second | peer | ratio |\n|---|---|---|---|")
    for what, peers in WORK.items():
        for peer in filter(speeds.__contains__, peers if what in speeds else ()):  # `--only` leaves some out
            print(f"| {what} | {speeds[what]:.0f} | {peer}: {speeds[peer]:.0f} | {speeds[what] / speeds[peer]:.2f} |")
    if folder is not None:
        for peer in WORK["ours, same fields, plain sum"]:
            compare(folder / "ours, same fields, plain sum", folder / peer)


if __name__ == "__main__":
    sys.exit(main())
