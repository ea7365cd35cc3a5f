"""A frontier and a sink in memory, for the worker's tests."""

import threading
from collections.abc import Iterable, Sequence

from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import CrawlRequest, Lease, Page, QueuedUrl, QueueState
from gatewayfilter.model import Classification


class FakeFrontier:
    """Remembers how each URL ended. Satisfies `interfaces.Frontier`."""

    def __init__(self, *urls: str, priority: int = 10) -> None:
        self.waiting = [CrawlRequest(url, priority) for url in urls]
        self.attempts: dict[str, int] = {}
        self.finished: dict[str, float] = {}
        self.retried: list[tuple[str, float, str]] = []
        self.due_again: dict[str, tuple[float, int]] = {}
        self.buried: dict[str, str] = {}
        self.added: list[CrawlRequest] = []
        self.failing_adds = 0
        self.failing_leases = 0
        self.lease_error: Exception = StoreError("the database is gone")
        self.polls = 0
        self.threads: set[str] = set()

    def add(self, offers: Iterable[CrawlRequest], now: float) -> int:
        if self.failing_adds:
            self.failing_adds -= 1
            raise StoreError("the database is gone")
        new = list(offers)
        self.added += new
        return len(new)

    def lease(self, limit: int, lease_s: float, now: float) -> list[Lease]:
        self.polls += 1
        self.threads.add(threading.current_thread().name)
        if self.failing_leases:
            self.failing_leases -= 1
            raise self.lease_error
        taken, self.waiting = self.waiting[:limit], self.waiting[limit:]
        leases = []
        for offer in taken:
            self.attempts[offer.url] = self.attempts.get(offer.url, 0) + 1
            attempts = self.attempts[offer.url]
            leases.append(Lease(offer.url, offer.priority, attempts, "token", now + lease_s, offer.task, offer.depth))
        return leases

    def done(self, lease: Lease, rest_until: float = 0.0) -> bool:
        self.finished[lease.url] = rest_until
        return True

    def done_all(self, finished: Sequence[tuple[Lease, float]]) -> None:
        for lease, rest_until in finished:
            self.done(lease, rest_until)

    def retry(self, lease: Lease, not_before: float, error: str, *, counted: bool = True) -> bool:
        self.retried.append((lease.url, not_before, error))
        self.attempts[lease.url] -= not counted
        return True

    def again(self, lease: Lease, at: float, priority: int) -> bool:
        self.due_again[lease.url] = (at, priority)
        return True

    def dead_letter(self, lease: Lease, error: str) -> bool:
        self.buried[lease.url] = error
        return True

    def still_held(self, leases: Sequence[Lease]) -> list[Lease]:
        settled = {*self.finished, *self.buried, *self.due_again, *(url for url, _, _ in self.retried)}
        return [lease for lease in leases if lease.url not in settled]

    def stats(self, now: float) -> dict[str, int]:
        return {"waiting": len(self.waiting)}

    def show(self, limit: int, state: QueueState | None = None) -> list[QueuedUrl]:
        return []

    def revive(self) -> int:
        return 0

    def clear(self, task: str | None = None) -> int:
        return 0

    @property
    def settled(self) -> int:
        return len(self.finished) + len(self.retried) + len(self.buried) + len(self.due_again)


HARMLESS = Classification("", 0.0, 20.0)
HARMFUL = Classification("gambling", 42.0, 20.0, charset="utf-8")


class FakeSink:
    """Calls a page harmful when it says casino; skips what is no 2xx text. Satisfies `interfaces.PageSink`."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.error: Exception | None = None
        self.threads: set[str] = set()

    def page(self, page: Page) -> Classification | None:
        self.threads.add(threading.current_thread().name)
        if self.error is not None:
            raise self.error
        self.pages.append(page)
        if page.status != 200 or not page.body:
            return None
        return HARMFUL if b"casino" in page.body else HARMLESS
