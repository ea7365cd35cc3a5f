"""The pages of the dashboard."""

from collections.abc import Iterator

from fastapi import APIRouter

from gatewayfilter.web.pages.system import backup, https, probes, reference, settings


def routers() -> Iterator[APIRouter]:
    """Yields the routers of all subjects."""
    yield backup.router
    yield https.router
    yield probes.router
    yield reference.router
    yield settings.router
