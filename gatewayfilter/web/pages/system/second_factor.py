"""`/account/second-factor`: one-time codes for the own account, set up with a QR code."""

from typing import Annotated

from fastapi import Form, Request
from fastapi.responses import Response

from gatewayfilter.errors import AccountError
from gatewayfilter.use_cases.access.second_factor import enrolment_address, new_secret
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Identity, Viewer
from gatewayfilter.web.access.redirects import done
from gatewayfilter.web.pages.system.account import refuse_unconfirmed
from gatewayfilter.web.rendering.pages import render
from gatewayfilter.web.routers import PageRouter

router = PageRouter("/account/second-factor")

Text = Annotated[str, Form(max_length=2_000)]


@router.post("")
def begin(request: Request, services: Services, identity: Viewer, current: Text = "") -> Response:
    """Shows a new secret as a QR code, once the password was confirmed; nothing is stored yet."""
    return refuse_unconfirmed(request, services, identity, current) or _secret_page(request, identity, new_secret())


@router.post("/enrol")
def enrol(
    request: Request, services: Services, identity: Viewer, secret: Text = "", code: Text = "", current: Text = ""
) -> Response:
    """Requires codes from now on, and shows the recovery codes once."""
    if (refusal := refuse_unconfirmed(request, services, identity, current)) is not None:
        return refusal
    account = services.access.account(identity.account_id)
    try:
        codes = services.access.accounts.enrol_second_factor(account, secret, code)
    except AccountError:
        return _secret_page(request, identity, secret, 422)
    services.access.sessions.close_all(account, but=identity.session)
    record(services, identity, "user.second-factor", account.name)
    return render(request, "system/recovery_codes.html", codes=codes)


@router.post("/remove")
def remove(request: Request, services: Services, identity: Viewer, current: Text = "") -> Response:
    """Requires no codes any more."""
    if (refusal := refuse_unconfirmed(request, services, identity, current)) is not None:
        return refusal
    account = services.access.accounts.remove_second_factor(services.access.account(identity.account_id))
    record(services, identity, "user.second-factor-removed", account.name)
    return done(request, "/account")


def _secret_page(request: Request, identity: Identity, secret: str, status: int = 200) -> Response:
    import segno  # noqa: PLC0415  for this picture alone

    address = enrolment_address(secret, identity.name, "GatewayFilter")
    image = segno.make(address, micro=False).svg_data_uri(scale=4, border=2)
    return render(request, "system/second_factor.html", status, secret=secret, image=image, wrong=status != 200)
