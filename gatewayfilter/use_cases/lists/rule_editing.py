"""Manual rules: added, edited, removed, switched on and off, shown in pages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from gatewayfilter.errors import BroadRuleError, ConflictError, MissingError, MissingItemError, PolicyError, RuleError
from gatewayfilter.interfaces import RuleQuery
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.use_cases.lists.patterns import (
    Pattern,
    host_of_key,
    mixed_scripts,
    read_pattern,
    refuse_network,
    refuse_unspliceable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gatewayfilter.model import PolicySet
    from gatewayfilter.store import Store


@dataclass(frozen=True, slots=True)
class RuleValues:
    """What a rule is given besides its pattern.

    Attributes:
        action: what it does.
        comment: the reason, for later readers.
        group: which it is switched on and off with, `""` for none.
        expires_at: Unix seconds, `None` for never.
        scope: `client:NAME`, `group:NAME`, or `""` for everybody.
    """

    action: ListAction = ListAction.BLOCK
    comment: str = ""
    group: str = ""
    expires_at: float | None = None
    scope: str = ""


@dataclass(frozen=True, slots=True)
class AddedRule:
    """A rule as it was stored, with what its author should be told.

    Attributes:
        pattern: of the rule.
        whole_site: the host where only its start page is meant, which is rarely intended; `""` otherwise.
        mixed_scripts: the host as it reads where it mixes letters of several alphabets; `""` otherwise.
    """

    rule: ManualRule
    pattern: Pattern
    whole_site: str
    mixed_scripts: str

    @classmethod
    def of(cls, rule: ManualRule) -> AddedRule:
        """Returns the value for a stored rule."""
        pattern = Pattern(rule.kind, rule.pattern)
        return cls(rule, pattern, pattern.whole_site, mixed_scripts(pattern))


@dataclass(frozen=True, slots=True)
class RemovedRules:
    """How many rules or learned entries were removed, and the names under which there was none."""

    removed: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SwitchedRules:
    """Rules that were named, how many of them changed, and the names under which there was none."""

    entries: int
    changed: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """A group of rules: how many it has, and how many of them are on."""

    group: str
    entries: int
    enabled: int


@dataclass(frozen=True, slots=True)
class RulePage:
    """Rules, newest first.

    Attributes:
        rules: of this page.
        after: what the next page begins after, 0 when this is the last.
    """

    rules: tuple[ManualRule, ...]
    after: int


def read_wanted(text: str, action: ListAction = ListAction.BLOCK, *, exact: bool = False, force: bool = False) -> Pattern:
    """Reads the pattern of a rule that is to be added.

    Args:
        text: as typed.
        action: of the rule.
        exact: a host without its subdomains.
        force: also accepts patterns that are usually too broad.

    Raises:
        BroadRuleError: it is too broad, and would be accepted with `force`.
        RuleError: it is none, or the action is none for it.
    """
    text = f"|{text}" if exact else text
    refuse_network(text)
    try:
        pattern = read_pattern(text, force=force)
    except RuleError as error:
        try:
            read_pattern(text, force=True)
        except RuleError:
            raise error from None
        raise BroadRuleError(str(error)) from error
    refuse_unspliceable(action, pattern.kind)
    return pattern


def check_scope(scope: str, action: ListAction, policies: PolicySet) -> None:
    """Checks whom a rule is for.

    Raises:
        PolicyError: there is no such client or group, or the action is for everybody alone.
    """
    if not scope:
        return
    kind, _, name = scope.partition(":")
    known = {"client": name in policies.clients, "group": policies.group(name) is not None}
    if not known.get(kind, False):
        if kind in known:
            raise MissingItemError(f"there is no {kind} {name!r}")
        raise PolicyError(f"{scope!r} is no client:NAME or group:NAME")
    if action is ListAction.SPLICE:
        raise PolicyError("a rule for some clients allows or blocks; splicing is for everybody")


def add_rules(store: Store, patterns: Sequence[Pattern], values: RuleValues) -> list[AddedRule]:
    """Adds rules, or changes action, comment and expiry of those that are there.

    Rules of a group that is switched off are added switched off.

    Raises:
        PolicyError: there is no such client or group in `values.scope`.
        StoreError: the database refuses.
    """
    check_scope(values.scope, values.action, store.policies.read())
    enabled = is_on(store, values.group)
    return [
        AddedRule.of(
            store.lists.add_rule(
                values.action,
                pattern.kind,
                pattern.text,
                comment=values.comment,
                group=values.group,
                expires_at=values.expires_at,
                enabled=enabled,
                scope=values.scope,
            )
        )
        for pattern in patterns
    ]


def is_on(store: Store, group: str) -> bool:
    """Returns whether a new rule of a group counts: not where the group has rules and all are switched off."""
    if not group or store.lists.page_of_rules(RuleQuery(group=group, enabled=True), limit=1):
        return True
    return not store.lists.page_of_rules(RuleQuery(group=group), limit=1)


def version_of(rule: ManualRule) -> str:
    """Returns a text that is another one as soon as anything of the rule is changed."""
    return sha256(repr(rule).encode(errors="surrogatepass")).hexdigest()[:24]


def find_rule(store: Store, rule_id: int) -> ManualRule:
    """Returns a rule.

    Raises:
        MissingError: there is none of this number.
    """
    rule = store.lists.rule(rule_id)
    if rule is None:
        raise MissingError(f"there is no rule {rule_id}")
    return rule


def edit_rule(
    store: Store, rule_id: int, pattern: Pattern, values: RuleValues, *, enabled: bool, version: str = ""
) -> ManualRule:
    """Changes a rule, which keeps its number.

    Args:
        store: the database.
        rule_id: its number.
        pattern: what it is about from now on (`read_wanted`).
        values: what else it has from now on.
        enabled: whether it counts.
        version: of the rule that was read (`version_of`); `""` changes it whatever it is now.

    Raises:
        ConflictError: it was changed since.
        MissingError: there is none of this number any more.
        PolicyError: there is no such client or group in `values.scope`.
        RuleError: another rule has this pattern, group and scope, or the action is none for the pattern.
    """
    refuse_unspliceable(values.action, pattern.kind)
    check_scope(values.scope, values.action, store.policies.read())

    def edit(before: ManualRule) -> ManualRule:
        _check_version(before, version)
        return replace(
            before,
            action=values.action,
            kind=pattern.kind,
            pattern=pattern.text,
            comment=values.comment,
            group=values.group,
            expires_at=values.expires_at,
            enabled=enabled,
            scope=values.scope,
        )

    edited = store.lists.edit_rule(rule_id, edit)
    if edited is None:
        raise MissingError(f"there is no rule {rule_id} any more")
    return edited


def _check_version(rule: ManualRule, version: str) -> None:
    if version and version != version_of(rule):
        raise ConflictError(f"rule {rule.rule_id} was changed since you read it; look at it again")


def remove_rule(store: Store, rule_id: int, *, version: str = "") -> ManualRule:
    """Removes a rule. Returns it as it was, so that it can be added again.

    Raises:
        ConflictError: it was changed since it was read.
        MissingError: there is none of this number.
    """
    rule = find_rule(store, rule_id)
    _check_version(rule, version)
    if not store.lists.remove_rule(rule_id):
        raise MissingError(f"there is no rule {rule_id} any more")
    return rule


def matching(rules: Iterable[ManualRule], entry: str) -> list[ManualRule]:
    """Returns the rules named by number or pattern; a site is also found when it was added without subdomains.

    Raises:
        RuleError: it is neither.
    """
    if entry.isascii() and entry.isdigit():
        return [rule for rule in rules if rule.rule_id == int(entry)]
    pattern = read_pattern(entry, force=True)
    forms = {pattern, Pattern(EntryKind.HOST, pattern.text.removeprefix("."))}
    return [rule for rule in rules if Pattern(rule.kind, rule.pattern) in forms]


def remove_rules(store: Store, entries: Sequence[str], group: str | None = None) -> RemovedRules:
    """Removes rules by their pattern or number; those that are not there are named, the others removed.

    Args:
        store: the database.
        entries: patterns or numbers.
        group: only rules of this group.

    Raises:
        RuleError: an entry is neither; those before it are removed.
    """
    rules = [rule for rule in store.lists.rules() if group is None or rule.group == group]
    found: dict[str, int] = {}
    for entry in entries:
        wanted = matching(rules, entry)
        found[entry] = found.get(entry, 0) + sum(store.lists.remove_rule(rule.rule_id) for rule in wanted)
        rules = [rule for rule in rules if rule not in wanted]
    return _removed(found)


def forget_learned(store: Store, entries: Sequence[str]) -> RemovedRules:
    """Removes what was learned of pages or sites.

    Raises:
        RuleError: an entry is no pattern; those before it are removed.
    """
    return _removed(
        {entry: store.lists.remove_learned(_learned_keys(store, read_pattern(entry, force=True))) for entry in entries}
    )


def _removed(found: Mapping[str, int]) -> RemovedRules:
    return RemovedRules(sum(found.values()), tuple(entry for entry, count in found.items() if not count))


def _learned_keys(store: Store, pattern: Pattern) -> list[str]:
    if pattern.kind not in {EntryKind.DOMAIN, EntryKind.HOST}:
        return [pattern.text]
    covered = f".{pattern.text.removeprefix('.')}"
    keys = (entry.key for entry in store.lists.learned())
    return [key for key in keys if f".{host_of_key(key)}".endswith(covered)]


def switch_rules(store: Store, entries: Sequence[str], group: str | None = None, *, enabled: bool) -> SwitchedRules:
    """Switches rules on or off: those named by pattern or number, or all of a group.

    Raises:
        RuleError: an entry is neither; nothing is switched.
    """
    rules = [rule for rule in store.lists.rules() if group is None or rule.group == group]
    named = {entry: matching(rules, entry) for entry in entries} if entries else {f"group {group}": rules}
    wanted = {rule.rule_id for found in named.values() for rule in found}
    changed = store.lists.switch_rules(sorted(wanted), enabled=enabled)
    return SwitchedRules(len(wanted), changed, tuple(entry for entry, found in named.items() if not found))


def rule_groups(store: Store) -> list[RuleGroup]:
    """Returns the groups of rules, by name."""
    states: dict[str, list[bool]] = {}
    for rule in store.lists.rules():
        if rule.group:
            states.setdefault(rule.group, []).append(rule.enabled)
    return [RuleGroup(name, len(found), sum(found)) for name, found in sorted(states.items())]


def rule_page(store: Store, query: RuleQuery, after: int = 0, limit: int = 100) -> RulePage:
    """Returns a page of rules, newest first.

    Args:
        store: the database.
        query: which.
        after: `RulePage.after` of the page before, 0 for the first.
        limit: most rules.
    """
    found = store.lists.page_of_rules(query, after, limit + 1)
    shown = tuple(found[:limit])
    return RulePage(shown, shown[-1].rule_id if len(found) > limit else 0)
