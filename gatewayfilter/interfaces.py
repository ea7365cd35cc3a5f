"""Where rooms meet: the protocols that siblings use of each other, joined in `wiring/`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Protocol

from gatewayfilter.model import (
    Change,
    Classification,
    EntryKind,
    Explanation,
    HostVerdict,
    LearnedEntry,
    ListAction,
    LogRecord,
    PersonRule,
    Request,
    RequestChange,
    ResponseChange,
    Verdict,
)
from gatewayfilter.urls import Url


class Decide(Protocol):
    """The decision as the proxy, `check` and `match` use it. Pure: no I/O, no lock."""

    def decide(self, request: Request) -> Verdict:
        """Returns the verdict; never raises for any request that could be built."""
        ...

    def explain(self, request: Request) -> Explanation:
        """Returns every decider's answer and the verdict that `decide` would give."""
        ...


class DecideHost(Protocol):
    """The decision at the first sight of a connection, when only the host's name is known. Pure: no I/O, no lock."""

    def decide_host(self, host: str, client: str = "") -> HostVerdict:
        """Returns deny, splice or intercept for a host name or address literal; never raises."""
        ...


class ChangeTraffic(Protocol):
    """What Adblock modifiers make of requests that are allowed and of their responses. Pure: no I/O, no lock."""

    def change_request(self, request: Request, headers: Mapping[str, str]) -> RequestChange | None:
        """Returns what to change before the request goes out, `None` for nothing; header names are lower case."""
        ...

    def change_response(
        self, request: Request, status: int, headers: Mapping[str, str], address: str = ""
    ) -> ResponseChange | None:
        """Returns what to change in the response, `None` for nothing.

        Args:
            request: what was asked.
            status: HTTP status.
            headers: of the response, lower-case names.
            address: of the server that answers, `""` when unknown.
        """
        ...


@dataclass(frozen=True, slots=True)
class OwnRequest:
    """A request for a page of the filter itself.

    Attributes:
        url: what was asked for.
        method: upper case.
        headers: lower-case name → value, the first of repeated ones.
        client: address of the asking device, `""` when unknown.
        local: the address and port of ours that it is connected to; in transparent mode those it wanted to reach.
    """

    url: Url
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    client: str = ""
    local: tuple[str, int] = ("", 0)


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """What the filter says for itself: status, headers (lower-case names) and body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class OwnPages(Protocol):
    """The filter's own pages, which it answers instead of any origin. Pure: no I/O, no lock."""

    def answers(self, url: Url) -> bool:
        """Returns whether this URL is one of ours; cheap, it is asked for every request and before any decision."""
        ...

    def respond(self, request: OwnRequest) -> OwnAnswer:
        """Returns the answer to a request that `answers` took."""
        ...


class Priority(IntEnum):
    """How urgent a URL is in the frontier: the smaller, the sooner."""

    MANUAL = 0
    VISIT = 10
    RECHECK = 50
    LINK = 100


@dataclass(frozen=True, slots=True)
class Offer:
    """A URL for the frontier.

    Attributes:
        url: canonical text.
        priority: see `Priority`.
        not_before: Unix seconds before which it is not leased.
    """

    url: str
    priority: int = Priority.VISIT
    not_before: float = 0.0


@dataclass(frozen=True, slots=True)
class Lease:
    """A URL that a crawler works on until `expires_at` (Unix seconds); after that anybody may take it again.

    Attributes:
        token: proves ownership when the lease is given back.
        attempts: how often it was leased, this time included.
    """

    url: str
    priority: int
    attempts: int
    token: str
    expires_at: float


class QueueState(StrEnum):
    """Where a URL of the frontier stands."""

    WAITING = "waiting"
    LEASED = "leased"
    RESTING = "resting"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class QueuedUrl:
    """One row of `queue show`."""

    url: str
    priority: int
    state: QueueState
    attempts: int
    not_before: float
    error: str


class OfferSink(Protocol):
    """Takes URLs that nobody has an opinion on. Never waits, never raises: full means drop and count."""

    def offer(self, offer: Offer) -> bool:
        """Returns whether it was taken."""
        ...


class Frontier(Protocol):
    """The priority queue of URLs to crawl. At least once: a lease that runs out is handed out again."""

    def add(self, offers: Iterable[Offer], now: float) -> int:
        """Adds URLs; one that is waiting already keeps the more urgent priority. Returns how many were new."""
        ...

    def lease(self, limit: int, lease_s: float, now: float) -> list[Lease]:
        """Returns up to `limit` URLs, the most urgent first, oldest first among equals."""
        ...

    def done(self, lease: Lease, rest_until: float = 0.0) -> bool:
        """Takes a finished URL out, or lets it rest: until then (Unix seconds) adding it again does nothing.

        Returns False when the lease is no longer ours.
        """
        ...

    def retry(self, lease: Lease, not_before: float, error: str) -> bool:
        """Puts a failed URL back. Returns False when the lease is no longer ours."""
        ...

    def bury(self, lease: Lease, error: str) -> bool:
        """Moves a URL to the dead letters. Returns False when the lease is no longer ours."""
        ...

    def stats(self, now: float) -> dict[str, int]:
        """Returns counts by state: `waiting`, `due` (waiting and may be leased now), `leased`, `resting`, `dead`."""
        ...

    def show(self, limit: int, state: QueueState | None = None) -> list[QueuedUrl]:
        """Returns rows, the most urgent first."""
        ...

    def revive(self) -> int:
        """Puts all dead letters back to waiting. Returns how many."""
        ...

    def clear(self) -> int:
        """Empties the queue, leased and dead URLs included. Returns how many."""
        ...


