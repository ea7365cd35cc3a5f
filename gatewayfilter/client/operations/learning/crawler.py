"""The API of crawler. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class CrawlQueueModel(TypedDict):
    """The queue as a whole."""

    waiting: int
    due: int
    leased: int
    done: int
    dead: int
    paused_since: float | None
    held: list[HoldModel]


class HoldModel(TypedDict):
    """A pause of one crawl task or host."""

    kind: Literal["task", "host"]
    name: str
    since: float


class QueuedList(TypedDict):
    """A page of the queue."""

    items: list[QueuedModel]
    next: str | None


class QueuedModel(TypedDict):
    """A URL of the queue."""

    url: str
    state: str
    priority: int
    attempts: int
    not_before: float
    error: str
    task: str
    depth: int
    held: bool


class NewUrls(TypedDict):
    """URLs to crawl."""

    urls: list[str]
    task: NotRequired[str]


class AddedModel(TypedDict):
    """How many URLs were added."""

    queued: int
    known: int


class QueuePausedModel(TypedDict):
    """Whether the queue is paused."""

    paused: bool
    changed: bool


class ChangedUrlsModel(TypedDict):
    """How many URLs a change was made to."""

    urls: int


class CrawlTaskModel(TypedDict):
    """A crawl task."""

    name: str
    strategy: dict[str, Any] | None
    links: int
    urls: dict[str, int]
    held_since: float | None


class CrawlHostModel(TypedDict):
    """A host of the queue."""

    host: str
    waiting: int
    failed: int
    tries: int
    next_at: float
    error: str
    held_since: float | None


class CrawlersModel(TypedDict):
    """The crawlers that run."""

    running: list[str]
    counters: dict[str, int]
    dns_hit_share: float | None
    learning: bool


class PageToCrawl(TypedDict):
    """A page to fetch."""

    url: str


class CrawledModel(TypedDict):
    """What came of a page."""

    url: str
    final_url: str
    status: int
    error: str
    refused: bool
    elapsed_ms: int
    judgement: dict[str, Any] | None


class ProxyModel(TypedDict):
    """An outbound proxy."""

    address: str
    response_ms: float | None
    anonymous: bool | None
    failures: int


class CrawlerApi:
    """Operations of crawler."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_crawl_queue(self) -> Answer[CrawlQueueModel]:
        """Returns how many URLs are in each state."""
        return self._transport.send(Call("GET", "/api/v1/crawler/queue"))

    def list_crawl_urls(
        self,
        *,
        state: Literal["waiting", "leased", "done", "dead"] | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Answer[QueuedList]:
        """Returns URLs of the queue, the most urgent first."""
        return self._transport.send(
            Call("GET", "/api/v1/crawler/queue/urls", query={"state": state, "after": after, "limit": limit})
        )

    def add_crawl_urls(self, body: NewUrls) -> Answer[AddedModel]:
        """Queues pages ahead of all others, or at the priority of a task; none where one may not be crawled."""
        return self._transport.send(Call("POST", "/api/v1/crawler/queue/urls", body=body))

    def pause_crawl_queue(self, *, task: str | None = None, host: str | None = None) -> Answer[QueuePausedModel]:
        """Has nothing more fetched, or nothing of one task or host, over restarts too; pages in work are finished."""
        return self._transport.send(Call("POST", "/api/v1/crawler/queue/pause", query={"task": task, "host": host}))

    def resume_crawl_queue(self, *, task: str | None = None, host: str | None = None) -> Answer[QueuePausedModel]:
        """Has pages fetched again; what has a pause of its own needs its name."""
        return self._transport.send(Call("POST", "/api/v1/crawler/queue/resume", query={"task": task, "host": host}))

    def retry_crawl_failures(self) -> Answer[ChangedUrlsModel]:
        """Puts the URLs that were given up back to waiting."""
        return self._transport.send(Call("POST", "/api/v1/crawler/queue/retry"))

    def clear_crawl_queue(self, *, task: str | None = None) -> Answer[ChangedUrlsModel]:
        """Empties the queue; URLs return when somebody visits them again."""
        return self._transport.send(Call("POST", "/api/v1/crawler/queue/clear", query={"task": task}))

    def list_crawl_tasks(self) -> Answer[list[CrawlTaskModel]]:
        """Returns the crawl tasks of the settings and of the queue."""
        return self._transport.send(Call("GET", "/api/v1/crawler/tasks"))

    def list_crawl_hosts(self, *, limit: int | None = None) -> Answer[list[CrawlHostModel]]:
        """Returns hosts of the 5,000 most urgent URLs that wait and as many given up: paused ones, then those with most failures."""
        return self._transport.send(Call("GET", "/api/v1/crawler/hosts", query={"limit": limit}))

    def get_crawler_status(self) -> Answer[CrawlersModel]:
        """Returns the crawlers that run and what they counted: fetches, DNS cache, proxies."""
        return self._transport.send(Call("GET", "/api/v1/crawler/status"))

    def crawl_page(self, body: PageToCrawl) -> Answer[CrawledModel]:
        """Fetches and judges a page now, and puts it on the learned lists; the crawler's rules of safety hold."""
        return self._transport.send(Call("POST", "/api/v1/crawler/fetch", body=body))

    def check_crawl_proxies(self) -> Answer[list[ProxyModel]]:
        """Collects the outbound proxies and checks each now; the best first."""
        return self._transport.send(Call("POST", "/api/v1/crawler/proxies/check"))
