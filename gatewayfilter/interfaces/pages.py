"""Fetched pages and proxied responses, and the interfaces that classify and store them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gatewayfilter.content_encoding import media_type
from gatewayfilter.interfaces.records import Validators
from gatewayfilter.model import Classification


@dataclass(frozen=True, slots=True)
class Page:
    """A fetched page.

    Attributes:
        url: the requested URL; `final_url` the one after redirects. Both canonical.
        status: HTTP status.
        headers: lower-case names; the last of repeated ones.
        body: decoded (content-encoding removed), bounded by the fetcher.
        truncated: the body was cut at the limit.
        elapsed_ms: from connect to the last byte.
        secondhand: others may have changed it: it was served to a client through the proxy, or fetched through an outbound proxy
            of the crawler without TLS. It never counts for its host.
        said: content of the client's request, except the URL.
        ignored: text with words that do not count in the classification.
    """

    url: str
    final_url: str
    status: int
    headers: dict[str, str]
    body: bytes
    truncated: bool = False
    elapsed_ms: int = 0
    secondhand: bool = False
    said: str = ""
    ignored: str = ""

    @property
    def content_type(self) -> str:
        """The media type without parameters, lower case, as browsers read it."""
        return media_type(self.headers.get("content-type", ""))


class PageArchive(Protocol):
    """The page archive: fetched pages on disk, as the buffer between fetching and scanning, and as evidence for reviewers."""

    def keep(self, page: Page, fetched_at: float) -> str:
        """Appends a page; returns its reference for `read`.

        Raises:
            OSError: it could not be written.
        """
        ...

    def pack(self, page: Page, fetched_at: float) -> bytes:
        """Returns a page as it lies in the archive, for `append_all`: work for the processor alone."""
        ...

    def append_all(self, records: Sequence[bytes]) -> list[str]:
        """Appends pages that were packed: work for the disk alone. Returns the reference of each.

        Raises:
            OSError: not all of them could be written.
        """
        ...

    def read(self, reference: str) -> Page | None:
        """Returns a page, `None` when it was evicted or its segment is damaged."""
        ...

    def pin(self, reference: str, until: float) -> None:
        """Keeps a page that is evidence at least until then (Unix seconds), regardless of the size cap."""
        ...


class Classify(Protocol):
    """The classifier of pages. CPU-bound; bounded in time by the bound on the body."""

    def classify_page(self, page: Page) -> Classification:
        """Classifies a fetched page by its bytes, headers and URL."""
        ...

    def classify_text(self, text: str) -> Classification:
        """Classifies plain text."""
        ...


@dataclass(frozen=True, slots=True)
class PassedResponse:
    """A response that passed the proxy, as received.

    Attributes:
        url: the requested URL, canonical.
        status: HTTP status.
        headers: lower-case names; the last of repeated ones.
        body: still content-encoded, bounded by the proxy.
        public: certainly sent by the URL's host, the same for every client, and cacheable by all: the verdict may go on
            a list.
        said: values of the request's header fields, for a public response; bounded.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    public: bool
    said: str = ""


class PassedSink(Protocol):
    """Accepts public pages that pass the proxy, so that they need not be fetched again. Never waits, never raises."""

    def passed(self, response: PassedResponse) -> bool:
        """Returns whether it was accepted; otherwise the URL is offered to the frontier instead."""
        ...


class Inspect(Protocol):
    """Classifies a page while its client waits, outside of the event loop."""

    async def inspect(self, response: PassedResponse) -> Classification | None:
        """Returns the classification, `None` for a page of a kind that is not classified.

        Raises:
            InspectError: no result in time.
        """
        ...


class PageSink(Protocol):
    """The sink of fetched pages."""

    def page(self, page: Page) -> Classification | None:
        """Classifies the page and updates the lists. CPU-bound, and writes to the database: call it off the event loop.

        Returns `None` for a page of a kind that is not classified (an image, an error page). Never raises because
        of the page; raises `StoreError` when the verdict could not be stored, so that the URL is retried.
        """
        ...


@runtime_checkable
class BatchSink(PageSink, Protocol):
    """A sink that classifies pages in batches, at a lower cost per page."""

    def batch(self, pages: Sequence[Page]) -> Sequence[Classification | None]:
        """Does `PageSink.page` for each of them, in order.

        If it raises, none, some or all of them were learned: passing them again, one by one, completes the batch and shows which
        page fails.
        """
        ...


class KnownContent(Protocol):
    """Knowledge about classified content beyond its verdict."""

    def is_near_duplicate(self, page: Page) -> bool:
        """Returns whether the page just classified is harmless and a near duplicate of a harmful one; True once per page."""
        ...

    def knows_images(self) -> bool:
        """Returns whether pictures are worth fetching: harmful ones are known, or an image classifier is configured."""
        ...


class Revisits(Protocol):
    """Renewal of verdicts of unchanged pages: validators of conditional requests, and the effect of an origin's 304."""

    def conditions(self, urls: Sequence[str]) -> Mapping[str, Validators]:
        """Returns the validators for conditional requests; a URL without an entry has to be fetched in full."""
        ...

    def note(self, page: Page) -> None:
        """Stores the validators of a page that was fetched in full and classified. Raises `StoreError`."""
        ...

    def renew(self, page: Page) -> Classification | None:
        """Renews the verdict of an unchanged page; `None` when none can be renewed. Raises `StoreError`."""
        ...
