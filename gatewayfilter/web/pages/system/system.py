"""`/system`: the processes, the disk, the lists and the faults of the installation."""

from fastapi import Request
from fastapi.responses import HTMLResponse

from gatewayfilter.use_cases.filter_status import process_states
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.rendering.pages import render
from gatewayfilter.web.routers import PageRouter

router = PageRouter()


@router.get("/system")
def page(request: Request, services: Services, _: Admin) -> HTMLResponse:
    """Shows the state of the installation."""
    return render(
        request,
        "system/system.html",
        active="system",
        state=services.status(),
        processes=process_states(services.settings, services.clock()),
        data_dir=services.settings.data_dir,
        settings_file=services.settings_file,
    )
