"""The messages between the crawler's modules: versioned, authenticated, compressed and bounded.

A message has a version, 16 bytes of a keyed BLAKE2b over channel and payload, and the payload: a Zstandard frame with a JSON head
and the body of a page behind it. Who can write to the topics but has no key can delete messages, and forge none. Of the header
fields of a page only those go on that the judgement reads: cookies stay with the fetcher.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any, Final

import zstandard

from gatewayfilter.crawl.page_fetch import FetchedPage
from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Channel, Lease, Letter, Page
from gatewayfilter.model import Classification
from gatewayfilter.store.sql.classification_json import as_document, from_document
from gatewayfilter.urls import parse_url, registrable_domain

VERSION: Final = b"1"
MOST_BYTES: Final = 4_000_000
"""Of a message. A page whose body takes more, compressed, is cut as at `crawl.max_bytes`; by default none does."""
_MAC_BYTES: Final = 16
_HEAD_BYTES: Final = 4
_MOST_HEAD: Final = 2_000_000
_PASSED_HEADERS: Final = frozenset({"content-type", "content-language", "etag", "last-modified"})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a page was not fetched or judged: the kind of the exception, as `failures` names it."""

    kind: str
    reason: str
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CrawlMessage:
    """What modules tell each other of a leased URL.

    Attributes:
        lease: of the URL; what is done with it counts only while it is held.
        fetched: the page.
        failure: why there is none.
        classification: of the parser; `None` where it judged nothing.
        words: version of the words that it judged by.
    """

    lease: Lease
    fetched: FetchedPage | None = None
    failure: Failure | None = None
    classification: Classification | None = None
    words: str = ""


class MessageCodec:
    """Writes and reads messages.

    Args:
        key: 32 secret bytes, the same for all modules.
        max_bytes: most bytes of a page's body, as `crawl.max_bytes`.
        most: most bytes of a message.
    """

    def __init__(self, key: bytes, max_bytes: int, most: int = MOST_BYTES) -> None:
        self._key = key
        self._max_bytes = max_bytes
        self._most = most

    def letter(self, channel: Channel, message: CrawlMessage) -> Letter:
        """Returns a message as it is sent. All of one site have one key, so that one fetcher keeps its delays."""
        value = self._sealed(channel, message)
        while len(value) > self._most and message.fetched is not None and message.fetched.page.body:
            page = message.fetched.page
            kept = int(len(page.body) * self._most / len(value) * 0.9)
            message = replace(
                message, fetched=replace(message.fetched, page=replace(page, body=page.body[:kept], truncated=True))
            )
            value = self._sealed(channel, message)
        return Letter(channel, _site(message.lease.url).encode(), value)

    def read(self, channel: Channel, value: bytes) -> CrawlMessage:
        """Returns a message.

        Raises:
            ValueError: it is none of this channel, forged, damaged or too long; with the reason, which quotes nothing of it.
        """
        head, payload = value[: 1 + _MAC_BYTES], value[1 + _MAC_BYTES :]
        if len(value) > self._most or head[:1] != VERSION:
            raise ValueError("the message is too long, or of another version")
        if not hmac.compare_digest(head[1:], self._mac(channel, payload)):
            raise ValueError("the message is forged, damaged, or of a module with another key (cache.key_file)")
        try:
            plain = _decompressed(payload, self._max_bytes + _MOST_HEAD)
            size = int.from_bytes(plain[:_HEAD_BYTES], "big")
            body = plain[_HEAD_BYTES + size :]
            return _message(json.loads(plain[_HEAD_BYTES : _HEAD_BYTES + size]), body)
        except (zstandard.ZstdError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ClassifyError) as error:
            raise ValueError("the message cannot be read") from error

    def _sealed(self, channel: Channel, message: CrawlMessage) -> bytes:
        head = json.dumps(_document(message), separators=(",", ":")).encode()
        body = message.fetched.page.body if message.fetched is not None else b""
        payload = zstandard.ZstdCompressor(level=1).compress(len(head).to_bytes(_HEAD_BYTES, "big") + head + body)
        return VERSION + self._mac(channel, payload) + payload

    def _mac(self, channel: Channel, payload: bytes) -> bytes:
        mac = blake2b(key=self._key, digest_size=_MAC_BYTES, person=b"gf-crawl")
        mac.update(VERSION + channel.value.encode() + b"\n" + payload)
        return mac.digest()


def _decompressed(payload: bytes, most: int) -> bytes:
    """Returns a frame's content. A size that it names is believed by the library: it is looked at first."""
    if zstandard.frame_content_size(payload) > most:
        raise ValueError("too long")
    return zstandard.ZstdDecompressor().decompress(payload, max_output_size=most)


def _site(url: str) -> str:
    host = parse_url(url).host
    return registrable_domain(host) or host


def _document(message: CrawlMessage) -> dict[str, object]:
    found: dict[str, object] = {"lease": asdict(message.lease)}
    if message.failure is not None:
        found["failure"] = asdict(message.failure)
    if message.fetched is not None:
        page = message.fetched.page
        fields = {name: getattr(page, name) for name in _PAGE_FIELDS}
        headers = {name: value for name, value in page.headers.items() if name in _PASSED_HEADERS}
        found["page"] = {**fields, "headers": headers}
        found["sitemaps"] = message.fetched.sitemaps
        found["rendered"] = message.fetched.rendered
    if message.classification is not None:
        found["classification"] = as_document(message.classification)
        found["words"] = message.words
    return found


_PAGE_FIELDS: Final = ("url", "final_url", "status", "truncated", "elapsed_ms", "secondhand")


def _message(document: Mapping[str, Any], body: bytes) -> CrawlMessage:
    fetched = None
    if "page" in document:
        page = Page(**document["page"], body=body)
        fetched = FetchedPage(page, tuple(document["sitemaps"]), bool(document["rendered"]))
    return CrawlMessage(
        Lease(**document["lease"]),
        fetched,
        Failure(**document["failure"]) if "failure" in document else None,
        from_document(document["classification"]) if "classification" in document else None,
        str(document.get("words", "")),
    )
