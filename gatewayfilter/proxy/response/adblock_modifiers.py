"""Adblock modifiers applied to flows: `$removeparam`, `$csp`, `$replace`, `##` and similar ones.

The engine returns the changes (`interfaces.ChangeTraffic`); here they are made. What a change would break is left as it is:
partial content, downloads, content encodings that are not supported.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, cast

from mitmproxy import http

from gatewayfilter.config import CosmeticScope, FilterSettings
from gatewayfilter.content_encoding import KNOWN, EncodingError
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import ChangeTraffic
from gatewayfilter.model import PAGE_TYPES, Enforcement, JudgeDownload, JudgeForm, Request, RequestChange, ResponseChange, Verdict
from gatewayfilter.proxy.request.enforced_search import enforce
from gatewayfilter.proxy.response.body_rewriter import EditedBody, Stage, WholeText
from gatewayfilter.proxy.response.csp import allow_style
from gatewayfilter.proxy.response.css_injector import StyleInjector, style_hash, style_text
from gatewayfilter.proxy.response.download_check import CheckedDownload
from gatewayfilter.proxy.sync.decision_counter import DecisionCounter
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url, digest_of, parse_url

_BODILESS: Final = frozenset({101, 103, 204, 205, 206, 304})
"""Answers without a body, and the part of one, which cannot be changed without knowing the rest."""
_FRAMING: Final = frozenset({
    "connection", "content-encoding", "content-length", "content-range", "host", "keep-alive", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade", "expect",
})  # fmt: skip
"""Headers of framing and content coding: no rule removes them."""
_OF_THE_BYTES: Final = ("content-encoding", "content-md5", "digest", "repr-digest", "content-digest", "accept-ranges", "trailer")
"""Headers that hold only for the bytes that the origin sent."""
_TEXT_TYPES: Final = frozenset({
    "application/json", "application/javascript", "application/x-javascript", "application/ecmascript", "application/xml",
    "application/xhtml+xml", "application/vnd.apple.mpegurl", "application/x-mpegurl", "application/dash+xml", "image/svg+xml",
})  # fmt: skip
_WITH_FILES: Final = frozenset(range(200, 300)) - {204, 205}
"""Answers that browsers save as a file: of those of success, all that have a body."""
_PART: Final = 206
_OF_FILES: Final = ("content-type", "content-disposition", "content-encoding", "content-length", "content-range")
_LONGEST_ACCEPTED: Final = 100
"""Characters of an Accept-Encoding that is remembered."""
_REDIRECTED_FOR_S: Final = 10.0
_MOST_REDIRECTED: Final = 1024


class LowerHeaders(Mapping[str, str]):
    """A view of mitmproxy's headers with lower-case names, read on access."""

    __slots__ = ("_headers",)

    def __init__(self, headers: http.Headers) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        return str(self._headers[name])

    def __contains__(self, name: object) -> bool:
        return name in self._headers

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.lower() for name in self._headers))

    def __len__(self) -> int:
        return len(dict.fromkeys(name.lower() for name in self._headers))


