"""Whether a manual verdict on a page's content holds at the URL where the content is met."""

from collections.abc import Callable

from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.documents.html.forms import Credential, likely_credentials
from gatewayfilter.documents.html.tags import MAX_HTML
from gatewayfilter.documents.page_parts import HTML_TYPES
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification, Fingerprint
from gatewayfilter.urls import parse_url, registrable_domain


def asks_for_credentials(page: Page) -> bool:
    """Returns whether a page may have a log-in form, and so be a clone of one."""
    if page.content_type not in HTML_TYPES:
        return False
    markup = decode(page.body[:MAX_HTML], page.headers.get("content-type", "")).text
    return bool(likely_credentials(markup) - {Credential.LOGIN})


def is_login_clone(found: Classification) -> bool:
    """Returns whether a verdict rests on a login page of another service."""
    return any(hit.position < 0 and hit.zone == "rest" for hit in found.evidence)


def holds_here(known: Fingerprint, page: Page, classify: Callable[[Page], Classification | None]) -> bool:
    """Returns whether this content has a manual verdict that holds for a page.

    A block holds wherever the content is met. An approval holds too, except for a login clone: the same bytes are harmless at
    their owner's site and a clone at any other, so approval of a login page holds on the site of the approved page alone.

    Args:
        known: what is recorded of the content.
        page: where it is met.
        classify: judges a page, `None` for one that cannot be judged; called for an approved log-in page on another site.
    """
    if not known.judge or known.classification.harmful or _site(known.url) == _site(page.final_url):
        return bool(known.judge)
    found = classify(page) if asks_for_credentials(page) else None
    return found is None or not is_login_clone(found)


def _site(url: str) -> str:
    try:
        return registrable_domain(parse_url(url).host)
    except UrlError:  # content that was put in without one
        return ""
