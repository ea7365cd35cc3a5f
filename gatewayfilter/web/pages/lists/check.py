"""`/check`: what is in force for an address, a device and a time, with every decider's answer. Nothing is fetched."""

from typing import Annotated, Final

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from gatewayfilter.errors import GatewayFilterError, StoreError
from gatewayfilter.model import Request as FilteredRequest
from gatewayfilter.model import ResourceType
from gatewayfilter.urls import parse_loose_url
from gatewayfilter.use_cases.moments import read_moment
from gatewayfilter.use_cases.url_check import UrlCheck
from gatewayfilter.web.access.checks import checked, steps_of
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.rendering.pages import render
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_MOST_NAMES: Final = 500


class CheckForm(BaseModel):
    """The form: the address of the page holds all of it."""

    url: Annotated[str, Field(max_length=8_000)] = ""
    client: Annotated[str, Field(max_length=200)] = ""
    at: Annotated[str, Field(max_length=50)] = ""
    source: Annotated[str, Field(max_length=8_000)] = ""
    type: Annotated[str, Field(max_length=20)] = "document"

    def request(self) -> FilteredRequest:
        """Returns the request that is meant.

        Raises:
            UrlError: an address is none.
        """
        source = parse_loose_url(self.source.strip()) if self.source.strip() else None
        kind = ResourceType(self.type) if self.type in ResourceType else ResourceType.DOCUMENT
        return FilteredRequest(parse_loose_url(self.url.strip()), source, kind, "GET")


@router.get("/check")
def show(request: Request, services: Services, _: Viewer, form: Annotated[CheckForm, Query()]) -> Response:
    """Shows the form, and what is in force for what it holds."""
    found, problem = _found(services, form) if form.url.strip() else (None, "")
    return render(
        request,
        "lists/check.html",
        422 if problem else 200,
        active="check",
        form=form,
        found=found,
        steps=() if found is None else steps_of(found),
        problem=problem,
        names=sorted(services.store.policies.read().clients, key=str.casefold)[:_MOST_NAMES],
        services_by_id=services.services,
        types=[kind.value for kind in ResourceType],
    )


def _found(services: WebServices, form: CheckForm) -> tuple[UrlCheck | None, str]:
    try:
        moment = read_moment(form.at, services.clock(), zone=services.zone) if form.at else None
        return checked(services, form.request(), form.client.strip(), moment), ""
    except StoreError:
        raise
    except GatewayFilterError as error:
        return None, str(error)
