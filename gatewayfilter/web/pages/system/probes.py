"""`/healthz` and `/readyz`: whether the dashboard answers, and whether the filter serves. Open to all."""

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from gatewayfilter.use_cases.filter_status import serving_workers
from gatewayfilter.web.access.dependencies import Services

router = APIRouter()


@router.get("/healthz")
def healthz() -> PlainTextResponse:
    """Returns 200: this process answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
def readyz(services: Services) -> PlainTextResponse:
    """Returns 200 while at least one proxy worker serves, else 503."""
    serving = serving_workers(services.settings)
    return PlainTextResponse("ok\n" if serving else "no proxy worker serves\n", 200 if serving else 503)
