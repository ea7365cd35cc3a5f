"""Routes that are completed at their first use."""

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import pytest
from fastapi import FastAPI, Query
from fastapi.exceptions import FastAPIError
from pydantic import BaseModel, Field
from starlette.testclient import TestClient

from gatewayfilter.web import pages
from gatewayfilter.web.routers import LateRoute, PageRouter
from tests.web.web_fakes import Always


class Size(BaseModel):
    """A model."""

    height: Annotated[int, Field(ge=0)] = 1


class Odd:
    """No type that a request can hold."""


def routed() -> tuple[PageRouter, TestClient]:
    """Two pages, and a client of the application that has them."""
    router = PageRouter("/a")

    @router.get("/one/{number}")
    def one(number: int, q: Annotated[int, Query(le=9)] = 3) -> dict[str, int]:
        return {"number": number, "q": q}

    @router.post("/two")
    def two(size: Size) -> Size:
        return size

    app = FastAPI(openapi_url=None)
    app.state.authenticator = Always(None)
    app.router.routes.extend(router.routes)
    return router, TestClient(app, raise_server_exceptions=False)


def complete(router: PageRouter) -> list[bool]:
    return [route.is_complete for route in router.routes if isinstance(route, LateRoute)]


def test_a_request_completes_its_own_route_alone() -> None:
    router, client = routed()
    assert complete(router) == [False, False]
    assert client.get("/a/nowhere").status_code == 404
    assert client.put("/a/two").status_code == 405
    assert complete(router) == [False, False]
    assert client.get("/a/one/7?q=9").json() == {"number": 7, "q": 9}
    assert client.get("/a/one/7?q=10").status_code == 422
    assert complete(router) == [True, False]


def test_whatever_is_asked_of_a_route_completes_it_once() -> None:
    router, _ = routed()
    route = router.routes[1]
    assert isinstance(route, LateRoute)
    assert (route.path, route.methods, route.name, route.is_complete) == ("/a/two", {"POST"}, "two", False)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: route.dependant, range(8)))
    assert len({id(one) for one in found}) == 1
    assert route.is_complete
    assert not hasattr(route, "nothing_of_that_name")


def test_a_declaration_that_is_refused_is_refused_at_its_first_use() -> None:
    router = PageRouter()

    @router.get("/bad")
    def bad(odd: Odd) -> None:
        """No validator can be made of its parameter."""

    (route,) = router.routes
    assert isinstance(route, LateRoute)
    for missing in ("dependant", "dependant", "status_code"):  # the last one is read before the refusal
        with pytest.raises(FastAPIError):
            getattr(route, missing)
    assert (route.is_complete, route.path, route.name) == (False, "/bad", "bad")


def test_the_declaration_of_every_page_is_accepted() -> None:
    routes = [route for router in pages.routers() for route in router.routes if isinstance(route, LateRoute)]
    assert len(routes) > 100
    for route in routes:
        assert route.dependant is not None, route.path
        assert route.is_complete
