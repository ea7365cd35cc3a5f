"""Wiring of publication, and of the engine over the published snapshot."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gatewayfilter.errors import SnapshotError, StartupError
from gatewayfilter.wiring.storage import publisher_snapshot, snapshot_folder, subscriptions, usable_services

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.config import Settings
    from gatewayfilter.engine.engine_image import EngineImage
    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.proxy.pages.setup_pages import SetupPages
    from gatewayfilter.sources.publish import PublishReport
    from gatewayfilter.store import Store

type Progress = Callable[[str, int, int], None]
"""Called with what is being worked on, how much is done and how much there is (0: unknown)."""


def publish_now(settings: Settings, store: Store, progress: Progress | None = None, *, full: bool = False) -> PublishReport:
    """Builds the snapshot of everything that is enabled now and swaps it in; on a follower, of its publisher's lists.

    Args:
        settings: the settings.
        store: manual rules, learned entries and policies.
        progress: called at each step.
        full: reads every list again even where the snapshot could follow from the one in use.

    Raises:
        SnapshotError: it could not be written; the last one stays.
    """
    from gatewayfilter.sources.publish import publish, publish_base

    folder, base = snapshot_folder(settings), publisher_snapshot(settings)
    if base is not None:
        return publish_base(folder, base, store.lists, store.feed, store.policies)
    lists = subscriptions(settings)
    return publish(folder, lists, store.lists, store.feed, policies=store.policies, progress=progress, full=full)


def newest_engine(settings: Settings, *, clock: Callable[[], float] = time.time) -> FilterEngine:
    """Returns the decision over the newest good snapshot, without the changes since; marks a damaged one for rebuilding.

    Raises:
        SnapshotError: there is none.
    """
    from gatewayfilter.engine.filter_engine import FilterEngine

    folder = snapshot_folder(settings)
    try:
        snapshot, refused = folder.open_newest()
    except SnapshotError:
        folder.refuse()
        raise
    if refused:
        folder.refuse()
    return FilterEngine(
        snapshot, off_categories=settings.filter.disabled_categories, clock=clock, services=usable_services(settings)
    )


def open_engine(settings: Settings, store: Store, *, clock: Callable[[], float] = time.time) -> FilterEngine:
    """Returns the decision as the proxy workers make it now: the newest good snapshot and the changes since.

    Publishes a first snapshot when there is none.

    Args:
        settings: the settings.
        store: where the changes come from.
        clock: Unix seconds, by which entries expire.
    """
    try:
        engine = newest_engine(settings, clock=clock)
    except SnapshotError:
        publish_now(settings, store)
        engine = newest_engine(settings, clock=clock)
    while changes := store.feed.read(engine.feed_seq):
        engine.apply(changes)
    return engine


def unpublished_engine(settings: Settings) -> FilterEngine:
    """Returns the decision over the enabled sources alone, built in memory; neither snapshot nor database is touched.

    Raises:
        SnapshotError: more entries than a snapshot can hold.
    """
    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.engine.snapshot.reader import Snapshot
    from gatewayfilter.sources.publish import build_snapshot

    data, _ = build_snapshot(subscriptions(settings).files())
    return FilterEngine(Snapshot.from_bytes(data), off_categories=settings.filter.disabled_categories)


def engine_for_lists(files: Sequence[Path], *, off_categories: Sequence[str] = ()) -> FilterEngine:
    """Returns a decision over these list files alone; no state folder is touched.

    Raises:
        ListError: a file cannot be read or is no list.
    """
    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.sources.list_files import load_lists

    return FilterEngine(load_lists(files), off_categories=off_categories)


def image_of(engine: FilterEngine, file: Path) -> EngineImage:
    """Returns what another process needs to decide exactly as this engine does now; the snapshot is written to the file.

    Raises:
        StartupError: the file cannot be written.
    """
    from gatewayfilter.engine.engine_image import EngineImage

    try:
        return EngineImage.of(engine, file)
    except OSError as error:
        raise StartupError(f"cannot write {file}: {error.strerror}") from error


def setup_pages(settings: Settings, engine: FilterEngine) -> SetupPages:
    """Returns the filter's own pages: set-up, certificate authority, PAC and WPAD.

    Raises:
        StartupError: the certificate authority is missing or cannot be used.
    """
    from gatewayfilter.addresses.rtnetlink import read_lan_address
    from gatewayfilter.certificates.authority import use_ca
    from gatewayfilter.certificates.renewal import next_authority
    from gatewayfilter.gateway.doh_servers import blocked_resolvers
    from gatewayfilter.gateway.pac import pac_file
    from gatewayfilter.gateway.runtime_state import RuntimeStateFile
    from gatewayfilter.proxy.pages.setup_pages import SetupPages
    from gatewayfilter.proxy.pages.setup_translations import GatewayFacts

    memory = RuntimeStateFile()

    def facts() -> GatewayFacts:
        found = memory.read()
        return GatewayFacts(True, found.quic_rejected, found.dot_rejected) if found is not None else GatewayFacts()

    return SetupPages(
        settings,
        use_ca(settings.data_dir / "ca"),
        lambda proxy: pac_file(settings.gateway, proxy, own_hosts=settings.gateway.hosts),
        facts,
        lambda: next_authority(settings.data_dir / "ca"),
        lambda: blocked_resolvers(engine),
        read_lan_address,
    )
