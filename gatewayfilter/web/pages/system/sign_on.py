"""`/login/oidc`: log-in by single sign-on, at the provider and back."""

import logging
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from fastapi import HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response

from gatewayfilter.use_cases.sign_on.failures import SignOnError, SignOnReason
from gatewayfilter.use_cases.sign_on.flow import Answer
from gatewayfilter.web.access.cookies import end_sign_on, set_log_in, set_sign_on, sign_on_cookie, source_of
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import current
from gatewayfilter.web.access.redirects import own_path
from gatewayfilter.web.rendering.pages import render
from gatewayfilter.web.routers import PageRouter

if TYPE_CHECKING:  # its HTTP client takes 7 MB
    from gatewayfilter.use_cases.sign_on.single_sign_on import SingleSignOn

router = PageRouter("/login/oidc")

_log = logging.getLogger(__name__)

Value = Annotated[str, Query(max_length=8_000)]

_STATUS: Final = {SignOnReason.WAIT: 429, SignOnReason.BUSY: 503, SignOnReason.PROVIDER: 502, SignOnReason.SECRET: 500}


@router.get("")
def begin(request: Request, services: Services, next: Value = "/") -> Response:  # noqa: A002  the name in the URL
    """Sends the browser to the provider."""
    sign_on = _sign_on(services)
    if not services.access.has_accounts():
        return RedirectResponse("/setup", 303)
    if current(request) is not None:
        return RedirectResponse(own_path(next), 303)
    try:
        address, cookie = sign_on.begin(own_path(next), _redirect_uri(request, services))
    except SignOnError as error:
        return _failed(request, error)
    answer = RedirectResponse(address, 303)
    set_sign_on(request, answer, cookie)
    return answer


@router.get("/callback")
def complete(
    request: Request, services: Services, state: Value = "", code: Value = "", error: Value = "", iss: Value = ""
) -> Response:
    """Logs the person in whom the provider sends back."""
    sign_on = _sign_on(services)
    answer = Answer(state, code, error, iss)
    try:
        result, target = sign_on.complete(answer, sign_on_cookie(request), _redirect_uri(request, services), source_of(request))
    except SignOnError as caught:
        return _failed(request, caught)
    if (before := current(request)) is not None and before.session is not None:
        services.access.sessions.close(before.session)
    # A redirect would still count as a request of the provider's site, to which browsers add no cookie that is Strict
    done = render(request, "system/signed_on.html", target=own_path(target))
    set_log_in(request, done, result)
    end_sign_on(request, done)
    return done


def _sign_on(services: Services) -> "SingleSignOn":
    if services.sign_on is None:
        raise HTTPException(404, "there is no single sign-on; the setting web.oidc.issuer turns it on")
    return services.sign_on


def _redirect_uri(request: Request, services: Services) -> str:
    """Returns where the provider sends the browser back to; the gate lets only own names be hosts."""
    base = services.settings.web.oidc.base_url or f"{request.url.scheme}://{request.headers['host']}"
    return f"{base}{router.prefix}/callback"


def _failed(request: Request, error: SignOnError) -> Response:
    _log.warning("single sign-on failed (%s): %s", error.reason, error.detail)
    status = _STATUS.get(error.reason, 403)
    oidc = request.app.state.services.settings.web.oidc
    provider = oidc.name or urlsplit(oidc.issuer).hostname or oidc.issuer
    answer = render(
        request, "system/sign_on_failed.html", status, reason=error.reason.value, subject=error.subject, provider=provider
    )
    end_sign_on(request, answer)
    return answer
