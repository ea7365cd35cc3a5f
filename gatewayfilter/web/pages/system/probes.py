"""`/healthz` and `/readyz`, open to all: whether the dashboard answers, and the filter serves. `/metrics`: the counters."""

from fastapi.responses import PlainTextResponse, Response

from gatewayfilter.use_cases.filter_status import serving_workers
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.routers import PageRouter

router = PageRouter()


@router.get("/healthz")
def healthz() -> PlainTextResponse:
    """Returns 200: this process answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
def readyz(services: Services) -> PlainTextResponse:
    """Returns 200 while at least one proxy worker serves, else 503."""
    serving = serving_workers(services.settings)
    return PlainTextResponse("ok\n" if serving else "no proxy worker serves\n", 200 if serving else 503)


@router.get("/metrics")
def metrics(services: Services, _: Viewer) -> Response:
    """Returns the counters of all processes for Prometheus, to who is logged in or has a token."""
    from gatewayfilter.use_cases.metrics.exposition import CONTENT_TYPE  # noqa: PLC0415  with prometheus_client

    return Response(services.exposition(), media_type=CONTENT_TYPE)
