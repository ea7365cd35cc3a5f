"""The storage as a module: judged pages in, list entries and the next states of URLs out."""

from collections.abc import Sequence

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.links.strategy import strategy_of
from gatewayfilter.crawl.modules.classified_ahead import ClassifiedAhead
from gatewayfilter.crawl.modules.failures import CRASHED, error_of
from gatewayfilter.crawl.modules.messages import CrawlMessage, Failure, MessageCodec
from gatewayfilter.crawl.outcome_batcher import OutcomeBatcher
from gatewayfilter.crawl.outcomes import Completion, OutcomeHandler, Visited
from gatewayfilter.crawl.page_judge import FileReading, PageJudge, Target
from gatewayfilter.interfaces import Channel, Lease, Letter
from gatewayfilter.urls import parse_url


class StoreModule:
    """Stores results while their leases are held: what comes a second time is dropped. Implements `interfaces.CrawlModule`.

    Counts `results_stale`.

    Args:
        context: the crawler's collaborators.
        ahead: gets the classifications of parsers; the sink of the context judges by it.
        judge: hands pages to the sink.
        outcomes: writes the next states of URLs; `batcher` several together.
        codec: reads messages.
    """

    def __init__(
        self,
        context: CrawlContext,
        ahead: ClassifiedAhead,
        judge: PageJudge,
        outcomes: OutcomeHandler,
        batcher: OutcomeBatcher,
        codec: MessageCodec,
    ) -> None:
        self._context = context
        self._ahead = ahead
        self._judge = judge
        self._outcomes = outcomes
        self._batcher = batcher
        self._codec = codec
        self._files = FileReading()
        self._in_work: set[tuple[str, str]] = set()

    async def handle(self, value: bytes) -> Sequence[Letter]:
        """Stores a result. When the database refuses, the lease runs out and the URL is fetched again."""
        message = self._codec.read(Channel.RESULTS, value)
        lease = message.lease
        name = (lease.url, lease.token)
        if name in self._in_work:
            self._context.counters.add("results_stale")
            return []
        self._in_work.add(name)
        try:
            if await self._batcher.call(lambda: self._context.frontier.still_held([lease])):
                await self._batcher.complete(await self._completion(message))
            else:
                self._context.counters.add("results_stale")
        finally:
            self._in_work.discard(name)
        return []

    def given_up(self, value: bytes, reason: str) -> Sequence[Letter]:
        """Returns nothing: the lease runs out, and a URL that is leased too often becomes a dead letter of the queue."""
        del value, reason
        return []

    async def _completion(self, message: CrawlMessage) -> Completion:
        if message.fetched is None:
            return self._failed(message.lease, message.failure or Failure(CRASHED, "a message without a page"))
        lease, fetched = message.lease, message.fetched
        try:
            target = Target(parse_url(lease.url), lease.priority, strategy_of(self._context.settings, lease.task), lease.depth)
            await self._files.read(fetched.page)
            with self._ahead.known(fetched.page, message.classification, message.words):
                return Visited(lease, target, await self._judge.judge(fetched, target))
        except Exception as error:  # noqa: BLE001  the outermost boundary of one page: none may end the storage
            return self._outcomes.of_error(lease, error)

    def _failed(self, lease: Lease, failure: Failure) -> Completion:
        error = error_of(failure)
        return self._outcomes.crashed(lease, failure.reason) if error is None else self._outcomes.of_error(lease, error)