SITE_SLOTS = 1024
"""Sites fall into so many slots; a crawler of several leases those that are its own."""


class SharedFrontier(Frontier, Protocol):
    """A frontier that several crawlers lease from, each its own sites."""

    def lease(self, limit: int, lease_s: float, now: float, slots: Sequence[int] | None = None) -> list[Lease]:
        """Returns up to `limit` URLs as `Frontier.lease` does, of sites in these slots alone; `None` for all."""
        ...


class Crawlers(Protocol):
    """Which crawlers are alive."""

    def beat(self, name: str, now: float) -> None:
        """Says that a crawler is alive now (Unix seconds)."""
        ...

    def alive(self, since: float) -> list[str]:
        """Returns the names of those that said so since then (Unix seconds), in order."""
        ...

    def leave(self, name: str) -> bool:
        """Says that a crawler ends. Returns False when it was not known."""
        ...


class ChangeFeed(Protocol):
    """The monotonic sequence of list changes that proxy workers follow."""

    def last_seq(self) -> int:
        """Returns the newest sequence number, 0 for none."""
        ...

    def read(self, after: int, limit: int = 1000) -> list[Change]:
        """Returns the changes with `seq > after`, in order."""
        ...


class PublisherFeed(ChangeFeed, Protocol):
    """The change feed as a publisher reads it: in bulk, and sure that it is the one that the last snapshot was made from."""

    def learned_between(self, after: int, up_to: int) -> dict[str, LearnedEntry | None]:
        """Returns what became of learned entries in steps `after < seq <= up_to`: key → as it is now, `None` when gone."""
        ...

    def mark(self, seq: int) -> str:
        """Returns a text for the step with this number by which it is known again, `""` when there is no such step.

        A database that was put back to an earlier state uses numbers again, for other steps. The mark of 0 is that of a feed
        which has forgotten nothing yet.
        """
        ...


class ListStore(Protocol):
    """People's rules and learned entries. Each change and its step in the feed are one transaction."""

    def add_rule(
        self,
        action: ListAction,
        kind: EntryKind,
        pattern: str,
        *,
        comment: str = "",
        group: str = "",
        expires_at: float | None = None,
        enabled: bool = True,
    ) -> PersonRule:
        """Adds a person's rule, or replaces all else of the one with the same kind, pattern and group."""
        ...

    def add_rules(self, rules: Sequence[PersonRule]) -> int:
        """Adds many at once (their `rule_id` does not count), in one transaction. Returns how many are new or changed."""
        ...

    def switch_rules(self, rule_ids: Sequence[int], *, enabled: bool) -> int:
        """Switches rules on or off, in one transaction. Returns how many were not so already."""
        ...

    def remove_rule(self, rule_id: int) -> bool:
        """Removes a rule. Returns False when there was none."""
        ...

    def rules(self) -> list[PersonRule]:
        """Returns all rules, oldest first."""
        ...

    def put_learned(self, entries: Sequence[LearnedEntry]) -> None:
        """Adds or replaces learned entries by key."""
        ...

    def remove_learned(self, keys: Sequence[str]) -> int:
        """Removes learned entries. Returns how many there were."""
        ...

    def learned(self) -> Iterable[LearnedEntry]:
        """Yields all learned entries, expired ones included."""
        ...

    def find_learned(self, keys: Sequence[str]) -> list[LearnedEntry]:
        """Returns the entries with these keys."""
        ...

    def expired_learned(self, now: float, limit: int = 1000) -> list[LearnedEntry]:
        """Returns entries past their expiry, the longest expired first."""
        ...

    def compact_feed(self, up_to: int) -> int:
        """Forgets feed steps with `seq <= up_to`, which a published snapshot holds. Returns how many."""
        ...


@dataclass(frozen=True, slots=True)
class HostPages:
    """What was judged of a host's pages.

    Attributes:
        pages: how many have different texts.
        harmful: category → how many of them.
    """

    pages: int
    harmful: dict[str, int]


class VerdictStore(Protocol):
    """What the classifier said of each URL, with its evidence."""

    def record(self, url: str, classification: Classification, judged_at: float) -> None:
        """Keeps the newest judgement of a URL (canonical text)."""
        ...

    def find(self, url: str) -> tuple[Classification, float] | None:
        """Returns the judgement and when it was made (Unix seconds)."""
        ...

    def host_pages(self, host: str) -> HostPages:
        """Returns what was judged of this host's pages; many addresses of one text count as one page."""
        ...


