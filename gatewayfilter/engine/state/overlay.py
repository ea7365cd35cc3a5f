"""The overlay: changes of learned entries and manual rules since the snapshot, in memory. Immutable."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gatewayfilter.engine.state.manual_rules import ManualRules
from gatewayfilter.engine.tables.host_markers import host_of_key, prefix_marker
from gatewayfilter.model import Change, ChangeKind, LearnedEntry, ManualRule, PolicyItem, PolicySet, kind_of_item
from gatewayfilter.urls import digest_of

_NONE: frozenset[bytes] = frozenset()
_NO_POLICIES = PolicySet()


@dataclass(frozen=True, slots=True)
class Overlay:
    """Changes over a snapshot.

    Attributes:
        seq: the newest step of the change feed in it, the snapshot's if there is none.
        rules: the current manual rules, those of the snapshot included.
        learned: digest → the current learned entry, `None` when it was removed. Hides the snapshot's learned entry of that
            digest.
        prefix_netlocs: hosts (with port) under which `learned` has prefix entries.
        parts: host → digests of its URLs and prefixes in `learned`.
        policies: the current clients, groups, policies, schedules and pauses, those of the snapshot included.
        changes: the newest change of each entry, for a next snapshot that does not include it yet.
    """

    seq: int
    rules: ManualRules
    learned: Mapping[bytes, LearnedEntry | None] = field(default_factory=dict)
    prefix_netlocs: frozenset[str] = frozenset()
    parts: Mapping[str, frozenset[bytes]] = field(default_factory=dict)
    changes: Mapping[object, Change] = field(default_factory=dict)
    policies: PolicySet = _NO_POLICIES

    @classmethod
    def over(cls, rules: Iterable[ManualRule], feed_seq: int, policies: PolicySet = _NO_POLICIES) -> "Overlay":
        """Returns the empty overlay of a snapshot with these rules, policies and this step of the change feed."""
        return cls(feed_seq, ManualRules(rules), policies=policies)

    def changed(self, changes: Iterable[Change]) -> "Overlay":
        """Returns the overlay after changes, in the order of the feed; steps that are known already have no effect."""
        changes = sorted((change for change in changes if change.seq > self.seq), key=lambda change: change.seq)
        if not changes:
            return self
        latest = dict(self.changes)
        learned = dict(self.learned)
        prefixes = set(self.prefix_netlocs)
        parts: dict[str, set[bytes]] = {}
        people: dict[object, tuple[ManualRule, bool]] = {}
        items: list[tuple[PolicyItem, bool]] = []
        for change in changes:
            if change.learned is not None:
                entry = change.learned
                digest = digest_of(entry.key)
                added = change.kind is ChangeKind.LEARNED_ADDED
                learned[digest] = entry if added else None
                latest[digest] = change
                if added and prefix_marker(entry.key):
                    prefixes.add(entry.key.partition("/")[0])
                if "/" in entry.key:
                    parts.setdefault(host_of_key(entry.key), set()).add(digest)
            elif change.manual is not None:
                rule = change.manual
                identity = (rule.kind, rule.pattern, rule.group, rule.scope)
                people[identity] = (rule, change.kind is ChangeKind.MANUAL_ADDED)
                latest[identity] = change
            elif change.policy is not None:
                items.append((change.policy, change.kind is ChangeKind.POLICY_PUT))
                latest[kind_of_item(change.policy), change.policy.name] = change
        rules = self.rules
        if people:
            rules = rules.changed(
                [rule for rule, added in people.values() if added],
                [rule for rule, added in people.values() if not added],
            )
        merged = {host: self.parts.get(host, _NONE) | digests for host, digests in parts.items()}
        policies = self.policies.changed(items) if items else self.policies
        return Overlay(changes[-1].seq, rules, learned, frozenset(prefixes), {**self.parts, **merged}, latest, policies)


def touches_hosts(changes: Iterable[Change]) -> bool:
    """Returns whether any change covers more than single URLs, so that cached facts about hosts are invalid."""
    return any(change.manual is not None or (change.learned is not None and _is_wide(change.learned.key)) for change in changes)


def _is_wide(key: str) -> bool:
    return "/" not in key or key.endswith("/*")
