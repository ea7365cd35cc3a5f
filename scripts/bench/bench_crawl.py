"""The crawler beside its budgets: first visit to verdict, pages per CPU second, CPU when idle; by its parts and as it is shipped.

A real store, crawler and classifier; an origin on loopback in another process serves the real pages of the data folder
(GATEWAYFILTER_TEST_DATA, or ../shared/data beside the repository), else made ones. CPU time is the crawler's process alone.

"As shipped" is the crawler of the learner's process with the settings of a new installation: text model, archive, fingerprints,
review, rules, links, duplicates, the journal of pages that wait. Each page comes once there, since a page that was seen is known
again by its fingerprint and costs less; one in twenty is harmful. The clock ends when all pages have been judged and
the crawler has ended in good order, with everything in the database.

Machines differ by more than releases do: the last line is what resiliparse, which stays the same, takes for a real page here.
"""

import asyncio
import contextlib
import gzip
import json
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from gatewayfilter.classify import load_classifier
from gatewayfilter.config import CrawlSettings, LearnSettings, Settings
from gatewayfilter.crawl import CrawlContext, CrawlWorker
from gatewayfilter.crawl.buffer.classify_batcher import judge_together
from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.interfaces import CrawlRequest, Page, PageSink
from gatewayfilter.learn import LearningPipeline, ListGrowth
from gatewayfilter.model import Classification
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from gatewayfilter.wiring import crawl_worker, open_store, prepare_data_dir

ROOT = Path(__file__).parents[2]
HOSTS = 16
VISITS = 60
GAP_S = (0.05, 0.5)
PAGES = 600
IDLE_S = 5.0
HARMFUL = ("en_gambling_pages", "zh_gambling_pages", "en_phishkit_html", "en_weapons_html")
"""Sets of texts whose pages are harmful."""
HARMFUL_SHARE = 0.05
"""Of the pages of the crawler as shipped: a harmful one costs a list entry, evidence and a review as well."""


def data_folder() -> Path:
    """Returns the folder of real pages and texts, which may be missing."""
    return Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data")


def bodies() -> list[bytes]:
    """Returns real pages, or made ones of the same size."""
    if files := sorted((data_folder() / "pages" / "html").glob("*.gz")):
        return [gzip.decompress(file.read_bytes()) for file in files]
    block = "<div class=entry><h2><a href='/{0}'>Story {0}</a></h2><p>{1}</p></div>\n"
    text = "The council met on Tuesday and spoke of the new bridge, of schools and of the library. " * 6
    return [f"<title>Page {page}</title>{''.join(block.format(n, text) for n in range(150))}".encode() for page in range(20)]


def different_bodies() -> list[bytes]:
    """Returns `bodies` and the harmless pages of the sets of texts, each once, with some harmful ones, in a drawn order."""
    texts = data_folder() / "texts"
    harmless = [body.decode("utf-8", "surrogateescape") for body in bodies()]
    for file in sorted(texts.glob("html_*.jsonl.gz")):
        harmless += _markup(file)
    harmful = [html for name in HARMFUL for file in sorted(texts.glob(f"{name}.*")) for html in _markup(file)]
    chance = random.Random(7)
    some = chance.sample(harmful, min(len(harmful), round(len(harmless) * HARMFUL_SHARE)))
    pages = [html.encode("utf-8", "surrogateescape") for html in dict.fromkeys(harmless + some)]
    chance.shuffle(pages)
    return pages


def _markup(file: Path) -> list[str]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [html for line in lines if (html := json.loads(line).get("html"))]


def serve(ready: Connection, pages: Callable[[], list[bytes]]) -> None:
    """Serves `/<number>`, the page of that number, on `HOSTS` loopback addresses. Runs until it is ended."""
    answers = [
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nContent-Type: text/html\r\n\r\n".encode() + body for body in pages()
    ]
    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1][1:]
                writer.write(answers[int(path) % len(answers)] if path.isdigit() else missing)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        first = await asyncio.start_server(answer, "127.0.0.2", 0)
        port = first.sockets[0].getsockname()[1]
        for number in range(3, 2 + HOSTS):
            await asyncio.start_server(answer, f"127.0.0.{number}", port)
        ready.send(port)
        await first.serve_forever()

    asyncio.run(run())


class TimedSink:
    """Passes pages on and notes when the verdict of each stood in the lists."""

    def __init__(self, sink: PageSink) -> None:
        self._sink = sink
        self.judged_at: dict[str, float] = {}

    def page(self, page: Page) -> Classification | None:
        """Judges a page."""
        found = self._sink.page(page)
        self.judged_at[page.url] = time.perf_counter()
        return found

    def batch(self, pages: Sequence[Page]) -> Sequence[Classification | None]:
        """Judges several pages."""
        found = judge_together(self._sink, pages)
        self.judged_at.update(dict.fromkeys((page.url for page in pages), time.perf_counter()))
        return found


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the value below which this share of the values lies."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


async def until(done: Callable[[], bool], limit_s: float) -> None:
    """Waits.

    Raises:
        TimeoutError: it took longer than `limit_s`.
    """
    async with asyncio.timeout(limit_s):
        while not done():  # noqa: ASYNC110  another thread judges
            await asyncio.sleep(0.02)


