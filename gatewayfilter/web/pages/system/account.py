"""`/account`: what everybody may change of the own account: password, language, sessions, tokens."""

import math
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Form, HTTPException, Request
from fastapi.responses import Response

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Scope
from gatewayfilter.use_cases.access.log_in import LogInStatus
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.cookies import set_session, source_of
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Identity, Viewer
from gatewayfilter.web.access.redirects import done
from gatewayfilter.web.rendering.pages import LANGUAGE_COOKIE, render, render_early
from gatewayfilter.web.routers import PageRouter

router = PageRouter()

Text = Annotated[str, Form(max_length=2_000)]

_DAY_S: Final = 86_400.0
_TEMPLATE: Final = "system/account.html"
_NOTHING: Final[dict[str, object]] = {"error": "", "wait": 0, "wrong": False, "differ": False, "new_token": ""}


@router.get("/account")
def show(request: Request, services: Services, identity: Viewer) -> Response:
    """Shows the own account."""
    return render_early(request, _TEMPLATE, partial(_content, services, identity), **_NOTHING)


@router.post("/account/password")
def set_password(
    request: Request, services: Services, identity: Viewer, current: Text = "", password: Text = "", repeated: Text = ""
) -> Response:
    """Sets a new password. All other sessions end, and this one gets a new secret."""
    access = services.access
    account = access.account(identity.account_id)
    if password != repeated:
        return account_page(request, services, identity, 422, differ=True)
    if (refusal := refuse_unconfirmed(request, services, identity, current)) is not None:
        return refusal
    try:
        account = access.accounts.set_password(account, password)
    except AccountError as error:
        return account_page(request, services, identity, 422, error=str(error))
    record(services, identity, "user.password", account.name)
    source = source_of(request)
    secret, _ = access.sessions.open(account, source.network, source.agent)
    answer = done(request, "/account")
    set_session(request, answer, secret)
    return answer


@router.post("/account/language")
def set_language(request: Request, services: Services, identity: Viewer, language: Text = "") -> Response:
    """Sets the language of pages."""
    services.access.accounts.set_language(services.access.account(identity.account_id), language)
    answer = done(request, "/account")
    answer.delete_cookie(LANGUAGE_COOKIE, path="/")
    return answer


@router.post("/account/sessions/end")
def end_others(request: Request, services: Services, identity: Viewer) -> Response:
    """Ends all sessions but this one."""
    services.access.sessions.close_all(services.access.account(identity.account_id), but=identity.session)
    return done(request, "/account")


@router.post("/account/sessions/{public_id}/end")
def end_one(request: Request, services: Services, identity: Viewer, public_id: str) -> Response:
    """Ends one session."""
    if not services.access.sessions.close_one(services.access.account(identity.account_id), public_id):
        raise HTTPException(404, "there is no such session")
    return done(request, "/account")


@router.post("/account/tokens")
def add_token(
    request: Request,
    services: Services,
    identity: Viewer,
    name: Text = "",
    scope: Annotated[Scope, Form()] = Scope.READ,
    days: Annotated[int, Form(ge=0, le=3_650)] = 90,
) -> Response:
    """Makes a token, and shows it once."""
    account = services.access.account(identity.account_id)
    try:
        text, token = services.access.tokens.add(account, name, scope, days * _DAY_S if days else None)
    except AccountError as error:
        return account_page(request, services, identity, 422, error=str(error))
    record(services, identity, "token.added", token.name, f"account {account.name}, scope {scope}")
    return account_page(request, services, identity, new_token=text)


@router.post("/account/tokens/{token_id}/remove")
def remove_token(request: Request, services: Services, identity: Viewer, token_id: int) -> Response:
    """Removes an own token."""
    token = services.access.tokens.remove(token_id, services.access.account(identity.account_id))
    record(services, identity, "token.removed", token.name)
    return done(request, "/account")


def account_page(request: Request, services: Services, identity: Identity, status: int = 200, **given: object) -> Response:
    """Returns the page of the own account; `given` are results of a form."""
    return render(request, _TEMPLATE, status, **{**_NOTHING, **_content(services, identity), **given})


def _content(services: Services, identity: Identity) -> dict[str, Any]:
    access = services.access
    account = access.account(identity.account_id)
    return {
        "account": account,
        "sessions": services.store.sessions.of_account(account.account_id),
        "own_session": identity.session.public_id if identity.session is not None else "",
        "tokens": access.tokens.of_account(account),
        "scopes": [scope.value for scope in Scope if account.role.covers(scope.role)],
    }


def refuse_unconfirmed(request: Request, services: Services, identity: Identity, password: str) -> Response | None:
    """Returns the page with an error where the present password is wrong, `None` where it is right."""
    account = services.access.account(identity.account_id)
    result = services.access.log_in.confirm(account, password, source_of(request))
    if result.status is LogInStatus.DONE:
        return None
    wait = math.ceil(result.wait_s)
    return account_page(request, services, identity, 429 if wait else 403, wait=wait, wrong=not wait)
