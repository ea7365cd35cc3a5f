"""Search of lists: every manual rule, learned entry, line and Adblock rule that applies to a host or URL, or holds a text."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from gatewayfilter.engine.state.manual_rules import ManualRules
from gatewayfilter.errors import UrlError
from gatewayfilter.model import LEARNED_PREFIX, LearnedEntry, ListAction, ManualRule, Request, ResourceType
from gatewayfilter.sources.publish import mark_of_inputs
from gatewayfilter.sources.search import covering_keys, lines_about, lines_with_text
from gatewayfilter.urls import digest_of, parse_loose_url, parse_url
from gatewayfilter.wiring import open_engine, subscriptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gatewayfilter.config import Settings
    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.sources import SourceFile, Subscriptions
    from gatewayfilter.sources.search import ListLine
    from gatewayfilter.store import Store
    from gatewayfilter.urls import Url
    from gatewayfilter.wiring import Progress

_ELSEWHERE = parse_url("https://elsewhere.invalid/")
"""A page of a third party."""

_MOST_LINES = 20
"""Lines of one list that are found where a part of their text is searched for."""


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line of a list.

    Attributes:
        source: the list's name; `enabled` whether it counts.
        means: `block`, `allow` or `splice`; `exception` for an Adblock rule that lifts blocks.
        line: its number; 0 where the list has the entry, but the line is written in a form that is not found.
        entry: the list key that covers the URL, or the rule.
    """

    source: str
    enabled: bool
    category: str
    means: str
    line: int
    text: str
    entry: str


