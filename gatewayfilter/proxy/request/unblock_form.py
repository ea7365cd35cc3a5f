"""Requests to unblock pages, on the site of the blocked page: the form, the page of a request's state, bypass links.

They have a fixed path (`UNBLOCK_PATH`) there, where the filter answers: that needs no script, no further certificate and
no permission of the browser. The page is decided again, so that the operator's list cannot be filled with pages that are not
blocked. A form that a page of another site sends is refused.

================================  =============================================================
request                           answer
================================  =============================================================
`POST` with `url`, `comment`      stores the request, and leads to the page of its state
`GET ?url=…&state=TOKEN`          the state of the client's own request, for the holder of the token
`GET ?link=TOKEN`                 opens a bypass link, and leads to the page
================================  =============================================================
"""

import time
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from mitmproxy import http

from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Decide, RequestState, UnblockRequest
from gatewayfilter.model import LinkClaims, Request, ResourceType
from gatewayfilter.proxy.pages.block_page import BlockPages, state_address
from gatewayfilter.proxy.pages.own_requests import Asker, OwnRequests
from gatewayfilter.proxy.request.flow_request import FlowRequest
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url, parse_url

MOST_BYTES: Final = 20_000
LONGEST_COMMENT: Final = 300
_LONGEST_SHOWN_URL: Final = 2_000
"""Characters of a URL whose request has a page of its own: the URL stands in that page's address."""
_REFRESH_S: Final = 10
_SOON_S: Final = 1


