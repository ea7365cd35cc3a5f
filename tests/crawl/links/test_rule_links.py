"""Links that extraction rules name, as far as they go to the queue."""

import asyncio
import time
from pathlib import Path

import pytest

from gatewayfilter.classify import RuleFolder, RuleResult
from gatewayfilter.config import Settings
from gatewayfilter.crawl import rule_links
from gatewayfilter.extraction.rules import parse_rule
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring import crawl_worker
from tests.case_tables import all_cases
from tests.crawl.crawl_origin import Origin, loopback_settings, reply

BASE = "http://news.example/a/1"
CASES = [
    ("css = 'a'", '<a href="2"><a href="/3"><a href="//x.example/">', [
        "http://news.example/a/2", "http://news.example/3", "http://x.example/",
    ]),
    ("css = 'a'\nurls = 'http://news\\.example/a/.*'", '<a href="2"><a href="/3">', ["http://news.example/a/2"]),
    ("css = 'a'\nurls = '.*'\nlimit = 1", '<a href="2"><a href="3">', ["http://news.example/a/2"]),
    ("css = 'a'\nurls = '.*/a/.*'", '<a href="/3"><a href="2">', ["http://news.example/a/2"]),
    ("css = 'a'", '<a href="javascript:x"><a href="http://["><a href="2">', ["http://news.example/a/2"]),
    (
        "css = 'a'\nurls = '.*'\nlimit = 1\n[[links]]\ncss = 'area'\nurls = 'http:.*'\nlimit = 2",
        '<a href="2"><a href="3"><a href="4"><area href="5"><area href="6"><area href="7">',
        ["http://news.example/a/2", "http://news.example/a/5", "http://news.example/a/6"],
    ),
    (
        "css = 'a'\nurls = '.*'\nlimit = 1\n[[links]]\ncss = 'area'\nurls = '.*'\nlimit = 1",
        '<a href="2"><a href="3"><area href="5">',
        ["http://news.example/a/2", "http://news.example/a/3"],  # tables of the same pattern share their limits
    ),
    ("css = 'a'", '<a href="#x"><a href="1"><a href="2"><a href="2#y">', ["http://news.example/a/2"]),
    ("css = 'a'", '<a href="/logout"><a href="javascript:x"><a href="http://10.0.0.1/"><a href="ftp://x/">', []),
]  # fmt: skip


@all_cases(("table", "html", "links"), CASES)
def test_rule_links(table: str, html: str, links: list[str]) -> None:
    rule = parse_rule(f"urls = '.*'\n[[links]]\n{table}\n", "news")
    result = RuleResult(rule, rule.extract(html, BASE))
    assert [link.text for link in rule_links(result, BASE, Settings().crawl)] == links


@pytest.mark.slow
async def test_links_of_harmless_pages_with_a_rule_are_crawled(origin: Origin, tmp_path: Path) -> None:
    origin.answers["/index"] = reply(b'<p>knitting</p><a class=story href="/story/1"> <a href="/about">')
    origin.answers["/story/1"] = reply(b"<p>more knitting</p>")
    RuleFolder(tmp_path / "rules").add(parse_rule("urls = '.*/index'\n[[links]]\ncss = 'a.story'\n", "news"))
    settings = Settings(data_dir=tmp_path, crawl=loopback_settings(timeout_s=60.0))
    store = Store.open(f"sqlite:///{tmp_path / 'test.sqlite3'}")
    stop = asyncio.Event()
    running = asyncio.create_task(crawl_worker(settings, store, Counters()).run(stop))
    store.frontier.add([CrawlRequest(origin.url("/index"))], time.time())
    async with asyncio.timeout(60):
        while "/story/1" not in origin.requests:  # noqa: ASYNC110  another task fetches
            await asyncio.sleep(0.01)
    stop.set()
    await running
    store.close()
    assert "/about" not in origin.requests
