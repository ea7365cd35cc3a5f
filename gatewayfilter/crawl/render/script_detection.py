"""The detection of pages whose text only a browser shows: built by a script, or written in markup that hides it from readers."""

import re

from gatewayfilter.documents.html.markup import read_html
from gatewayfilter.documents.html.tags import bounded

LITTLE_TEXT = 200
"""Characters that a reader sees; a page with more is judged by them."""
MUCH_TEXT = 1_000
"""Characters from which hidden text is much."""

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


_SHEET = re.compile(
    r"(?i)\bcontent\s*:\s*(?:attr\(|\"[^\"\\]{30}|'[^'\\]{30})|\[hidden\][^{}]{0,100}\{[^{}]{0,200}\bdisplay\s*:\s*(?!none|\s)"
)
"""Text that a style sheet writes, and hidden elements that it shows."""
UNUSUAL = frozenset({"unusual markup", "hidden text", "text by style sheet"})
"""Signs of pages of which the text counts that the browser shows, beside their markup."""


def rendering_sign(html: str) -> str:
    """Returns why a page should be rendered, `""` for one that need not be.

    `app root`, `noscript notice`, `framework`: a script builds it. `unusual markup`, `hidden text`, `text by style sheet`: what
    hardly any honest page has stands there, more text is hidden than shown, or a style sheet shows some. None of these is
    evidence against a page: hidden text counts by no other rule than elsewhere. Linear and bounded as `read_html`.
    """
    html = bounded(html)
    page = read_html(html)
    if page.is_unusual:
        return "unusual markup"
    shown = sum(len(block.text) for block in page.blocks)
    if sum(map(len, page.hidden)) > max(shown, MUCH_TEXT):
        return "hidden text"
    if _SHEET.search(html):
        return "text by style sheet"
    return _script_sign(html) if shown < LITTLE_TEXT and _SCRIPT.search(html) else ""


def _script_sign(html: str) -> str:
    if _ROOT.search(html):
        return "app root"
    if any(_NOTICE.search(match[1]) for match in _NOSCRIPT.finditer(html)):
        return "noscript notice"
    return "framework" if _FRAMEWORK.search(html) else ""
