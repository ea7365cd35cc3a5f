"""`/api/v1/bypass-links`: signed links that unblock a page for a while."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, Field

from gatewayfilter.urls import parse_loose_url
from gatewayfilter.use_cases.traffic.request_answers import RequestAnswers, Terms
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Approver, Viewer
from gatewayfilter.web.api.traffic.unblock_requests import LinkModel, LinkTermsModel, link_model
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/bypass-links", tags=["requests"])


class NewLinkModel(LinkTermsModel):
    """A new link; name for whom it is."""

    url: Annotated[str, Field(min_length=1, max_length=4000, description="The page.")]


class LinkPage(BaseModel):
    """A page of links."""

    items: Annotated[list[LinkModel], Field(description="The newest first, without their addresses.")]
    next: Annotated[int | None, Field(description="What `after` of the next page is, null on the last.")]


@router.get("", operation_id="list_links")
def list_links(
    services: Services,
    _: Viewer,
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=200, description="Most items.")] = 50,
) -> LinkPage:
    """Returns links, the newest first."""
    links = [link for link in services.store.bypass.links() if not after or link.link_id < after]
    more = links[limit - 1].link_id if len(links) > limit else None
    return LinkPage(items=[link_model(services, link) for link in links[:limit]], next=more)


@router.post("", operation_id="add_link", status_code=201)
def add_link(services: Services, who: Admin, new: NewLinkModel) -> LinkModel:
    """Makes a link for any page."""
    terms = Terms(new.seconds, new.once, new.site, new.whom())
    made = RequestAnswers(services.store, who.actor, services.clock).add_link(parse_loose_url(new.url), terms)
    return link_model(services, made, new=True)


@router.delete("/{number}", operation_id="revoke_link")
def revoke_link(
    services: Services, who: Approver, number: Annotated[int, Path(ge=1, le=2**53, description="Number of the link.")]
) -> LinkModel:
    """Revokes a link: what it unblocked is blocked within a second."""
    return link_model(services, RequestAnswers(services.store, who.actor, services.clock).revoke_link(number))
