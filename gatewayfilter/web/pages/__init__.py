"""The pages of the dashboard."""

from collections.abc import Iterator

from fastapi import APIRouter

from gatewayfilter.web.pages.system import probes, reference


def routers() -> Iterator[APIRouter]:
    """Yields the routers of all subjects."""
    yield probes.router
    yield reference.router
