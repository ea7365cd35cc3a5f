"""What the first pages need, read ahead: modules, templates, the state of the filter, the counts of a day.

It is done before the dashboard answers, and while a person types a password: the first page takes no longer than the next ones.
"""

import logging
from typing import Final

from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.use_cases.traffic.log_overview import Span, make_overview
from gatewayfilter.web.rendering.pages import Pages
from gatewayfilter.web.services import WebServices

_log = logging.getLogger(__name__)

TEMPLATES: Final = ("traffic/overview.html", "traffic/log.html", "people/clients.html", "lists/lists.html")
"""Of the pages that are opened first."""


def warm_pages(services: WebServices, pages: Pages, language: str) -> None:
    """Reads it, and the health of the filter, for which a gateway asks a child process; arguments as `read_ahead`."""
    read_ahead(services, pages, language)
    try:
        services.health()
    except GatewayFilterError as error:
        _log.info("the health of the filter was not read ahead: %s", error)


def read_ahead(services: WebServices, pages: Pages, language: str) -> None:
    """Reads what this process reads itself; some 0.1 s of CPU the first time in it.

    Args:
        services: of the dashboard.
        pages: with the templates.
        language: of the person.
    """
    pages.load(language, TEMPLATES)
    try:
        services.status()
        services.store.unblock.open_requests()
        services.store.reviews.open_count()
        services.store.policies.read()
        make_overview(services.store.log_stats, services.clients(), Span.DAY, services.clock(), services.zone)
    except GatewayFilterError as error:
        _log.info("the first pages were not read ahead: %s", error)
