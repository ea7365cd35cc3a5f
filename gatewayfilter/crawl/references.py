"""References of pages and redirects, made absolute."""

from urllib.parse import urljoin

from gatewayfilter.errors import UrlError
from gatewayfilter.urls import Url, parse_url

_DROPPED = str.maketrans("", "", "\t\r\n")


def resolve(base: Url, reference: str) -> Url:
    r"""Returns the canonical URL that a reference means on a page: white space dropped and `\` read as `/`, as browsers do.

    Raises:
        UrlError: not an http(s) URL.
    """
    text = reference.strip().translate(_DROPPED)
    head, mark, query = text.partition("?")
    try:
        return parse_url(urljoin(base.text, head.replace("\\", "/") + mark + query))
    except UrlError:
        raise
    except ValueError as error:
        raise UrlError(f"not a URL: {reference[:200]!r}") from error
