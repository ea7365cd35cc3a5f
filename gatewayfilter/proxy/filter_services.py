"""The services that the addon uses: the engine, the sinks of what it learns, and its own pages."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gatewayfilter.interfaces import ChangeTraffic, CrawlRequestSink, Decide, DecideHost, Inspect, InternalPages, PassedSink
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.request.unblock_form import UnblockForm
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.sync.usage_counter import UsageCounter, no_usage


@dataclass(frozen=True, slots=True)
class FilterServices:
    """What the filter reads and writes; everything but the engine may be missing.

    Attributes:
        decide: the engine.
        hosts: the engine for host names; `None` where no connection may pass unread.
        changes: returns what Adblock modifiers change; `None` for nothing.
        recorder: takes every decision for the log; `None` without a log.
        offers: takes URLs on no list for the crawler; `None` when nothing is learned.
        passed: takes public pages as they pass; `None` to have all of them fetched.
        inspect: judges pages before they are delivered, for `proxy.unknown = "inspect"`.
        internal_pages: the filter's own pages, answered before any decision; neither counted nor logged.
        unblock_form: takes requests to unblock pages, and opens bypass links; `None` for neither.
        pages: makes block and error pages.
        logged_in: id of a client's connection → its proxy user; empty where nobody has to log in.
        usage: counts the use of quotas.
    """

    decide: Decide
    hosts: DecideHost | None = None
    changes: ChangeTraffic | None = None
    recorder: DecisionRecorder | None = None
    offers: CrawlRequestSink | None = None
    passed: PassedSink | None = None
    inspect: Inspect | None = None
    internal_pages: InternalPages | None = None
    unblock_form: UnblockForm | None = None
    pages: BlockPages = field(default_factory=BlockPages)
    logged_in: Mapping[str, str] = field(default_factory=dict)
    usage: UsageCounter = field(default_factory=no_usage)
