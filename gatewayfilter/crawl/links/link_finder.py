"""The links of a judged page that are followed whatever its strategy follows: by rule, discovery, near-duplicates, pictures."""

from collections.abc import Sequence

from gatewayfilter.classify import RuleBook
from gatewayfilter.crawl.links.images import page_pictures
from gatewayfilter.crawl.links.page_links import out_links
from gatewayfilter.crawl.links.rule_links import rule_links
from gatewayfilter.crawl.links.sitemap_discovery import FocusedDiscovery
from gatewayfilter.interfaces import KnownContent, Page
from gatewayfilter.model import Classification
from gatewayfilter.settings import CrawlSettings
from gatewayfilter.urls import Url


class LinkFinder:
    """Finds links beside those that a strategy follows. To be called in the judge's thread, right after the judgement.

    Args:
        settings: how many links, and what may be fetched.
        rules: the extraction rules, which may name links.
        known: whether the page is nearly the same as a harmful one, and whether pictures are judged.
    """

    def __init__(self, settings: CrawlSettings, rules: RuleBook, known: KnownContent) -> None:
        self._settings = settings
        self._rules = rules
        self._known = known
        self._discovery = FocusedDiscovery(settings)

    def links(self, page: Page, classification: Classification | None, sitemaps: Sequence[str]) -> list[Url]:
        """Returns the links of a page in order of importance; one may come twice.

        Args:
            page: a page that was judged.
            classification: the judgement, `None` for a page of a kind that is not judged.
            sitemaps: those that the robots.txt of its origin names.
        """
        settings = self._settings
        found: list[Url] = []
        result = self._rules.read(page)
        if classification is not None and self._known.is_near_duplicate(page):
            found += out_links(page, classification.charset, settings)
        if result is not None:
            found += rule_links(result, page.final_url, settings)
        found += self._discovery.links(page, classification, sitemaps)
        if classification is not None and self._known.knows_images():
            found += page_pictures(page, classification.charset, settings)
        return found
