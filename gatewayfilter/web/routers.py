"""Routers of the API and of the pages, whose routes are completed at their first use.

Most of some 290 routes are not used while a process runs. The application takes them over as they are: FastAPI's `include_router`
would make a second one of each, with its parameters, at the first request.
"""

import threading
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute
from starlette.routing import compile_path, get_name

from gatewayfilter.web.access.csrf import check_csrf
from gatewayfilter.web.errors import PROBLEMS

API_PREFIX: Final = "/api/v1"
_COMPLETION: Final = threading.RLock()


class LateRoute(APIRoute):
    """A route of which only what finds it is read at first; whatever else is asked of it completes it.

    FastAPI reads the parameters of a function, and builds a validator of each, when a route is declared: 9 MB and 0.4 s of CPU
    for all of them. A declaration that it refuses is refused at the first use.

    Args:
        path: in Starlette's notation.
        endpoint: answers requests.
        options: as those of `APIRoute`.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.path, self.endpoint = path, endpoint
        self.name = options.get("name") or get_name(endpoint)
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.methods = {method.upper() for method in options.get("methods") or ["GET"]}
        self._options: dict[str, Any] | None = options

    @property
    def is_complete(self) -> bool:
        """Whether it was used."""
        return self._options is None

    def __getattr__(self, name: str) -> Any:
        """Completes the route, and returns what was missing."""
        with _COMPLETION:
            if name not in self.__dict__:
                options = self.__dict__.get("_options")
                if options is None:
                    raise AttributeError(name)
                self._complete(options)
            return object.__getattribute__(self, name)

    def _complete(self, options: dict[str, Any]) -> None:
        """Completes the route; one that is refused stays as it was, and is refused each time."""
        before = self.__dict__.copy()
        self._options = None  # what is read meanwhile is missing
        try:
            super().__init__(self.path, self.endpoint, **options)
        except BaseException:
            for name in self.__dict__.keys() - before.keys():
                del self.__dict__[name]
            self.__dict__.update(before)
            raise


class ApiRouter(APIRouter):
    """The routes of a subject of the API, below `/api/v1`.

    Args:
        prefix: of their paths, after `/api/v1`.
        tags: one, the subject.
    """

    def __init__(self, prefix: str = "", *, tags: list[str | Enum]) -> None:
        super().__init__(
            prefix=API_PREFIX + prefix, tags=tags, dependencies=[Depends(check_csrf)], responses=PROBLEMS, route_class=LateRoute
        )


class PageRouter(APIRouter):
    """The pages of a subject. The OpenAPI document is made of the routes of the API alone.

    Args:
        prefix: of their paths.
    """

    def __init__(self, prefix: str = "") -> None:
        super().__init__(prefix=prefix, dependencies=[Depends(check_csrf)], route_class=LateRoute)
