"""`/api/v1/crawler`: the crawler's queue, hosts, counters, outbound proxies, and one page fetched now."""

from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import BaseModel, Field

from gatewayfilter.interfaces import HoldKind, QueueState
from gatewayfilter.use_cases.learning import crawl_queue as use_case
from gatewayfilter.use_cases.learning.crawler_facts import crawler_facts
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/crawler", tags=["crawler"])

JOBS: Final = "gatewayfilter.use_cases.learning.crawl_jobs:"
LONGEST_URL: Final = 8_000
OneTask = Annotated[str, Query(max_length=60, description="Only this crawl task.")]
OneHost = Annotated[str, Query(max_length=300, description="Only this host, without those below it.")]
type Url = Annotated[str, Field(min_length=1, max_length=LONGEST_URL)]


class HoldModel(BaseModel):
    """A pause of one crawl task or host."""

    kind: Annotated[HoldKind, Field(description="task or host.")]
    name: Annotated[str, Field(description="The task, or the host as URLs have it.")]
    since: Annotated[float, Field(description="Unix seconds.")]


class CrawlQueueModel(BaseModel):
    """The queue as a whole."""

    waiting: Annotated[int, Field(description="URLs that wait.")]
    due: Annotated[int, Field(description="Those of them that may be fetched now.")]
    leased: Annotated[int, Field(description="URLs in work.")]
    done: Annotated[int, Field(description="URLs that rest after their visit.")]
    dead: Annotated[int, Field(description="URLs that were given up.")]
    paused_since: Annotated[float | None, Field(description="Unix seconds, null while it is not paused.")]
    held: Annotated[list[HoldModel], Field(description="Single tasks and hosts that are paused.")]


class QueuedModel(BaseModel):
    """A URL of the queue."""

    url: Annotated[str, Field(description="The URL.")]
    state: Annotated[str, Field(description="waiting, leased, done or dead.")]
    priority: Annotated[int, Field(description="The smaller, the sooner.")]
    attempts: Annotated[int, Field(description="How often it was tried.")]
    not_before: Annotated[float, Field(description="Unix seconds, 0 for at once.")]
    error: Annotated[str, Field(description="Why the last try failed.")]
    task: Annotated[str, Field(description="Its crawl task, empty for none.")]
    depth: Annotated[int, Field(description="Links from the start of its task.")]
    held: Annotated[bool, Field(description="Whether it waits because its task or host is paused.")]


class QueuedList(BaseModel):
    """A page of the queue."""

    items: Annotated[list[QueuedModel], Field(description="The most urgent first.")]
    next: Annotated[str | None, Field(description="What `after` of the next page is, null on the last.")]


class CrawlTaskModel(BaseModel):
    """A crawl task."""

    name: Annotated[str, Field(description="Its name.")]
    strategy: Annotated[dict[str, Any] | None, Field(description="[crawl.tasks.NAME] of the settings, null where it is missing.")]
    links: Annotated[int, Field(description="Pages that links led to, in this period of pages_per_site.")]
    urls: Annotated[dict[str, int], Field(description="Its URLs in the queue by state.")]
    held_since: Annotated[float | None, Field(description="Start of its own pause (Unix seconds), null for none.")]


class CrawlHostModel(BaseModel):
    """A host of the queue."""

    host: Annotated[str, Field(description="Its name.")]
    waiting: Annotated[int, Field(description="Its URLs that wait.")]
    failed: Annotated[int, Field(description="Its URLs that were given up.")]
    tries: Annotated[int, Field(description="The most tries of one of them.")]
    next_at: Annotated[float, Field(description="When its first one may be fetched (Unix seconds), 0 for at once or none.")]
    error: Annotated[str, Field(description="Why one of them failed.")]
    held_since: Annotated[float | None, Field(description="Start of its own pause (Unix seconds), null for none.")]


class CrawlersModel(BaseModel):
    """The crawlers that run."""

    running: Annotated[list[str], Field(description="Names of their processes.")]
    counters: Annotated[dict[str, int], Field(description="What they counted since each was started.")]
    dns_hit_share: Annotated[float | None, Field(description="Share of lookups that the DNS cache answered.")]
    learning: Annotated[bool, Field(description="Whether the settings have pages crawled.")]


