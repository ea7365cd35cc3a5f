"""The out-links that extraction rules name: they go to the queue whatever the page was judged as, through the same URL policy."""

from gatewayfilter.classify import RuleResult
from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.fetch.url_resolution import resolve
from gatewayfilter.errors import UrlError
from gatewayfilter.safe_regex.re2 import compile_linear
from gatewayfilter.urls import Url, parse_url


def rule_links(result: RuleResult, final_url: str, settings: CrawlSettings) -> list[Url]:
    """Returns the links that a rule found on a page, absolute, in order, each once, at most as many as its tables allow.

    Args:
        result: what the rule found.
        final_url: the page's address, which the references are relative to.
        settings: for what may be fetched at all.
    """
    base = parse_url(final_url)
    found: dict[str, Url] = {}
    limits: dict[str, int] = {}
    for table in result.rule.links:
        limits[table.urls] = limits.get(table.urls, 0) + table.limit
    for reference, urls in result.extracted.links:
        if limits[urls] <= 0:
            continue
        try:
            link = resolve(base, reference)
            if urls and compile_linear(urls).fullmatch(link.text) is None:
                continue
        except (UrlError, UnicodeError):
            continue
        if link.key != base.key and link.key not in found and not may_crawl(link, settings):
            found[link.key] = link
            limits[urls] -= 1
    return list(found.values())