@dataclass(frozen=True, slots=True)
class FoundRule:
    """A manual rule; `covers`: whether it applies to the URL, or only holds the text."""

    rule: ManualRule
    covers: bool


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What is on lists.

    Attributes:
        own: manual rules.
        learned: entries.
        lists: lines and Adblock rules.
        unreadable: one sentence for each list that could not be read.
    """

    own: tuple[FoundRule, ...]
    learned: tuple[LearnedEntry, ...]
    lists: tuple[FoundLine, ...]
    unreadable: tuple[str, ...]

    def __bool__(self) -> bool:
        """Returns whether anything was found."""
        return bool(self.own or self.learned or self.lists)


def search_lists(
    settings: Settings,
    store: Store,
    text: str,
    *,
    partial: bool = False,
    progress: Progress | None = None,
    engine: FilterEngine | None = None,
    most_learned: int | None = None,
) -> SearchResult:
    """Searches every list; sources that are switched off, too.

    For a host or URL the snapshot names the lists that have it, where it was made of the lists as they are: others are not read.
    Reading takes some 0.2 s of CPU for 100 MB.

    Args:
        settings: the settings.
        store: with manual rules and learned entries.
        text: a host, a URL, or a part of manual rules and learned entries.
        partial: searches the lines of the sources for the text, too, in place of what applies to the host or URL.
        progress: called with what is being searched.
        engine: in use; `None` opens one.
        most_learned: learned entries that are returned, `None` for all.
    """
    url = _url(text)
    known = subscriptions(settings)
    own = tuple(_own(store.lists.rules(), text, url))
    learned = tuple(store.lists.learned_with(text.strip(), most_learned))
    search = _SourceSearch(known, progress)
    if partial:
        found = tuple(search.lines(lambda item: islice(lines_with_text(item, text.strip()), _MOST_LINES)))
    elif url is None:
        found = ()
    else:
        found = tuple(_about(engine or open_engine(settings, store), search, url))
    return SearchResult(own, learned, found, tuple(search.unreadable))


def bytes_to_read(settings: Settings, engine: FilterEngine, text: str) -> int:
    """Returns the size of the lists that the search for a host or URL reads: those that have it, and those it may be in."""
    url = _url(text)
    if url is None:
        return 0
    known = subscriptions(settings)
    listed = _listed(engine, known, covering_keys(url))
    size = 0
    for item, _ in known.every_file():
        if listed is None or listed.get(item.source.name) != frozenset():
            with suppress(OSError):  # removed meanwhile
                size += item.path.stat().st_size
    return size


class _SourceSearch:
    """Reads the files of all sources one after the other, and notes those that cannot be read."""

    def __init__(self, known: Subscriptions, progress: Progress | None) -> None:
        self.known = known
        self.unreadable: list[str] = []
        self._progress = progress

    def lines(self, find: Callable[[SourceFile], Iterable[ListLine]]) -> Iterator[FoundLine]:
        files = self.known.every_file()
        for number, (item, enabled) in enumerate(files):
            if self._progress is not None:
                self._progress(f"searching {item.source.name}", number, len(files))
            source = item.source
            try:
                for found in find(item):
                    yield FoundLine(source.name, enabled, source.category, source.action.value, found.line, found.text, found.key)
            except OSError as error:
                self.unreadable.append(f"cannot read {item.path}: {error.strerror}")


def _url(text: str) -> Url | None:
    try:
        return parse_loose_url(text)
    except UrlError:
        return None


def _own(rules: Sequence[ManualRule], text: str, url: Url | None) -> list[FoundRule]:
    """Returns the entries that apply to the URL, switched off, expired and splicing ones included, or hold the text."""
    part = text.strip().lower()
    covering = _covering(rules, url) if url is not None else frozenset()
    found = [FoundRule(rule, rule.rule_id in covering) for rule in rules]
    return [item for item in found if item.covers or part in f"{item.rule.pattern} {item.rule.comment}".lower()]


def _covering(rules: Sequence[ManualRule], url: Url) -> frozenset[int]:
    """Returns the numbers of the rules that apply to the URL, as if all were switched on, had no end, and none spliced."""
    every = ManualRules(
        replace(rule, enabled=True, expires_at=None, action=ListAction.BLOCK if rule.action is ListAction.SPLICE else rule.action)
        for rule in rules
    )
    return frozenset(rule.rule_id for rule in every.matching(url, every.for_host(url), 0.0))


def _about(engine: FilterEngine, search: _SourceSearch, url: Url) -> Iterator[FoundLine]:
    listed = _listed(engine, search.known, covering_keys(url))
    found = [
        *search.lines(lambda item: lines_about(item, url, listed.get(item.source.name) if listed is not None else None)),
        *_adblock(engine, search.known, url),
    ]
    yield from found
    # A snapshot may come from elsewhere, or hold what a source held before: then it has the list, but the line cannot be found.
    named = {item.source for item in found}
    for answer in engine.explain(Request(url)).answers:
        verdict = answer.verdict
        name = verdict.source_list if verdict else ""
        if verdict and name and name not in named and not name.startswith(LEARNED_PREFIX):
            yield FoundLine(name, True, verdict.category, verdict.action.value, verdict.line, verdict.rule, verdict.rule)


def _listed(engine: FilterEngine, known: Subscriptions, keys: frozenset[str]) -> dict[str, frozenset[str]] | None:
    """Returns the keys by which each enabled list has a URL; `None` where the snapshot is of other lists than there are now."""
    snapshot, files = engine.snapshot, known.files()
    if snapshot.meta["notes"].get("inputs") != mark_of_inputs(files):
        return None
    found: dict[str, set[str]] = {item.source.name: set() for item in files}
    for key in keys:
        for index in snapshot.listed_by(digest_of(key)):
            source = snapshot.sources[index]
            if not source.learned:
                found[source.name].add(key)
    return {name: frozenset(of_list) for name, of_list in found.items()}


def _adblock(engine: FilterEngine, known: Subscriptions, url: Url) -> list[FoundLine]:
    """Returns every network rule in the snapshot that matches one of the possible requests for the URL."""
    ways = [Request(url), *(Request(url, _ELSEWHERE, resource_type) for resource_type in ResourceType)]
    sources = engine.snapshot.sources
    matches = {(match.source, match.line, match.rule): match for way in ways for match in engine.snapshot.adblock.match_all(way)}
    enabled = {item.definition.name for item in known.all() if item.definition.enabled}
    return [
        FoundLine(
            sources[match.source].name,
            sources[match.source].name in enabled,
            sources[match.source].category,
            "exception" if match.exception else "block",
            match.line,
            match.rule,
            match.rule,
        )
        for match in sorted(matches.values(), key=lambda match: (match.source, match.line))
    ]
