"""Block pages, error pages and the other answers that the filter gives instead of the origin.

A page gets a page that explains the block. Other resource types get what browsers accept: an image a transparent pixel, a script
an empty script, the rest an empty 403. Nothing is cached, so that an allowed page loads at the next try.
"""

import shlex
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode

from mitmproxy import http

from gatewayfilter.interfaces import RequestState
from gatewayfilter.model import LEARNED_PREFIX, PAGE_TYPES, UNBLOCK_PATH, Action, Reason, Request, ResourceType, Verdict
from gatewayfilter.proxy.pages.own_requests import AGAIN_AFTER_S, OwnRequests
from gatewayfilter.proxy.pages.stub_resources import stub_response
from gatewayfilter.proxy.pages.theme import PageTheme
from gatewayfilter.proxy.pages.translations import PageTexts, choose_texts
from gatewayfilter.proxy.pages.upstream_errors import Fault
from gatewayfilter.urls import Url

type CategoryTitle = Callable[[str, str], str]
"""Called with a category and a language (`en`, `zh-Hans`); returns its name for people."""

_ASKABLE: Final = frozenset(
    {
        Reason.MANUAL_BLOCK,
        Reason.BLACKLIST,
        Reason.LEARNED,
        Reason.ADBLOCK,
        Reason.SCHEDULE,
        Reason.POLICY,
        Reason.SERVICE,
        Reason.QUOTA,
        Reason.SEARCH_TERM,
        Reason.FILE_TYPE,
        Reason.FILE_SIZE,
    }
)
_PIXEL: Final = bytes.fromhex(
    "47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b"
)  # fmt: skip
_HTML: Final = "text/html; charset=utf-8"
_NOTHING_SHOWN: Final[Mapping[str, object]] = {"facts": (), "command": "", "ask": None, "state": "", "links": ()}
_LONGEST: Final = 400
"""Characters of a URL, rule or evidence that a page shows."""


