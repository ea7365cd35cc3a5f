"""What takes a change back, as JSON values for the audit log: states before and after, or numbers of decisions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gatewayfilter.interfaces import BypassLink, UnblockRequest
from gatewayfilter.model import (
    Change,
    ChangeKind,
    EntryKind,
    ListAction,
    ManualRule,
    Pause,
    PolicyItem,
    PolicySet,
    ReviewTask,
    Spent,
    kind_of_item,
    to_record,
)

LISTS = "lists"
REQUESTS = "requests"
REVIEWS = "reviews"
LINK = "link"
EXTRACTION = "extraction"
SOURCES = "sources"

type Inverse = dict[str, Any]


def inverse_of_changes(before: PolicySet, changes: Iterable[Change], now: float) -> Inverse | None:
    """Returns the inverse of changes of manual rules and policy items, `None` when there are none.

    Args:
        before: the policy items before the changes.
        changes: of the feed, in order; those of learned entries are passed over.
        now: Unix seconds: pauses that have ended by then were not removed by a person.
    """
    rules: dict[int, list[ManualRule | None]] = {}
    items: dict[tuple[str, str], list[PolicyItem | None]] = {}
    for change in changes:
        if change.manual is not None:
            rule, added = change.manual, change.kind is ChangeKind.MANUAL_ADDED
            rules.setdefault(rule.rule_id, [None if added else rule, None])[1] = rule if added else None
        elif change.policy is not None:
            item, put = change.policy, change.kind is ChangeKind.POLICY_PUT
            key = kind_of_item(item), item.name
            items.setdefault(key, [item_of(before, *key), None])[1] = item if put else None
    changed = [pair for pair in items.values() if pair[0] != pair[1] and not _has_ended(pair, now)]
    changed_rules = [pair for pair in rules.values() if pair[0] != pair[1]]
    if not changed and not changed_rules:
        return None
    return {
        "kind": LISTS,
        "rules": [[None if rule is None else asdict(rule) for rule in pair] for pair in changed_rules],
        "items": [[None if item is None else to_record(item) for item in pair] for pair in changed],
    }


def inverse_of_approval(requests: Sequence[UnblockRequest]) -> Inverse:
    """Returns the inverse of an approval of requests: they wait again."""
    return {"kind": REQUESTS, "decided": {str(request.request_id): request.decided_at for request in requests}}


def inverse_of_reviews(tasks: Sequence[ReviewTask]) -> Inverse:
    """Returns the inverse of decisions on review tasks."""
    return {"kind": REVIEWS, "decided": {str(task.task_id): task.decided_at for task in tasks}}


def inverse_of_link(link: BypassLink) -> Inverse:
    """Returns the inverse of a bypass link: it is revoked."""
    return {"kind": LINK, "number": link.link_id}


def inverse_of_extraction(changed: Iterable[tuple[str, int, int]]) -> Inverse:
    """Returns the inverse of changes of extraction rules: name, version in use before and after, 0 for none."""
    return {"kind": EXTRACTION, "rules": [list(change) for change in changed]}


def item_of(policies: PolicySet, kind: str, name: str) -> PolicyItem | None:
    """Returns a policy item by kind and name."""
    found: Mapping[str, Mapping[str, PolicyItem]] = {
        "client": policies.clients,
        "group": policies.groups,
        "policy": policies.policies,
        "schedule": policies.schedules,
        "quota": policies.quotas,
        "pause": policies.pauses,
        "spent": policies.spent,
    }
    return found[kind].get(name)


def rule_of(document: Mapping[str, Any]) -> ManualRule:
    """Returns the rule of an inverse."""
    return ManualRule(**{**document, "action": ListAction(document["action"]), "kind": EntryKind(document["kind"])})


def _has_ended(pair: Sequence[PolicyItem | None], now: float) -> bool:
    before, after = pair
    return isinstance(before, Pause | Spent) and after is None and before.until <= now
