"""`/crawler`: the crawler's queue, failures, hosts and counters; a page that is fetched and judged now."""

from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from gatewayfilter.errors import ConfigError, GatewayFilterError, UrlError
from gatewayfilter.interfaces import QueueState
from gatewayfilter.use_cases.learning import crawl_queue as use_case
from gatewayfilter.use_cases.learning.crawler_facts import COUNTED, crawler_facts
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.rendering.pages import render
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_JOBS: Final = "gatewayfilter.use_cases.learning.crawl_jobs:"
_A_PAGE: Final = 100
_MOST_HOSTS: Final = 200
_LONGEST_URL: Final = 8_000
OneTask = Annotated[str, Form(max_length=60)]
OneHost = Annotated[str, Form(max_length=300)]
type Part = Literal["queue", "failures", "hosts", "counters"]


class View(BaseModel):
    """What the page shows, as its URL has it."""

    part: Part = "queue"
    state: Literal["", "waiting", "leased", "done", "dead"] = ""
    after: Annotated[str, Field(max_length=80)] = ""

    def url(self, **changed: str) -> str:
        """Returns the address of the page with these values."""
        given = {key: value for key, value in {**self.model_dump(), **changed}.items() if value and (key, value) != _FIRST}
        return "/crawler" + (f"?{urlencode(given)}" if given else "")


_FIRST: Final = ("part", "queue")


class UrlForm(BaseModel):
    """The form with an address."""

    url: Annotated[str, Field(min_length=1, max_length=_LONGEST_URL)]
    then: Literal["fetch", "queue"] = "fetch"


@router.get("/crawler")
def page(request: Request, services: Services, _: Viewer, view: Annotated[View, Query()]) -> Response:
    """Shows one part: queue, failures, hosts or counters."""
    return _page(request, services, view)


@router.post("/crawler/fetch")
def fetch(request: Request, services: Services, who: Admin, form: Annotated[UrlForm, Form()]) -> Response:
    """Fetches and judges a page now and shows what came of it, or queues it."""
    try:
        if form.then == "queue":
            added = services.fetching.run(f"{_JOBS}add_urls", services.settings, [form.url], "")
            record(services, who, "queue.added", form.url[:200])
            return _page(request, services, View(), written=form.url, added=added)
        found = services.fetching.run(f"{_JOBS}crawl_page", services.settings, form.url)
    except GatewayFilterError as error:
        return _page(request, services, View(), 422, written=form.url, problem=str(error))
    record(services, who, "page.crawled", found["url"][:200])
    return _page(request, services, View(), written=form.url, crawled=found)


@router.post("/crawler/pause")
def pause(request: Request, services: Services, who: Admin, task: OneTask = "", host: OneHost = "") -> Response:
    """Has nothing more fetched, or nothing of one task or host."""
    view = View(part="hosts" if host else "queue")
    try:
        changed = use_case.pause_queue(services.settings, services.store, services.clock(), task, host)
    except (ConfigError, UrlError) as error:
        return _page(request, services, view, 422, problem=str(error))
    if changed:
        record(services, who, "queue.paused", task or host)
    return RedirectResponse(view.url(), 303)


@router.post("/crawler/resume")
def resume(request: Request, services: Services, who: Admin, task: OneTask = "", host: OneHost = "") -> Response:
    """Has pages fetched again."""
    view = View(part="hosts" if host else "queue")
    try:
        changed = use_case.resume_queue(services.store, task, host)
    except (ConfigError, UrlError) as error:
        return _page(request, services, view, 422, problem=str(error))
    if changed:
        record(services, who, "queue.resumed", task or host)
    return RedirectResponse(view.url(), 303)


@router.post("/crawler/retry")
def retry(services: Services, who: Admin) -> Response:
    """Puts the URLs that were given up back to waiting."""
    count = use_case.retry_failed(services.store)
    record(services, who, "queue.retried", "", f"{count} URLs")
    return RedirectResponse("/crawler?state=waiting", 303)


@router.post("/crawler/clear")
def clear(services: Services, who: Admin, task: Annotated[str, Form(max_length=60)] = "") -> Response:
    """Empties the queue, or takes one task out of it."""
    if task:
        use_case.find_task(services.settings, services.store, task)
    count = use_case.clear_queue(services.store, task or None)
    record(services, who, "queue.cleared", task, f"{count} URLs")
    return RedirectResponse("/crawler", 303)


@router.post("/crawler/proxies")
def proxies(request: Request, services: Services, _: Admin) -> Response:
    """Checks the outbound proxies now and shows them."""
    view = View(part="counters")
    try:
        found = services.fetching.run(f"{_JOBS}proxies", services.settings)
    except GatewayFilterError as error:
        return _page(request, services, view, 422, problem=str(error))
    return _page(request, services, view, proxies=found)


def _page(request: Request, services: WebServices, view: View, status: int = 200, **more: Any) -> Response:
    facts = use_case.queue_facts(services.store, services.clock())
    context: dict[str, Any] = {
        "problem": "",
        "written": "",
        "added": None,
        "crawled": None,
        "proxies": None,
        "view": view,
        "queue": facts,
        "tasks": (),
        "hosts": (),
        "rows": (),
        "older": "",
        "newer": "",
        "crawlers": crawler_facts(services.settings),
        "counted": COUNTED,
    }
    if view.part == "hosts":
        context["hosts"] = use_case.queue_hosts(services.store, _MOST_HOSTS)
    elif view.part != "counters":
        state = QueueState.DEAD if view.part == "failures" else QueueState(view.state) if view.state else None
        found = use_case.queue_page(services.store, state, view.after, _A_PAGE)
        context["rows"] = found.rows
        context["older"] = view.url(after=found.next) if found.next else ""
        context["newer"] = view.url(after="") if view.after else ""
        context["tasks"] = use_case.queue_tasks(services.settings, services.store) if view.part == "queue" else ()
    return render(request, "learning/crawler.html", status, active="crawler", **{**context, **more})
