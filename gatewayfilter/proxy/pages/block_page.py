"""Answers that the filter gives instead of the origin.

A page gets a page that explains the block; anything else gets what browsers take well: an image a transparent pixel, a script
an empty script, the rest an empty 403. Nothing is cached, so that an allowed page is there at the next try.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mitmproxy import http

from gatewayfilter.model import Action, Reason, Request, ResourceType, Verdict
from gatewayfilter.proxy.pages.stub_resources import stub_response
from gatewayfilter.proxy.pages.theme import PageTheme
from gatewayfilter.proxy.pages.translations import PageTexts, choose_texts
from gatewayfilter.proxy.pages.upstream_errors import Fault
from gatewayfilter.urls import Url

type CategoryTitle = Callable[[str, str], str]
"""Called with a category and a language (`en`, `zh-Hans`); returns its name for people."""

ASK_PATH: Final = "/.well-known/gatewayfilter/unblock"
"""Where the form of a block page goes, on the site of the blocked page; the filter answers there itself."""
_ASKABLE: Final = frozenset({Reason.MANUAL_BLOCK, Reason.BLACKLIST, Reason.LEARNED, Reason.ADBLOCK})
_PIXEL: Final = bytes.fromhex(
    "47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b"
)  # fmt: skip
_PAGES: Final = frozenset({ResourceType.DOCUMENT, ResourceType.SUBDOCUMENT})
_HTML: Final = "text/html; charset=utf-8"
_LONGEST: Final = 400
"""Characters of a URL, rule or evidence that a page shows."""
_LOOK = [PageTheme.built_in()]
"""Of this process; pages are also made where mitmproxy hands nothing of ours on."""
_ASKS = [False]


def set_theme(look: PageTheme, *, asks: bool) -> None:
    """Says how the pages of this process look.

    Args:
        look: of the settings.
        asks: block pages have a button to ask for the page.
    """
    _LOOK[0] = look
    _ASKS[0] = asks


def block_response(
    request: Request, verdict: Verdict, accept_language: str, title_of: CategoryTitle, origin: str = ""
) -> http.Response:
    """Returns the answer to a blocked request: the stub that the rule asks for, else what its kind takes well.

    `origin` is the request's Origin header, which a stub may be read from.
    """
    if verdict.stub and (stub := stub_response(verdict.stub, verdict.reason, method=request.method, origin=origin)) is not None:
        return stub
    if request.resource_type in _PAGES:
        texts = choose_texts(accept_language)
        facts = _facts(request.url, verdict, texts, title_of)
        command = f"gatewayfilter list add --allow {shlex.quote(request.url.text)}"
        content = _reason_page(
            texts,
            verdict.reason,
            request.url.host,
            facts=facts,
            command=command if len(command) <= 2 * _LONGEST else "",
            ask=_ask(request, verdict, texts),
        )
        return _block(403, verdict.reason, content, _HTML, request.method)
    if request.resource_type is ResourceType.IMAGE:
        return _stub(200, verdict.reason, _PIXEL, "image/gif", request.method)
    if request.resource_type is ResourceType.SCRIPT:
        return _stub(200, verdict.reason, b"", "text/javascript; charset=utf-8", request.method)
    return _stub(403, verdict.reason, b"", "text/plain; charset=utf-8", request.method)


def _ask(request: Request, verdict: Verdict, texts: PageTexts) -> Mapping[str, str] | None:
    """Returns what the form says that asks for the page, `None` where none belongs."""
    if not _ASKS[0] or verdict.unknown or verdict.reason not in _ASKABLE or request.resource_type is not ResourceType.DOCUMENT:
        return None
    return {"action": ASK_PATH, "url": request.url.text, "button": texts.labels["ask"], "hint": texts.labels["hint"]}


def notice_response(what: str, accept_language: str, *, url: str = "", status: int = 200) -> http.Response:
    """Returns the answer to a request for a page: `asked`, `ask-again`, `ask-later` or `not-blocked`."""
    texts = choose_texts(accept_language)
    facts = [(texts.labels["url"], _cut(url), True)] if url else []
    content = _render(texts, texts.notices[what], code=what, facts=facts)
    return _answer(status, f"notice; reason={what}", content, _HTML, "GET")


def bad_request_response(method: str, accept_language: str) -> http.Response:
    """Returns the answer to a request whose URL cannot be read."""
    return _block(400, Reason.BAD_REQUEST, _reason_page(choose_texts(accept_language), Reason.BAD_REQUEST), _HTML, method)


def not_http_response() -> http.Response:
    """Returns the answer to a client whose connection speaks neither HTTP nor TLS."""
    return _block(400, Reason.NOT_HTTP, _reason_page(choose_texts(""), Reason.NOT_HTTP), _HTML, "GET")


def failure_response(method: str, accept_language: str) -> http.Response:
    """Returns the answer to a request on which the filter itself failed, when `proxy.on_error` is `block`."""
    return _block(503, Reason.FAILURE, _reason_page(choose_texts(accept_language), Reason.FAILURE), _HTML, method)


def error_response(
    fault: Fault, message: str = "", *, url: str = "", method: str = "GET", accept_language: str = ""
) -> http.Response:
    """Returns the answer to a request that was allowed but came to nothing.

    Args:
        fault: what went wrong.
        message: what mitmproxy or the operating system says about it.
        url: what was asked for, when it could be read.
        method: of the request.
        accept_language: of the request.
    """
    texts = choose_texts(accept_language)
    title, why = texts.faults[fault]
    shown = [
        (texts.labels[name], _cut(text), is_code)
        for name, text, is_code in (("url", url, True), ("says", message, False))
        if text
    ]
    content = _render(texts, (title, why), code=fault.value, facts=shown)
    what = Action.BLOCK if fault is Fault.INTERNAL_ADDRESS else "error"
    return _answer(fault.status, f"{what}; reason={fault}", content, _HTML, method)


def _facts(url: Url, verdict: Verdict, texts: PageTexts, title_of: CategoryTitle) -> list[tuple[str, str, bool]]:
    named = (
        ("url", url.text, True),
        ("category", title_of(verdict.category, texts.language) if verdict.category else "", False),
        ("list", verdict.source_list, False),
        ("rule", verdict.rule, True),
        ("evidence", verdict.detail, False),
    )
    return [(texts.labels[name], _cut(value), is_code) for name, value, is_code in named if value]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _reason_page(
    texts: PageTexts,
    reason: Reason,
    host: str = "",
    *,
    facts: Sequence[tuple[str, str, bool]] = (),
    command: str = "",
    ask: Mapping[str, str] | None = None,
) -> bytes:
    words = (texts.title(reason), texts.why.get(reason, ""))
    return _render(texts, words, code=reason.value, host=host, facts=facts, command=command, ask=ask)


def _render(
    texts: PageTexts,
    words: tuple[str, str],
    *,
    code: str,
    host: str = "",
    facts: Sequence[tuple[str, str, bool]] = (),
    command: str = "",
    ask: Mapping[str, str] | None = None,
) -> bytes:
    return _LOOK[0].render(
        text={"language": texts.language, "title": words[0], "why": words[1], "how": texts.how},
        host=host,
        facts=facts,
        command=command,
        ask=ask,
        reason=code,
    )


def _block(status: int, reason: Reason, content: bytes, content_type: str, method: str) -> http.Response:
    return _answer(status, f"{Action.BLOCK}; reason={reason}", content, content_type, method)


def _stub(status: int, reason: Reason, content: bytes, content_type: str, method: str) -> http.Response:
    """Returns an answer that says nothing, which any page may read: an error of CORS would tell it no less."""
    response = _block(status, reason, content, content_type, method)
    response.headers["access-control-allow-origin"] = "*"
    del response.headers["cross-origin-resource-policy"]
    return response


def _answer(status: int, what: str, content: bytes, content_type: str, method: str) -> http.Response:
    return http.Response.make(
        status,
        b"" if method == "HEAD" else content,
        {
            "content-type": content_type,
            "cache-control": "no-store",
            "cross-origin-resource-policy": "same-origin",  # evidence, comments and addresses are for who asked, not for pages
            "content-security-policy": f"{_LOOK[0].policy}; form-action 'self'",
            "referrer-policy": "same-origin",  # a form of ours then says where it comes from; nobody else hears anything
            "x-content-type-options": "nosniff",
            "x-gatewayfilter": what,
        },
    )
