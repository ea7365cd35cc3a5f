"""Functions of mitmproxy that have no types of their own, with types."""

from collections.abc import Iterator

from mitmproxy import addonmanager, ctx, http, options
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.flow import Flow


def add_addons(manager: addonmanager.AddonManager, *addons: object) -> None:
    """Adds addons to the end of the chain."""
    manager.add(*addons)  # type: ignore[no-untyped-call]


def update_options(current: options.Options, **values: object) -> None:
    """Sets options."""
    current.update(**values)  # type: ignore[no-untyped-call]


def running_proxyserver() -> Proxyserver | None:
    """Returns the addon that keeps the connections of the running master, `None` where it has none."""
    found = ctx.master.addons.get("proxyserver")  # type: ignore[no-untyped-call]
    return found if isinstance(found, Proxyserver) else None


def kill(flow: Flow) -> None:
    """Ends a flow: its client's connection, or stream, is broken off."""
    flow.kill()  # type: ignore[no-untyped-call]


def header_fields(headers: http.Headers) -> Iterator[tuple[str, str]]:
    """Yields each field by itself, in order."""
    yield from headers.items(multi=True)  # type: ignore[no-untyped-call]
