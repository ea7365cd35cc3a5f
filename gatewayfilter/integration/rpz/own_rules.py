"""Manual rules and learned entries as names of the zone, kept up to date by the change feed."""

from collections.abc import Iterable
from typing import Final, Protocol

from gatewayfilter.integration.rpz.base_file import is_zone_name
from gatewayfilter.integration.rpz.zone import OwnNames, Target, reversed_labels
from gatewayfilter.interfaces import ChangeFeed
from gatewayfilter.model import ChangeKind, EntryKind, LearnedEntry, ListAction, ManualRule

_PAGE: Final = 1_000
_TARGETS: Final = {ListAction.BLOCK: Target.BLOCK, ListAction.ALLOW: Target.ALLOW}


class ReadRules(Protocol):
    """The lists in the database."""

    def rules(self) -> list[ManualRule]:
        """Returns all manual rules."""
        ...

    def learned(self) -> Iterable[LearnedEntry]:
        """Yields all learned entries."""
        ...


class OwnRules:
    """The rules in force that a zone can hold.

    Attributes:
        left_out: manual rules that DNS cannot say, as of the last `names`.
    """

    def __init__(self, lists: ReadRules, feed: ChangeFeed) -> None:
        self._lists = lists
        self._feed = feed
        self._seq = 0
        self._rules: dict[tuple[str, str, str, str], ManualRule] = {}
        self._learned: dict[str, LearnedEntry] = {}
        self._due = float("inf")
        self.left_out = 0

    def read(self) -> None:
        """Reads everything. Raises StoreError."""
        self._seq = self._feed.last_seq()  # first: what changes meanwhile is read once more
        self._rules = {_identity(rule): rule for rule in self._lists.rules()}
        self._learned = {entry.key: entry for entry in self._lists.learned() if _is_host(entry)}

    def follow(self) -> bool:
        """Takes in the changes since. Returns whether there were any. Raises StoreError."""
        came = False
        while changes := self._feed.read(self._seq, _PAGE):
            came = True
            for change in changes:
                if change.manual is not None:
                    if change.kind is ChangeKind.MANUAL_ADDED:
                        self._rules[_identity(change.manual)] = change.manual
                    else:
                        self._rules.pop(_identity(change.manual), None)
                elif change.learned is not None:
                    self._learned.pop(change.learned.key, None)
                    if change.kind is ChangeKind.LEARNED_ADDED and _is_host(change.learned):
                        self._learned[change.learned.key] = change.learned
            self._seq = changes[-1].seq
        return came

    def is_due(self, now: float) -> bool:
        """Returns whether a rule has expired since `names`."""
        return now >= self._due

    def names(self, now: float) -> OwnNames:
        """Returns the names that rules block or allow now."""
        hosts: dict[str, Target] = {}
        domains: dict[str, Target] = {}
        self.left_out, self._due = 0, float("inf")
        for entry in self._learned.values():
            if self._lives(entry.expires_at, now):
                _put(hosts, domains, entry.key, Target.BLOCK)
        manual_hosts: dict[str, Target] = {}
        manual_domains: dict[str, Target] = {}
        for rule in self._rules.values():
            if not rule.enabled or not self._lives(rule.expires_at, now):
                continue
            target = _TARGETS.get(rule.action)
            fits = target is not None and not rule.scope and rule.kind in {EntryKind.DOMAIN, EntryKind.HOST}
            if not fits or not is_zone_name(rule.pattern.removeprefix(".")):
                self.left_out += 1
            elif target is not None:
                _put(manual_hosts, manual_domains, rule.pattern, target)
        return OwnNames(hosts | manual_hosts, domains | manual_domains)

    def _lives(self, expires_at: float | None, now: float) -> bool:
        if expires_at is None:
            return True
        if expires_at > now:
            self._due = min(self._due, expires_at)
        return expires_at > now


def _put(hosts: dict[str, Target], domains: dict[str, Target], key: str, target: Target) -> None:
    name = reversed_labels(key.removeprefix("."))
    place = domains if key.startswith(".") else hosts
    if place.get(name) is not Target.ALLOW:  # an allow outranks a block of the same name
        place[name] = target


def _identity(rule: ManualRule) -> tuple[str, str, str, str]:
    return rule.kind.value, rule.pattern, rule.group, rule.scope


def _is_host(entry: LearnedEntry) -> bool:
    return entry.action is ListAction.BLOCK and "/" not in entry.key and is_zone_name(entry.key.removeprefix("."))