class NewUrls(BaseModel):
    """URLs to crawl."""

    urls: Annotated[list[Url], Field(min_length=1, max_length=500, description="A scheme may be left away.")]
    task: Annotated[str, Field("", max_length=60, description="The crawl task whose strategy of links they follow.")]


class AddedModel(BaseModel):
    """How many URLs were added."""

    queued: Annotated[int, Field(description="New ones.")]
    known: Annotated[int, Field(description="Those that were in the queue already.")]


class ChangedUrlsModel(BaseModel):
    """How many URLs a change was made to."""

    urls: Annotated[int, Field(description="Their number.")]


class QueuePausedModel(BaseModel):
    """Whether the queue is paused."""

    paused: Annotated[bool, Field(description="Whether it is.")]
    changed: Annotated[bool, Field(description="Whether it was not before.")]


class PageToCrawl(BaseModel):
    """A page to fetch."""

    url: Annotated[str, Field(min_length=1, max_length=LONGEST_URL, description="A scheme may be left away.")]


class CrawledModel(BaseModel):
    """What came of a page."""

    url: Annotated[str, Field(description="The URL.")]
    final_url: Annotated[str, Field(description="What answered after redirects, empty when nothing did.")]
    status: Annotated[int, Field(description="HTTP status, 0 without an answer.")]
    error: Annotated[str, Field(description="Why it was not judged, empty where it was.")]
    refused: Annotated[bool, Field(description="The crawler did not fetch it: policy, robots.txt or address.")]
    elapsed_ms: Annotated[int, Field(description="Milliseconds for fetching and judging.")]
    judgement: Annotated[dict[str, Any] | None, Field(description="category, doubt, score, limit, certainty, title, evidence.")]


class ProxyModel(BaseModel):
    """An outbound proxy."""

    address: Annotated[str, Field(description="Its URL, without a password.")]
    response_ms: Annotated[float | None, Field(description="Milliseconds until it answered, null when it did not.")]
    anonymous: Annotated[bool | None, Field(description="Whether it hides its client, null when that is unknown.")]
    failures: Annotated[int, Field(description="Failures in a row.")]


@router.get("/queue", operation_id="get_crawl_queue")
def queue(services: Services, _: Viewer) -> CrawlQueueModel:
    """Returns how many URLs are in each state."""
    found = use_case.queue_facts(services.store, services.clock())
    held = [HoldModel(kind=hold.kind, name=hold.name, since=hold.since) for hold in found.holds]
    return CrawlQueueModel(**found.counts, paused_since=found.paused_since, held=held)


@router.get("/queue/urls", operation_id="list_crawl_urls")
def urls(
    services: Services,
    _: Viewer,
    state: Annotated[QueueState | None, Query(description="Only URLs in this state.")] = None,
    after: Annotated[str, Query(max_length=80, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=500, description="Most items.")] = 100,
) -> QueuedList:
    """Returns URLs of the queue, the most urgent first."""
    found = use_case.queue_page(services.store, state, after, limit)
    rows = [
        QueuedModel(
            url=row.url,
            state=row.state,
            priority=row.priority,
            attempts=row.attempts,
            not_before=row.not_before,
            error=row.error,
            task=row.task,
            depth=row.depth,
            held=row.held,
        )
        for row in found.rows
    ]
    return QueuedList(items=rows, next=found.next or None)


@router.post("/queue/urls", operation_id="add_crawl_urls")
def add(services: Services, who: Admin, body: NewUrls) -> AddedModel:
    """Queues pages ahead of all others, or at the priority of a task; none where one may not be crawled."""
    added = services.fetching.run(f"{JOBS}add_urls", services.settings, body.urls, body.task)
    record(services, who, "queue.added", body.urls[0][:200], f"{added['queued']} URLs")
    return AddedModel(**added)


