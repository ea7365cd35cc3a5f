"""`/fleet`: the followers of this publisher with their health, or the publisher that this machine follows."""

from fastapi import Request
from fastapi.responses import Response

from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.rendering.pages import render
from gatewayfilter.web.routers import PageRouter

router = PageRouter()


@router.get("/fleet")
def page(request: Request, services: Services, _: Viewer) -> Response:
    """Shows the state of the fleet as this machine sees it."""
    from gatewayfilter.use_cases.fleet_status import SILENT_S, fleet_status  # noqa: PLC0415  rarely used

    now = services.clock()
    found = fleet_status(services.settings)
    return render(
        request,
        "system/fleet.html",
        active="system",
        fleet=found,
        silent=found.silent(now),
        silent_minutes=int(SILENT_S // 60),
        exceptions=[item.partition(":")[::2] for item in found.state.exceptions],
        now=now,
    )
