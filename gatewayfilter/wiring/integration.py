"""Wiring of the integration with other proxies: engine, followers of the lists, queues to the database; no proxy."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from typing import Protocol

from gatewayfilter.config import BlockDetails, OnError, Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.errors import StartupError
from gatewayfilter.integration.http.endpoint import DecideEndpoint
from gatewayfilter.integration.icap.page_judge import PageJudge
from gatewayfilter.integration.icap.server import MOST_CONNECTIONS, IcapServer
from gatewayfilter.integration.icap.service import IcapService
from gatewayfilter.integration.request_decider import RequestDecider
from gatewayfilter.integration.unknown_pages import UnknownPages
from gatewayfilter.interfaces import Inspect, InternalAnswer
from gatewayfilter.model import Reason, Request, Verdict
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.pages.theme import PageTheme
from gatewayfilter.proxy.request.resource_type import resource_type_of
from gatewayfilter.proxy.sync.client_key import load_client_key
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.sync.engine_follower import EngineFollower
from gatewayfilter.proxy.sync.log_exclusions import LogExclusions
from gatewayfilter.proxy.sync.neighbour_follower import NeighbourFollower
from gatewayfilter.proxy.sync.service_follower import ServiceFollower
from gatewayfilter.proxy.sync.store_writer import StoreWriter
from gatewayfilter.proxy.sync.usage_counter import UsageCounter
from gatewayfilter.store.reconnecting_store import ReconnectingStore
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from gatewayfilter.wiring.filtering import newest_engine
from gatewayfilter.wiring.storage import categories, category_title, open_store, own_services, services, snapshot_folder

_FIRST_REQUEST = Request(parse_url("http://first.invalid/"), parse_url("http://source.invalid/"))
"""Decided once at the start: the first decision loads what all need, such as the public suffixes."""

_GATHER_S = 0.1
"""No request of another proxy waits for the crawler's verdict; a transaction for each page would take as long as its decision."""


class _Thread(Protocol):
    def start(self) -> None: ...

    def stop(self) -> object: ...


@dataclass(frozen=True, slots=True)
class Deciding:
    """What decides for other proxies.

    Attributes:
        decider: decides requests, counts, logs and queues them.
        engine: its engine.
        counters: of the process.
    """

    decider: RequestDecider
    engine: FilterEngine
    counters: Counters
    _threads: tuple[_Thread, ...]

    def start(self) -> None:
        """Starts the threads that follow the lists and write to the database."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends them, and writes out what is queued."""
        for thread in reversed(self._threads):
            thread.stop()

    def facts(self) -> Mapping[str, object]:
        """Returns what the status file shows of the lists in use."""
        info = self.engine.snapshot.info
        return {"snapshot": {"created_at": info.created_at, "feed_seq": info.feed_seq}, "feed_seq": self.engine.feed_seq}


def icap_server(settings: Settings, parts: Deciding, inspect: Inspect) -> IcapServer:
    """Returns the ICAP server; pages are judged by `inspect`."""
    proxy = settings.proxy
    judge = PageJudge(
        inspect,
        settings.learn,
        frozenset(settings.filter.disabled_categories),
        parts.counters,
        limit_s=proxy.inspect_ms / 1000,
        blocks_failures=proxy.on_error is OnError.BLOCK,
    )
    service = IcapService(parts.decider, judge, _block_page(settings), parts.counters, MOST_CONNECTIONS)
    networks = [ip_network(network) for network in settings.icap.allow_networks]
    return IcapServer(service, parts.counters, networks)


def decide_endpoint(settings: Settings, parts: Deciding) -> DecideEndpoint:
    """Returns the HTTP endpoint of decisions, an ASGI application.

    Raises:
        StartupError: its token cannot be read.
    """
    decide = settings.decide
    try:
        token = decide.token_file.read_text(encoding="utf-8").strip() if decide.token_file is not None else ""
    except (OSError, UnicodeError) as error:
        raise StartupError(f"decide.token_file cannot be read: {error}") from error
    token = token or decide.token.get_secret_value()
    if decide.token_file is not None and not token:
        raise StartupError(f"decide.token_file {decide.token_file} is empty")
    return DecideEndpoint(parts.decider, _block_page(settings), parts.counters, token)


def _block_page(settings: Settings) -> "_BlockPage":
    proxy = settings.proxy
    short = proxy.block_details is BlockDetails.SHORT
    return _BlockPage(BlockPages(PageTheme.of(proxy), title_of=partial(category_title, categories()), short=short))


class _BlockPage:
    """The proxy's own block pages, as answers of ICAP."""

    def __init__(self, pages: BlockPages) -> None:
        self._pages = pages

    def __call__(self, request: Request, verdict: Verdict, accept_language: str) -> InternalAnswer:
        if verdict.reason is Reason.FAILURE:
            answer = self._pages.failure(request.method, accept_language)
        else:
            answer = self._pages.block(request, verdict, accept_language)
        return InternalAnswer(answer.status_code, dict(answer.headers.items()), answer.content or b"")


def deciding(settings: Settings) -> Deciding:
    """Opens the engine on the newest good snapshot, and the database, which may be away.

    Raises:
        SnapshotError: there is no good snapshot.
        StartupError: the secret for `log.hash_clients` cannot be used.
    """
    engine = newest_engine(settings)
    engine.decide(_FIRST_REQUEST)
    counters = Counters()
    store = ReconnectingStore(partial(open_store, settings), settings.log.retention_mb * 1_000_000)
    usage = UsageCounter(engine, counters, time.time)
    writer = StoreWriter(store.frontier.add, store.log.write, counters, usage=usage, add_uses=store.usage.add, gather_s=_GATHER_S)
    catalogue = ServiceFollower(engine, partial(services, settings), own_services(settings))
    follower = EngineFollower(
        engine, snapshot_folder(settings), store.feed, counters, beside=(catalogue.follow_once, usage.refresh)
    )
    log = settings.log
    recorder = DecisionRecorder(
        writer.log.write,
        log.privacy,
        load_client_key(settings.data_dir) if log.hash_clients else None,
        details=engine,
        exclusions=LogExclusions(log.ignored_clients, log.ignored_hosts) or None,
    )
    decider = RequestDecider(
        engine,
        counters,
        resource_type_of,
        unknown=settings.proxy.unknown,
        recorder=recorder,
        usage=usage,
        pages=UnknownPages(writer.offers) if settings.learn.enabled else None,
        ttl_s=settings.helper.ttl_s,
    )
    return Deciding(decider, engine, counters, (writer, follower, NeighbourFollower(engine)))
