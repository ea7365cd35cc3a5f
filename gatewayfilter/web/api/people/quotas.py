"""`/api/v1/quotas`: minutes a day for services and categories."""

from typing import Annotated

from fastapi import Response
from pydantic import BaseModel, Field

from gatewayfilter.model import DailyMinutes, Quota, QuotaKind
from gatewayfilter.use_cases.network_facts import counted_categories, zone_name
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.use_cases.policies import LONGEST_QUOTA, PolicyEditor
from gatewayfilter.web.access.changes import IfMatch, check_version, etag
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.api.people.models import DAYS, After, Body, ItemName, Limit, Name, check_free, editing, existing, page_of
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/quotas", tags=["quotas"])

Minutes = Annotated[int, Field(description="Minutes a day.", ge=1, le=LONGEST_QUOTA)]
OtherDays = Annotated[
    dict[Annotated[str, Field(pattern=f"^({'|'.join(DAYS)})$")], Annotated[int, Field(ge=1, le=LONGEST_QUOTA)]],
    Field(description="Minutes of days that differ: sat, sun …", max_length=7),
]
Zone = Annotated[str, Field(description="IANA time zone in which a day begins; empty: that of the filter.", max_length=100)]


class QuotaModel(BaseModel):
    """A quota."""

    name: Name
    policy: Annotated[str, Field(description="The policy of the clients; each has minutes of its own.")]
    kind: Annotated[QuotaKind, Field(description="What it counts.")]
    target: Annotated[str, Field(description="The service or category.")]
    minutes: Minutes
    other_days: OtherDays
    timezone: Zone
    used: Annotated[dict[str, int], Field(description="Minutes used today, by client: `client:NAME` or `address:ADDRESS`.")]


class QuotaPage(BaseModel):
    """A page of quotas, by name."""

    items: Annotated[list[QuotaModel], Field(description="The quotas.")]
    next: Annotated[str | None, Field(description="`after` of the next page, null at the end.")]


class NewQuota(Body):
    """A quota to add."""

    name: Name
    policy: Annotated[str, Field(description="The policy of the clients.", min_length=1, max_length=100)]
    kind: Annotated[QuotaKind, Field(description="What it counts.")]
    target: Annotated[str, Field(description="The service or category.", min_length=1, max_length=100)]
    minutes: Minutes
    other_days: OtherDays = Field(default_factory=dict)
    timezone: Zone = ""


class QuotaChange(Body):
    """Other minutes of a quota; what was used today counts."""

    minutes: Minutes
    other_days: OtherDays = Field(default_factory=dict)


@router.get("", operation_id="list_quotas")
def list_quotas(services: Services, _: Viewer, after: After = "", limit: Limit = 100) -> QuotaPage:
    """Returns the quotas by name, with who used how much of them today."""
    page, following = page_of(services.store.policies.read().quotas.items(), after, limit)
    sums = services.store.usage.sums(services.clock()) if page else []
    used = {quota.name: {one.client: one.used for one in sums if one.quota == quota.name} for quota in page}
    return QuotaPage(items=[_model(quota, used[quota.name]) for quota in page], next=following)


@router.post("", operation_id="add_quota", status_code=201)
def add_quota(services: Services, identity: Admin, body: NewQuota, response: Response) -> QuotaModel:
    """Adds a quota. 409 when the name is taken."""
    zone = body.timezone or zone_name(services.settings)
    quota = Quota(body.name, body.policy, body.kind, body.target, body.minutes, zone, _by_number(body.other_days))
    with editing(services, identity, "quota.added", body.name):
        check_free(body.name in services.store.policies.read().quotas, "quota", body.name)
        editor = PolicyEditor(services.store.policies, services.clock)
        editor.add_quota(quota, counted_categories(services.settings), services.services)
    return _answer(quota, {}, response)


@router.get("/{name}", operation_id="get_quota")
def get_quota(services: Services, _: Viewer, name: ItemName, response: Response) -> QuotaModel:
    """Returns a quota, with who used how much of it today."""
    quota = existing(services.store.policies.read().quotas.get(name), "quota", name)
    used = {one.client: one.used for one in services.store.usage.sums(services.clock()) if one.quota == name}
    return _answer(quota, used, response)


@router.patch("/{name}", operation_id="change_quota")
def change_quota(
    services: Services, identity: Admin, name: ItemName, body: QuotaChange, response: Response, if_match: IfMatch = ""
) -> QuotaModel:
    """Changes the minutes of a quota."""
    with editing(services, identity, "quota.changed", name):
        before = existing(services.store.policies.read().quotas.get(name), "quota", name)
        check_version(if_match, lambda: version_of(before))
        editor = PolicyEditor(services.store.policies, services.clock)
        policies = editor.set_quota(name, DailyMinutes(body.minutes, _by_number(body.other_days)))
    return _answer(policies.quotas[name], {}, response)


@router.delete("/{name}", operation_id="remove_quota", status_code=204, response_class=Response)
def remove_quota(services: Services, identity: Admin, name: ItemName, if_match: IfMatch = "") -> None:
    """Removes a quota."""
    with editing(services, identity, "quota.removed", name):
        before = existing(services.store.policies.read().quotas.get(name), "quota", name)
        check_version(if_match, lambda: version_of(before))
        PolicyEditor(services.store.policies, services.clock).remove_quota(name)


def _by_number(days: dict[str, int]) -> dict[int, int]:
    return {DAYS.index(day): minutes for day, minutes in days.items()}


def _answer(quota: Quota, used: dict[str, int], response: Response) -> QuotaModel:
    response.headers.update(etag(version_of(quota)))
    return _model(quota, used)


def _model(quota: Quota, used: dict[str, int]) -> QuotaModel:
    return QuotaModel(
        name=quota.name,
        policy=quota.policy,
        kind=quota.kind,
        target=quota.target,
        minutes=quota.minutes,
        other_days={DAYS[day]: minutes for day, minutes in sorted(quota.other_days.items())},
        timezone=quota.timezone,
        used=used,
    )
