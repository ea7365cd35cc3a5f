"""Wiring of a proxy worker: the addon, and the threads beside it that follow the lists and write to the database.

No name of this module is exported by `gatewayfilter.wiring`: it imports mitmproxy, which only the proxy's processes need.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from gatewayfilter.config import BlockDetails, Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.errors import StartupError
from gatewayfilter.interfaces import (
    ChangeFeed,
    CrawlRequest,
    CrawlRequestStore,
    Decide,
    DecideHost,
    DecisionWriter,
    Inspect,
    LogDetails,
    QuotaUsageWriter,
    RecognizeClient,
    UnblockRequestStore,
)
from gatewayfilter.model import Request
from gatewayfilter.otlp import OtlpClient
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.auth.user_file import Users
from gatewayfilter.proxy.components import WorkerComponents
from gatewayfilter.proxy.filter_services import FilterServices
from gatewayfilter.proxy.listener.host_policy import HostPolicy
from gatewayfilter.proxy.listener.pinned_apps import open_pinned_apps
from gatewayfilter.proxy.listener.services import ConnectionServices
from gatewayfilter.proxy.pages.block_page import BlockPages, CategoryTitle
from gatewayfilter.proxy.pages.own_requests import OwnRequests
from gatewayfilter.proxy.pages.setup_pages import SetupPages
from gatewayfilter.proxy.pages.theme import PageTheme
from gatewayfilter.proxy.request.unblock_form import UnblockForm
from gatewayfilter.proxy.sync.client_key import load_client_key
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.sync.decision_traces import PATH as TRACES_PATH
from gatewayfilter.proxy.sync.decision_traces import DecisionTraces
from gatewayfilter.proxy.sync.engine_follower import EngineFollower
from gatewayfilter.proxy.sync.log_exclusions import LogExclusions
from gatewayfilter.proxy.sync.neighbour_follower import NeighbourFollower
from gatewayfilter.proxy.sync.service_follower import ServiceFollower
from gatewayfilter.proxy.sync.store_writer import StoreWriter
from gatewayfilter.proxy.sync.unblock_follower import UnblockFollower
from gatewayfilter.proxy.sync.usage_counter import UsageCounter
from gatewayfilter.store.page_spool import PageSpool
from gatewayfilter.store.reconnecting_store import ReconnectingStore
from gatewayfilter.store.secret_key import REQUEST_KEY, load_key
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from gatewayfilter.wiring.filtering import newest_engine, setup_pages
from gatewayfilter.wiring.storage import (
    categories,
    category_title,
    open_store,
    own_services,
    services,
    snapshot_folder,
    spool_folder,
)

_FIRST_REQUEST = Request(parse_url("http://first.invalid/"), parse_url("http://source.invalid/"))
"""Decided once at the start: the first decision loads what all need, such as the public suffixes."""


class WorkerStore(Protocol):
    """The part of the database that a proxy process uses, never while a request waits."""

    @property
    def feed(self) -> ChangeFeed:
        """The list changes."""
        ...

    @property
    def frontier(self) -> CrawlRequestStore:
        """Takes unknown URLs."""
        ...

    @property
    def unblock(self) -> UnblockRequestStore:
        """Requests to unblock pages, and bypass links."""
        ...

    @property
    def log(self) -> DecisionWriter:
        """Takes decisions."""
        ...

    @property
    def usage(self) -> QuotaUsageWriter:
        """Takes the use of quotas."""
        ...


class BackgroundPart(Protocol):
    """A thread or process that runs beside the event loop of a worker."""

    def start(self) -> None:
        """Starts it; in the event loop."""
        ...

    def stop(self) -> object:
        """Ends it, and writes out what is queued."""
        ...


class Inspector(Inspect, BackgroundPart, Protocol):
    """Judges pages in a process of its own."""


class _Background:
    """What runs beside the event loop of a worker: started in order, stopped in reverse."""

    def __init__(self, parts: Sequence[BackgroundPart | None], engine: FilterEngine, internal_pages: SetupPages | None) -> None:
        self._parts = [part for part in parts if part is not None]
        self._engine = engine
        self._internal_pages = internal_pages

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        for part in reversed(self._parts):
            part.stop()

    def facts(self) -> Mapping[str, object]:
        """Returns what the status file shows of the lists in use, and refreshes the set-up pages."""
        if self._internal_pages is not None:
            self._internal_pages.refresh()
        info = self._engine.snapshot.info
        return {"snapshot": {"created_at": info.created_at, "feed_seq": info.feed_seq}, "feed_seq": self._engine.feed_seq}


def worker_components(settings: Settings, inspector: Inspector | None = None, *, standalone: bool = False) -> WorkerComponents:
    """Opens what a proxy process runs: the engine on the newest good snapshot, and the database, which may be away.

    Args:
        settings: all settings.
        inspector: judges pages, for `proxy.unknown = "inspect"`.
        standalone: for a stock mitmproxy, which has a CA and an address of its own, and lets the addon start the rest.

    Raises:
        SnapshotError: there is no good snapshot.
        StartupError: the users of the proxy, its CA or the secret for `log.hash_clients` cannot be used.
    """
    engine = newest_engine(settings)
    engine.decide(_FIRST_REQUEST)
    return assemble_components(
        settings,
        engine,
        snapshot_folder(settings),
        ReconnectingStore(partial(open_store, settings), settings.log.retention_mb * 1_000_000),
        client_key=load_client_key(settings.data_dir) if settings.log.hash_clients else b"",
        title_of=partial(category_title, categories()),
        internal_pages=None if standalone else setup_pages(settings, engine),
        inspector=inspector,
        standalone=standalone,
    )


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
        engine: decides.
        folder: where new snapshots appear.
        store: the database, `None` to filter without: nothing is learned or logged, only snapshots are followed.
        client_key: the secret for `log.hash_clients`, 16 to 64 bytes.
        title_of: returns the title of a category.
        internal_pages: the filter's own pages.
        inspector: judges pages, for `proxy.unknown = "inspect"`.
        standalone: the addon starts and stops the rest itself, as mitmdump needs it.
    """
    counters = Counters()
    usage = UsageCounter(engine if store is not None else None, counters, engine.clock)
    writer = _writer(store, counters, usage)
    follower = _follower(settings, engine, folder, store, counters, usage)
    spool = _spool(settings, writer, counters)
    recorder, traces = _recorder(settings, engine, writer, client_key, counters)
    own = _own_requests(settings, engine, recorder)
    requests = UnblockFollower(store.unblock.changes, own) if store is not None and own is not None else None
    background = _Background(
        (writer, spool, inspector, follower, NeighbourFollower(engine), requests, traces), engine, internal_pages
    )
    pages = _pages(settings, own, title_of)
    connections = ConnectionServices(counters, usage=usage)
    if not standalone:
        connections = replace(assemble_services(settings, engine, recorder, counters, usage), engine=engine)
    filter_services = FilterServices(
        engine,
        hosts=engine,
        changes=engine,
        recorder=recorder,
        offers=writer.offers if writer is not None and settings.learn.enabled else None,
        passed=spool,
        inspect=inspector,
        internal_pages=internal_pages,
        unblock_form=_unblock_form(settings, engine, writer, own, counters, pages),
        pages=pages,
        logged_in=connections.logged_in,
        usage=usage,
    )
    start, stop = (background.start, background.stop) if standalone else (None, None)
    addon = GatewayAddon(settings, filter_services, counters, on_start=start, on_stop=stop)
    return WorkerComponents(addon, counters, background.start, background.stop, background.facts, connections)