async def measure(store: Store, port: int) -> None:
    """Runs a crawler over the store and prints what it does."""
    counters = Counters()
    list_growth = ListGrowth(store.lists, store.verdicts, LearnSettings(), together=store.learning)
    sink = TimedSink(LearningPipeline(load_classifier([ROOT / "lists" / "words"]), list_growth, counters))
    settings = CrawlSettings(allow_networks=("127.0.0.0/8",))
    stop = asyncio.Event()
    context = CrawlContext(store.frontier, sink, settings, counters, together=store.settling)
    running = asyncio.create_task(CrawlWorker(context).run(stop))
    urls = [parse_url(f"http://127.0.0.{2 + number % HOSTS}:{port}/{number}").text for number in range(VISITS + PAGES)]
    chance = random.Random(7)
    waits_ms = []
    for url in urls[:VISITS]:
        await asyncio.sleep(chance.uniform(*GAP_S))
        begun = time.perf_counter()
        store.frontier.add([CrawlRequest(url)], time.time())
        await until(lambda url=url: url in sink.judged_at, 30)  # type: ignore[misc]
        waits_ms.append((sink.judged_at[url] - begun) * 1000)
    print(f"first visit to verdict      p50 {statistics.median(waits_ms):6.1f} ms, p99 {percentile(waits_ms, 0.99):6.1f} ms")
    await asyncio.sleep(1.0)
    begun_cpu = time.process_time()
    await asyncio.sleep(IDLE_S)
    print(f"idle                        {(time.process_time() - begun_cpu) / IDLE_S * 100:6.2f} % of a core")
    begun, begun_cpu = time.perf_counter(), time.process_time()
    store.frontier.add([CrawlRequest(url) for url in urls[VISITS:]], time.time())
    await until(lambda: len(sink.judged_at) >= len(urls), 300)
    cpu_s, wall_s = time.process_time() - begun_cpu, time.perf_counter() - begun
    print(f"fetched, judged, learned    {PAGES / cpu_s:6.0f} pages a CPU second, {PAGES / wall_s:.0f} a second")
    print(f"counters                    {counters.as_dict()}")
    stop.set()
    await running


async def measure_shipped(settings: Settings, store: Store, port: int, pages: Sequence[bytes]) -> None:
    """Runs the crawler as the learner does and prints what a page costs."""
    counters = Counters()
    stop = asyncio.Event()
    running = asyncio.create_task(crawl_worker(settings, store, counters, backlog="backlog0").run(stop))
    await asyncio.sleep(1.0)
    begun, begun_cpu = time.perf_counter(), time.process_time()
    urls = [parse_url(f"http://127.0.0.{2 + number % HOSTS}:{port}/{number}").text for number in range(len(pages))]
    store.frontier.add([CrawlRequest(url) for url in urls], time.time())
    await until(lambda: _judged(counters) >= len(urls), 600)
    stop.set()
    await running
    cpu_s, wall_s = time.process_time() - begun_cpu, time.perf_counter() - begun
    size = statistics.median(len(page) for page in pages) / 1000
    print(f"as shipped                  {len(pages) / cpu_s:6.0f} pages a CPU second, {len(pages) / wall_s:.0f} a second")
    print(f"                            {len(pages)} pages, each once, median {size:.0f} KB")
    print(f"counters                    {counters.as_dict()}")


def _judged(counters: Counters) -> int:
    found = counters.as_dict()
    return found.get("pages_harmful", 0) + found.get("pages_harmless", 0)


def as_shipped(folder: Path) -> None:
    """Measures the crawler with the settings of a new installation."""
    settings = Settings(data_dir=folder, crawl=CrawlSettings(allow_networks=("127.0.0.0/8",)))
    prepare_data_dir(settings)
    with served(different_bodies) as port, contextlib.closing(open_store(settings)) as store:
        asyncio.run(measure_shipped(settings, store, port, different_bodies()))


@contextlib.contextmanager
def served(pages: Callable[[], list[bytes]]) -> Iterator[int]:
    """Serves pages from another process. Yields the port."""
    ours, theirs = multiprocessing.Pipe()
    origin = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, pages), daemon=True)
    origin.start()
    try:
        yield ours.recv()
    finally:
        origin.terminate()
        origin.join()


def main() -> None:
    """Measures and prints."""
    with tempfile.TemporaryDirectory() as folder:
        with served(bodies) as port, contextlib.closing(Store.open(f"sqlite:///{folder}/bench.sqlite3")) as store:
            asyncio.run(measure(store, port))
        as_shipped(Path(folder) / "state")
    machine()


def machine() -> None:
    """Prints how fast this machine is, by another's work on the same pages."""
    from scripts.bench.bench_classify import median_ms, peer  # noqa: PLC0415  it needs a library that the origin does not

    htmls = [decode(body).text for body in bodies()]
    print(f"this machine                {median_ms(peer, htmls):6.2f} ms for resiliparse's main text and all text of a page")


if __name__ == "__main__":
    main()
