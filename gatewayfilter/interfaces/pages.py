"""Fetched and passed pages, and the interfaces that judge and keep them."""

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
        url: the requested URL; `final_url` the one that answered, after redirects. Both canonical.
        status: HTTP status.
        headers: lower-case names; the last of repeated ones.
        body: decoded (content-encoding removed), bounded by the fetcher.
        truncated: the body was cut at the limit.
        elapsed_ms: from connect to the last byte.
        secondhand: others may have had a hand in it: a client was given it through the proxy, or an outbound proxy of the crawler
            fetched it without TLS. It never counts for its host.
        said: what the client sent in its request, besides the URL.
        ignored: text whose words count for nothing when it is classified.
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
    """Keeps fetched pages on disk: the buffer between fetching and scanning, and the evidence for people."""

    def keep(self, page: Page, fetched_at: float) -> str:
        """Appends a page; returns the reference under which it is found again.

        Raises:
            OSError: it could not be written.
        """
        ...

    def read(self, reference: str) -> Page | None:
        """Returns a page, `None` when it has been removed to make room or its segment is damaged."""
        ...

    def pin(self, reference: str, until: float) -> None:
        """Keeps a page that is evidence at least until then (Unix seconds), whatever the size cap."""
        ...


class Classify(Protocol):
    """Judges a page. CPU-bound; bounded in time by the bound on the body."""

    def classify_page(self, page: Page) -> Classification:
        """Judges a fetched page by its bytes, headers and URL."""
        ...

    def classify_text(self, text: str) -> Classification:
        """Judges plain text."""
        ...


@dataclass(frozen=True, slots=True)
class PassedResponse:
    """A response that passed the proxy, as it came over the wire.

    Attributes:
        url: the requested URL, canonical.
        status: HTTP status.
        headers: lower-case names; the last of repeated ones.
        body: with its content encoding still on it, bounded by the proxy.
        public: it is certain that the URL's host sent it, every client gets the same, and may keep it: the verdict may
            go on a list.
        said: the values of the request's header fields, of a public one; bounded.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    public: bool
    said: str = ""


class PassedSink(Protocol):
    """Takes public pages as they pass, so that they need not be fetched again. Never waits, never raises."""

    def passed(self, response: PassedResponse) -> bool:
        """Returns whether it was taken; a page that was not is offered to the frontier instead."""
        ...


class Inspect(Protocol):
    """Judges a page while its client waits, outside of the event loop."""

    async def inspect(self, response: PassedResponse) -> Classification | None:
        """Returns the judgement, `None` for a page of a kind that is not classified.

        Raises:
            InspectError: there is none in time.
        """
        ...


class PageSink(Protocol):
    """What the crawler hands a fetched page to."""

    def page(self, page: Page) -> Classification | None:
        """Classifies the page and grows the lists. CPU-bound and writes to the database: call it off the event loop.

        Returns `None` for a page of a kind that is not classified (an image, an error page). Raises nothing that is the
        page's fault; raises `StoreError` when the verdict could not be kept, so that the URL is tried again.
        """
        ...


@runtime_checkable
class BatchSink(PageSink, Protocol):
    """A sink that judges several pages for less than one by one."""

    def batch(self, pages: Sequence[Page]) -> Sequence[Classification | None]:
        """As `PageSink.page` for each of them, in their order.

        When it raises, none, some or all of them were learned: handing them over again, one by one, completes the batch and shows
        which page fails.
        """
        ...


class KnownContent(Protocol):
    """What is known of judged content beyond its verdict."""

    def is_near_duplicate(self, page: Page) -> bool:
        """Returns whether the page that was just judged is harmless and nearly the same as a harmful one; True once a page."""
        ...

    def knows_images(self) -> bool:
        """Returns whether pictures are worth fetching: harmful ones are known, or there is a classifier of pictures."""
        ...


class Revisits(Protocol):
    """Renewal of verdicts of pages that have not changed: conditional requests, and what an origin's "not modified" does."""

    def conditions(self, urls: Sequence[str]) -> Mapping[str, Validators]:
        """Returns the validators for conditional requests; a URL that is missing has to be fetched whole."""
        ...

    def note(self, page: Page) -> None:
        """Keeps the validators of a page that came whole and was judged. Raises `StoreError`."""
        ...

    def renew(self, page: Page) -> Classification | None:
        """Renews the verdict of an unchanged page; `None` when there is none that may. Raises `StoreError`."""
        ...
