"""Checks of URLs for pages and the API: the engine of now, or one as of another time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gatewayfilter import wiring

if TYPE_CHECKING:
    from gatewayfilter.model import Request
    from gatewayfilter.use_cases.url_check import UrlCheck
    from gatewayfilter.web.services import WebServices


def checked(services: WebServices, request: Request, client: str = "", at: float | None = None) -> UrlCheck:
    """Returns what is in force for a request.

    Args:
        services: of the dashboard.
        request: without a client.
        client: name, address or `user:NAME`, `""` for none.
        at: Unix seconds, `None` for now.

    Raises:
        PolicyError: there is no such client.
        SnapshotError: no lists were published yet.
        StoreError: the database refuses.
    """
    from gatewayfilter.use_cases.url_check import check_url  # noqa: PLC0415  16 MB, for checks alone

    if at is None:
        return check_url(services.settings, services.store, services.engine(), request, client, services.clock)
    clock = partial(_fixed, at)
    engine = wiring.newest_engine(services.settings, clock=clock)
    while changes := services.store.feed.read(engine.feed_seq):
        engine.apply(changes)
    try:
        return check_url(services.settings, services.store, engine, request, client, clock)
    finally:
        engine.snapshot.close()


def _fixed(at: float) -> float:
    return at