def assemble_services(
    settings: Settings,
    engine: DecideHost,
    recorder: DecisionRecorder | None,
    counters: Counters,
    usage: UsageCounter | None = None,
) -> ConnectionServices:
    """Joins what decides connections.

    Raises:
        StartupError: the users of the proxy cannot be read, or have no way to send a password.
    """
    users = None
    if settings.proxy.auth_file is not None:
        if settings.proxy.mode == "transparent":
            raise StartupError("proxy.auth_file cannot be used in transparent mode: clients are not configured to use a proxy")
        users = Users(settings.proxy.auth_file)
    pinned_apps = open_pinned_apps(settings, counters)
    usage = usage if usage is not None else UsageCounter(None, counters)
    policy = HostPolicy(engine, settings.tls, recorder, counters, pinned_apps, usage=usage)
    return ConnectionServices(counters, policy, pinned_apps, users, recorder, usage=usage)


def _follower(
    settings: Settings,
    engine: FilterEngine,
    folder: SnapshotFolder,
    store: WorkerStore | None,
    counters: Counters,
    usage: UsageCounter,
) -> EngineFollower:
    catalogue = ServiceFollower(engine, partial(services, settings), own_services(settings))
    feed = store.feed if store is not None else None
    return EngineFollower(engine, folder, feed, counters, beside=(catalogue.follow_once, usage.refresh))


def _writer(store: WorkerStore | None, counters: Counters, usage: UsageCounter) -> StoreWriter | None:
    if store is None:
        return None
    return StoreWriter(
        store.frontier.add,
        store.log.write,
        counters,
        ask=store.unblock.ask,
        redeem=store.unblock.redeem,
        usage=usage,
        add_uses=store.usage.add,
    )


def _spool(settings: Settings, writer: StoreWriter | None, counters: Counters) -> PageSpool | None:
    if writer is None or not (settings.learn.enabled and settings.learn.passive):
        return None

    def dropped(url: str) -> None:
        counters.add("captures_dropped")
        writer.offers.offer(CrawlRequest(url))

    return PageSpool(spool_folder(settings), dropped)


def _unblock_form(
    settings: Settings,
    decide: Decide,
    writer: StoreWriter | None,
    own: OwnRequests | None,
    counters: Counters,
    pages: BlockPages,
) -> UnblockForm | None:
    if writer is None or own is None:
        return None
    return UnblockForm(
        decide,
        writer.asks.take,
        writer.redeems.take,
        own,
        counters,
        time.time,
        pages,
        takes_requests=settings.proxy.unblock_requests,
    )


def _pages(settings: Settings, own: OwnRequests | None, title_of: CategoryTitle | None) -> BlockPages:
    return BlockPages(
        PageTheme.of(settings.proxy),
        own_requests=own if settings.proxy.unblock_requests else None,
        title_of=title_of,
        short=settings.proxy.block_details is BlockDetails.SHORT,
    )


def _own_requests(settings: Settings, recognize: RecognizeClient, recorder: DecisionRecorder | None) -> OwnRequests | None:
    if recorder is None:
        return None
    return OwnRequests(load_key(settings.data_dir, REQUEST_KEY), recognize, recorder.client, time.time)


def _recorder(
    settings: Settings, engine: LogDetails, writer: StoreWriter | None, client_key: bytes, counters: Counters
) -> tuple[DecisionRecorder | None, DecisionTraces | None]:
    if writer is None:
        return None, None
    log, metrics = settings.log, settings.metrics
    traces = None
    if metrics.trace_share:
        client = OtlpClient(metrics.otlp, TRACES_PATH, "traces")
        traces = DecisionTraces(writer.log.write, client, metrics.trace_share, counters)
    exclusions = LogExclusions(log.ignored_clients, log.ignored_hosts)
    key = client_key if log.hash_clients else None
    write = writer.log.write if traces is None else traces.write
    return DecisionRecorder(write, log.privacy, key, details=engine, exclusions=exclusions or None), traces
