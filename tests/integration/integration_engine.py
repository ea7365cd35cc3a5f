"""An engine with a few lists, and a decider over it that records what it is given."""

from gatewayfilter.config import UnknownRule
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.integration.request_decider import RequestDecider
from gatewayfilter.integration.unknown_pages import UnknownPages
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.model import Request, Source, Verdict
from gatewayfilter.proxy.request.resource_type import resource_type_of
from gatewayfilter.telemetry import Counters


def engine() -> FilterEngine:
    """`.blocked.test` as gambling and `.ads.test` are on lists; all else is unknown."""
    builder = SnapshotBuilder()
    builder.add_keys(builder.add_source(Source("casinos", category="gambling")), [".blocked.test"])
    builder.add_keys(builder.add_source(Source("ad servers", category="ads")), [".ads.test"])
    return FilterEngine(Snapshot.from_bytes(builder.build()))


class Records:
    """A log, a crawl queue and a quota counter in memory."""

    def __init__(self) -> None:
        self.records: list[tuple[Request, Verdict]] = []
        self.unreadable: list[tuple[str, str]] = []
        self.offers: list[str] = []
        self.uses: list[str] = []
        self.active = True

    def record(self, request: Request, verdict: Verdict, elapsed_us: int) -> None:
        assert elapsed_us >= 0
        self.records.append((request, verdict))

    def record_unreadable(self, client: str, method: str, verdict: Verdict, user: str = "") -> None:
        assert verdict.blocked
        assert not user
        self.unreadable.append((client, method))

    def offer(self, offer: CrawlRequest) -> bool:
        self.offers.append(offer.url)
        return True

    def request(self, request: Request, verdict: Verdict) -> None:
        assert not verdict.blocked
        self.uses.append(request.url.text)


def decider_over(
    engine: FilterEngine, records: Records, *, unknown: UnknownRule = UnknownRule.ALLOW, ttl_s: int = 0
) -> tuple[RequestDecider, Counters]:
    """A decider as `wiring/` joins it, without threads and a database."""
    counters = Counters()
    decider = RequestDecider(
        engine,
        counters,
        resource_type_of,
        unknown=unknown,
        recorder=records,
        usage=records,
        pages=UnknownPages(records),
        ttl_s=ttl_s,
    )
    return decider, counters
