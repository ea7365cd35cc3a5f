"""Block pages, error pages and the other answers that the filter gives instead of the origin.

A page gets a page that explains the block. Other resource types get what browsers accept: an image a transparent pixel, a script
an empty script, the rest an empty 403. Nothing is cached, so that an allowed page loads at the next try.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mitmproxy import http

from gatewayfilter.model import PAGE_TYPES, Action, Reason, Request, ResourceType, Verdict
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
_HTML: Final = "text/html; charset=utf-8"
_LONGEST: Final = 400
"""Characters of a URL, rule or evidence that a page shows."""


class BlockPages:
    """Makes the block, error and notice pages of a process.

    Args:
        theme: the template and the name on it; by default the built-in ones.
        unblock_form: block pages have a button that requests to unblock the page.
        title_of: names a category for people; by default the category itself.
    """

    def __init__(
        self, theme: PageTheme | None = None, *, unblock_form: bool = False, title_of: CategoryTitle | None = None
    ) -> None:
        self._theme = theme or PageTheme.built_in()
        self._unblock_form = unblock_form
        self._title_of = title_of or _plain_title

    def block(self, request: Request, verdict: Verdict, accept_language: str, origin: str = "") -> http.Response:
        """Returns the answer to a blocked request: the stub that the rule names, else what suits its resource type.

        `origin` is the request's Origin header, which may read a stub.
        """
        if verdict.stub:
            stub = stub_response(verdict.stub, verdict.reason, method=request.method, origin=origin)
            if stub is not None:
                return stub
        if request.resource_type in PAGE_TYPES:
            texts = choose_texts(accept_language)
            command = f"gatewayfilter list add --allow {shlex.quote(request.url.text)}"
            content = self._reason_page(
                texts,
                verdict.reason,
                request.url.host,
                facts=self._facts(request.url, verdict, texts),
                command=command if len(command) <= 2 * _LONGEST else "",
                ask=self._form(request, verdict, texts),
            )
            return self._block(403, verdict.reason, content, _HTML, request.method)
        if request.resource_type is ResourceType.IMAGE:
            return self._stub(200, verdict.reason, _PIXEL, "image/gif", request.method)
        if request.resource_type is ResourceType.SCRIPT:
            return self._stub(200, verdict.reason, b"", "text/javascript; charset=utf-8", request.method)
        return self._stub(403, verdict.reason, b"", "text/plain; charset=utf-8", request.method)

    def notice(self, what: str, accept_language: str, *, url: str = "", status: int = 200) -> http.Response:
        """Returns the answer to a request to unblock a page: `asked`, `ask-again`, `ask-later` or `not-blocked`."""
        texts = choose_texts(accept_language)
        facts = [(texts.labels["url"], _cut(url), True)] if url else []
        content = self._render(texts, texts.notices[what], code=what, facts=facts)
        return self._answer(status, f"notice; reason={what}", content, _HTML, "GET")

    def bad_request(self, method: str, accept_language: str) -> http.Response:
        """Returns the answer to a request whose URL cannot be read."""
        content = self._reason_page(choose_texts(accept_language), Reason.BAD_REQUEST)
        return self._block(400, Reason.BAD_REQUEST, content, _HTML, method)

    def not_http(self) -> http.Response:
        """Returns the answer to a client whose connection is neither HTTP nor TLS."""
        return self._block(400, Reason.NOT_HTTP, self._reason_page(choose_texts(""), Reason.NOT_HTTP), _HTML, "GET")

    def failure(self, method: str, accept_language: str) -> http.Response:
        """Returns the answer to a request on which the filter itself failed, when `proxy.on_error` is `block`."""
        content = self._reason_page(choose_texts(accept_language), Reason.FAILURE)
        return self._block(503, Reason.FAILURE, content, _HTML, method)

    def error(
        self, fault: Fault, message: str = "", *, url: str = "", method: str = "GET", accept_language: str = ""
    ) -> http.Response:
        """Returns the answer to a request that was allowed but failed.

        Args:
            fault: what went wrong.
            message: of mitmproxy or the operating system.
            url: what was requested, when it could be read.
            method: of the request.
            accept_language: of the request.
        """
        texts = choose_texts(accept_language)
        shown = [
            (texts.labels[name], _cut(text), is_code)
            for name, text, is_code in (("url", url, True), ("says", message, False))
            if text
        ]
        content = self._render(texts, texts.faults[fault], code=fault.value, facts=shown)
        what = Action.BLOCK if fault is Fault.INTERNAL_ADDRESS else "error"
        return self._answer(fault.status, f"{what}; reason={fault}", content, _HTML, method)

    def _form(self, request: Request, verdict: Verdict, texts: PageTexts) -> Mapping[str, str] | None:
        """Returns the texts of the unblock form, `None` where none belongs."""
        if not self._unblock_form or verdict.unknown or verdict.reason not in _ASKABLE:
            return None
        if request.resource_type is not ResourceType.DOCUMENT:
            return None
        return {"action": ASK_PATH, "url": request.url.text, "button": texts.labels["ask"], "hint": texts.labels["hint"]}

    def _facts(self, url: Url, verdict: Verdict, texts: PageTexts) -> list[tuple[str, str, bool]]:
        named = (
            ("url", url.text, True),
            ("category", self._title_of(verdict.category, texts.language) if verdict.category else "", False),
            ("list", verdict.source_list, False),
            ("rule", verdict.rule, True),
            ("evidence", texts.evidence(verdict.detail), False),
        )
        return [(texts.labels[name], _cut(value), is_code) for name, value, is_code in named if value]

    def _reason_page(
        self,
        texts: PageTexts,
        reason: Reason,
        host: str = "",
        *,
        facts: Sequence[tuple[str, str, bool]] = (),
        command: str = "",
        ask: Mapping[str, str] | None = None,
    ) -> bytes:
        words = (texts.title(reason), texts.why.get(reason, ""))
        return self._render(texts, words, code=reason.value, host=host, facts=facts, command=command, ask=ask)

    def _render(
        self,
        texts: PageTexts,
        words: tuple[str, str],
        *,
        code: str,
        host: str = "",
        facts: Sequence[tuple[str, str, bool]] = (),
        command: str = "",
        ask: Mapping[str, str] | None = None,
    ) -> bytes:
        return self._theme.render(
            text={"language": texts.language, "title": words[0], "why": words[1], "how": texts.how},
            host=host,
            facts=facts,
            command=command,
            ask=ask,
            reason=code,
        )

    def _block(self, status: int, reason: Reason, content: bytes, content_type: str, method: str) -> http.Response:
        return self._answer(status, f"{Action.BLOCK}; reason={reason}", content, content_type, method)

    def _stub(self, status: int, reason: Reason, content: bytes, content_type: str, method: str) -> http.Response:
        """Returns an answer without content of its own, which any page may read: a CORS error would reveal as much."""
        response = self._block(status, reason, content, content_type, method)
        response.headers["access-control-allow-origin"] = "*"
        del response.headers["cross-origin-resource-policy"]
        return response

    def _answer(self, status: int, what: str, content: bytes, content_type: str, method: str) -> http.Response:
        return http.Response.make(
            status,
            b"" if method == "HEAD" else content,
            {
                "content-type": content_type,
                "cache-control": "no-store",
                "cross-origin-resource-policy": "same-origin",  # evidence and addresses are for the user, not for other pages
                "content-security-policy": f"{self._theme.policy}; form-action 'self'",
                "referrer-policy": "same-origin",  # the unblock form then has an origin, and other sites get no referrer
                "x-content-type-options": "nosniff",
                "x-gatewayfilter": what,
            },
        )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _plain_title(category: str, _language: str) -> str:
    return category
