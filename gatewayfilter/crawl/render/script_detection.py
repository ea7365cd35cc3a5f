"""The detection of pages that a script builds: little visible text, and markup that shows that a script will add more."""

import re

from gatewayfilter.documents.html.markup import read_html
from gatewayfilter.documents.html.tags import bounded

LITTLE_TEXT = 200
"""Characters that a reader sees; a page with more is judged by them."""

_NOSCRIPT = re.compile(r"(?i)<noscript\b[^>]{0,100}>([^<]*+(?:<(?!/noscript)[^<]*+)*+)")
_SCRIPT = re.compile(r"(?i)<script\b")
_NOTICE = re.compile(r"(?i)\bjava\s?script\b|启用\s?js|開啟\s?js")
_ROOT = re.compile(
    r"(?i)<(?:div|main|section|body)\b[^>]{0,100}\bid\s{0,3}=\s{0,3}[\"']?"
    r"(?:root|app|__next|__nuxt|___gatsby|q-app|svelte|react-root|app-root|app-mount|main-app)[\"'\s>]|<app-root\b"
)
_FRAMEWORK = re.compile(
    r"\bng-app\b|\bng-version=|\bdata-reactroot\b|\b__NEXT_DATA__\b|\b__NUXT__\b|\b__INITIAL_STATE__\b|\bv-cloak\b|\bwebpackJsonp"
    r"|\bdata-sveltekit|\bember-cli\b|<script\b[^>]{0,100}\btype=[\"']?module"
)


def rendering_sign(html: str) -> str:
    """Returns why a page should be rendered, `app root`, `noscript notice` or `framework`; `""` for one that need not be.

    Linear and bounded as `read_html`.
    """
    html = bounded(html)
    if not _SCRIPT.search(html):
        return ""
    page = read_html(_NOSCRIPT.sub(" ", html))
    if sum(len(block.text) for block in page.blocks) >= LITTLE_TEXT:
        return ""
    if _ROOT.search(html):
        return "app root"
    if any(_NOTICE.search(match[1]) for match in _NOSCRIPT.finditer(html)):
        return "noscript notice"
    return "framework" if _FRAMEWORK.search(html) else ""
