"""Block lists of other publishers: read in any format, subscribed to, kept on disk, and compiled into snapshots.

`publish` and `formats.parse`, which import numpy, are imported by their names.
"""

from gatewayfilter.sources.catalog import Bundle, CatalogEntry
from gatewayfilter.sources.categories import Categories, Category
from gatewayfilter.sources.formats.detect import sniff
from gatewayfilter.sources.formats.list_format import ListFormat, ParseReport
from gatewayfilter.sources.services import OWN_NAME, load_services
from gatewayfilter.sources.subscription import Definition, SourceFile, SourceState, Subscription, UpdateResult, UpdateStatus
from gatewayfilter.sources.subscriptions import Subscriptions

__all__ = [
    "OWN_NAME",
    "Bundle",
    "CatalogEntry",
    "Categories",
    "Category",
    "Definition",
    "ListFormat",
    "ParseReport",
    "SourceFile",
    "SourceState",
    "Subscription",
    "Subscriptions",
    "UpdateResult",
    "UpdateStatus",
    "load_services",
    "sniff",
]
