"""Addresses of every page of the dashboard, taken from its routers: a new page is among them by itself."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fastapi.routing import APIRoute
from pydantic import BaseModel

from gatewayfilter.web import pages

NO_PAGES: Final = frozenset(
    {"/log/live", "/rules/export", "/lists/work", "/device/qr.svg", "/healthz", "/readyz", "/metrics"}
    | {"/login/oidc", "/login/oidc/callback"}
)
"""What is no page: files, streams, fragments, probes; nor what there is with a provider of single sign-on only."""


def page_routes() -> Iterator[APIRoute]:
    """Yields the routes of all pages."""
    for router in pages.routers():
        for route in router.routes:
            if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and route.path not in NO_PAGES:
                yield route


def fields_of(route: APIRoute) -> list[str]:
    """Returns the names of the parameters of a page's address."""
    found = list(route.dependant.query_params)
    found += [field for one in route.dependant.dependencies for field in one.query_params]
    names: list[str] = []
    for field in found:
        form = field.field_info.annotation
        names += form.model_fields if isinstance(form, type) and issubclass(form, BaseModel) else [field.alias]
    return names


def example_paths(examples: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns an address of every page, and those of `examples`.

    Args:
        examples: addresses by the path of a route; every path with parameters is among them.

    Raises:
        KeyError: there is none for a path with parameters.
    """
    found: list[str] = []
    for route in page_routes():
        found += examples[route.path] if "{" in route.path else (route.path, *examples.get(route.path, ()))
    return found
