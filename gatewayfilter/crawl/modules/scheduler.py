"""The scheduler as a module: leases URLs from the queue and sends them to fetchers, no more than may be on their way."""

import time
from collections.abc import Sequence
from typing import Final

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.modules.messages import CrawlMessage, MessageCodec
from gatewayfilter.crawl.net.fetch_errors import RefusedError
from gatewayfilter.crawl.outcomes import Completion, OutcomeHandler
from gatewayfilter.errors import GatewayFilterError, UrlError
from gatewayfilter.interfaces import Channel, Lease, SendLetters
from gatewayfilter.urls import parse_url

LEASE_S: Final = 900.0
"""Of a lease, beside four times `timeout_s`: a job may wait for a fetcher, its page for a parser, both for a broker."""
_LOOK_EVERY_S: Final = 0.25


class Scheduler:
    """Sends jobs. What is on its way is bounded, which bounds what lies in the topics: that is the back-pressure.

    Synchronous, for one thread.

    Args:
        context: the crawler's collaborators.
        outcomes: writes the next states of URLs that are not sent.
        send: sends jobs.
        codec: writes messages.
        on_the_way: most URLs between here and the storage.
    """

    def __init__(
        self, context: CrawlContext, outcomes: OutcomeHandler, send: SendLetters, codec: MessageCodec, on_the_way: int
    ) -> None:
        self._context = context
        self._leases = context.leases or context.frontier
        self._outcomes = outcomes
        self._send = send
        self._codec = codec
        self._most = on_the_way
        self._sent: list[Lease] = []
        self._look_at = 0.0

    def step(self) -> int:
        """Sends as many jobs as there is room for. Returns how many.

        Raises:
            StoreError: the database refuses.
            GatewayFilterError: the jobs could not be sent; their URLs wait in the queue again.
        """
        now = self._context.clock()
        if self._sent and time.monotonic() >= self._look_at:
            self._sent = self._context.frontier.still_held(self._sent)
            self._look_at = time.monotonic() + _LOOK_EVERY_S
        free = self._most - len(self._sent)
        leases = self._leases.lease(free, LEASE_S + 4 * self._context.settings.timeout_s, now) if free > 0 else []
        jobs, refused = [], []
        for lease in leases:
            completion = self._refusal(lease)
            if completion is None:
                jobs.append(lease)
            else:
                refused.append(completion)
        if refused:
            self._complete(refused)
        if jobs:
            try:
                self._send.send([self._codec.letter(Channel.JOBS, CrawlMessage(lease)) for lease in jobs])
            except GatewayFilterError:
                self._complete([self._outcomes.stopped(lease) for lease in jobs])
                raise
            self._sent += jobs
            self._context.counters.add("jobs_sent", len(jobs))
        return len(leases)

    def _refusal(self, lease: Lease) -> Completion | None:
        """Returns how a URL ends that is not sent: one with a secret in it goes into no topic."""
        if self._outcomes.has_died_too_often(lease):
            return self._outcomes.crashed(lease, f"crawlers ended {lease.attempts - 1} times during its visit")
        try:
            reason = may_crawl(parse_url(lease.url), self._context.settings)
        except UrlError as error:
            return self._outcomes.of_error(lease, error)
        return self._outcomes.of_error(lease, RefusedError(reason)) if reason else None

    def _complete(self, completions: Sequence[Completion]) -> None:
        with self._outcomes.together():
            for completion in completions:
                self._outcomes.complete(completion)