class BlockPages:
    """Makes the block, error and notice pages of a process.

    Args:
        theme: the template and the name on it; by default the built-in ones.
        own_requests: the requests of users to unblock pages; block pages have a button for them. `None` for no button.
        short: block pages show neither list, rule and evidence nor the command that unblocks.
        title_of: names a category for people; by default the category itself.
    """

    def __init__(
        self,
        theme: PageTheme | None = None,
        *,
        own_requests: OwnRequests | None = None,
        title_of: CategoryTitle | None = None,
        short: bool = False,
    ) -> None:
        self._theme = theme or PageTheme.built_in()
        self._own_requests = own_requests
        self._short = short
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
            content = self._block_page(request, verdict, texts)
            return self._block(403, verdict.reason, content, _HTML, request.method)
        if request.resource_type is ResourceType.IMAGE:
            return self._stub(200, verdict.reason, _PIXEL, "image/gif", request.method)
        if request.resource_type is ResourceType.SCRIPT:
            return self._stub(200, verdict.reason, b"", "text/javascript; charset=utf-8", request.method)
        return self._stub(403, verdict.reason, b"", "text/plain; charset=utf-8", request.method)

    def notice(
        self,
        what: str,
        accept_language: str,
        *,
        url: str = "",
        status: int = 200,
        facts: Mapping[str, str] | None = None,
        links: Mapping[str, str] | None = None,
    ) -> http.Response:
        """Returns the answer to a request to unblock a page, to the question for its state, or to a bypass link.

        Args:
            what: which of `PageTexts.notices`.
            accept_language: of the request.
            url: of the page that it is about.
            status: HTTP status.
            facts: label → value; empty ones are left out.
            links: label → address.
        """
        texts = choose_texts(accept_language)
        shown = [(texts.labels[name], _cut(value), False) for name, value in (facts or {}).items() if value]
        address = [(texts.labels["url"], _cut(url), True)] if url else []
        named = [(texts.labels[name], target) for name, target in (links or {}).items()]
        content = self._render(texts, texts.notices[what], code=what, facts=[*address, *shown], links=named)
        return self._answer(status, f"notice; reason={what}", content, _HTML, "GET")

    def redirect(self, address: str) -> http.Response:
        """Returns an answer that leads to another address by GET."""
        response = self._answer(303, "notice; reason=redirect", b"", _HTML, "GET")
        response.headers["location"] = address
        return response

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

    def _block_page(self, request: Request, verdict: Verdict, texts: PageTexts) -> bytes:
        url = request.url
        command = f"gatewayfilter list add --allow {shlex.quote(url.text)}"
        state, link, may_ask = self._own_state(request, verdict, texts)
        back = [(texts.labels["back"], request.source.text)] if request.source is not None and request.source != url else []
        title = self._title_of(verdict.category, texts.language) if verdict.category else ""
        return self._render(
            texts,
            (texts.title(verdict.reason), texts.explanation(verdict.reason, verdict.category, title)),
            code=verdict.reason.value,
            host=url.host,
            facts=self._facts(url, verdict, texts, title),
            command=command if len(command) <= 2 * _LONGEST and not self._short else "",
            ask={"action": UNBLOCK_PATH, "url": url.text, "button": texts.labels["ask"], "hint": texts.labels["hint"]}
            if may_ask
            else None,
            state=state,
            links=[*link, *back],
        )

    def _own_state(self, request: Request, verdict: Verdict, texts: PageTexts) -> tuple[str, list[tuple[str, str]], bool]:
        """Returns the state of the client's own request for this page, a link to it, and whether the page may be requested."""
        own = self._own_requests
        if own is None or verdict.unknown or verdict.reason not in _ASKABLE:
            return "", [], False
        if request.resource_type is not ResourceType.DOCUMENT:
            return "", [], False
        asker = own.asker(request)
        found = own.state_of(asker, request.url.text)
        if found is None or found.state is RequestState.CLOSED:
            return "", [], asker.may_ask
        if found.state is RequestState.OPEN:
            link = (texts.labels["see"], state_address(request.url, own.token(asker, request.url.text)))
            return texts.labels["state-waiting"], [link], False
        if found.state is RequestState.APPROVED:
            if address := own.link_of(found):
                return texts.labels["state-approved"], [(texts.labels["open"], address)], False
            return texts.labels["state-ended"], [], asker.may_ask
        again = own.now() - found.at >= AGAIN_AFTER_S
        word = f" {texts.labels['answer']}: {_cut(found.word)}" if found.word else ""
        return f"{texts.labels['state-denied']}{word}", [], asker.may_ask and again

    def _facts(self, url: Url, verdict: Verdict, texts: PageTexts, title: str) -> list[tuple[str, str, bool]]:
        source = texts.labels["learned"] if verdict.source_list.startswith(LEARNED_PREFIX) else verdict.source_list
        named = (
            ("url", url.text, True),
            ("category", title, False),
            ("list", source, False),
            ("rule", verdict.rule, True),
            ("evidence", texts.evidence(verdict.detail), False),
        )
        return [
            (texts.labels[name], _cut(value), is_code) for name, value, is_code in named[: 2 if self._short else None] if value
        ]

    def _reason_page(self, texts: PageTexts, reason: Reason) -> bytes:
        return self._render(texts, (texts.title(reason), texts.why.get(reason, "")), code=reason.value)

    def _render(self, texts: PageTexts, words: tuple[str, str], *, code: str, host: str = "", **shown: object) -> bytes:
        """Returns a page; `shown` are variables of the template that are not empty."""
        return self._theme.render(
            text={"language": texts.language, "title": words[0], "why": words[1], "how": texts.how},
            host=host,
            reason=code,
            **{**_NOTHING_SHOWN, **shown},
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


def state_address(url: Url, token: str, *, link: bool = False, since: float | None = None) -> str:
    """Returns the address of the page that shows the state of a client's request for a URL, on the URL's own site.

    Args:
        url: of the blocked page.
        token: of the client and the URL.
        link: the client comes from a bypass link: the page leads on to the URL by itself.
        since: Unix seconds of the request, which other workers learn of within a second.
    """
    query = urlencode(
        {"url": url.text, "state": token, **({"by": "link"} if link else {}), **({"since": int(since)} if since else {})}
    )
    return f"{url.scheme}://{url.netloc}{UNBLOCK_PATH}?{query}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _plain_title(category: str, _language: str) -> str:
    return category