@router.post("/queue/pause", operation_id="pause_crawl_queue")
def pause(services: Services, who: Admin, task: OneTask = "", host: OneHost = "") -> QueuePausedModel:
    """Has nothing more fetched, or nothing of one task or host, over restarts too; pages in work are finished."""
    changed = use_case.pause_queue(services.settings, services.store, services.clock(), task, host)
    if changed:
        record(services, who, "queue.paused", task or host)
    return QueuePausedModel(paused=True, changed=changed)


@router.post("/queue/resume", operation_id="resume_crawl_queue")
def resume(services: Services, who: Admin, task: OneTask = "", host: OneHost = "") -> QueuePausedModel:
    """Has pages fetched again; what has a pause of its own needs its name."""
    changed = use_case.resume_queue(services.store, task, host)
    if changed:
        record(services, who, "queue.resumed", task or host)
    return QueuePausedModel(paused=False, changed=changed)


@router.post("/queue/retry", operation_id="retry_crawl_failures")
def retry(services: Services, who: Admin) -> ChangedUrlsModel:
    """Puts the URLs that were given up back to waiting."""
    count = use_case.retry_failed(services.store)
    record(services, who, "queue.retried", "", f"{count} URLs")
    return ChangedUrlsModel(urls=count)


@router.post("/queue/clear", operation_id="clear_crawl_queue")
def clear(
    services: Services,
    who: Admin,
    task: Annotated[str | None, Query(max_length=60, description="Only the URLs of this crawl task.")] = None,
) -> ChangedUrlsModel:
    """Empties the queue; URLs return when somebody visits them again."""
    if task is not None:
        use_case.find_task(services.settings, services.store, task)
    count = use_case.clear_queue(services.store, task)
    record(services, who, "queue.cleared", task or "", f"{count} URLs")
    return ChangedUrlsModel(urls=count)


@router.get("/tasks", operation_id="list_crawl_tasks")
def tasks(services: Services, _: Viewer) -> list[CrawlTaskModel]:
    """Returns the crawl tasks of the settings and of the queue."""
    return [
        CrawlTaskModel(
            name=task.name,
            strategy=task.strategy.model_dump(mode="json") if task.strategy is not None else None,
            links=task.links,
            urls=dict(task.urls),
            held_since=task.held_since,
        )
        for task in use_case.queue_tasks(services.settings, services.store)
    ]


@router.get("/hosts", operation_id="list_crawl_hosts")
def hosts(
    services: Services, _: Viewer, limit: Annotated[int, Query(ge=1, le=1000, description="Most items.")] = 100
) -> list[CrawlHostModel]:
    """Returns hosts of the 5,000 most urgent URLs that wait and as many given up: paused ones, then those with most failures."""
    return [
        CrawlHostModel(
            host=host.host,
            waiting=host.waiting,
            failed=host.failed,
            tries=host.tries,
            next_at=host.next_at,
            error=host.error,
            held_since=host.held_since,
        )
        for host in use_case.queue_hosts(services.store, limit)
    ]


@router.get("/status", operation_id="get_crawler_status")
def status(services: Services, _: Viewer) -> CrawlersModel:
    """Returns the crawlers that run and what they counted: fetches, DNS cache, proxies."""
    found = crawler_facts(services.settings)
    return CrawlersModel(
        running=list(found.running), counters=dict(found.counters), dns_hit_share=found.dns_hit_share, learning=found.learning
    )


@router.post("/fetch", operation_id="crawl_page")
def crawl(services: Services, who: Admin, body: PageToCrawl) -> CrawledModel:
    """Fetches and judges a page now, and puts it on the learned lists; the crawler's rules of safety hold."""
    found = services.fetching.run(f"{JOBS}crawl_page", services.settings, body.url)
    record(services, who, "page.crawled", found["url"][:200])
    return CrawledModel(**found)


@router.post("/proxies/check", operation_id="check_crawl_proxies")
def proxies(services: Services, _: Admin) -> list[ProxyModel]:
    """Collects the outbound proxies and checks each now; the best first."""
    return [ProxyModel(**proxy) for proxy in services.fetching.run(f"{JOBS}proxies", services.settings)]
