"""The images that a page shows, to be compared with harmful ones.

Source: [page-dedup] pages and the images on them are compared with the fingerprints alike.
"""

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.fetch.url_resolution import resolve
from gatewayfilter.crawl.links.page_links import decoded
from gatewayfilter.documents.html.markup import read_references
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Page
from gatewayfilter.urls import Url, parse_url

_HTML = frozenset({"", "text/html", "application/xhtml+xml"})


def page_pictures(page: Page, charset: str, settings: CrawlSettings) -> list[Url]:
    """Returns the addresses of the first `page_images` pictures of a page that may be fetched, in order, each once.

    They may lie on any site, as a browser loads them from any. Linear in the page.

    Args:
        page: a fetched page.
        charset: how the classifier decoded it, `""` for UTF-8.
        settings: how many, and what may be fetched.
    """
    if page.content_type not in _HTML or not settings.page_images:
        return []
    base, _, images = read_references(decoded(page.body, charset))
    own = parse_url(page.final_url)
    root = _absolute(own, base) or own
    found: dict[str, Url] = {}
    for image in images:
        url = _absolute(root, image.reference)
        if url is not None and url.key != own.key and not may_crawl(url, settings):
            found.setdefault(url.key, url)
            if len(found) >= settings.page_images:
                break
    return list(found.values())


def _absolute(base: Url, reference: str) -> Url | None:
    try:
        return resolve(base, reference) if reference else None
    except UrlError:
        return None
