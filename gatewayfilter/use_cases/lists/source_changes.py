"""Subscriptions: added, previewed, removed, switched on and off, updated; and the catalogue of well-known lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatewayfilter.errors import MissingError
from gatewayfilter.model import ListAction
from gatewayfilter.sources import ListFormat, SourceFile, Subscription, Subscriptions, UpdateResult
from gatewayfilter.sources.catalog import Bundle, CatalogEntry
from gatewayfilter.sources.parallel import WIDTH
from gatewayfilter.use_cases.category_names import check_category
from gatewayfilter.use_cases.network_facts import known_categories
from gatewayfilter.wiring import open_engine, prepare_data_dir, snapshot_folder, subscriptions, unpublished_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from gatewayfilter.config import Settings
    from gatewayfilter.sources.preview import Preview
    from gatewayfilter.store import Store
    from gatewayfilter.wiring import Progress

_TRIED_ON = 50_000
"""Newest logged requests that a list is tried on."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How a list is subscribed to; what is left out comes from the catalogue, or is found out.

    Attributes:
        interval_h: hours between updates, 0 for those of the catalogue or of `sources.interval_h`.
    """

    name: str = ""
    list_format: ListFormat | None = None
    category: str = ""
    action: ListAction | None = None
    interval_h: float = 0.0


@dataclass(frozen=True, slots=True)
class PreviewedSource:
    """What a list holds, and what it would change; `changes` is `None` where its format is not known."""

    result: UpdateResult
    changes: Preview | None


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """A list of the catalogue, and whether it is subscribed to."""

    entry: CatalogEntry
    added: bool


@dataclass(frozen=True, slots=True)
class BundleRow:
    """The lists for a purpose, and those of them that are not subscribed to."""

    bundle: Bundle
    missing: tuple[str, ...]


def changeable_sources(settings: Settings) -> Subscriptions:
    """Returns the subscriptions of a state folder, which is made when it is not there.

    Raises:
        StartupError: the state folder cannot be used.
    """
    prepare_data_dir(settings)
    return subscriptions(settings)


def check_source_category(settings: Settings, name: str) -> None:
    """Checks the category of a new subscription; `""` is found out.

    Raises:
        UnknownCategoryError: there is none of this name; names the nearest.
    """
    check_category(name, {"", *known_categories(settings, allowing=True)})


def add_source(known: Subscriptions, address: str, options: SourceOptions, *, progress: Progress | None = None) -> UpdateResult:
    """Subscribes to a list, and fetches it at once. It counts from the next publication on.

    A list of the catalogue that cannot be fetched now, and any list whose server cannot be reached now, is subscribed to and
    pending.

    Args:
        known: the subscriptions.
        address: a name of the catalogue, an http(s) address, a file, or a UT1 folder or archive.
        options: how.
        progress: called with the bytes downloaded.

    Raises:
        SourceError, ListError: it cannot be added; with the reason.
    """
    return known.add(
        address,
        name=options.name,
        list_format=options.list_format,
        category=options.category,
        action=options.action,
        interval_h=options.interval_h,
        keep_pending=True,
        progress=progress,
    )


def preview_source(
    known: Subscriptions,
    address: str,
    options: SourceOptions,
    compare: Callable[[SourceFile], Preview],
    *,
    progress: Progress | None = None,
) -> PreviewedSource:
    """Fetches a list and holds it against what is in use (`compare`); nothing is kept.

    Raises:
        SourceError, ListError: it cannot be fetched or read; with the reason.
        SnapshotError, StoreError: the snapshot in use or the log cannot be read.
    """
    previews: list[Preview] = []

    def look(item: SourceFile) -> None:
        previews.append(compare(item))

    result = known.add(
        address,
        name=options.name,
        list_format=options.list_format,
        category=options.category,
        action=options.action,
        interval_h=options.interval_h,
        preview=True,
        look=look,
        progress=progress,
    )
    return PreviewedSource(result, previews[0] if previews else None)


def compare_with_use(settings: Settings, item: SourceFile, store: Callable[[], AbstractContextManager[Store]]) -> Preview:
    """Holds a list against the lists in use and against what was visited lately.

    Where nothing was published yet, the lists that would be are read, and nothing is left behind: no database, no snapshot.

    Args:
        settings: the settings.
        item: the list.
        store: opens the database, with the log.

    Raises:
        SnapshotError, StoreError: the snapshot in use or the log cannot be read.
    """
    from gatewayfilter.sources.preview import preview_list  # noqa: PLC0415  numpy and the engine, for previews alone

    if snapshot_folder(settings).current() is None:
        engine = unpublished_engine(settings)
        return preview_list(item, engine.snapshot, engine, ())
    with store() as opened:
        engine = open_engine(settings, opened)
        visits = [(record.url, record.resource_type) for _, record in opened.log.tail(_TRIED_ON) if record.action == "allow"]
    return preview_list(item, engine.snapshot, engine, visits)


def update_sources(
    known: Subscriptions,
    names: Sequence[str] = (),
    *,
    every: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> list[UpdateResult]:
    """Checks sources for changes: those named, every enabled one, or those that are due. One that fails keeps its last good copy.

    Args:
        known: the subscriptions.
        names: which.
        every: all enabled ones that are not part of the program, in place of `names`.
        force: fetches unconditionally, and accepts a list that shrank suddenly.
        progress: called with how many are done.

    Raises:
        SourceError: there is no source of one of these names.
    """
    if every:
        names = [item.definition.name for item in known.all() if item.definition.enabled and not item.definition.bundled]
    return known.update(names if names or every else None, force=force, progress=progress, width=WIDTH)


def find_source(settings: Settings, name: str) -> Subscription:
    """Returns a subscription.

    Raises:
        MissingError: there is none of this name.
    """
    known = subscriptions(settings)
    if name not in known.names():
        raise MissingError(f"there is no source {name!r}")
    return known.get(name)


def list_catalogue(settings: Settings, category: str = "") -> list[CatalogueRow]:
    """Returns the lists of the catalogue, of a category or (`""`) all."""
    known = subscriptions(settings)
    added = set(known.names())
    return [CatalogueRow(entry, entry.name in added) for entry in known.catalog.values() if category in {"", entry.category}]


def list_bundles(settings: Settings) -> list[BundleRow]:
    """Returns the bundles of the catalogue, by purpose."""
    known = subscriptions(settings)
    return [BundleRow(bundle, known.missing(purpose)) for purpose, bundle in known.bundles.items()]


def problem_of(item: Subscription) -> str:
    """Returns why a source is not up to date, in one line; `""` when it is."""
    if item.is_pending:
        return f"pending: {item.state.error or 'not fetched yet'}"
    return item.state.error
