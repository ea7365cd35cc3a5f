"""The REST API below `/api/v1`."""

from collections.abc import Iterator

from fastapi import APIRouter

from gatewayfilter.web.api.lists import rule_files, rules
from gatewayfilter.web.api.system import backup, health, https, settings


def routers() -> Iterator[APIRouter]:
    """Yields the routers of all subjects, in the order of the reference page."""
    yield health.router
    yield https.router
    yield settings.router
    yield backup.router
    yield rule_files.router
    yield rules.router
