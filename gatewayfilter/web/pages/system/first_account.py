"""`/setup`: the first account, made in the browser. There is no default password."""

import ipaddress
from contextlib import suppress
from typing import Annotated, Final

from fastapi import Form, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from gatewayfilter.errors import AccountError, StoreError
from gatewayfilter.model import Actor, Via
from gatewayfilter.use_cases.access.dashboard_access import needs_setup_code
from gatewayfilter.web.access.cookies import set_log_in, source_of
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import current
from gatewayfilter.web.rendering.catalogs import LANGUAGES
from gatewayfilter.web.rendering.pages import LANGUAGE_COOKIE, render
from gatewayfilter.web.routers import PageRouter

router = PageRouter()

Text = Annotated[str, Form(max_length=2_000)]

_FORWARDED: Final = ("via", "forwarded", "x-forwarded-for", "x-real-ip")
"""Fields of proxies, through which another machine could seem to be this one."""


@router.get("/setup")
def show(request: Request, services: Services, code: str = "") -> Response:
    """Shows the form for the first account; leads on when there is one."""
    if services.access.has_accounts():
        return RedirectResponse("/", 303)
    current(request)  # nobody; what follows is made ready meanwhile, as at the log-in
    return _form(request, services, code=code)


@router.post("/setup")
def create(
    request: Request, services: Services, name: Text = "", password: Text = "", repeated: Text = "", code: Text = ""
) -> Response:
    """Makes the first account, an admin, and logs it in."""
    access = services.access
    if access.has_accounts():
        raise HTTPException(409, "there is an account already: log in")
    if not (_is_local(request, services) or access.is_setup_code(code)):
        return _form(request, services, 403, name=name, wrong_code="yes")
    if password != repeated:
        return _form(request, services, 422, name=name, code=code, differ="yes")
    source = source_of(request)
    try:
        result = access.add_first(name, password, source, Actor(name, Via.SESSION, source.network))
    except AccountError as error:
        field = "name_error" if "name of an account" in str(error) else "password_error"
        return _form(request, services, 422, name=name, code=code, **{field: str(error)})
    language = request.cookies.get(LANGUAGE_COOKIE, "")
    if language in LANGUAGES and result.account is not None:  # chosen on this page
        with suppress(StoreError):  # the account is there: its log-in counts, the language can be chosen again
            access.accounts.set_language(result.account, language)
    answer = RedirectResponse("/setup/purpose", 303)
    set_log_in(request, answer, result)
    return answer


def _form(request: Request, services: Services, status: int = 200, **given: str) -> Response:
    values = {"name": "", "code": "", "name_error": "", "password_error": "", "differ": "", "wrong_code": ""} | given
    local = _is_local(request, services)
    return render(request, "system/first_account.html", status, needs_code=not local, **values)


def _is_local(request: Request, services: Services) -> bool:
    """Returns whether the browser runs on this machine: by its address, where only this machine can connect."""
    if needs_setup_code(services.settings) or any(field in request.headers for field in _FORWARDED):
        return False
    try:
        return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
