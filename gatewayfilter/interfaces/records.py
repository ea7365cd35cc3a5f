"""What is kept: lists and their changes, verdicts, evidence, decisions, wishes of visitors."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gatewayfilter.model import Change, Classification, EntryKind, LearnedEntry, ListAction, LogRecord, ManualRule


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
    """Manual rules and learned entries. Each change and its step in the feed are one transaction."""

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
    ) -> ManualRule:
        """Adds a manual rule, or replaces all else of the one with the same kind, pattern and group."""
        ...

    def add_rules(self, rules: Sequence[ManualRule]) -> int:
        """Adds many at once (their `rule_id` does not count), in one transaction. Returns how many are new or changed."""
        ...

    def switch_rules(self, rule_ids: Sequence[int], *, enabled: bool) -> int:
        """Switches rules on or off, in one transaction. Returns how many were not so already."""
        ...

    def remove_rule(self, rule_id: int) -> bool:
        """Removes a rule. Returns False when there was none."""
        ...

    def rules(self) -> list[ManualRule]:
        """Returns all rules, oldest first."""
        ...

    def put_learned(self, entries: Sequence[LearnedEntry], *, unless: Callable[[LearnedEntry], bool] = ...) -> list[LearnedEntry]:
        """Adds or replaces learned entries by key; one for which `unless` is true stays as it is. Returns those that stayed."""
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

    def surplus_learned(self, most: int, limit: int = 1000) -> list[LearnedEntry]:
        """Returns entries beyond the `most` that may stay, at most `limit`: those that expire first."""
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
    """The verdicts of the classifier by URL, with their evidence."""

    def record(self, url: str, classification: Classification, judged_at: float, *, counts: bool = False) -> None:
        """Keeps the newest judgement of a URL (canonical text); `counts` as `counting` below."""
        ...

    def record_all(self, judged: Mapping[str, Classification], judged_at: float, counting: Collection[str] = frozenset()) -> None:
        """Keeps the newest judgements of several URLs (canonical texts), in one transaction.

        Args:
            judged: URL → judgement.
            judged_at: Unix seconds.
            counting: those that count for their hosts; of the others those whose text counted before.
        """
        ...

    def find(self, url: str) -> tuple[Classification, float] | None:
        """Returns the judgement and when it was made (Unix seconds)."""
        ...

    def host_pages(self, host: str) -> HostPages:
        """Returns what was judged of those pages of a host that count; many addresses of one text, or one path, are one page."""
        ...


class EvidenceStore(Protocol):
    """Where the pages behind verdicts lie in the archive."""

    def note_archived(self, url: str, reference: str) -> bool:
        """Notes where the page of a verdict lies. Returns False when there is no verdict of this URL (canonical text)."""
        ...

    def archived(self, url: str) -> str:
        """Returns the reference of the page behind a verdict, `""` for none."""
        ...


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of a page, by its origin (RFC 9110 §8.8).

    Attributes:
        url: that answered, canonical text: the validators are its alone.
        etag: with its quotes, `""` for none.
        last_modified: as it was sent, `""` for none.
        contents: fingerprints of the page's content, as their writer encoded them; empty where none are used.
    """

    url: str
    etag: str
    last_modified: str
    contents: bytes = b""


class ValidatorStore(Protocol):
    """The validators of pages that were judged."""

    def note(self, url: str, validators: Validators | None, judged_by: str, fetched_at: float) -> None:
        """Keeps those of a page (by the requested URL) that was fetched whole; `None` forgets them."""
        ...

    def find(self, urls: Sequence[str], judged_by: str, since: float) -> dict[str, Validators]:
        """Returns those of pages that were judged by these words and fetched whole since then (Unix seconds)."""
        ...


class DecisionWriter(Protocol):
    """Takes decisions for the log."""

    def write(self, records: Sequence[LogRecord]) -> None:
        """Appends a batch, in one transaction."""
        ...


class DecisionLog(DecisionWriter, Protocol):
    """The log of decisions."""

    def tail(self, limit: int, after: int = 0) -> list[tuple[int, LogRecord]]:
        """Returns the newest `limit` records with an id above `after`, oldest first, each with its id."""
        ...

    def purge(self, before: float) -> int:
        """Removes records older than `before` (Unix seconds). Returns how many."""
        ...

    def shrink(self, most_bytes: float) -> int:
        """Removes the oldest records until the rest take `most_bytes` on disk, estimated. Returns how many."""
        ...


@dataclass(frozen=True, slots=True)
class UnblockRequest:
    """The request of a user who met the block page to unblock the page.

    Attributes:
        url: canonical text of what was blocked.
        client: of the user, as `log.hash_clients` writes it.
        comment: of the user, bounded.
        at: Unix seconds of the newest request; `times` how often it was made.
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


class UnblockRequestStore(Protocol):
    """Takes requests to unblock pages into the database."""

    def ask(self, requests: Sequence[UnblockRequest]) -> int:
        """Records requests; a repeated one is counted. Returns how many are new."""
        ...


class UnblockRequests(UnblockRequestStore, Protocol):
    """What users ask the operator for. One open request a URL and client; bounded."""

    def open_requests(self, limit: int = 1000) -> list[UnblockRequest]:
        """Returns the open requests, the newest first."""
        ...

    def complete(self, request_id: int) -> UnblockRequest | None:
        """Takes a request off the list, and the same page's by others. Returns it, `None` when there was none."""
        ...
