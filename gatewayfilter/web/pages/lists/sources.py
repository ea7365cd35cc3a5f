"""`/lists`: lists of others with their health, the catalogue as cards, and the preview of a list before it counts."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Form, Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from gatewayfilter.errors import GatewayFilterError, SourceError
from gatewayfilter.model import ListAction
from gatewayfilter.sources import Subscription
from gatewayfilter.use_cases.lists.remote_addresses import check_remote
from gatewayfilter.use_cases.lists.source_changes import find_source, list_bundles, list_catalogue, problem_of
from gatewayfilter.use_cases.lists.source_undo import inverse_of_adding, inverse_of_removal, inverse_of_switch
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.rendering.pages import is_partial, language_of, render, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_SHOWN: Final = 300
_MOST: Final = 100
Name = Annotated[str, Path(min_length=1, max_length=100)]


@dataclass(frozen=True, slots=True)
class ListRow:
    """A list as the page shows it.

    Attributes:
        title: of the catalogue, else its name.
        problem: why it is not up to date.
    """

    item: Subscription
    title: str
    problem: str

    @property
    def enabled(self) -> bool:
        """Whether it counts."""
        return self.item.definition.enabled

    @property
    def entries(self) -> int:
        """Entries of the copy in use."""
        return self.item.report.accepted if self.item.report is not None else 0


class AddForm(BaseModel):
    """The form of a list by its address."""

    address: Annotated[str, Field(max_length=2_000)] = ""
    category: Annotated[str, Field(max_length=60)] = ""
    action: Annotated[str, Field(max_length=10)] = ""

    def options(self) -> dict[str, Any]:
        """Returns how the list is subscribed to."""
        return {"category": self.category, "action": self.action if self.action in ListAction else ""}


@router.get("/lists")
def show(request: Request, services: Services, _: Viewer) -> Response:
    """Shows all lists; those with a problem first."""
    return render_early(request, "lists/lists.html", partial(_content, services), active="lists")


def _content(services: WebServices) -> dict[str, Any]:
    rows = _rows(services)
    enabled = [row for row in rows if row.enabled]
    summary = {
        "enabled": len(enabled),
        "entries": sum(row.entries for row in enabled),
        "problems": sum(1 for row in enabled if row.problem),
    }
    return {"rows": rows, "summary": summary, "work": services.source_worker.state}


@router.get("/lists/work")
def work(request: Request, services: Services, _: Viewer) -> Response:
    """Shows the work on lists that is being done; a fragment that loads itself again until it is done."""
    state = services.source_worker.state
    answer = render(request, "lists/_list_work.html", work=state, rows=(), watched=True)
    if not state.running:
        answer.headers["hx-refresh"] = "true"
    return answer


@router.get("/lists/catalogue")
def catalogue(request: Request, services: Services, _: Viewer, category: Annotated[str, Query(max_length=60)] = "") -> Response:
    """Shows well-known lists, by kind of household and by category."""
    chinese = language_of(request) == "zh"
    content = partial(_catalogue, services, category)
    return render_early(request, "lists/catalogue.html", content, active="lists", category=category, chinese=chinese)


def _catalogue(services: WebServices, category: str) -> dict[str, Any]:
    rows = list_catalogue(services.settings)
    return {
        "bundles": list_bundles(services.settings),
        "titles": {row.entry.name: row.entry.title for row in rows},
        "categories": sorted({row.entry.category for row in rows}),
        "rows": [row for row in rows if category in {"", row.entry.category}],
        "work": services.source_worker.state,
    }


@router.post("/lists/catalogue")
def add_named(services: Services, identity: Admin, names: Annotated[list[str], Form(max_length=_MOST)]) -> Response:
    """Subscribes to lists of the catalogue."""
    for name in names:
        if name not in services.subscriptions.catalog:
            raise SourceError(f"there is no list {name[:100]!r} in the catalogue")
    subject = ", ".join(names)[:_SHOWN]
    undo = inverse_of_adding(services.subscriptions, names, "")
    services.source_worker.start("subscribe", subject, names, {})
    record(services, identity, "list.added", subject, undo=undo)
    return RedirectResponse("/lists", 303)


@router.get("/lists/add")
def add_form(request: Request, services: Services, _: Admin, form: Annotated[AddForm, Query()]) -> Response:
    """Shows the form of a list by its address, with the preview that was made last."""
    return _add_page(request, services, form)


@router.post("/lists/add")
def add(
    request: Request,
    services: Services,
    identity: Admin,
    form: Annotated[AddForm, Form()],
    *,
    preview: Annotated[str, Query(max_length=3)] = "",
) -> Response:
    """Previews a list, or subscribes to it."""
    address = form.address.strip()
    try:
        check_remote([address], services.subscriptions.catalog)
        if preview:
            services.source_worker.start("preview", address[:_SHOWN], address, form.options())
        else:
            undo = inverse_of_adding(services.subscriptions, [address], "")
            services.source_worker.start("subscribe", address[:_SHOWN], [address], form.options())
            record(services, identity, "list.added", address[:_SHOWN], undo=undo)
    except GatewayFilterError as error:
        return _add_page(request, services, form, str(error), 422)
    if preview:
        return RedirectResponse(f"/lists/add?{urlencode(form.model_dump())}", 303)
    return RedirectResponse("/lists", 303)


@router.post("/lists/update")
def update(services: Services, identity: Admin, name: Annotated[str, Form(max_length=100)] = "") -> Response:
    """Checks lists for changes now."""
    names = [find_source(services.settings, name).definition.name] if name else []
    services.source_worker.start("update", name, names)
    record(services, identity, "list.updated", name)
    return RedirectResponse("/lists", 303)


@router.get("/lists/{name}")
def one(request: Request, services: Services, _: Viewer, name: Name) -> Response:
    """Shows a list with what it holds and what went wrong."""
    row = _row(services, find_source(services.settings, name))
    template = "lists/_list.html" if is_partial(request) else "lists/list.html"
    entry = services.subscriptions.catalog.get(name)
    return render(request, template, active="lists", row=row, entry=entry, chinese=language_of(request) == "zh")


@router.post("/lists/{name}/switch")
def switch(services: Services, identity: Admin, name: Name) -> Response:
    """Switches a list on or off."""
    item = find_source(services.settings, name)
    services.source_worker.start("switch", name, name, enabled=not item.definition.enabled)
    record(services, identity, "list.switched", name, "off" if item.definition.enabled else "on", inverse_of_switch(item))
    return RedirectResponse("/lists", 303)


@router.post("/lists/{name}/remove")
def remove(services: Services, identity: Admin, name: Name) -> Response:
    """Forgets a list and its copy."""
    item = find_source(services.settings, name)
    if item.definition.bundled:
        raise SourceError(f"{name} comes with the program: switch it off")
    services.source_worker.start("remove", name, name)
    record(services, identity, "list.removed", name, undo=inverse_of_removal(item))
    return RedirectResponse("/lists", 303)


def _add_page(request: Request, services: WebServices, form: AddForm, error: str = "", status: int = 200) -> Response:
    state = services.source_worker.state
    previewed = state if state.kind == "preview" and state.subject == form.address.strip()[:_SHOWN] else None
    categories = sorted(entry.category_id for entry in services.categories)
    return render(
        request,
        "lists/list_add.html",
        status,
        active="lists",
        form=form,
        error=error,
        categories=categories,
        work=state,
        previewed=previewed,
    )


def _rows(services: WebServices) -> list[ListRow]:
    rows = [_row(services, item) for item in services.subscriptions.all()]
    return sorted(rows, key=lambda row: (not (row.problem and row.enabled), not row.enabled, row.title))


def _row(services: WebServices, item: Subscription) -> ListRow:
    entry = services.subscriptions.catalog.get(item.definition.name)
    return ListRow(item, entry.title if entry is not None else item.definition.name, problem_of(item))
