"""Lists and their entries: sources, manual rules, learned entries, and their changes in the change feed."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatewayfilter.model.policy import PolicyItem
from gatewayfilter.renamed_codes import current_code

APPROVED: Final = "requests"
"""The group of the manual rules of approved requests and bypass links."""
LEARNED_PREFIX: Final = "learned:"
"""Begins the name of the source of learned entries, before their category."""

FLEET: Final = "fleet"
"""The group of the manual rules that a fleet's publisher has made; rules of this machine outrank them."""
FLEET_LOCKED: Final = "fleet-locked"
"""The group of those that outrank the rules of this machine."""
FLEET_GROUPS: Final = frozenset({FLEET, FLEET_LOCKED})


class ListAction(StrEnum):
    """The action of a list. `splice`: connections to these hosts pass through unread; single URLs are not affected."""

    BLOCK = "block"
    ALLOW = "allow"
    SPLICE = "splice"


class EntryKind(StrEnum):
    """The kind of an entry's pattern; the first four have a list key (urls.py), the last two are tried one by one."""

    URL = "url"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"
    WILDCARD = "wildcard"
    REGEX = "regex"


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a list entry: a subscription, a bundled list, or the learner's entries of one category.

    Attributes:
        name: unique, as in `source status`; of learned entries, `LEARNED_PREFIX` and the category.
        action: of its entries; in a `splice` list only host and domain entries count. Adblock lists are always
            `block`; their exceptions are handled within the list.
        category: of its entries.
    """

    name: str
    action: ListAction = ListAction.BLOCK
    category: str = ""
    learned: bool = False


@dataclass(frozen=True, slots=True)
class ManualRule:
    """A manual rule. It outranks every list; allow outranks block.

    Attributes:
        rule_id: the database's number.
        pattern: canonical for url, prefix, host, domain (a list key); as typed for wildcard and regex (no slashes).
        group: name of entries that are switched on and off together, `""` for none.
        expires_at: Unix seconds, `None` for never.
        enabled: whether it is applied; a disabled one is kept.
        scope: whom it applies to: `client:NAME`, `group:NAME`, or `""` for everybody.
    """

    rule_id: int
    action: ListAction
    kind: EntryKind
    pattern: str
    comment: str = ""
    group: str = ""
    expires_at: float | None = None
    enabled: bool = True
    scope: str = ""


@dataclass(frozen=True, slots=True)
class LearnedEntry:
    """A learned entry: the crawler's result for one URL; a block entry expires and is checked again.

    Attributes:
        key: a list key (urls.py), nearly always of the url kind.
        url: the classified URL, for display.
        detail: `Classification.summary()`.
        created_at, expires_at: Unix seconds.
        certainty: that the page is harmful, as in its classification; 1 or 0 by a manual verdict; `None` where none was
            estimated, and for hosts.
    """

    key: str
    action: ListAction
    category: str
    url: str
    detail: str
    created_at: float
    expires_at: float
    certainty: float | None = None


class ChangeKind(StrEnum):
    """The kinds of changes in the change feed."""

    MANUAL_ADDED = "manual-added"
    MANUAL_REMOVED = "manual-removed"
    LEARNED_ADDED = "learned-added"
    LEARNED_REMOVED = "learned-removed"
    POLICY_PUT = "policy-put"
    POLICY_REMOVED = "policy-removed"

    @classmethod
    def _missing_(cls, value: object) -> "ChangeKind | None":
        return next((kind for kind in cls if kind == current_code(str(value))), None)


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the change feed: `seq` is monotonic; exactly one of the three entries is set.

    A removal carries the removed entry.
    """

    seq: int
    kind: ChangeKind
    manual: ManualRule | None = None
    learned: LearnedEntry | None = None
    policy: PolicyItem | None = None
