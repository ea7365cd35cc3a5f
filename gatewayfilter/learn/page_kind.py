"""Page kinds: which pages have text to judge.

What a browser would show as a page is judged, whatever its origin calls it; nothing that an origin puts into a page may
make us pass it over. The signs are those of the WHATWG MIME Sniffing Standard, §7.1 and §7.2.
"""

import re

from gatewayfilter.classify import is_pdf
from gatewayfilter.documents.page_parts import is_html_document
from gatewayfilter.interfaces import Page

_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN_TYPES = frozenset({"", "unknown/unknown", "application/unknown", "*/*"})
_LOOKED_AT = 1445
"""Bytes at the beginning of a body that decide, as in the standard (§5.2)."""

_TAGS = b"!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|B|BODY|BR|P|!--"
_LOOKS_LIKE_HTML = re.compile(rb"[\t\n\x0c\r ]*<(?:" + _TAGS + rb")[ >]", re.IGNORECASE)
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def is_readable(page: Page) -> bool:
    """Returns whether a page succeeded (2xx) and is HTML, XHTML, plain text or, with the extra `pdf`, PDF.

    By its type, or by its first bytes where the type is missing or wrong.
    """
    if not 200 <= page.status < 300 or not page.body:
        return False
    kind = page.content_type
    if is_pdf(kind, page.body):
        return True
    if kind in _HTML_TYPES:
        return True  # also with bytes that are no text: a browser shows it as HTML all the same
    head = page.body[:_LOOKED_AT]
    if kind == "text/plain":
        return _is_text(head)
    if kind in _UNKNOWN_TYPES:
        return bool(_LOOKS_LIKE_HTML.match(head)) or _is_text(head)
    return is_html_document(head)


def _is_text(head: bytes) -> bool:
    return head.startswith(_BYTE_ORDER_MARKS) or not _BINARY.search(head)