class TrafficChanges:
    """Applies the changes of the engine.

    Args:
        engine: returns the changes.
        settings: `cosmetic` and `replace` count here.
        counter: counts and logs downloads that are cut; `None` for nowhere.
        counters: `requests_changed`, `searches_enforced`, `responses_changed`, `edits_skipped`, `edits_failed`.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        engine: ChangeTraffic,
        settings: FilterSettings,
        counters: Counters,
        clock: Callable[[], float] = time.monotonic,
        *,
        counter: DecisionCounter | None = None,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._counters = counters
        self._clock = clock
        self._counter = counter
        self._redirected: dict[tuple[str, bytes], float] = {}  # by the digest: URLs are long

    def before(self, flow: http.HTTPFlow, request: Request) -> tuple[http.Response | None, Url | None, JudgeForm | None]:
        """Changes a request that is allowed, before it goes out.

        Returns:
            A redirection to another URL, or `None`; the URL that is requested instead, which is still to be decided, or `None`;
            and what judges its body, or `None`.
        """
        headers = flow.request.headers
        if request.resource_type in PAGE_TYPES:
            _accept_supported_encodings(headers)
        change = self._engine.change_request(request)
        if change is None:
            return None, None, None
        changed = _remove_headers(headers, change.remove_headers)
        answer, other = self._elsewhere(flow, request, change) if change.url else (None, None)
        if changed or answer is not None or other is not None:
            self._counters.add("requests_changed")
        if change.enforced is not None and answer is None:
            self._enforce(flow, request, change.enforced)
        return answer, other, change.form

    def enforce(self, flow: http.HTTPFlow, request: Request) -> None:
        """Changes a request that a manual rule allows as far as the client's policy requires it."""
        enforced = self._engine.enforced(request)
        if enforced is not None:
            self._enforce(flow, request, enforced)

    def _enforce(self, flow: http.HTTPFlow, request: Request, enforced: Enforcement) -> None:
        enforce(flow.request, request.url, enforced)
        self._counters.add("searches_enforced")

    def _elsewhere(self, flow: http.HTTPFlow, request: Request, change: RequestChange) -> tuple[http.Response | None, Url | None]:
        try:
            url = parse_url(change.url)
        except UrlError:
            return None, None
        here = request.url
        if url.text == here.text:
            return None, None
        if not change.redirect and (url.scheme, url.netloc) == (here.scheme, here.netloc):
            flow.request.path = url.path + url.query
            return None, url
        if request.method not in {"GET", "HEAD"} or not url.text.startswith("http") or self._was_redirected(request):
            return None, None
        self._remember(request.client, url)
        return _redirect(url), None

    def _was_redirected(self, request: Request) -> bool:
        """Returns whether the client was redirected here a moment ago: a second redirection could be a loop."""
        at = self._redirected.get((request.client, _mark(request.url)))
        return at is not None and self._clock() - at < _REDIRECTED_FOR_S

    def _remember(self, client: str, url: Url) -> None:
        mark = _mark(url)
        self._redirected.pop((client, mark), None)
        if len(self._redirected) >= _MOST_REDIRECTED:
            del self._redirected[next(iter(self._redirected))]
        self._redirected[client, mark] = self._clock()

    def after(self, flow: http.HTTPFlow, request: Request) -> Verdict | None:
        """Changes the headers of a response, and sets up the changes of its body (`flow.response.stream`).

        Returns:
            The verdict of a rule that blocks the response after all; the rest is then left alone.
        """
        response = flow.response
        assert response is not None
        headers = response.headers
        address = flow.server_conn.peername[0] if flow.server_conn.peername else ""
        change = self._engine.change_response(request, response.status_code, LowerHeaders(headers), address)
        if change is None:
            return None
        if change.verdict is not None and change.verdict.blocked:
            return change.verdict
        downloads = change.downloads
        checked = _download_headers(flow.request, response) if downloads is not None else {}
        if downloads is not None and checked and (block := downloads.judge_head(request.url, checked)) is not None:
            return block
        changed = _remove_headers(headers, change.remove_headers)
        for name, values in (("content-security-policy", change.csp), ("permissions-policy", change.permissions)):
            for value in values:
                if "\r" not in value and "\n" not in value:
                    headers.add(name, value)
                    changed = True
        if self._edit_body(flow, request, change) or changed:
            self._counters.add("responses_changed")
        if downloads is not None and checked:
            self._check_body(flow, request, downloads, checked)
        return None

    def _check_body(self, flow: http.HTTPFlow, request: Request, rules: JudgeDownload, headers: Mapping[str, str]) -> None:
        response = flow.response
        assert response is not None
        then = cast("Callable[[bytes], list[bytes]]", response.stream) if callable(response.stream) else None
        response.stream = CheckedDownload(rules, request.url, headers, then, _CutDownload(flow, request, self._counter).cut)

    def _edit_body(self, flow: http.HTTPFlow, request: Request, change: ResponseChange) -> bool:
        response = flow.response
        assert response is not None
        css = self._css_of(change)
        edits = change.edits if self._settings.replace else ()
        selectors = change.remove_elements if self._settings.replace else ()
        if not (css or edits or selectors) or not _has_body(flow):
            return False
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_page = kind == "text/html" and request.resource_type in PAGE_TYPES and not _is_download(response.headers)
        if not is_page:
            css, selectors = "", ()
        if not _is_text(kind):
            edits = ()
        stages = self._stages(response.headers.get("content-type", ""), css, change, (bool(edits), bool(selectors)))
        if not stages:
            return False
        try:
            body = EditedBody(response.headers.get("content-encoding", ""), stages, lambda: self._break_off(flow))
        except EncodingError:
            self._counters.add("edits_skipped")
            return False
        if css:
            allow_style(response.headers, lambda: style_hash(css))
        response.stream = body
        _unbind_from_bytes(flow)
        return True

    def _css_of(self, change: ResponseChange) -> str:
        wanted = self._settings.cosmetic
        if wanted is CosmeticScope.OFF:
            return ""
        css = style_text(change.style) if change.style else ""
        return css + style_text(change.generic_style) if wanted is CosmeticScope.ALL and change.generic_style else css

    def _stages(self, content_type: str, css: str, change: ResponseChange, whole: tuple[bool, bool]) -> list[Stage]:
        stages: list[Stage] = []
        if any(whole):
            stages.append(
                WholeText(
                    content_type,
                    change.edits if whole[0] else (),
                    change.remove_elements if whole[1] else (),
                    lambda: self._counters.add("edits_skipped"),
                )
            )
        if css and "utf-16" not in content_type.lower():
            stages.append(StyleInjector(css, charset_known="charset=" in content_type.lower()))
        return stages

    def _break_off(self, flow: http.HTTPFlow) -> None:
        self._counters.add("edits_failed")
        if flow.killable:
            flow.kill()


