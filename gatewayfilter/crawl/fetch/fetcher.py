"""The fetcher of one page: safely, politely and within limits, whatever the origin does."""

import asyncio
import os
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

import aiohttp
from yarl import URL

from gatewayfilter.config import CrawlSettings
from gatewayfilter.content_encoding import ACCEPTED, BoundedBody, EncodingError, as_shown, media_type
from gatewayfilter.crawl.fetch.politeness import Politeness
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.fetch.url_resolution import resolve
from gatewayfilter.crawl.net.address_guard import AddressGuard, ForbiddenSocketError
from gatewayfilter.crawl.net.byte_limit import FloodError, MeteredConnector, allow_body
from gatewayfilter.crawl.net.dns_cache import DnsCache
from gatewayfilter.crawl.net.fetch_errors import BadAnswerError, RefusedError, UnreachableError
from gatewayfilter.crawl.net.guarded_resolver import PooledResolver
from gatewayfilter.crawl.net.outbound_proxies import MAX_HEADER_LINE, OutboundProxies
from gatewayfilter.documents.pdf_text import PDF_TYPES, can_read_pdf
from gatewayfilter.errors import ConfigError, FetchError, ForbiddenAddressError, UrlError
from gatewayfilter.interfaces import Page, Validators
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url

FIRST_BYTE_S = 5.0
PATIENCE_S = 5.0
NOT_MODIFIED = 304
MAX_RATIO = 100
RATIO_FROM = 262_144
"""Small bodies of many equal bytes compress beyond 100:1 and do no harm."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TEXT_TYPES = frozenset({"", "text/html", "application/xhtml+xml", "text/plain", "text/xml", "application/xml"})
_GZIP_TYPES = frozenset({"application/gzip", "application/x-gzip", "application/octet-stream"})
"""Content types of compressed sitemaps, which are recognised by their names."""

_LONE_BYTE = re.compile("[\udc80-\udcff]")
"""A byte that is no UTF-8, as the client library hands it on."""

type Permit = Callable[[Url], Awaitable[None]]
"""Called before each hop; raises `FetchError` for a URL that must not be fetched."""


@dataclass(frozen=True, slots=True)
class _Hop:
    status: int
    headers: dict[str, str]
    body: bytes
    truncated: bool
    latency_s: float

    def redirect(self) -> str:
        """Where it sends us, `""` when it is an answer. Bytes that are no UTF-8 are escaped, as browsers do."""
        return _escaped(self.headers.get("location", "")) if self.status in _REDIRECTS else ""


class Fetcher:
    """Fetches pages over one pool of connections. An asynchronous context manager.

    It uses no proxy but those that the settings name, not even one from the environment, keeps no cookies and sends no Referer.

    Attributes:
        politeness: the schedule of requests per host.

    Args:
        settings: limits and politeness.
        politeness: the schedule of requests per host.
        counters: `dns_hits`, `dns_misses`.
        images: whether images are read like texts.

    Raises:
        ConfigError: `crawl.upstream_ca` cannot be read.
    """

    def __init__(
        self,
        settings: CrawlSettings,
        politeness: Politeness,
        counters: Counters | None = None,
        *,
        images: Callable[[], bool] = lambda: False,
    ) -> None:
        self._settings = settings
        self._images = images
        self._counters = counters or Counters()
        self.politeness = politeness
        self._guard = AddressGuard(settings)
        self._tls = _tls_context(settings.upstream_ca)
        self._session: aiohttp.ClientSession | None = None
        self._outbound: OutboundProxies | None = None

    async def __aenter__(self) -> Self:
        names = DnsCache(PooledResolver(), self._settings.dns_ttl_s, self._counters)
        headers = {
            "User-Agent": self._settings.user_agent,
            "Accept": "text/html, application/xhtml+xml, application/xml;q=0.9, text/plain;q=0.8, */*;q=0.1",
            "Accept-Encoding": ACCEPTED,
        }
        outbound = None
        if self._settings.proxies or self._settings.proxies_from:
            outbound = OutboundProxies(self._settings, self._guard, names, self._tls, headers, self._counters)
        connector = MeteredConnector(
            limit=0,  # politeness and the worker's concurrency bound the connections
            ssl=self._tls,
            resolver=names,
            use_dns_cache=False,  # ours
            socket_factory=self._guard.socket_factory,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=MAX_HEADER_LINE,
            max_field_size=MAX_HEADER_LINE,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # each hop has its own budget
            headers=headers,
        )
        if outbound is not None:
            self._outbound = await outbound.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._outbound is not None:
            await self._outbound.__aexit__()
            self._outbound = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def fetch(
        self,
        url: Url,
        *,
        urgent: bool = False,
        patience_s: float = PATIENCE_S,
        permit: Permit | None = None,
        max_bytes: int = 0,
        any_type: bool = False,
        validators: Validators | None = None,
    ) -> Page:
        """Fetches a page, following redirects; each hop passes the policy, `permit`, the host's turn and the guard again.

        Args:
            url: what to fetch.
            urgent: a user waits: not subject to the delay between requests to a host.
            patience_s: longest wait for a host's turn.
            permit: called before each hop, e.g. robots.txt.
            max_bytes: most decoded bytes, 0 for the setting's.
            any_type: read the body whatever its type.
            validators: of the page as it was; when it is so still, its status is `NOT_MODIFIED`.

        Returns:
            The page. Its body is empty where the status is not 2xx or the type is not text.

        Raises:
            FetchError: of the kind that `fetch_errors` describes. Waits for turns aside, within `timeout_s`.
        """
        hop_url = url
        seen = {url.text}
        spent_s = 0.0
        limit = max_bytes or self._settings.max_bytes
        for _ in range(self._settings.max_redirects + 1):
            if reason := may_crawl(hop_url, self._settings):
                raise RefusedError(reason)
            if permit is not None:
                await permit(hop_url)
            async with self.politeness.turn(hop_url.netloc, urgent=urgent, patience_s=patience_s):
                started = time.monotonic()
                condition = _condition(validators) if validators is not None and validators.url == hop_url.text else {}
                try:
                    hop = await self._hop(hop_url, self._settings.timeout_s - spent_s, limit, condition, any_type=any_type)
                except UnreachableError:
                    if self._outbound is None:  # else it may be the proxy's fault
                        self.politeness.failed(hop_url.netloc)
                    raise
                self.politeness.answered(hop_url.netloc, hop.status, hop.latency_s)
                spent_s += time.monotonic() - started
            location = hop.redirect()
            if not location:
                return self._page(url, hop_url, hop, spent_s)
            hop_url = _redirected(hop_url, location)
            if hop_url.text in seen:
                raise BadAnswerError("the redirects go in a circle")
            seen.add(hop_url.text)
        raise BadAnswerError(f"more than {self._settings.max_redirects} redirects")

    def _page(self, url: Url, final: Url, hop: _Hop, spent_s: float) -> Page:
        return Page(
            url.text,
            final.text,
            hop.status,
            {name: value if value.isascii() else _readable(value) for name, value in hop.headers.items()},
            hop.body,
            hop.truncated,
            round(spent_s * 1000),
            secondhand=self._outbound is not None and final.scheme == "http",
        )

    async def _hop(self, url: Url, budget_s: float, limit: int, condition: Mapping[str, str], *, any_type: bool) -> _Hop:
        try:
            async with asyncio.timeout(max(budget_s, 0.0)):
                return await self._exchange(url, limit, condition, any_type=any_type)
        except TimeoutError as error:
            raise UnreachableError(f"not answered within {self._settings.timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _translated(error) from error

    async def _exchange(self, url: Url, limit: int, condition: Mapping[str, str], *, any_type: bool) -> _Hop:
        assert self._session is not None, "the fetcher is not open"
        allow_body(limit)
        sent = time.monotonic()
        response = await self._answer(self._session, url, condition)
        latency_s = time.monotonic() - sent
        try:
            headers = {name.lower(): value for name, value in response.headers.items()}
            if not 200 <= response.status < 300 or not (any_type or self._is_read(headers.get("content-type", ""), url)):
                return _Hop(response.status, headers, b"", False, latency_s)
            body = BoundedBody(as_shown(headers.get("content-encoding", "")), limit, max_ratio=MAX_RATIO, ratio_from=RATIO_FROM)
            # All that has come at once: pieces of a set size cost a third of the fetch, and bound nothing that is not bounded.
            while (data := await response.content.readany()) and body.feed(data):
                pass
            return _Hop(response.status, headers, body.body, body.truncated, latency_s)
        except EncodingError as error:
            raise BadAnswerError(str(error)) from error
        finally:
            response.release()  # closes the connection where the body was not read to its end

    def _is_read(self, content_type: str, url: Url) -> bool:
        return _is_text(content_type, url) or (content_type.strip().lower().startswith("image/") and self._images())

    async def _answer(self, session: aiohttp.ClientSession, url: Url, condition: Mapping[str, str]) -> aiohttp.ClientResponse:
        first_byte_s = min(FIRST_BYTE_S, self._settings.timeout_s)
        try:
            async with asyncio.timeout(first_byte_s) as limit:
                if self._outbound is not None:
                    return await self._outbound.get(url, condition)
                return await session.get(URL(url.text, encoded=True), headers=condition, allow_redirects=False)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise UnreachableError(f"no answer began within {first_byte_s:g} s") from error


@lru_cache(maxsize=4)
def _tls_context(upstream_ca: Path | None) -> ssl.SSLContext:
    """Returns the context; reading the system's authorities takes some 30 ms, so it is made once."""
    context = ssl.create_default_context()
    if upstream_ca is not None:
        try:
            context.load_verify_locations(upstream_ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"crawl.upstream_ca: cannot read authorities from {upstream_ca}") from error
    return context


