"""Routers of the API and of the pages. Their routes are complete: the application takes them over as they are.

FastAPI's `include_router` would make a second one of each route, with its parameters, at the first request.
"""

from enum import Enum
from typing import Final

from fastapi import APIRouter, Depends

from gatewayfilter.web.access.csrf import check_csrf
from gatewayfilter.web.errors import PROBLEMS

API_PREFIX: Final = "/api/v1"


class ApiRouter(APIRouter):
    """The routes of a subject of the API, below `/api/v1`.

    Args:
        prefix: of their paths, after `/api/v1`.
        tags: one, the subject.
    """

    def __init__(self, prefix: str = "", *, tags: list[str | Enum]) -> None:
        super().__init__(prefix=API_PREFIX + prefix, tags=tags, dependencies=[Depends(check_csrf)], responses=PROBLEMS)


class PageRouter(APIRouter):
    """The pages of a subject. They are not in the OpenAPI document.

    Args:
        prefix: of their paths.
    """

    def __init__(self, prefix: str = "") -> None:
        super().__init__(prefix=prefix, dependencies=[Depends(check_csrf)], include_in_schema=False)