class UnblockForm:
    """Takes the requests of block pages, shows their state, and opens bypass links.

    Args:
        decide: decides the page again.
        take: queues a request for the database; returns False when the queue is full.
        redeem: queues the number of a bypass link that was opened; returns False when the queue is full.
        own: the requests and links that are known.
        counters: `unblock_requests`, `unblock_refused`, `links_opened`, `links_refused`.
        clock: Unix seconds.
        pages: makes the answers.
        takes_requests: whether requests are taken; links work in any case.
    """

    def __init__(
        self,
        decide: Decide,
        take: Callable[[UnblockRequest], bool],
        redeem: Callable[[int], bool],
        own: OwnRequests,
        counters: Counters,
        clock: Callable[[], float],
        pages: BlockPages,
        *,
        takes_requests: bool = True,
    ) -> None:
        self._decide = decide
        self._take = take
        self._redeem = redeem
        self._own = own
        self._counters = counters
        self._clock = clock
        self._pages = pages
        self._takes_requests = takes_requests

    def answer_head(self, flow_request: FlowRequest) -> http.Response | None:
        """Returns the answer to a request that has no body, or is refused by its headers; `None` where the body is to be read."""
        language = flow_request.headers.get(b"accept-language", "")
        method = flow_request.request.method
        if method in {"GET", "HEAD"}:
            return self._answer_get(flow_request, language, opens=method == "GET")
        if method != "POST":
            return self._pages.notice("ask-again", language, status=405)
        size = flow_request.headers.get(b"content-length", "")
        if not size.isdecimal() or int(size) > MOST_BYTES:
            return self._pages.notice("ask-again", language, status=413)
        if flow_request.headers.get(b"sec-fetch-site", "same-origin") != "same-origin" or not _same_origin(flow_request):
            return self._pages.notice("ask-again", language, status=403)
        return None

    def answer(self, flow_request: FlowRequest, body: bytes) -> http.Response:
        """Stores a request to unblock a page; returns the answer, which leads to the page of its state."""
        language = flow_request.headers.get(b"accept-language", "")
        form = _fields(body.decode("utf-8", "replace"))
        url = _url_of(form.get("url", ""), flow_request.request.url)
        if url is None:
            return self._pages.notice("ask-again", language, status=400)
        page = _page(flow_request, url)
        verdict = self._decide.decide(page)
        if not verdict.blocked:
            return self._pages.notice("not-blocked", language, url=url.text, links={"open": url.text})
        asker = self._own.asker(flow_request.request)
        refusal = self._own.refusal(asker, url.text) if self._takes_requests else "requests-off"
        if refusal:
            self._counters.add("unblock_refused")
            own = self._own.state_of(asker, url.text)
            word = own.word if refusal == "denied" and own is not None else ""
            return self._pages.notice(
                refusal, language, url=url.text, status=403, facts={"answer": word}, links={"back": url.text}
            )
        request = UnblockRequest(
            url=url.text,
            client=asker.address,
            client_name=asker.name,
            reason=verdict.reason.value,
            source_list=verdict.source_list,
            rule=verdict.rule,
            category=verdict.category,
            comment=plain_text(form.get("comment", ""), LONGEST_COMMENT),
            at=self._clock(),
        )
        if not self._take(request):
            return self._pages.notice("ask-later", language, status=503)
        self._counters.add("unblock_requests")
        self._own.note(asker, request)
        if len(url.text) > _LONGEST_SHOWN_URL:
            return self._pages.notice("asked", language, url=url.text, links={"back": url.text})
        return self._pages.redirect(state_address(url, self._own.token(asker, url.text), since=request.at))

    def _answer_get(self, flow_request: FlowRequest, language: str, *, opens: bool) -> http.Response:
        query = _fields(flow_request.request.url.query.lstrip("?"))
        if token := query.get("link"):
            return self._open_link(flow_request, token, language, opens=opens)
        url = _url_of(query.get("url", ""), flow_request.request.url)
        asker = self._own.asker(flow_request.request)
        if url is None or not self._own.is_token(query.get("state", ""), asker, url.text):
            return self._pages.notice("ask-again", language, status=405)
        if query.get("by") == "link":
            return self._way_of_link(flow_request, url, language)
        return self._state(flow_request, asker, url, language, since=query.get("since", ""))

    def _way_of_link(self, flow_request: FlowRequest, url: Url, language: str) -> http.Response:
        if not self._decide.decide(_page(flow_request, url)).blocked:
            return self._pages.redirect(url.text)
        return _again(self._pages.notice("link-opening", language, url=url.text), _SOON_S)

    def _state(self, flow_request: FlowRequest, asker: Asker, url: Url, language: str, *, since: str) -> http.Response:
        own = self._own.state_of(asker, url.text)
        if not self._decide.decide(_page(flow_request, url)).blocked:
            facts = {} if own is None else {"until": _moment(own.until), "answer": own.word, "note": own.comment}
            what = "approved" if own is not None and own.state is RequestState.APPROVED else "not-blocked"
            return self._pages.notice(what, language, url=url.text, facts=facts, links={"open": url.text})
        if own is None:
            if since.isdecimal() and abs(self._clock() - int(since[:12])) < _REFRESH_S:  # another worker has it
                return _again(self._pages.notice("waiting", language, url=url.text), _SOON_S)
            return self._pages.notice("no-request", language, url=url.text, links={"back": url.text})
        facts = {"note": own.comment, "asked-at": _moment(own.at), "answer": own.word}
        if own.state is RequestState.OPEN:
            return _again(self._pages.notice("waiting", language, url=url.text, facts=facts), _REFRESH_S)
        if own.state is RequestState.APPROVED:
            if address := self._own.link_of(own):
                return self._pages.notice("approved", language, url=url.text, facts=facts, links={"open": address})
            # The approval arrives with the lists, within a second; later it has ended, or was withdrawn.
            waits = own.decided_at is not None and abs(self._clock() - own.decided_at) < _REFRESH_S
            if waits:
                return _again(self._pages.notice("waiting", language, url=url.text, facts=facts), _SOON_S)
            return self._pages.notice("approved-ended", language, url=url.text, facts=facts, links={"back": url.text})
        what = "denied" if own.state is RequestState.DENIED else "no-request"
        return self._pages.notice(what, language, url=url.text, facts=facts, links={"back": url.text})

    def _open_link(self, flow_request: FlowRequest, token: str, language: str, *, opens: bool) -> http.Response:
        asker = self._own.asker(flow_request.request)
        claims, refusal = self._own.read_link(token, asker)
        url = _url_of(claims.url, flow_request.request.url) if claims is not None else None
        if claims is None or url is None:
            return self._refuse_link(refusal or "link-invalid", language)
        if refusal in {"", "link-used"} and not self._decide.decide(_page(flow_request, url)).blocked:
            return self._pages.redirect(url.text)
        if refusal:
            return self._refuse_link(refusal, language)
        if opens and not self._is_opened(claims):
            return self._pages.notice("ask-later", language, status=503)
        return self._pages.redirect(state_address(url, self._own.token(asker, url.text), link=True))

    def _is_opened(self, claims: LinkClaims) -> bool:
        self._counters.add("links_opened")
        return self._redeem(claims.number)

    def _refuse_link(self, refusal: str, language: str) -> http.Response:
        self._counters.add("links_refused")
        return self._pages.notice(refusal, language, status=403)


def plain_text(text: str, most: int) -> str:
    """Returns a text in one line, without control characters and marks of direction, cut to this number of characters."""
    return "".join(mark for mark in " ".join(text.split()) if mark.isprintable())[:most]


def _fields(text: str) -> dict[str, str]:
    """Returns the first value of each field, none of a form that has too many."""
    try:
        return {name: values[0] for name, values in parse_qs(text, max_num_fields=8).items()}
    except ValueError:
        return {}


def _url_of(text: str, here: Url) -> Url | None:
    """Returns a URL of the site on which the filter was addressed, `None` for any other text."""
    try:
        url = parse_url(text)
    except (UrlError, ValueError):
        return None
    return url if (url.scheme, url.netloc) == (here.scheme, here.netloc) else None


def _page(flow_request: FlowRequest, url: Url) -> Request:
    asked = flow_request.request
    return Request(url, None, ResourceType.DOCUMENT, "GET", asked.client, asked.user)


def _same_origin(flow_request: FlowRequest) -> bool:
    origin = flow_request.headers.get(b"origin", "")
    url = flow_request.request.url
    return not origin or origin.lower() == f"{url.scheme}://{url.netloc}"


def _again(response: http.Response, after_s: int) -> http.Response:
    """Has the browser load a page again after some seconds; the pages have no scripts."""
    response.headers["refresh"] = str(after_s)
    return response


def _moment(at: float | None) -> str:
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
