"""`/api/v1/schedules`: what policies do at certain times."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Schedule, ScheduleEffect
from gatewayfilter.use_cases.network_facts import known_categories, zone_name
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.web.access.changes import IfMatch, check_version, etag
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.api.people.models import (
    After,
    Body,
    ItemName,
    Limit,
    Name,
    WindowModel,
    check_free,
    editing,
    existing,
    page_of,
    read_windows,
    window_model,
)
from gatewayfilter.web.routers import ApiRouter
from gatewayfilter.web.services import WebServices

router = ApiRouter("/schedules", tags=["schedules"])

OfPolicy = Annotated[str, Field(description="The policy over which it lies.", min_length=1, max_length=100)]
Effect = Annotated[ScheduleEffect, Field(description="What it does while a window is open.")]
Target = Annotated[str, Field(description="Category, service or policy of the effect; empty for block-all.", max_length=100)]
Windows = Annotated[list[WindowModel], Field(description="When it is in force.", min_length=1, max_length=100)]
Zone = Annotated[str, Field(description="IANA time zone of the windows; empty: that of the filter.", max_length=100)]


class ScheduleModel(BaseModel):
    """A schedule."""

    name: Name
    policy: OfPolicy
    effect: Effect
    target: Target
    windows: Windows
    timezone: Zone


class SchedulePage(BaseModel):
    """A page of schedules, by name."""

    items: Annotated[list[ScheduleModel], Field(description="The schedules.")]
    next: Annotated[str | None, Field(description="`after` of the next page, null at the end.")]


class ScheduleBody(Body):
    """What a schedule does, and when."""

    policy: OfPolicy
    effect: Effect
    target: Target = ""
    windows: Windows
    timezone: Zone = ""


class NewSchedule(ScheduleBody):
    """A schedule to add."""

    name: Name


@router.get("", operation_id="list_schedules")
def list_schedules(
    services: Services,
    _: Viewer,
    after: After = "",
    limit: Limit = 100,
    policy: Annotated[str, Query(description="Those of a policy alone.", max_length=100)] = "",
) -> SchedulePage:
    """Returns the schedules by name."""
    found = services.store.policies.read().schedules.items()
    page, following = page_of((pair for pair in found if not policy or pair[1].policy == policy), after, limit)
    return SchedulePage(items=[_model(schedule) for schedule in page], next=following)


@router.post("", operation_id="add_schedule", status_code=201)
def add_schedule(services: Services, identity: Admin, body: NewSchedule, response: Response) -> ScheduleModel:
    """Adds a schedule. 409 when the name is taken."""
    schedule = _read(services, body.name, body)
    with editing(services, identity, "schedule.added", body.name):
        check_free(body.name in services.store.policies.read().schedules, "schedule", body.name)
        editor = PolicyEditor(services.store.policies, services.clock)
        editor.add_schedule(schedule, known_categories(services.settings), services.services)
    return _answer(schedule, response)


@router.get("/{name}", operation_id="get_schedule")
def get_schedule(services: Services, _: Viewer, name: ItemName, response: Response) -> ScheduleModel:
    """Returns a schedule."""
    return _answer(existing(services.store.policies.read().schedules.get(name), "schedule", name), response)


@router.put("/{name}", operation_id="replace_schedule")
def replace_schedule(
    services: Services, identity: Admin, name: ItemName, body: ScheduleBody, response: Response, if_match: IfMatch = ""
) -> ScheduleModel:
    """Puts a schedule in place of the one of its name."""
    schedule = _read(services, name, body)
    with editing(services, identity, "schedule.changed", name):
        before = existing(services.store.policies.read().schedules.get(name), "schedule", name)
        check_version(if_match, lambda: version_of(before))
        editor = PolicyEditor(services.store.policies, services.clock)
        editor.set_schedule(schedule, known_categories(services.settings), services.services)
    return _answer(schedule, response)


@router.delete("/{name}", operation_id="remove_schedule", status_code=204, response_class=Response)
def remove_schedule(services: Services, identity: Admin, name: ItemName, if_match: IfMatch = "") -> None:
    """Removes a schedule."""
    with editing(services, identity, "schedule.removed", name):
        before = existing(services.store.policies.read().schedules.get(name), "schedule", name)
        check_version(if_match, lambda: version_of(before))
        PolicyEditor(services.store.policies, services.clock).remove_schedule(name)


def _read(services: WebServices, name: str, body: ScheduleBody) -> Schedule:
    if (body.effect is ScheduleEffect.BLOCK_ALL) != (not body.target):
        raise PolicyError("block-all has no target, every other effect has one")
    zone = body.timezone or zone_name(services.settings)
    return Schedule(name, body.policy, body.effect, read_windows(body.windows), zone, body.target)


def _answer(schedule: Schedule, response: Response) -> ScheduleModel:
    response.headers.update(etag(version_of(schedule)))
    return _model(schedule)


def _model(schedule: Schedule) -> ScheduleModel:
    return ScheduleModel(
        name=schedule.name,
        policy=schedule.policy,
        effect=schedule.effect,
        target=schedule.target,
        windows=list(map(window_model, schedule.windows)),
        timezone=schedule.timezone,
    )
