"""The look-up of list keys in the overlay and in the tables of the snapshot, with the verdict of their source."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gatewayfilter.engine.snapshot.learned_records import learned_source
from gatewayfilter.engine.state.list_view import ListView
from gatewayfilter.engine.tables.bloom import BloomAnswer
from gatewayfilter.model import Action, LearnedEntry, ListAction, Reason, Source, Verdict

_MAYBE = BloomAnswer.MAYBE
_OF_URLS = (ListAction.BLOCK, ListAction.ALLOW)


class _Unchanged:
    """Sentinel for a key that is not in the overlay."""


_UNCHANGED = _Unchanged()


@dataclass(frozen=True, slots=True)
class Listing:
    """An entry that covers a URL.

    Attributes:
        verdict: of the entry.
        until: Unix seconds at which it expires.
    """

    verdict: Verdict
    until: float = math.inf


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """A list key with its digest that passed the Bloom gate. This is a "maybe"; `find_listing` gives the "yes"."""

    key: str
    digest: bytes


def may_be_listed(lists: ListView, digest: bytes) -> bool:
    """Returns whether a digest passes the gate: the snapshot's Bloom filter, or the entries learned since."""
    return lists.bloom.ask(digest) is _MAYBE or digest in lists.learned


def is_marked(lists: ListView, digest: bytes) -> bool:
    """Returns whether the marker of a host with prefix entries is in one of the tables that decide URLs."""
    return lists.bloom.ask(digest) is _MAYBE and any(lists.tables[action].find(digest) is not None for action in _OF_URLS)


def find_listing(lists: ListView, key: str, digest: bytes, action: ListAction, now: float) -> Listing | None:
    """Returns the first entry of this key that is in force, `None` for none.

    Sources that are switched off do not count, nor do expired learned entries: their URLs are unknown again. The overlay's
    version of a learned entry hides the snapshot's.
    """
    changes = lists.learned.get(digest, _UNCHANGED)
    if isinstance(changes, LearnedEntry) and in_force(lists, changes, action, now):
        return learned_listing(changes)
    number = lists.tables[action].find(digest)
    if number is None:
        return None
    for index in lists.on_sets[number]:
        source = lists.sources[index]
        if not source.learned:
            return Listing(list_verdict(source, key))
        if changes is _UNCHANGED:
            entry = lists.records.find(digest)
            if entry is not None and in_force(lists, entry, action, now):
                return learned_listing(entry)
    return None


def find_learned(lists: ListView, digest: bytes) -> LearnedEntry | None:
    """Returns the learned entry of a digest, of whatever action, `None` for none; it may have expired."""
    changes = lists.learned.get(digest, _UNCHANGED)
    return lists.records.find(digest) if isinstance(changes, _Unchanged) else changes


def in_force(lists: ListView, entry: LearnedEntry, action: ListAction, now: float) -> bool:
    """Returns whether a learned entry has this action, has not expired, is of a category that is on, and certain enough."""
    if entry.action is not action or now >= entry.expires_at:
        return False
    if action is ListAction.ALLOW:
        return True
    doubtful = entry.certainty is not None and entry.certainty < lists.selection.least_certainty
    return not doubtful and entry.category not in lists.off_categories


def list_verdict(source: Source, key: str) -> Verdict:
    """Returns the verdict of a list entry."""
    if source.action is ListAction.BLOCK:
        return Verdict(Action.BLOCK, Reason.BLACKLIST, source.name, key, category=source.category)
    reason = Reason.WHITELIST if source.action is ListAction.ALLOW else Reason.SPLICELIST
    return Verdict(Action.ALLOW, reason, source.name, key, category=source.category)


def learned_listing(entry: LearnedEntry) -> Listing:
    """Returns the verdict of a learned entry, with its expiry."""
    blocks = entry.action is ListAction.BLOCK
    verdict = Verdict(
        Action.BLOCK if blocks else Action.ALLOW,
        Reason.LEARNED if blocks else Reason.WHITELIST,
        learned_source(entry.action, entry.category).name,
        entry.key,
        category=entry.category,
        detail=entry.detail,
    )
    return Listing(verdict, entry.expires_at)


def silent_entries(lists: ListView, key: str, digest: bytes, action: ListAction, now: float) -> Iterator[str]:
    """Yields a sentence for each entry of this key that is not in force, for `explain`."""
    changes = lists.learned.get(digest, _UNCHANGED)
    if isinstance(changes, LearnedEntry) and (why := _why_silent(lists, changes, action, now)):
        yield f"{key} was learned since the snapshot, but {why}"
    number = lists.tables[action].find(digest)
    for index in lists.source_sets[number] if number is not None else ():
        source = lists.sources[index]
        if index in lists.off_sources:
            yield f"{source.name} lists {key}, but its category {source.category} is switched off"
        elif source.learned and changes is not _UNCHANGED:
            yield f"{source.name} lists {key}, but that was taken back or judged anew since"
        elif source.learned:
            entry = lists.records.find(digest)
            if entry is not None and (why := _why_silent(lists, entry, action, now)):
                yield f"{source.name} lists {key}, but {why}"


def _why_silent(lists: ListView, entry: LearnedEntry, action: ListAction, now: float) -> str:
    if entry.action is not action:
        return ""
    if now >= entry.expires_at:
        return "that has expired"
    if action is ListAction.BLOCK and entry.category in lists.off_categories:
        return f"the category {entry.category} is switched off"
    if action is ListAction.BLOCK and entry.certainty is not None and entry.certainty < lists.selection.least_certainty:
        return "it is not certain enough for this policy (strictness=relaxed)"
    return ""