def _readable(value: str) -> str:
    """Returns the value of a header field that the client library read as UTF-8; what is none is read as browsers do, as Latin-1.

    The library leaves a lone surrogate for each such byte, which no database and no file takes.
    """
    raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _escaped(location: str) -> str:
    return _LONE_BYTE.sub(lambda found: f"%{ord(found[0]) - 0xDC00:02X}", location)


def _condition(validators: Validators) -> dict[str, str]:
    """Returns the headers of a conditional request (RFC 9110 §13.1)."""
    written = {"If-None-Match": validators.etag, "If-Modified-Since": validators.last_modified}
    return {name: value for name, value in written.items() if value}


def _is_text(content_type: str, url: Url) -> bool:
    kind = media_type(content_type)
    if kind in PDF_TYPES:
        return can_read_pdf()
    if kind in _GZIP_TYPES:
        return url.path.endswith(".xml.gz")
    return kind in _TEXT_TYPES or (kind.startswith("application/") and kind.endswith("+xml"))


def _redirected(url: Url, location: str) -> Url:
    try:
        return resolve(url, location)
    except UrlError as error:
        raise BadAnswerError("redirected to what is not an http(s) URL") from error


def _reason(error: OSError) -> str:
    """Returns what the system says of an error; asyncio writes its own call and the address there."""
    return os.strerror(error.errno) if error.errno else error.strerror or "unknown reason"


def _translated(error: Exception) -> FetchError:
    """Returns our error for one of the client library's; it quotes nothing that an origin could have written."""
    match error:
        case FloodError():
            return BadAnswerError("the answer is longer than is read")
        case aiohttp.ClientConnectorCertificateError():
            return BadAnswerError("the server's certificate is not valid")
        case aiohttp.ClientSSLError():
            return BadAnswerError("no TLS connection could be agreed on")
        case aiohttp.ClientConnectorDNSError():
            return UnreachableError("the host name cannot be resolved")
        case aiohttp.ClientConnectorError(os_error=ForbiddenSocketError() as refused):
            return ForbiddenAddressError(str(refused))
        case aiohttp.ClientConnectorError():
            return UnreachableError(f"cannot connect: {_reason(error.os_error)}")
        case aiohttp.ClientPayloadError():
            return UnreachableError("the answer broke off")
        case aiohttp.ClientResponseError() | ValueError():
            return BadAnswerError("the answer is not valid HTTP")
        case _:
            return UnreachableError("the connection was lost")
