"""Work of the crawler for a child process: arguments and results are plain values, so that the parent loads no crawler."""

from contextlib import closing
from dataclasses import asdict
from typing import Any, Final

from gatewayfilter.config import Settings
from gatewayfilter.errors import FetchError
from gatewayfilter.use_cases.learning import crawl_queue
from gatewayfilter.use_cases.learning.crawling import crawl_now
from gatewayfilter.use_cases.learning.proxy_checks import check_proxies
from gatewayfilter.wiring import open_store

_MOST_EVIDENCE: Final = 100


def crawl_page(settings: Settings, url: str) -> dict[str, Any]:
    """Fetches and judges one page now, and learns it: as `gatewayfilter crawl` does.

    Raises:
        FetchError: nothing came of it at all.
        StoreError: the verdict could not be kept.
    """
    with closing(open_store(settings)) as store:
        outcomes = crawl_now(settings, store, [url])
    if not outcomes:
        raise FetchError("nothing was fetched")
    outcome = outcomes[0]
    judged = outcome.classification
    found = {
        "url": outcome.url,
        "final_url": outcome.final_url,
        "status": outcome.status,
        "error": outcome.error,
        "refused": outcome.refused,
        "elapsed_ms": outcome.elapsed_ms,
        "judgement": None,
    }
    if judged is not None:
        found["judgement"] = {
            "category": judged.category,
            "doubt": judged.doubt,
            "score": judged.score,
            "limit": judged.limit,
            "certainty": judged.certainty,
            "title": judged.title,
            "evidence": [asdict(hit) for hit in judged.evidence[:_MOST_EVIDENCE]],
        }
    return found


def add_urls(settings: Settings, urls: list[str], task: str) -> dict[str, int]:
    """Queues pages; as `crawl_queue.add_urls`."""
    with closing(open_store(settings)) as store:
        return asdict(crawl_queue.add_urls(settings, store, urls, task))


def proxies(settings: Settings) -> list[dict[str, Any]]:
    """Checks the outbound proxies now; as `check_proxies`."""
    return [
        {
            "address": proxy.address,
            "response_ms": proxy.response_ms if proxy.successes else None,
            "anonymous": proxy.anonymous,
            "failures": proxy.failures,
        }
        for proxy in check_proxies(settings)
    ]
