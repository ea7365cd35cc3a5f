"""The catalogue of well-known lists (`lists/catalog.toml`), subscribed to by name, and its bundles for a purpose."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from gatewayfilter.errors import ListError, SourceError
from gatewayfilter.sources.categories import parse_toml, read_text
from gatewayfilter.sources.formats.list_format import ListFormat

_BUNDLES: Final = "bundles"
"""The table of the file that holds the bundles; every other one is a list."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A list that one can subscribe to by its name.

    Attributes:
        name: as in `source add NAME`.
        licence: as its publisher states it, to be read before subscribing.
        description, description_zh: one sentence, in English and simplified Chinese.
        interval_h: update interval that its publisher recommends, in hours; 0 for none.
        default: one of the usual lists, which are added together.
        entries: its usual number of entries, to one or two digits; 0 for unknown.
        size_mb: the usual size of the download in MB, to one or two digits; 0 for unknown.
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
    entries: int = 0
    size_mb: float = 0.0


@dataclass(frozen=True, slots=True)
class Bundle:
    """The lists that fit a purpose, such as a home.

    Attributes:
        name: as in `source add --for NAME`.
        title, title_zh: of the purpose.
        description, description_zh: one sentence on what the lists cover.
        lists: names of the catalogue.
    """

    name: str
    title: str
    title_zh: str
    description: str
    description_zh: str
    lists: tuple[str, ...]


def load_catalog(path: Path) -> dict[str, CatalogEntry]:
    """Returns the catalogue by name, in the file's order.

    Raises:
        ListError: it cannot be read, or an entry lacks something.
    """
    return {entry.name: entry for entry in _entries(read_text(path), path)}


@lru_cache(maxsize=2)
def _entries(text: str, path: Path) -> tuple[CatalogEntry, ...]:
    """Returns the lists of a catalogue's content. They are needed often, and parsing takes some 10 ms."""
    try:
        return tuple(_entry(name, table) for name, table in parse_toml(text, path).items() if name != _BUNDLES)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ListError(f"{path} is not a catalogue of lists: {error!r}") from error


def load_bundles(path: Path) -> dict[str, Bundle]:
    """Returns the bundles by name, in the file's order.

    Raises:
        ListError: the catalogue cannot be read, or a bundle lacks something.
    """
    return {bundle.name: bundle for bundle in _bundles(read_text(path), path)}


@lru_cache(maxsize=2)
def _bundles(text: str, path: Path) -> tuple[Bundle, ...]:
    """Returns the bundles of a catalogue's content, kept as `_entries` are."""
    try:
        return tuple(_bundle(name, table) for name, table in parse_toml(text, path).get(_BUNDLES, {}).items())
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ListError(f"{path} is not a catalogue of lists: {error!r}") from error


def choose_lists(
    catalog: Mapping[str, CatalogEntry],
    bundles: Mapping[str, Bundle],
    purpose: str | None = None,
    *,
    defaults: bool = False,
    leave_out: Collection[str] = (),
) -> tuple[str, ...]:
    """Returns names of the catalogue: those of the usual lists, of the bundle for a purpose, or both; each once.

    Raises:
        SourceError: there is no bundle for this purpose.
    """
    if purpose is not None and purpose not in bundles:
        raise SourceError(f"there are no lists for {purpose!r}; there are {', '.join(bundles)}")
    wanted = [entry.name for entry in catalog.values() if defaults and entry.default]
    wanted += bundles[purpose].lists if purpose is not None else ()
    return tuple(name for name in dict.fromkeys(wanted) if name not in leave_out)


def _bundle(name: str, table: dict[str, Any]) -> Bundle:
    return Bundle(
        name,
        title=str(table["title"]),
        title_zh=str(table["title_zh"]),
        description=str(table["description"]),
        description_zh=str(table["description_zh"]),
        lists=tuple(map(str, table["lists"])),
    )


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
        entries=int(table.get("entries", 0)),
        size_mb=float(table.get("size_mb", 0)),
    )
