"""Stored records: lists and their changes, verdicts, evidence, decisions."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from gatewayfilter.model import (
    Change,
    Classification,
    EntryKind,
    LearnedEntry,
    ListAction,
    LogRecord,
    ManualRule,
    PolicyItem,
    PolicySet,
    QuotaUse,
)


class ChangeFeed(Protocol):
    """The monotonic sequence of list changes that proxy workers follow."""

    def last_seq(self) -> int:
        """Returns the newest sequence number, 0 for none."""
        ...

    def read(self, after: int, limit: int = 1000) -> list[Change]:
        """Returns the changes with `seq > after`, in order."""
        ...


class PublisherFeed(ChangeFeed, Protocol):
    """The change feed for publishers: read in bulk, with a check that it is the feed of the last snapshot."""

    def learned_between(self, after: int, up_to: int) -> dict[str, LearnedEntry | None]:
        """Returns net changes of learned entries in steps `after < seq <= up_to`: key → current entry, `None` when removed."""
        ...

    def mark(self, seq: int) -> str:
        """Returns a text that identifies the step with this number, `""` when there is no such step.

        A database that was restored to an earlier state reuses numbers for other steps. The mark of 0 is that of a feed of which
        nothing was deleted yet.
        """
        ...


@dataclass(frozen=True, slots=True)
class RuleMatches:
    """What an extraction rule has read.

    Attributes:
        pages: that it was for, and that were fetched.
        empty: those of them in which it found nothing.
        last_at: when the last one was read (Unix seconds), 0 for none.
    """

    pages: int = 0
    empty: int = 0
    last_at: float = 0.0

    def plus(self, more: Self) -> Self:
        """Returns both together."""
        return type(self)(self.pages + more.pages, self.empty + more.empty, max(self.last_at, more.last_at))


@dataclass(frozen=True, slots=True)
class RuleQuery:
    """Which manual rules are asked for; what is left out does not narrow it.

    Attributes:
        text: part of the pattern, the comment or the group, whatever its case.
        action: what they do.
        group: their group, `""` for those in none.
        scope: whom they apply to, `""` for those that apply to everybody.
        enabled: whether they are switched on.
    """

    text: str = ""
    action: ListAction | None = None
    group: str | None = None
    scope: str | None = None
    enabled: bool | None = None


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
        scope: str = "",
    ) -> ManualRule:
        """Adds a manual rule, or replaces the one with the same kind, pattern, group and scope."""
        ...

    def add_rules(self, rules: Sequence[ManualRule]) -> int:
        """Adds many at once (their `rule_id` does not count), in one transaction. Returns the number of new or changed ones."""
        ...

    def switch_rules(self, rule_ids: Sequence[int], *, enabled: bool) -> int:
        """Switches rules on or off, in one transaction. Returns the number of changed ones."""
        ...

    def remove_rule(self, rule_id: int) -> bool:
        """Removes a rule. Returns False when there was none."""
        ...

    def rule(self, rule_id: int) -> ManualRule | None:
        """Returns a rule by its number, `None` for none."""
        ...

    def edit_rule(self, rule_id: int, edit: Callable[[ManualRule], ManualRule]) -> ManualRule | None:
        """Changes everything of a rule but its number, in one transaction.

        Args:
            rule_id: its number.
            edit: returns the rule as it is to be for the rule as it is; what it raises leaves everything as it was.

        Returns:
            The rule as it is now, `None` when there is none of this number.

        Raises:
            RuleError: another rule has this kind, pattern, group and scope.
        """
        ...

    def page_of_rules(self, query: RuleQuery, after: int = 0, limit: int = 100) -> list[ManualRule]:
        """Returns rules that a query names, newest first: those numbered below `after` (0: from the newest)."""
        ...

    def count_rules(self, query: RuleQuery) -> int:
        """Returns the number of rules that a query names."""
        ...

    def rules(self) -> list[ManualRule]:
        """Returns all rules, oldest first."""
        ...

    def put_learned(self, entries: Sequence[LearnedEntry], *, unless: Callable[[LearnedEntry], bool] = ...) -> list[LearnedEntry]:
        """Adds or replaces learned entries by key; an existing entry with `unless` true is kept. Returns the kept ones."""
        ...

    def remove_learned(self, keys: Sequence[str]) -> int:
        """Removes learned entries. Returns the number removed."""
        ...

    def learned(self) -> Iterable[LearnedEntry]:
        """Yields all learned entries, expired ones included."""
        ...

    def learned_kinds(self) -> dict[tuple[ListAction, str], int]:
        """Returns the number of learned entries of each action and category, expired ones included."""
        ...

    def learned_with(self, part: str, most: int | None = None) -> list[LearnedEntry]:
        """Returns learned entries in whose URL a text stands, capitals or not; at most `most`."""
        ...

    def blocked_between(self, since: float, until: float, most: int) -> tuple[list[LearnedEntry], int]:
        """Returns the newest learned entries of a time span that block, at most `most`, and the number of all of them."""
        ...

    def find_learned(self, keys: Sequence[str]) -> list[LearnedEntry]:
        """Returns the entries with these keys."""
        ...

    def expired_learned(self, now: float, limit: int = 1000) -> list[LearnedEntry]:
        """Returns expired entries, the longest expired first."""
        ...

    def surplus_learned(self, most: int, limit: int = 1000) -> list[LearnedEntry]:
        """Returns the entries in excess of `most`, at most `limit`: those that expire first."""
        ...

    def compact_feed(self, up_to: int) -> int:
        """Deletes feed steps with `seq <= up_to`, which a published snapshot includes. Returns their number."""
        ...


class PolicyStore(Protocol):
    """Clients, groups, policies, schedules and pauses. Each change and its steps in the feed are one transaction."""

    def read(self) -> PolicySet:
        """Returns all items."""
        ...

    def change(self, edit: Callable[[PolicySet], Sequence[tuple[PolicyItem, bool]]], now: float) -> PolicySet:
        """Changes items, and forgets pauses that have ended. Returns the set afterwards.

        Args:
            edit: returns the steps for the items as they are: pairs of an item and whether it is put (else removed). It may
                raise `PolicyError`.
            now: Unix seconds.

        Raises:
            PolicyError: the items would be inconsistent; nothing was changed.
        """
        ...

    def rename_client(self, name: str, renamed: str) -> PolicySet:
        """Gives a client another name, with its rules, its pause and its use of quotas. Returns the set afterwards.

        Raises:
            PolicyError: there is no such client, or the name is taken.
        """
        ...

    def rename_group(self, name: str, renamed: str) -> PolicySet:
        """Gives a group another name, with its clients, its rules and its pause. Returns the set afterwards.

        Raises:
            PolicyError: there is no such group, it is `default`, or the name is taken.
        """
        ...


class QuotaUsageWriter(Protocol):
    """Writes the use of quotas."""

    def add(self, uses: Sequence[QuotaUse]) -> int:
        """Adds minutes. Returns the number of quotas that are now used up."""
        ...


@dataclass(frozen=True, slots=True)
class HostPages:
    """Classifications of a host's pages, as counts.

    Attributes:
        pages: number of pages with distinct texts.
        harmful: category → number of these pages.
    """

    pages: int
    harmful: dict[str, int]


class VerdictStore(Protocol):
    """The verdicts of the classifier by URL, with their evidence."""

    def record(self, url: str, classification: Classification, judged_at: float, *, counts: bool = False) -> None:
        """Stores the newest classification of a URL (canonical text); `counts` as `counting` below."""
        ...

    def record_all(self, judged: Mapping[str, Classification], judged_at: float, counting: Collection[str] = frozenset()) -> None:
        """Stores the newest classifications of several URLs (canonical texts), in one transaction.

        Args:
            judged: URL → classification.
            judged_at: Unix seconds.
            counting: URLs that count for their hosts; of the others, those with a text that counted before.
        """
        ...

    def find(self, url: str) -> tuple[Classification, float] | None:
        """Returns the classification and its time (Unix seconds)."""
        ...

    def host_pages(self, host: str) -> HostPages:
        """Returns the counts of a host's counting pages; URLs with the same text, or the same path, are one page."""
        ...


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What is known of a page's host without this page.

    Attributes:
        harmful: category → number of other pages that count for the host, with distinct texts and paths.
        harmless: number of its other counting pages without a category.
        known_since: Unix seconds of the oldest verdict on the host that is stored, `None` for none.
        linked: whether the page is in the queue only because a harmful page links to it.
    """

    harmful: dict[str, int]
    harmless: int
    known_since: float | None
    linked: bool


class HostFactStore(Protocol):
    """What the database holds about the host of a page."""

    def facts_of(self, url: str, host: str, text_digest: bytes) -> HostFacts:
        """Returns the facts about a host, without the page of this URL (canonical text) and pages with the same text.

        Raises:
            StoreError: the database refuses.
        """
        ...


class EvidenceStore(Protocol):
    """References from verdicts to pages in the archive."""

    def note_archived(self, url: str, reference: str) -> bool:
        """Stores the reference of a verdict's page. Returns False when there is no verdict of this URL (canonical text)."""
        ...

    def archived(self, url: str) -> str:
        """Returns the reference of the page behind a verdict, `""` for none."""
        ...


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of a page, by its origin (RFC 9110 §8.8).

    Attributes:
        url: after redirects, canonical text; the validators are valid for it only.
        etag: with its quotes, `""` for none.
        last_modified: as it was sent, `""` for none.
        contents: fingerprints of the page's content, as encoded by their writer; empty where none are used.
    """

    url: str
    etag: str
    last_modified: str
    contents: bytes = b""


class ValidatorStore(Protocol):
    """The validators of classified pages."""

    def note(self, url: str, validators: Validators | None, judged_by: str, fetched_at: float) -> None:
        """Stores those of a page (by the requested URL) that was fetched in full; `None` deletes them."""
        ...

    def find(self, urls: Sequence[str], judged_by: str, since: float) -> dict[str, Validators]:
        """Returns those of pages classified with this version of the words and fetched in full since then (Unix seconds)."""
        ...


class DecisionWriter(Protocol):
    """Writes decisions to the log."""

    def write(self, records: Sequence[LogRecord]) -> None:
        """Appends a batch, in one transaction."""
        ...


class DecisionLog(DecisionWriter, Protocol):
    """The log of decisions."""

    def tail(self, limit: int, after: int = 0) -> list[tuple[int, LogRecord]]:
        """Returns the newest `limit` records with an id above `after`, oldest first, each with its id."""
        ...

    def newest(self) -> int:
        """Returns the newest id below which no record can still appear, 0 for an empty log."""
        ...

    def purge(self, before: float) -> int:
        """Removes records older than `before` (Unix seconds). Returns their number."""
        ...

    def purge_clients(self, clients: frozenset[str], before: float | None = None) -> int:
        """Removes the records of clients (addresses as logged, users as `user:NAME`). Returns their number."""
        ...

    def shrink(self, most_bytes: float) -> int:
        """Removes the oldest records until the rest take `most_bytes` on disk, estimated. Returns the number removed."""
        ...
