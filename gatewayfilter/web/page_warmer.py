"""What the first pages need, read ahead: modules, templates, the state of the filter, the counts of a day.

It is done while a person types a password, so that the first page after it takes no longer than the next ones.
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
    """Reads it; some 0.1 s of CPU the first time in a process.

    Args:
        services: of the dashboard.
        pages: with the templates.
        language: of the person.
    """
    pages.load(language, TEMPLATES)
    try:
        services.status()
        services.health()
        services.store.unblock.open_requests()
        make_overview(services.store.log_stats, services.clients(), Span.DAY, services.clock(), services.zone)
    except GatewayFilterError as error:
        _log.info("the first pages were not read ahead: %s", error)
