"""One page, fetched now by the crawler's rules of safety: as it is, judged, or read by an extraction rule.

Nothing is learned, kept or queued.
"""

import asyncio

from gatewayfilter.classify import ExtractionRule, RuleResult, extract
from gatewayfilter.config import Settings
from gatewayfilter.crawl import rule_links
from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.politeness import Politeness
from gatewayfilter.crawl.fetch.robots import Robots
from gatewayfilter.crawl.render.renderer import renderer
from gatewayfilter.interfaces import Page, Priority
from gatewayfilter.learn import is_readable
from gatewayfilter.model import Classification
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url
from gatewayfilter.wiring import classifier


def fetch_now(settings: Settings, url: Url) -> Page:
    """Fetches a page by the crawler's rules of safety.

    Raises:
        FetchError: it was refused or could not be fetched.
    """
    robots = Robots(settings.crawl)

    async def fetch() -> Page:
        fetching = Fetcher(settings.crawl, Politeness(settings.crawl))
        async with fetching as fetcher, renderer(settings.crawl, Counters()) as rendering:

            async def permit(hop: Url) -> None:
                await robots.check(hop, fetcher, priority=Priority.MANUAL, patience_s=0.0)

            page = await fetcher.fetch(url, urgent=True, permit=permit)
            return page if rendering is None else await rendering.improved(page)

    return asyncio.run(fetch())


def judge_now(settings: Settings, url: Url) -> tuple[Page, Classification | None]:
    """Fetches and judges a page; nothing is learned, kept or queued.

    Returns:
        The page, and its classification: `None` for one of a kind that is not classified.

    Raises:
        FetchError: it was refused or could not be fetched.
    """
    page = fetch_now(settings, url)
    return page, classifier(settings).classify_page(page) if is_readable(page) else None


def extract_now(settings: Settings, rule: ExtractionRule, url: Url) -> tuple[RuleResult, list[Url]]:
    """Fetches a page and reads it by a rule, whether it is for that URL or not; nothing is judged, learned, kept or queued.

    Returns:
        What the rule found, and the links that a worker would queue.

    Raises:
        FetchError: it was refused or could not be fetched.
        ClassifyError: it took too long or too much memory to read.
    """
    page = fetch_now(settings, url)
    result = extract(rule, page)
    return result, rule_links(result, page.final_url, settings.crawl)
