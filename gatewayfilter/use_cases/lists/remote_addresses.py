"""Addresses of lists that others than the operator of this machine may name: no file of the machine is one."""

from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from gatewayfilter.errors import SourceError


def check_remote(addresses: Iterable[str], catalogue: Collection[str]) -> None:
    """Checks that addresses are names of the catalogue or http(s) addresses.

    Raises:
        SourceError: one is another; a file of this machine is added by the command alone.
    """
    for address in addresses:
        if address in catalogue:
            continue
        try:
            parts = urlsplit(address)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise SourceError(f"{address[:200]!r} is neither a list of the catalogue nor an http(s) address")