class EvidenceBook(Protocol):
    """Where the pages behind verdicts lie in the archive."""

    def note_archived(self, url: str, reference: str) -> bool:
        """Notes where the page of a verdict lies. Returns False when there is no verdict of this URL (canonical text)."""
        ...

    def archived(self, url: str) -> str:
        """Returns the reference of the page behind a verdict, `""` for none."""
        ...


class DecisionLog(Protocol):
    """The log of decisions."""

    def write(self, records: Sequence[LogRecord]) -> None:
        """Appends a batch, in one transaction."""
        ...

    def tail(self, limit: int, after: int = 0) -> list[tuple[int, LogRecord]]:
        """Returns the newest `limit` records with an id above `after`, oldest first, each with its id."""
        ...

    def purge(self, before: float, keep: int | None = None) -> int:
        """Removes records older than `before` (Unix seconds), and all but the newest `keep`. Returns how many."""
        ...


@dataclass(frozen=True, slots=True)
class Page:
    """A fetched page.

    Attributes:
        url: what was asked for; `final_url` what answered, after redirects. Both canonical.
        status: HTTP status.
        headers: lower-case names; the last of repeated ones.
        body: decoded (content-encoding removed), bounded by the fetcher.
        truncated: the body was cut at the limit.
        elapsed_ms: from connect to the last byte.
    """

    url: str
    final_url: str
    status: int
    headers: dict[str, str]
    body: bytes
    truncated: bool = False
    elapsed_ms: int = 0

    @property
    def content_type(self) -> str:
        """The media type without parameters, lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class PageArchive(Protocol):
    """Keeps fetched pages on disk: the buffer between fetching and scanning, and the evidence for people."""

    def keep(self, page: Page, fetched_at: float) -> str:
        """Appends a page; returns the reference under which it is found again.

        Raises:
            OSError: it could not be written.
        """
        ...

    def read(self, reference: str) -> Page | None:
        """Returns a page, `None` when it has been removed to make room or its segment is damaged."""
        ...

    def pin(self, reference: str, until: float) -> None:
        """Keeps a page that is evidence at least until then (Unix seconds), whatever the size cap says."""
        ...


class Classify(Protocol):
    """Judges a page. CPU-bound; bounded in time by the bound on the body."""

    def classify_page(self, page: Page) -> Classification:
        """Judges a fetched page by its bytes, headers and URL."""
        ...

    def classify_text(self, text: str) -> Classification:
        """Judges plain text."""
        ...


@dataclass(frozen=True, slots=True)
class PassedResponse:
    """A response that passed the proxy, as it came over the wire.

    Attributes:
        url: what was asked for, canonical.
        status: HTTP status.
        headers: lower-case names; the last of repeated ones.
        body: with its content encoding still on it, bounded by the proxy.
        public: anybody who asks gets the same, and may keep it: what is found out may go on a list.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    public: bool


class PassedSink(Protocol):
    """Takes public pages as they pass, so that nobody has to fetch them again. Never waits, never raises."""

    def passed(self, response: PassedResponse) -> bool:
        """Returns whether it was taken; a page that was not is offered to the frontier instead."""
        ...


class Inspect(Protocol):
    """Judges a page while its client waits, outside of the event loop."""

    async def inspect(self, response: PassedResponse) -> Classification | None:
        """Returns the judgement, `None` for a page of a kind that is not classified.

        Raises:
            InspectError: there is none in time.
        """
        ...


@dataclass(frozen=True, slots=True)
class UnblockRequest:
    """Somebody who met the block page asks for the page to be unblocked.

    Attributes:
        url: canonical text of what was blocked.
        client: who asks, as `log.hash_clients` writes it.
        comment: what they say, bounded.
        at: Unix seconds of the newest request; `times` how often it was asked.
        request_id: the database's number, 0 before it has one.
    """

    url: str
    client: str
    reason: str
    source_list: str
    rule: str
    category: str
    comment: str
    at: float
    times: int = 1
    request_id: int = 0


class UnblockRequests(Protocol):
    """What users ask the operator for. One open request a URL and client; bounded."""

    def ask(self, requests: Sequence[UnblockRequest]) -> int:
        """Records requests; asking again counts up. Returns how many are new."""
        ...

    def open_requests(self, limit: int = 1000) -> list[UnblockRequest]:
        """Returns what nobody has settled yet, the newest first."""
        ...

    def settle(self, request_id: int) -> UnblockRequest | None:
        """Takes a request off the list, and the same page's by others. Returns it, `None` when there was none."""
        ...


class PageSink(Protocol):
    """What the crawler hands a fetched page to."""

    def page(self, page: Page) -> Classification | None:
        """Classifies the page and grows the lists. CPU-bound and writes to the database: call it off the event loop.

        Returns `None` for a page of a kind that is not classified (an image, an error page). Raises nothing that is the
        page's fault; raises `StoreError` when the verdict could not be kept, so that the URL is tried again.
        """
        ...
