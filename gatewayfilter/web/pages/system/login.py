"""`/login` and `/logout`, and the language of the pages before them."""

import math
from typing import Annotated, Final

from fastapi import Form, Request
from fastapi.responses import RedirectResponse, Response

from gatewayfilter.use_cases.access.log_in import LogInResult, LogInStatus
from gatewayfilter.web.access.cookies import end_session, set_log_in, source_of
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import current
from gatewayfilter.web.access.redirects import own_path
from gatewayfilter.web.rendering.catalogs import LANGUAGES
from gatewayfilter.web.rendering.pages import LANGUAGE_COOKIE, render
from gatewayfilter.web.routers import PageRouter

router = PageRouter()

Text = Annotated[str, Form(max_length=2_000)]

_YEAR_S: Final = 365 * 86_400


@router.get("/login")
def show(request: Request, services: Services, next: str = "/") -> Response:  # noqa: A002  the name in the URL
    """Shows the form, or leads on who is logged in already."""
    if not services.access.has_accounts():
        return RedirectResponse("/setup", 303)
    if current(request) is not None:
        return RedirectResponse(own_path(next), 303)
    return _form(request, own_path(next))


@router.post("/login")
def log_in(request: Request, services: Services, name: Text = "", password: Text = "", next: Text = "/") -> Response:  # noqa: A002
    """Logs in with name and password."""
    result = services.access.log_in.with_password(name, password, source_of(request))
    return _answer(request, services, result, own_path(next), name=name)


@router.post("/login/code")
def log_in_with_code(request: Request, services: Services, pending: Text = "", code: Text = "", next: Text = "/") -> Response:  # noqa: A002
    """Completes a log-in with a one-time code or a recovery code."""
    result = services.access.log_in.with_code(pending, code, source_of(request))
    return _answer(request, services, result, own_path(next), code_was_wrong=True)


@router.post("/language")
def set_language(request: Request, language: Text = "", back: Text = "/") -> Response:
    """Sets the language of pages in this browser, for whoever has no account yet, or is not logged in."""
    answer = RedirectResponse(own_path(back), 303)
    if language in LANGUAGES:
        tls = bool(request.app.state.tls)
        answer.set_cookie(LANGUAGE_COOKIE, language, max_age=_YEAR_S, path="/", secure=tls, httponly=True, samesite="strict")
    return answer


@router.post("/logout")
def log_out(request: Request, services: Services) -> Response:
    """Ends the session."""
    identity = current(request)
    if identity is not None and identity.session is not None:
        services.access.sessions.close(identity.session)
    answer = RedirectResponse("/login", 303)
    end_session(request, answer)
    answer.headers["clear-site-data"] = '"cache", "storage"'
    return answer


def _answer(
    request: Request, services: Services, result: LogInResult, target: str, *, name: str = "", code_was_wrong: bool = False
) -> Response:
    if result.status is LogInStatus.DONE:
        if (before := current(request)) is not None and before.session is not None:
            services.access.sessions.close(before.session)
        done = RedirectResponse(target, 303)
        set_log_in(request, done, result)
        return done
    if result.status is LogInStatus.CODE_NEEDED:
        values = {"pending": result.pending, "target": target, "wrong": code_was_wrong}
        return render(request, "system/login_code.html", 401 if code_was_wrong else 200, **values)
    if result.status is LogInStatus.WAIT:
        wait = math.ceil(result.wait_s)
        answer = _form(request, target, 429, name=name, wait=wait)
        answer.headers["retry-after"] = str(wait)
        return answer
    return _form(request, target, 401, name=name, wrong=True)


def _form(request: Request, target: str, status: int = 200, *, name: str = "", wait: int = 0, wrong: bool = False) -> Response:
    oidc = request.app.state.services.settings.web.oidc
    return render(request, "system/login.html", status, target=target, name=name[:100], wait=wait, wrong=wrong, oidc=oidc)
