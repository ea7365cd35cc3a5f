"""`/api/v1/lists`: lists of others, their catalogue, and the work on them."""

from hashlib import blake2b
from typing import Annotated, Any, Final

from fastapi import Path, Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.errors import ListError
from gatewayfilter.model import ListAction
from gatewayfilter.sources import Subscription
from gatewayfilter.use_cases.lists.remote_addresses import check_remote
from gatewayfilter.use_cases.lists.source_changes import find_source, list_bundles, list_catalogue, problem_of
from gatewayfilter.use_cases.lists.source_undo import inverse_of_adding, inverse_of_removal, inverse_of_switch
from gatewayfilter.web.access.changes import IfMatch, check_version, etag, record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.api.lists.rule_models import Body
from gatewayfilter.web.routers import ApiRouter
from gatewayfilter.web.source_worker import JobState

router = ApiRouter("/lists", tags=["lists"])
_MOST: Final = 100
_SHOWN: Final = 300
_VERSION_BYTES: Final = 12

ListName = Annotated[str, Path(description="Name of the list.", min_length=1, max_length=100)]
Address = Annotated[str, Field(description="A name of the catalogue, or an http(s) address.", min_length=1, max_length=2_000)]


class SourceModel(BaseModel):
    """A list."""

    name: Annotated[str, Field(description="Its name.")]
    address: Annotated[str, Field(description="Where it comes from.")]
    category: Annotated[str, Field(description="What its entries are.")]
    action: Annotated[ListAction, Field(description="What its entries do.")]
    format: Annotated[str, Field(description='How it is written, "" before it was fetched.')]
    enabled: Annotated[bool, Field(description="Whether it counts.")]
    bundled: Annotated[bool, Field(description="It comes with the program, and cannot be removed.")]
    pending: Annotated[bool, Field(description="It counts, and was never fetched.")]
    entries: Annotated[int, Field(description="Entries of the copy in use.")]
    checked_at: Annotated[float, Field(description="Unix seconds of the last download, 0 for never.")]
    changed_at: Annotated[float, Field(description="Unix seconds since when the copy is in use, 0 for never.")]
    next_at: Annotated[float, Field(description="Unix seconds at which an update is due.")]
    failures: Annotated[int, Field(description="Downloads in a row that failed.")]
    problem: Annotated[str, Field(description='Why it is not up to date, "" when it is.')]

    @classmethod
    def of(cls, item: Subscription) -> "SourceModel":
        """Returns the model of a subscription."""
        definition, state = item.definition, item.state
        return cls(
            name=definition.name,
            address=definition.address,
            category=definition.category,
            action=definition.action,
            format=definition.list_format or "",
            enabled=definition.enabled,
            bundled=definition.bundled,
            pending=item.is_pending,
            entries=item.report.accepted if item.report is not None else 0,
            checked_at=state.checked_at,
            changed_at=state.changed_at,
            next_at=item.next_due_at,
            failures=state.failures,
            problem=problem_of(item),
        )


class SourcesModel(BaseModel):
    """Lists by name; there are some dozens at most."""

    items: Annotated[list[SourceModel], Field(description="The lists.")]
    next: Annotated[str | None, Field(description="`after` of the next page, null at the end.")]


class JobModel(BaseModel):
    """Work on lists: one piece at a time."""

    number: Annotated[int, Field(description="Counts the pieces of work since the dashboard was started; 0 for none.")]
    kind: Annotated[str, Field(description="subscribe, update, switch, remove, publish or preview.")]
    subject: Annotated[str, Field(description="The lists that it is about.")]
    running: Annotated[bool, Field(description="Whether it is being done.")]
    started_at: Annotated[float, Field(description="Unix seconds.")]
    ended_at: Annotated[float, Field(description="Unix seconds, 0 before it ends.")]
    results: Annotated[
        list[dict[str, Any]], Field(description="Of each list: name, status, entries, error, and what a preview found.")
    ]
    error: Annotated[str, Field(description='Why it failed as a whole, "" where it did not.')]

    @classmethod
    def of(cls, state: JobState) -> "JobModel":
        """Returns the model of a piece of work."""
        return cls(
            number=state.number,
            kind=state.kind,
            subject=state.subject,
            running=state.running,
            started_at=state.started_at,
            ended_at=state.ended_at,
            results=list(state.results),
            error=state.error,
        )


