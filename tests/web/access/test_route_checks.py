"""What each route checks before its handler."""

from collections.abc import Iterator

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from gatewayfilter.web import api, pages
from gatewayfilter.web.access.csrf import check_csrf


def calls(dependant: Dependant) -> Iterator[object]:
    for one in dependant.dependencies:
        yield one.call
        yield from calls(one)


def test_each_route_refuses_forged_requests() -> None:
    routes = [route for router in (*api.routers(), *pages.routers()) for route in router.routes]
    unchecked = [route for route in routes if not isinstance(route, APIRoute) or check_csrf not in calls(route.dependant)]
    assert len(routes) > 200
    assert unchecked == []
