"""A subscription that is to be added: what the operator gave, checked and completed to a definition."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayfilter.errors import SourceError
from gatewayfilter.model import ListAction
from gatewayfilter.sources.bundled import PREFIX
from gatewayfilter.sources.catalog import CatalogEntry
from gatewayfilter.sources.categories import Categories
from gatewayfilter.sources.download.http_download import is_web_address
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.sources.source_naming import NAME, name_for, suggestion
from gatewayfilter.sources.subscription import Definition

_CATEGORY: Final = re.compile(r"[a-z0-9_-]{1,40}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NewSource:
    """What was given for a new source; everything but the address may be empty (`Subscriptions.add`)."""

    address: str
    name: str = ""
    list_format: ListFormat | None = None
    category: str = ""
    action: ListAction | None = None
    interval_h: float = 0.0

    def definition(self, catalog: Mapping[str, CatalogEntry], categories: Categories, now: float) -> Definition:
        """Returns the definition, completed from the catalogue or the address.

        Args:
            catalog: the well-known lists by name.
            categories: the registry of categories.
            now: Unix seconds.

        Raises:
            SourceError: the address, the name or the category cannot be used; with the reason.
        """
        known = catalog.get(self.address)
        address, name, category = self.address, self.name, self.category
        if known:
            address, name, category = known.address, name or known.name, category or known.category
        elif not is_web_address(address):
            if "://" in address:
                raise SourceError(f"{address} is no http(s) address")
            if not Path(address).exists():
                raise SourceError(f"{address!r} is no file and no list of the catalogue{suggestion(address, catalog)}")
            address = str(Path(address).resolve())
        name = name or name_for(address)
        if not NAME.fullmatch(name):
            raise SourceError(f"{name!r} is no name for a source: up to 40 lower-case letters, digits and hyphens")
        if name.startswith(PREFIX):
            raise SourceError(f"names that begin with {PREFIX!r} belong to the lists that come with the program")
        category = category or categories.guess(address)
        if not _CATEGORY.fullmatch(category):
            raise SourceError(f"{category!r} is no name for a category: up to 40 lower-case letters, digits, - and _")
        list_format = self.list_format or (known.list_format if known else None)
        interval_h = self.interval_h or (known.interval_h if known else 0.0)
        action = self.action or categories.get(category).action
        return Definition(name, address, list_format, category, action, interval_h, added_at=now)
