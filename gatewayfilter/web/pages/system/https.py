"""`/https`: the certificate authority, names that pass unread, pinned apps. `/device`: how a device is set up."""

from functools import partial
from io import BytesIO
from typing import Annotated, Any

from fastapi import Form, Request
from fastapi.responses import RedirectResponse, Response

from gatewayfilter.addresses.rtnetlink import read_lan_address
from gatewayfilter.config import Settings, split_address
from gatewayfilter.use_cases import https as use_case
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, current
from gatewayfilter.web.rendering.pages import render, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()


@router.get("/https")
def page(request: Request, services: Services, _: Admin) -> Response:
    """Shows the authority and what passes unread."""
    return render_early(request, "system/https.html", partial(_content, services), active="https")


def _content(services: WebServices) -> dict[str, Any]:
    return {
        "authorities": services.authorities(),  # the child process that reads them may be starting
        "pinned": use_case.pinned_apps(services.settings, services.clock()),
        "passed": [rule for rule in services.store.lists.rules() if rule.action.value == "splice"],
    }


@router.post("/https/renew")
def renew(services: Services, identity: Admin, step: Annotated[use_case.Renewal, Form()]) -> RedirectResponse:
    """Renews the authority."""
    renewed = use_case.renew_authority(services.settings, step)
    record(services, identity, "authority.renewed", renewed.name, step)
    return RedirectResponse("/https", 303)


@router.post("/https/pinned-apps/remove")
def remove(
    services: Services,
    identity: Admin,
    host: Annotated[str, Form(max_length=253)],
    client: Annotated[str, Form(max_length=60)] = "",
) -> RedirectResponse:
    """Has connections to a name decrypted again."""
    if use_case.forget_pinned_app(services.settings, host, client):
        record(services, identity, "pinned-app.removed", host, client)
    return RedirectResponse("/https", 303)


@router.get("/device")
def device(request: Request, services: Services) -> Response:
    """Shows how a device is set up. Open to everybody who reaches the dashboard: devices have no account."""
    current(request)  # who is logged in sees the navigation
    host, port = split_address(services.settings.proxy.listen)
    return render(
        request,
        "system/device.html",
        active="device",
        address=proxy_address(services.settings),
        transparent=services.settings.proxy.mode == "transparent",
        local=host in {"127.0.0.1", "localhost", "::1"},
        port=port,
        authority=services.authorities().current,
    )


@router.get("/device/qr.svg")
def qr_code(services: Services) -> Response:
    """Returns the address of the set-up page as a QR code."""
    import segno  # noqa: PLC0415  for this picture alone

    picture = BytesIO()
    segno.make(f"http://{proxy_address(services.settings)}/", micro=False).save(
        picture, kind="svg", scale=6, border=4, dark="#000", light="#fff", xmldecl=False, svgns=True
    )
    return Response(picture.getvalue(), media_type="image/svg+xml")


def proxy_address(settings: Settings) -> str:
    """Returns host and port by which devices reach the proxy and its set-up page."""
    host, port = split_address(settings.proxy.listen)
    if host in {"0.0.0.0", "::"}:  # noqa: S104  compared, not listened on
        host = read_lan_address() or "127.0.0.1"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
