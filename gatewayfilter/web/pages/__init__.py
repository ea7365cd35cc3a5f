"""The pages of the dashboard."""

from collections.abc import Iterator

from fastapi import APIRouter

from gatewayfilter.web.pages.learning import review, words
from gatewayfilter.web.pages.system import backup, https, probes, reference, settings
from gatewayfilter.web.pages.traffic import log, requests, why


def routers() -> Iterator[APIRouter]:
    """Yields the routers of all subjects."""
    yield requests.router
    yield review.router
    yield words.router
    yield backup.router
    yield https.router
    yield probes.router
    yield reference.router
    yield settings.router
    yield log.router
    yield why.router
