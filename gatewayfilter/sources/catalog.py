"""The catalogue of well-known lists (`lists/catalog.toml`), which can be subscribed to by name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatewayfilter.errors import ListError
from gatewayfilter.sources.categories import read_toml
from gatewayfilter.sources.formats.list_format import ListFormat


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A list that one can subscribe to by its name.

    Attributes:
        name: as in `source add NAME`.
        licence: as its publisher states it, to be read before subscribing.
        description, description_zh: one sentence, in English and simplified Chinese.
        interval_h: update interval that its publisher recommends, in hours; 0 for none.
        default: one of the usual lists, which are added together.
    """

    name: str
    title: str
    address: str
    licence: str
    homepage: str
    category: str
    list_format: ListFormat
    description: str
    description_zh: str
    interval_h: float = 0.0
    default: bool = False


def load_catalog(path: Path) -> dict[str, CatalogEntry]:
    """Returns the catalogue by name, in the file's order.

    Raises:
        ListError: it cannot be read, or an entry lacks something.
    """
    try:
        return {name: _entry(name, table) for name, table in read_toml(path).items()}
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ListError(f"{path} is not a catalogue of lists: {error!r}") from error


def _entry(name: str, table: dict[str, Any]) -> CatalogEntry:
    return CatalogEntry(
        name,
        title=str(table["title"]),
        address=str(table["address"]),
        licence=str(table["licence"]),
        homepage=str(table["homepage"]),
        category=str(table["category"]),
        list_format=ListFormat(table["format"]),
        description=str(table["description"]),
        description_zh=str(table["description_zh"]),
        interval_h=float(table.get("interval_h", 0)),
        default=bool(table.get("default", False)),
    )
