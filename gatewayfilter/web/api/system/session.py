"""`/api/v1/session`: log-in, log-out, and who sends requests."""

import math
from typing import Annotated

from fastapi import HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from gatewayfilter.use_cases.access.log_in import LogInStatus
from gatewayfilter.web.access.cookies import end_session, set_log_in, source_of
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Identity, Viewer
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/session", tags=["session"])


class LogInModel(BaseModel):
    """A log-in."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(description="Of the account.", max_length=200)]
    password: Annotated[str, Field(description="Its password.", max_length=1_000)]
    code: Annotated[str, Field(description='One-time code or recovery code, "" where none is needed.', max_length=100)] = ""


class SessionModel(BaseModel):
    """Who sends requests."""

    name: Annotated[str, Field(description="Of the account.")]
    role: Annotated[str, Field(description="What it may do: viewer, approver or admin; with a token, at most its scope.")]
    language: Annotated[str, Field(description='Of its pages, "" for that of the browser.')]
    csrf: Annotated[str, Field(description='To be sent as X-CSRF-Token with each change; "" with a token.')]


@router.get("", operation_id="get_session")
def show(identity: Viewer) -> SessionModel:
    """Returns who sends the request."""
    return _model(identity)


@router.post("", operation_id="create_session")
def log_in(request: Request, response: Response, services: Services, body: LogInModel) -> SessionModel:
    """Logs in, and sets the cookie of a session. 401 for a wrong name, password or code; 429 after too many of them."""
    log_in = services.access.log_in
    source = source_of(request)
    result = log_in.with_password(body.name, body.password, source)
    if result.status is LogInStatus.CODE_NEEDED:
        result = log_in.with_code(result.pending, body.code, source)
    if result.status is LogInStatus.WAIT:
        wait = str(math.ceil(result.wait_s))
        raise HTTPException(429, f"too many attempts: wait {wait} s", {"retry-after": wait})
    if result.status is not LogInStatus.DONE or result.account is None or result.session is None:
        raise HTTPException(401, "name, password or code is wrong")
    set_log_in(request, response, result)
    account = result.account
    return SessionModel(name=account.name, role=account.role.value, language=account.language, csrf=result.session.csrf)


@router.delete("", operation_id="delete_session", status_code=204)
def log_out(request: Request, services: Services, identity: Viewer) -> Response:
    """Ends the session of the cookie."""
    if identity.session is None:
        raise HTTPException(409, "a token has no session")
    services.access.sessions.close(identity.session)
    answer = Response(status_code=204)
    end_session(request, answer)
    return answer


def _model(identity: Identity) -> SessionModel:
    return SessionModel(name=identity.name, role=identity.role.name.lower(), language=identity.language, csrf=identity.csrf)