class NewSource(Body):
    """Lists to subscribe to."""

    addresses: Annotated[list[Address], Field(description="Which.", min_length=1, max_length=_MOST)]
    name: Annotated[str, Field(description="What to call it; only with one address.", max_length=60)] = ""
    category: Annotated[str, Field(description='What its entries are, "" to find it out.', max_length=60)] = ""
    action: Annotated[ListAction | None, Field(description="What its entries do, null for what the category means.")] = None
    interval_h: Annotated[float, Field(description="Hours between updates, 0 for the usual.", ge=0, le=8_760)] = 0.0
    preview: Annotated[bool, Field(description="Only tell what it holds and would change.")] = False


class Publication(Body):
    """How the lists are published."""

    full: Annotated[bool, Field(description="Read every list again, also where only entries changed.")] = False


class SourceUpdate(Body):
    """Lists to check for changes."""

    names: Annotated[list[str], Field(default_factory=list, description="Which; none for all that count.", max_length=_MOST)]


class SourceSwitch(Body):
    """A change of a list."""

    enabled: Annotated[bool, Field(description="Whether it counts from now on.")]


class CatalogueModel(BaseModel):
    """A well-known list."""

    name: Annotated[str, Field(description="As `addresses` take it.")]
    title: Annotated[str, Field(description="Its title.")]
    category: Annotated[str, Field(description="What its entries are.")]
    licence: Annotated[str, Field(description="As its publisher states it.")]
    homepage: Annotated[str, Field(description="Of its publisher.")]
    description: Annotated[str, Field(description="One sentence, in English.")]
    description_zh: Annotated[str, Field(description="The same in Chinese.")]
    entries: Annotated[int, Field(description="Its usual number of entries, 0 for unknown.")]
    added: Annotated[bool, Field(description="Whether it is subscribed to.")]


class BundleModel(BaseModel):
    """The lists that fit a kind of household."""

    name: Annotated[str, Field(description="home, school or office.")]
    title: Annotated[str, Field(description="In English.")]
    title_zh: Annotated[str, Field(description="In Chinese.")]
    lists: Annotated[list[str], Field(description="Names of the catalogue.")]
    missing: Annotated[list[str], Field(description="Those that are not subscribed to.")]


class WholeCatalogueModel(BaseModel):
    """The catalogue of well-known lists."""

    items: Annotated[list[CatalogueModel], Field(description="The lists.")]
    bundles: Annotated[list[BundleModel], Field(description="Which of them fit a kind of household.")]


def version_of(item: Subscription) -> str:
    """Returns a text that is another one as soon as the definition of a list is."""
    return blake2b(repr(item.definition).encode(), digest_size=_VERSION_BYTES).hexdigest()


@router.get("", operation_id="list_lists")
def list_sources(
    services: Services,
    _: Viewer,
    after: Annotated[str, Query(description="The last name of the page before.", max_length=100)] = "",
    limit: Annotated[int, Query(description="Most items of a page.", ge=1, le=1_000)] = 100,
) -> SourcesModel:
    """Returns lists by name."""
    found = sorted(
        (item for item in services.subscriptions.all() if item.definition.name > after), key=lambda item: item.definition.name
    )
    shown = found[:limit]
    following = shown[-1].definition.name if len(found) > limit else None
    return SourcesModel(items=[SourceModel.of(item) for item in shown], next=following)


