"""Imports all of the product. A module that is imported first while a test has put doubles into others would keep them."""

from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import gatewayfilter

_ACTING = ("gatewayfilter.cli.__main__", "gatewayfilter.processes.preload", "gatewayfilter.store.migrations.")
"""What does something when it is imported."""


def import_all() -> None:
    """Imports each module; those of an extra that is not installed are left out."""
    for module in walk_packages(gatewayfilter.__path__, "gatewayfilter.", onerror=lambda name: None):
        if not module.name.startswith(_ACTING):
            with suppress(ImportError):
                import_module(module.name)
