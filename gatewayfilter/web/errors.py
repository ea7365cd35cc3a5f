"""Errors as answers: problem details (RFC 9457) below `/api`, a page with one sentence elsewhere."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from starlette.exceptions import HTTPException

from gatewayfilter.errors import ConflictError, GatewayFilterError, MissingError, StoreError
from gatewayfilter.web.rendering.catalogs import best_language
from gatewayfilter.web.rendering.pages import FAULT, is_partial, render

_log = logging.getLogger(__name__)

API: Final = "/api/"
PROBLEM: Final = "application/problem+json"
LOGIN: Final = "/login"
SETUP: Final = "/setup"
"""Where the first account is made."""
_NO_PAGES: Final = frozenset({"/metrics"})
"""Paths outside of the API that programs read: nobody is led to the form of the log-in."""

_TEXT: Final = {"type": "string"}
_PROBLEM_SCHEMA: Final = {
    "title": "Problem",
    "description": "An error (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": _TEXT | {"description": "Always `about:blank`."},
        "title": _TEXT | {"description": "Name of the status."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": _TEXT | {"description": "One sentence."},
        "errors": {
            "type": "array",
            "description": "Fields that are wrong, where there are any.",
            "items": {"type": "object", "required": ["field", "detail"], "properties": {"field": _TEXT, "detail": _TEXT}},
        },
    },
}
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    kind: {"description": sentence, "content": {PROBLEM: {"schema": _PROBLEM_SCHEMA}}}
    for kind, sentence in (
        ("4XX", "The request cannot be carried out; nothing was changed."),
        ("5XX", "The filter cannot carry it out now."),
    )
}
"""The errors of every operation of the API, for its OpenAPI document."""


def install_error_answers(app: FastAPI) -> None:
    """Has every error of handlers answered as this module describes."""

    @app.exception_handler(HTTPException)
    def on_refusal(request: Request, error: HTTPException) -> Response:
        return answer(request, error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    def on_bad_request(request: Request, error: RequestValidationError) -> Response:
        return answer(request, 422, _sentence(error.errors()), faults=_faults(error.errors()))

    @app.exception_handler(StoreError)
    def on_no_database(request: Request, error: StoreError) -> Response:
        _log.warning("%s %s: %s", request.method, request.url.path, error)
        return answer(request, 503, str(error), {"retry-after": "5"})

    @app.exception_handler(MissingError)
    def on_missing(request: Request, error: MissingError) -> Response:
        return answer(request, 404, str(error))

    @app.exception_handler(ConflictError)
    def on_conflict(request: Request, error: ConflictError) -> Response:
        return answer(request, 412 if "if-match" in request.headers else 409, str(error))

    @app.exception_handler(GatewayFilterError)
    def on_bad_input(request: Request, error: GatewayFilterError) -> Response:
        return answer(request, 422, str(error))

    @app.exception_handler(Exception)
    def on_fault(request: Request, error: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return answer(request, 500, FAULT)


def answer(
    request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None, faults: Sequence[Mapping[str, str]] = ()
) -> Response:
    """Returns the answer for an error.

    Args:
        request: what failed.
        status: the HTTP status.
        detail: one sentence.
        headers: further header fields.
        faults: wrong fields: `field` and `detail` of each.
    """
    if request.url.path.startswith(API):
        language = best_language(request.headers.get("accept-language", ""))
        told = partial(request.app.state.pages.told, language)
        fields = [{**fault, "detail": told(fault["detail"])} for fault in faults]
        return problem(status, told(detail), {**(headers or {}), "vary": "accept-language"}, fields)
    if request.url.path in _NO_PAGES:
        challenge = {"www-authenticate": "Bearer"} if status == 401 else {}
        return PlainTextResponse(f"{detail}\n", status, {**challenge, **(headers or {})})
    if status == 401 and request.method == "GET" and not is_partial(request):
        if not request.app.state.services.access.has_accounts():
            return RedirectResponse(SETUP, 303)
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{LOGIN}?next={quote(path, safe='')}" if path != "/" else LOGIN, 303)
    if is_partial(request):
        response: Response = render(request, "components/_problem.html", status, detail=detail)
    else:
        response = render(request, "system/error.html", status, detail=detail)
    for name, value in (headers or {}).items():
        response.headers[name] = value
    return response


def problem(
    status: int, detail: str, headers: Mapping[str, str] | None = None, faults: Sequence[Mapping[str, str]] = ()
) -> JSONResponse:
    """Returns the answer of the API for an error; arguments as for `answer`."""
    body: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    if faults:
        body["errors"] = list(faults)
    fields = dict(headers or {})
    if status == 401:
        fields.setdefault("www-authenticate", "Bearer")
    return JSONResponse(body, status, fields, PROBLEM)


def _faults(errors: Sequence[Any]) -> list[dict[str, str]]:
    return [
        {"field": _encodable(".".join(map(str, error["loc"]))[:200]), "detail": _encodable(str(error["msg"])[:300])}
        for error in errors[:20]
    ]


def _encodable(text: str) -> str:
    """Returns a text whose halves of surrogate pairs, which JSON can bring, are replaced: UTF-8 has none."""
    return text.encode("utf-8", "replace").decode()


def _sentence(errors: Sequence[Any]) -> str:
    return "; ".join(f"{fault['field']}: {fault['detail']}" for fault in _faults(errors)[:3])
