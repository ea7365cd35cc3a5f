"""`/system`: the processes, the disk, the lists and the faults of the installation."""

from functools import partial
from typing import Any

from fastapi import Request, Response

from gatewayfilter.use_cases.filter_status import process_states
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.rendering.pages import render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()


@router.get("/system")
def page(request: Request, services: Services, _: Admin) -> Response:
    """Shows the state of the installation."""
    return render_early(request, "system/system.html", partial(_content, services), active="system")


def _content(services: WebServices) -> dict[str, Any]:
    return {
        "state": services.status(),
        "processes": process_states(services.settings, services.clock()),
        "data_dir": services.settings.data_dir,
        "settings_file": services.settings_file,
    }
