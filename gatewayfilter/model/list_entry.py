"""Lists and their entries: sources, manual rules, learned entries, and the changes of them that the change feed carries."""

from dataclasses import dataclass
from enum import StrEnum

from gatewayfilter.renamed_codes import current_code


class ListAction(StrEnum):
    """What being on a list means. `splice`: connections to these hosts pass through unread; it says nothing of single URLs."""

    BLOCK = "block"
    ALLOW = "allow"
    SPLICE = "splice"


class EntryKind(StrEnum):
    """How an entry's pattern is read; the first four have a list key (urls.py), the last two are tried one by one."""

    URL = "url"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"
    WILDCARD = "wildcard"
    REGEX = "regex"


@dataclass(frozen=True, slots=True)
class Source:
    """A list as verdicts name it: a subscription, a bundled list, or the learner's entries of one category.

    Attributes:
        name: unique, as in `source status`; learned entries are `learned:<category>`.
        action: what its entries mean; of a `splice` list only host and domain entries count. Adblock lists are always
            `block`; their exceptions are their own affair.
        category: what its entries are.
    """

    name: str
    action: ListAction = ListAction.BLOCK
    category: str = ""
    learned: bool = False


@dataclass(frozen=True, slots=True)
class ManualRule:
    """An entry that a person made. It outranks every list; allow outranks block.

    Attributes:
        rule_id: the database's number.
        pattern: canonical for url, prefix, host, domain (a list key); as typed for wildcard and regex (without slashes).
        group: the name under which entries are switched on and off together, `""` for none.
        expires_at: Unix seconds, `None` for never.
        enabled: whether it counts; one that is switched off is kept.
    """

    rule_id: int
    action: ListAction
    kind: EntryKind
    pattern: str
    comment: str = ""
    group: str = ""
    expires_at: float | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class LearnedEntry:
    """What the crawler learned of one URL; a block entry expires and is checked again.

    Attributes:
        key: a list key (urls.py), nearly always of the url kind.
        url: the URL that was judged, for people.
        detail: `Classification.summary()`.
        created_at, expires_at: Unix seconds.
    """

    key: str
    action: ListAction
    category: str
    url: str
    detail: str
    created_at: float
    expires_at: float


class ChangeKind(StrEnum):
    """What the change feed carries."""

    MANUAL_ADDED = "manual-added"
    MANUAL_REMOVED = "manual-removed"
    LEARNED_ADDED = "learned-added"
    LEARNED_REMOVED = "learned-removed"

    @classmethod
    def _missing_(cls, value: object) -> "ChangeKind | None":
        return next((kind for kind in cls if kind == current_code(str(value))), None)


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the change feed: `seq` is monotonic; exactly one of the two entries is set.

    A removal carries the entry that left.
    """

    seq: int
    kind: ChangeKind
    manual: ManualRule | None = None
    learned: LearnedEntry | None = None