class _CutDownload:
    """Breaks an exchange off whose response is blocked while it streams."""

    def __init__(self, flow: http.HTTPFlow, request: Request, counter: DecisionCounter | None) -> None:
        self._flow = flow
        self._request = request
        self._counter = counter

    def cut(self, verdict: Verdict) -> None:
        if self._counter is not None:
            self._counter.response(self._request, verdict, time.perf_counter_ns())
        if self._flow.killable:
            self._flow.kill()


def _download_headers(request: http.Request, response: http.Response) -> dict[str, str]:
    """Returns the fields by which a download is judged; empty for a response that is none.

    A place in the file counts where a part was requested and is sent: elsewhere browsers take the body for the whole file.
    """
    status = response.status_code
    if status not in _WITH_FILES:
        return {}
    headers = response.headers
    found = {":status": str(status)} | {name: str(headers[name]) for name in _OF_FILES if name in headers}
    if status != _PART or "range" not in request.headers:
        found.pop("content-range", None)
    return found


def _accept_supported_encodings(headers: http.Headers) -> None:
    """Removes encodings from Accept-Encoding that cannot be decoded here (RFC 9842 adds some that need a dictionary)."""
    accepted = headers.get("accept-encoding")
    if accepted is None:
        return
    supported = (_supported if len(accepted) <= _LONGEST_ACCEPTED else _supported.__wrapped__)(accepted)
    if supported is not None:
        headers["accept-encoding"] = supported


@lru_cache(maxsize=512)
def _supported(accepted: str) -> str | None:
    """Returns what an Accept-Encoding has to be, `None` where it may stay."""
    offered = [item.strip() for item in accepted.split(",")]
    kept = [item for item in offered if item.partition(";")[0].strip().lower() in KNOWN and item]
    return None if kept == offered else ", ".join(kept) or "identity"


def _remove_headers(headers: http.Headers, names: tuple[str, ...]) -> bool:
    taken = False
    for name in names:
        if name not in _FRAMING and name in headers:
            del headers[name]
            taken = True
    return taken


def _redirect(url: Url) -> http.Response:
    return http.Response.make(
        307,
        b"",
        {
            "location": url.text,
            "cache-control": "no-store",
            "access-control-allow-origin": "*",
            "x-gatewayfilter": "redirect; reason=adblock",
        },
    )


def _has_body(flow: http.HTTPFlow) -> bool:
    response = flow.response
    assert response is not None
    return (
        flow.request.method.upper() not in {"HEAD", "CONNECT"}
        and response.status_code not in _BODILESS
        and response.status_code >= 200
        and flow.request.http_version != "HTTP/1.0"  # has no chunks, and would have to end with its connection
    )


def _is_text(kind: str) -> bool:
    if kind == "text/event-stream":  # it never ends, so it cannot be held
        return False
    return kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+json", "+xml"))


def _is_download(headers: http.Headers) -> bool:
    return str(headers.get("content-disposition", "")).lstrip().lower().startswith("attachment")


def _unbind_from_bytes(flow: http.HTTPFlow) -> None:
    """Adapts the headers to a body with other bytes and another length."""
    response = flow.response
    assert response is not None
    headers = response.headers
    for name in _OF_THE_BYTES:
        headers.pop(name, None)
    headers.pop("content-length", None)
    tag = headers.get("etag", "")
    if tag.startswith('"'):
        headers["etag"] = f"W/{tag}"  # the same page for a conditional request, but never for parts of it
    if flow.request.is_http2 or flow.request.is_http3 or response.http_version == "HTTP/1.0":
        headers.pop("transfer-encoding", None)
    else:
        headers["transfer-encoding"] = "chunked"


def _mark(url: Url) -> bytes:
    return digest_of(url.text)
