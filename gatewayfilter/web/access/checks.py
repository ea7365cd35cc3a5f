"""Checks of URLs for pages and the API: by the engine of now, or as of another time."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatewayfilter.model import Request
    from gatewayfilter.use_cases.url_check import UrlCheck
    from gatewayfilter.web.services import WebServices


def checked(services: WebServices, request: Request, client: str = "", at: float | None = None) -> UrlCheck:
    """Returns what is in force for a request. The engine is in a child process, which takes a second to start.

    Args:
        services: of the dashboard.
        request: without a client.
        client: name, address or `user:NAME`, `""` for none.
        at: Unix seconds, `None` for now.

    Raises:
        PolicyError: there is no such client.
        SnapshotError: no lists were published yet.
        StoreError: the database refuses.
        ClassifyError: it took too long.
    """
    settings = pickle.dumps(services.settings)
    found: UrlCheck = services.checker.run(
        "gatewayfilter.web.access.check_job:check", settings, request, client, services.clock(), at
    )
    return found
