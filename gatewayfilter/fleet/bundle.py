"""The bundle: manual rules and policy items of a publisher that its followers take over, as JSON.

A bundle comes from a signed manifest; it is checked nevertheless, so that a rule that this version cannot read is refused before
anything of it is in force.
"""

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from gatewayfilter.engine.state.manual_rules import MAX_PATTERN_LENGTH, compile_pattern
from gatewayfilter.errors import FleetError, RuleError
from gatewayfilter.fleet.manifest import LARGEST_BUNDLE
from gatewayfilter.model import (
    APPROVED,
    FLEET,
    FLEET_GROUPS,
    FLEET_LOCKED,
    Client,
    EntryKind,
    Group,
    ListAction,
    ManualRule,
    Policy,
    PolicyItem,
    PolicySet,
    Quota,
    Schedule,
    from_record,
    to_record,
)
from gatewayfilter.settings import FleetSettings, Shared

ALL: Final = "*"
MOST_RULES: Final = 200_000
MOST_ITEMS: Final = 20_000
_MOST_COMMENT: Final = 2_000
_MOST_SCOPE: Final = 200
_MOST_TEXT: Final = 10_000
_LATEST: Final = 253_402_300_799.0
"""The end of the year 9999: times after it have no date."""
_SHARED_ITEMS: Final = (Group, Policy, Schedule, Quota)


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a publisher shares besides lists.

    Attributes:
        rules: in the groups `FLEET` and `FLEET_LOCKED`; their numbers are 0.
        items: groups, policies, schedules, quotas, and clients if they are shared.
        locked: names of policies and groups that followers cannot change.
    """

    rules: tuple[ManualRule, ...] = ()
    items: tuple[PolicyItem, ...] = ()
    locked: frozenset[str] = frozenset()

    def is_locked(self, item: PolicyItem) -> bool:
        """Returns whether a follower cannot change an item; schedules and quotas are locked with their policy."""
        name = item.policy if isinstance(item, Schedule | Quota) else item.name
        return not isinstance(item, Client) and (ALL in self.locked or name in self.locked)


def shared_bundle(rules: Iterable[ManualRule], policies: PolicySet, settings: FleetSettings) -> Bundle:
    """Returns what a publisher shares by its settings.

    Rules of approved requests stay, and so do rules for clients that do not travel.
    """
    share = settings.share
    kinds: tuple[type, ...] = _SHARED_ITEMS if Shared.POLICIES in share else ()
    kinds += (Client,) if Shared.CLIENTS in share else ()
    scopes = {f"group:{name}" for name in policies.groups} if Shared.POLICIES in share else set()
    scopes |= {f"client:{name}" for name in policies.clients} if Shared.CLIENTS in share else set()
    shared = [
        rule
        for rule in (rules if Shared.RULES in share else ())
        if rule.group not in {APPROVED, *FLEET_GROUPS} and rule.enabled and (not rule.scope or rule.scope in scopes)
    ]
    locked = frozenset(settings.locked_groups)
    return Bundle(
        tuple(_as_fleet_rule(rule, locked=ALL in locked or rule.group in locked) for rule in shared),
        tuple(item for item in policies if isinstance(item, kinds)),
        frozenset(settings.locked_policies),
    )


def _as_fleet_rule(rule: ManualRule, *, locked: bool) -> ManualRule:
    group = FLEET_LOCKED if locked else FLEET
    return ManualRule(
        0, rule.action, rule.kind, rule.pattern, rule.comment, group, rule.expires_at, enabled=True, scope=rule.scope
    )


def write_bundle(bundle: Bundle) -> bytes:
    """Returns the bundle's file; equal bundles have equal files."""
    rules = sorted(
        [rule.action, rule.kind, rule.pattern, rule.comment, rule.group == FLEET_LOCKED, rule.expires_at or 0, rule.scope]
        for rule in bundle.rules
    )
    items = sorted((to_record(item) for item in bundle.items), key=lambda record: (str(record["kind"]), str(record["name"])))
    document = {"rules": rules, "items": items, "locked": sorted(bundle.locked)}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode("utf-8", "replace")


def read_bundle(data: bytes) -> Bundle:
    """Returns the bundle of a file.

    Raises:
        FleetError: it cannot be used; with the reason.
    """
    if len(data) > LARGEST_BUNDLE:
        raise FleetError("the publisher's rules are too long")
    try:
        document = json.loads(data)
        rows, records = document["rules"], document["items"]
        if len(rows) > MOST_RULES or len(records) > MOST_ITEMS:
            raise FleetError("the publisher has too many rules or policies")
        rules = tuple(map(_rule, rows))
        items = tuple(from_record(_plain(record)) for record in records)
        locked = frozenset(str(name)[:200] for name in document["locked"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        why = f": {error}" if isinstance(error, RuleError) else ""
        raise FleetError(f"the publisher's rules or policies cannot be read{why}") from error
    if any(not isinstance(item, (*_SHARED_ITEMS, Client)) for item in items):
        raise FleetError("the publisher shares what does not travel: a pause, or the use of a quota")
    return Bundle(rules, items, locked)


def _rule(row: list[Any]) -> ManualRule:
    action, kind, pattern, comment, locked, expires_at, scope = row
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN_LENGTH or not pattern.isprintable():
        raise RuleError("a pattern has no printable characters, or too many")
    if not isinstance(scope, str) or len(scope) > _MOST_SCOPE or not scope.isprintable():
        raise RuleError("the scope of a rule has no printable characters, or too many")
    if scope and scope.partition(":")[0] not in {"client", "group"}:
        raise RuleError("a rule is for neither a client nor a group")
    found = ListAction(action)
    compile_pattern(EntryKind(kind), pattern, allows=found is ListAction.ALLOW)
    group = FLEET_LOCKED if locked else FLEET
    until = float(expires_at)
    if not 0 <= until <= _LATEST:
        raise RuleError("the end of a rule is no date")
    text = "".join(mark for mark in str(comment)[:_MOST_COMMENT] if mark.isprintable())
    return ManualRule(0, found, EntryKind(kind), pattern, text, group, until or None, enabled=True, scope=scope)


def _plain(value: Any) -> Any:
    """Returns a JSON value whose texts have no control characters but line ends and tabs, and a bounded length."""
    if isinstance(value, str):
        return "".join(mark for mark in value[:_MOST_TEXT] if mark in "\n\t" or unicodedata.category(mark) not in {"Cc", "Cs"})
    if isinstance(value, list):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(name): _plain(part) for name, part in value.items()}
    return value