@router.post("", operation_id="add_lists", status_code=202)
def add(services: Services, identity: Admin, body: NewSource) -> JobModel:
    """Subscribes to lists, or previews one. The work goes on after the answer; see `get_list_work`."""
    check_remote(body.addresses, services.subscriptions.catalog)
    options = {
        "name": body.name if len(body.addresses) == 1 else "",
        "category": body.category,
        "action": body.action.value if body.action is not None else "",
        "interval_h": body.interval_h,
    }
    subject = ", ".join(body.addresses)[:_SHOWN]
    if body.preview:
        return JobModel.of(services.source_worker.start("preview", subject, body.addresses[0], options))
    undo = inverse_of_adding(services.subscriptions, body.addresses, str(options["name"]))
    state = services.source_worker.start("subscribe", subject, body.addresses, options)
    record(services, identity, "list.added", subject, undo=undo)
    return JobModel.of(state)


@router.post("/update", operation_id="update_lists", status_code=202)
def update(services: Services, identity: Admin, body: SourceUpdate) -> JobModel:
    """Checks lists for changes now. The work goes on after the answer."""
    for name in body.names:
        find_source(services.settings, name)
    state = services.source_worker.start("update", ", ".join(body.names)[:_SHOWN], body.names)
    record(services, identity, "list.updated", state.subject)
    return JobModel.of(state)


@router.post("/publish", operation_id="publish_lists", status_code=202)
def publish(services: Services, identity: Admin, body: Publication) -> JobModel:
    """Builds the snapshot of all lists, entries and learned pages now. The work goes on after the answer."""
    state = services.source_worker.start("publish", "", full=body.full)
    record(services, identity, "list.published", "", "full" if body.full else "")
    return JobModel.of(state)


@router.get("/work", operation_id="get_list_work")
def work(services: Services, _: Viewer) -> JobModel:
    """Returns the work on lists that is being done, or was done last."""
    return JobModel.of(services.source_worker.state)


@router.get("/catalogue", operation_id="get_catalogue")
def catalogue(services: Services, _: Viewer) -> WholeCatalogueModel:
    """Returns the catalogue of well-known lists."""
    items = [
        CatalogueModel(
            name=row.entry.name,
            title=row.entry.title,
            category=row.entry.category,
            licence=row.entry.licence,
            homepage=row.entry.homepage,
            description=row.entry.description,
            description_zh=row.entry.description_zh,
            entries=row.entry.entries,
            added=row.added,
        )
        for row in list_catalogue(services.settings)
    ]
    bundles = [
        BundleModel(
            name=row.bundle.name,
            title=row.bundle.title,
            title_zh=row.bundle.title_zh,
            lists=list(row.bundle.lists),
            missing=list(row.missing),
        )
        for row in list_bundles(services.settings)
    ]
    return WholeCatalogueModel(items=items, bundles=bundles)


@router.get("/{name}", operation_id="get_list")
def get(services: Services, _: Viewer, name: ListName, response: Response) -> SourceModel:
    """Returns a list."""
    item = find_source(services.settings, name)
    response.headers.update(etag(version_of(item)))
    return SourceModel.of(item)


@router.patch("/{name}", operation_id="change_list", status_code=202)
def change(services: Services, identity: Admin, name: ListName, body: SourceSwitch, if_match: IfMatch = "") -> JobModel:
    """Switches a list on or off. The work goes on after the answer."""
    item = find_source(services.settings, name)
    check_version(if_match, lambda: version_of(item))
    state = services.source_worker.start("switch", name, name, enabled=body.enabled)
    undo = inverse_of_switch(item) if body.enabled is not item.definition.enabled else None
    record(services, identity, "list.switched", name, "on" if body.enabled else "off", undo)
    return JobModel.of(state)


@router.delete("/{name}", operation_id="remove_list", status_code=202)
def remove(services: Services, identity: Admin, name: ListName, if_match: IfMatch = "") -> JobModel:
    """Forgets a list and its copy. The work goes on after the answer."""
    item = find_source(services.settings, name)
    check_version(if_match, lambda: version_of(item))
    if item.definition.bundled:
        raise ListError(f"{name} comes with the program: switch it off")
    state = services.source_worker.start("remove", name, name)
    record(services, identity, "list.removed", name, undo=inverse_of_removal(item))
    return JobModel.of(state)
