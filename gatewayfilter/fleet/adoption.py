"""Adoption: puts the rules and policies of a publisher into a follower's database, beside those of its own people.

They take effect by the change feed, as any change does, and commands and pages show them. Rules are kept in groups of their own.
A policy item that a local person changed is a local exception and stays, unless the publisher locked it: the digests of what was
adopted tell the two apart.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gatewayfilter.fleet.bundle import Bundle
from gatewayfilter.interfaces import ListStore, PolicyStore
from gatewayfilter.model import FLEET_GROUPS, ManualRule, PolicyItem, PolicySet, kind_of_item, to_record


@dataclass(frozen=True, slots=True)
class Adoption:
    """The outcome of an adoption.

    Attributes:
        items: for each adopted policy item, `kind:name`, the digest of the publisher's version.
        exceptions: items that stay as local people have changed them.
        changed: number of rules and items that were added, changed or removed.
    """

    items: Mapping[str, str]
    exceptions: tuple[str, ...]
    changed: int


class Adopter:
    """Adopts bundles.

    Args:
        lists: of the manual rules.
        policies: of the policy items.
    """

    def __init__(self, lists: ListStore, policies: PolicyStore) -> None:
        self._lists = lists
        self._policies = policies

    def adopt(self, bundle: Bundle, before: Mapping[str, str], now: float) -> Adoption:
        """Brings rules and policies to those of a bundle.

        Args:
            bundle: the publisher's.
            before: `Adoption.items` of the last adoption.
            now: Unix seconds.

        Raises:
            PolicyError: the policies would contradict local ones; nothing was changed.
            StoreError: the database cannot be written.
        """
        plan = _Plan(bundle, before)
        if plan.steps(self._policies.read()):
            self._policies.change(plan.steps, now)
        exceptions = plan.exceptions(self._policies.read())
        changed = plan.changed + self._adopt_rules(bundle.rules)
        return Adoption(plan.adopted(), exceptions, changed)

    def _adopt_rules(self, rules: Iterable[ManualRule]) -> int:
        wanted = {_identity(rule): rule for rule in rules}
        present = {_identity(rule): rule for rule in self._lists.rules() if rule.group in FLEET_GROUPS}
        gone = [rule for identity, rule in present.items() if identity not in wanted]
        new = [rule for identity, rule in wanted.items() if _content(rule) != _content(present.get(identity))]
        if new:
            self._lists.add_rules(new)
        for rule in gone:
            self._lists.remove_rule(rule.rule_id)
        return len(new) + len(gone)


class _Plan:
    """The steps from the policy items of a follower to those with a bundle's.

    Attributes:
        changed: number of the steps that were returned last.
    """

    changed: int

    def __init__(self, bundle: Bundle, before: Mapping[str, str]) -> None:
        self._bundle = bundle
        self._before = before
        self._wanted = {_key(item): item for item in bundle.items}

    def steps(self, policies: PolicySet) -> list[tuple[PolicyItem, bool]]:
        """Returns pairs of an item and whether it is put (else removed)."""
        present = {_key(item): item for item in policies}
        found: list[tuple[PolicyItem, bool]] = []
        for key, item in self._wanted.items():
            local = present.get(key)
            if (local is None or not self._is_exception(key, local)) and local != item:
                found.append((item, True))
        used = _named(item for key, item in present.items() if key not in self._before or key in self._wanted)
        for key, digest in self._before.items():
            old = present.get(key)
            if key not in self._wanted and old is not None and _digest(old) == digest and key not in used:
                found.append((old, False))
        self.changed = len(found)
        return found

    def exceptions(self, policies: PolicySet) -> tuple[str, ...]:
        """Returns the items that differ from the publisher's."""
        present = {_key(item): item for item in policies}
        return tuple(sorted(key for key, item in self._wanted.items() if present.get(key) != item))

    def adopted(self) -> dict[str, str]:
        """Returns the digests of the publisher's items."""
        return {key: _digest(item) for key, item in self._wanted.items()}

    def _is_exception(self, key: str, local: PolicyItem) -> bool:
        """Returns whether a local item is of a local person: it was there before, or was changed since its adoption."""
        return not self._bundle.is_locked(self._wanted[key]) and self._before.get(key) != _digest(local)


def _named(items: Iterable[PolicyItem]) -> set[str]:
    """Returns the groups and policies that items refer to, as `kind:name`."""
    found: set[str] = set()
    for item in items:
        record = to_record(item)
        found |= {f"{kind}:{record[kind]}" for kind in ("group", "policy") if record.get(kind)}
        if record.get("effect") == "use-policy":
            found.add(f"policy:{record['target']}")
    return found


def _key(item: PolicyItem) -> str:
    return f"{kind_of_item(item)}:{item.name}"


def _digest(item: PolicyItem) -> str:
    return hashlib.sha256(json.dumps(to_record(item), sort_keys=True).encode()).hexdigest()[:32]


def _identity(rule: ManualRule) -> tuple[str, str, str, str]:
    return rule.kind, rule.pattern, rule.group, rule.scope


def _content(rule: ManualRule | None) -> tuple[object, ...]:
    return () if rule is None else (rule.action, rule.comment, rule.expires_at, rule.enabled)
