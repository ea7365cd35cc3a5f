"""`/api/v1/services`: the catalogue of services that policies block by name."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.model import Service
from gatewayfilter.sources.service_icons import service_icon
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.api.people.models import After, ItemName, Limit, existing, page_of
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/services", tags=["services"])


class ServiceModel(BaseModel):
    """A service of the catalogue."""

    service_id: Annotated[str, Field(description="Its name in policies, schedules and quotas.")]
    name: Annotated[str, Field(description="For display, in English.")]
    name_zh: Annotated[str, Field(description="For display, in simplified Chinese.")]
    group: Annotated[str, Field(description="What kind of service it is, such as games.")]
    hosts: Annotated[list[str], Field(description="Its hosts; each covers its subdomains.")]
    ports: Annotated[list[int], Field(description="TCP ports that belong to it at any host.")]
    part_of: Annotated[str, Field(description="The service whose hosts contain these.")]
    own: Annotated[bool, Field(description="Whether it comes from the operator's own catalogue.")]


class ServicePage(BaseModel):
    """A page of services, by id."""

    items: Annotated[list[ServiceModel], Field(description="The services.")]
    next: Annotated[str | None, Field(description="`after` of the next page, null at the end.")]


@router.get("", operation_id="list_services")
def list_services(
    services: Services,
    _: Viewer,
    after: After = "",
    limit: Limit = 100,
    group: Annotated[str, Query(description="Those of a group alone, such as games.", max_length=100)] = "",
) -> ServicePage:
    """Returns the services by id."""
    found = services.services.items()
    page, following = page_of((pair for pair in found if not group or pair[1].group == group), after, limit)
    return ServicePage(items=[_model(service) for service in page], next=following)


@router.get("/{service_id}", operation_id="get_service")
def get_service(services: Services, _: Viewer, service_id: ItemName) -> ServiceModel:
    """Returns a service."""
    return _model(existing(services.services.get(service_id), "service", service_id))


@router.get("/{service_id}/icon", operation_id="get_service_icon", response_class=Response)
def get_service_icon(services: Services, _: Viewer, service_id: ItemName) -> Response:
    """Returns the icon of a service, as SVG."""
    service = existing(services.services.get(service_id), "service", service_id)
    return Response(service_icon(service), media_type="image/svg+xml", headers={"cache-control": "private, max-age=86400"})


def _model(service: Service) -> ServiceModel:
    return ServiceModel(
        service_id=service.service_id,
        name=service.name,
        name_zh=service.name_zh,
        group=service.group,
        hosts=list(service.hosts),
        ports=list(service.ports),
        part_of=service.part_of,
        own=service.own,
    )
