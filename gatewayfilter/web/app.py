"""The ASGI application of the dashboard and its API."""

import json
import zlib
from functools import partial

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from starlette.types import ASGIApp

from gatewayfilter import __version__
from gatewayfilter.config import split_address
from gatewayfilter.errors import StoreError
from gatewayfilter.web import api, pages
from gatewayfilter.web.access.gate import Gate, own_names
from gatewayfilter.web.access.idempotency import Idempotency
from gatewayfilter.web.access.identity import Authenticator, Role
from gatewayfilter.web.errors import install_error_answers
from gatewayfilter.web.rendering.assets import Assets
from gatewayfilter.web.rendering.pages import pages_of_process
from gatewayfilter.web.services import WebServices

UPLOADS = ("/api/v1/restore", "/backup/restore", "/api/v1/rules/import", "/rules/import")
"""Beginnings of the paths that accept large bodies."""
_FOREVER = "public, max-age=31536000, immutable"


def create_app(services: WebServices, authenticator: Authenticator, *, tls: bool = False) -> ASGIApp:
    """Returns the application.

    Args:
        services: what handlers use.
        authenticator: finds who sends a request.
        tls: whether the connection is encrypted.
    """
    app = _application()
    rendering = pages_of_process()
    app.state.services, app.state.authenticator, app.state.pages = services, authenticator, rendering
    app.state.tls = tls
    install_error_answers(app)
    for router in (_static(rendering.assets), _openapi(services), *api.routers(), *pages.routers()):
        app.router.routes.extend(router.routes)
    web = services.settings.web
    host = split_address(web.listen)[0] if web.listen else "localhost"
    once = Idempotency(app, services.store, services.clock)
    names = own_names(host, web.names)
    return Gate(once, names=names, uploads=UPLOADS, may_upload=partial(_is_admin, app, authenticator), tls=tls)


def _is_admin(app: FastAPI, authenticator: Authenticator, request: Request) -> bool:
    try:
        identity = authenticator.identify(Request({**request.scope, "app": app}))
    except StoreError:
        return False  # the handler tells that the database is away
    return identity is not None and identity.may(Role.ADMIN)


def compressed_document() -> bytes:
    """Returns the OpenAPI document as JSON, compressed by zlib."""
    app = _application()
    for router in api.routers():
        app.router.routes.extend(router.routes)
    return zlib.compress(json.dumps(app.openapi()).encode())


def _application() -> FastAPI:
    return FastAPI(
        title="GatewayFilter",
        version=__version__,
        summary="The filter's REST API: everything that its commands and its dashboard do.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )


def _openapi(services: WebServices) -> APIRouter:
    router = APIRouter()

    @router.get("/api/v1/openapi.json")
    def openapi_document() -> Response:
        return Response(zlib.decompress(services.openapi_document()), media_type="application/json")

    return router


def _static(assets: Assets) -> APIRouter:
    router = APIRouter()

    @router.get("/static/{version}/{name:path}")
    def static(request: Request, version: str, name: str) -> Response:
        asset = assets.find(name)
        if asset is None:
            return Response(status_code=404)
        etag = f'"{assets.version}"'
        caching = {"cache-control": _FOREVER if version == assets.version else "no-cache", "etag": etag}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=caching)
        return Response(asset.content, media_type=asset.media_type, headers=caching)

    @router.get("/sw.js")
    def service_worker() -> Response:
        worker = assets.find("sw.js")
        assert worker is not None
        return Response(worker.content, media_type=worker.media_type, headers={"cache-control": "no-cache"})

    return router
