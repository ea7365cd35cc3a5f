"""What handlers take from the application, as dependencies."""

from typing import Annotated

from fastapi import Depends, Request

from gatewayfilter.web.services import WebServices


def web_services(request: Request) -> WebServices:
    """Returns the parts of the filter that handlers use."""
    services: WebServices = request.app.state.services
    return services


Services = Annotated[WebServices, Depends(web_services)]
