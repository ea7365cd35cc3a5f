"""What runs in one proxy process: the addon, and the threads beside it that follow the lists and write to the database."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gatewayfilter.config import Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.interfaces import ChangeFeed, CrawlRequest, Decide, DecisionLog, Frontier, Inspect, UnblockRequests
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.listener.services import ConnectionServices, assemble_services
from gatewayfilter.proxy.pages.block_page import CategoryTitle, set_theme
from gatewayfilter.proxy.pages.setup_pages import SetupPages
from gatewayfilter.proxy.pages.theme import PageTheme
from gatewayfilter.proxy.request.unblock_form import UnblockForm
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.sync.engine_follower import EngineFollower
from gatewayfilter.proxy.sync.store_writer import StoreWriter
from gatewayfilter.store.page_spool import PageSpool
from gatewayfilter.telemetry import Counters


class WorkerStore(Protocol):
    """The part of the database that a proxy process uses, never on a request's way."""

    @property
    def feed(self) -> ChangeFeed:
        """The list changes."""
        ...

    @property
    def frontier(self) -> Frontier:
        """Takes unknown URLs."""
        ...

    @property
    def unblock(self) -> UnblockRequests:
        """Takes what users ask for."""
        ...

    @property
    def log(self) -> DecisionLog:
        """Takes decisions."""
        ...


class Inspector(Inspect, Protocol):
    """What looks at pages in a process of its own."""

    def start(self) -> None:
        """Starts the process; in the event loop."""
        ...

    def stop(self) -> None:
        """Ends it."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerComponents:
    """What a proxy process runs.

    Attributes:
        addon: the filter.
        counters: shown in the status file.
        start, stop: begin and end what runs beside the event loop; `stop` writes out what is queued.
        facts: what the status file says of the lists in use.
        services: how connections are decided.
    """

    addon: GatewayAddon
    counters: Counters
    start: Callable[[], None]
    stop: Callable[[], None]
    facts: Callable[[], Mapping[str, object]]
    services: ConnectionServices = field(default_factory=ConnectionServices)


def assemble_components(  # noqa: PLR0913  each is a part that it is joined from
    settings: Settings,
    engine: FilterEngine,
    folder: SnapshotFolder,
    store: WorkerStore | None,
    *,
    client_key: bytes = b"",
    title_of: CategoryTitle | None = None,
    internal_pages: SetupPages | None = None,
    inspector: Inspector | None = None,
    standalone: bool = False,
) -> WorkerComponents:
    """Joins an engine and the database to what a proxy process runs.

    Args:
        settings: `proxy`, `log` and `learn` count here.
        engine: the decision.
        folder: where new snapshots appear.
        store: the database, `None` to filter without: nothing is learned or logged, only snapshots are followed.
        client_key: the secret for `log.hash_clients`, 16 to 64 bytes.
        title_of: names a category for people.
        internal_pages: what the filter answers for itself.
        inspector: looks at pages, for `proxy.unknown = "inspect"`.
        standalone: the addon starts and stops the rest itself, as mitmdump needs it.
    """
    counters = Counters()
    writer = StoreWriter(store.frontier.add, store.log.write, counters, ask=store.unblock.ask) if store is not None else None
    follower = EngineFollower(engine, folder, store.feed if store is not None else None, counters)

    spool = _spool(settings, writer, counters)

    def start() -> None:
        follower.start()
        for part in (writer, spool, inspector):
            if part is not None:
                part.start()

    def stop() -> None:
        follower.stop()
        for part in (inspector, spool):
            if part is not None:
                part.stop()
        if writer is not None:
            writer.stop()

    def facts() -> Mapping[str, object]:  # asked once a second, in a thread
        if internal_pages is not None:
            internal_pages.refresh()
        info = engine.snapshot.info
        return {"snapshot": {"created_at": info.created_at, "feed_seq": info.feed_seq}, "feed_seq": engine.feed_seq}

    recorder = _recorder(settings, writer, client_key)
    desk = _desk(settings, engine, writer, recorder, counters)
    set_theme(PageTheme.of(settings.proxy), asks=desk is not None)
    addon = GatewayAddon(
        engine,
        writer.offers if writer is not None and settings.learn.enabled else None,
        recorder,
        settings.proxy,
        counters,
        hosts=engine,
        title_of=title_of,
        internal_pages=internal_pages,
        whole=settings,
        changes=engine,
        inspect=inspector,
        desk=desk,
        passed=spool,
        on_start=start if standalone else None,
        on_stop=stop if standalone else None,
    )
    services = ConnectionServices(counters) if standalone else assemble_services(settings, engine, recorder, counters)
    return WorkerComponents(addon, counters, start, stop, facts, services)


def _spool(settings: Settings, writer: StoreWriter | None, counters: Counters) -> PageSpool | None:
    if writer is None or not (settings.learn.enabled and settings.learn.passive):
        return None

    def dropped(url: str) -> None:
        counters.add("passed_dropped")
        writer.offers.offer(CrawlRequest(url))

    return PageSpool(settings.data_dir / "spool", dropped)


def _desk(
    settings: Settings, decide: Decide, writer: StoreWriter | None, recorder: DecisionRecorder | None, counters: Counters
) -> UnblockForm | None:
    if writer is None or recorder is None or not settings.proxy.unblock_requests:
        return None
    return UnblockForm(decide, writer.asks.take, recorder.client, counters, time.time)


def _recorder(settings: Settings, writer: StoreWriter | None, client_key: bytes) -> DecisionRecorder | None:
    if writer is None:
        return None
    return DecisionRecorder(writer.log.write, settings.log.privacy, client_key if settings.log.hash_clients else None)
