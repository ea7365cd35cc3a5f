"""Search of lists: every manual rule, learned entry, line and Adblock rule that applies to a host or URL, or holds a text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from gatewayfilter.engine.state.manual_rules import ManualRules
from gatewayfilter.errors import UrlError
from gatewayfilter.model import LearnedEntry, ListAction, ManualRule, Request, ResourceType
from gatewayfilter.sources.search import lines_about, lines_with_text
from gatewayfilter.urls import parse_loose_url, parse_url
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
) -> SearchResult:
    """Searches every list; sources that are switched off, too. Reads each list as a whole: seconds with millions of entries.

    Args:
        settings: the settings.
        store: with manual rules and learned entries.
        text: a host, a URL, or a part of manual rules and learned entries.
        partial: searches the lines of the sources for the text, too, in place of what applies to the host or URL.
        progress: called with what is being searched.
        engine: in use; `None` opens one.
    """
    url = _url(text)
    known = subscriptions(settings)
    own = tuple(_own(store.lists.rules(), text, url))
    learned = tuple(entry for entry in store.lists.learned() if _holds(entry, text.strip().lower()))
    search = _SourceSearch(known, progress)
    if partial:
        found = tuple(search.lines(lambda item: islice(lines_with_text(item, text.strip()), _MOST_LINES)))
    elif url is None:
        found = ()
    else:
        found = tuple(_about(engine or open_engine(settings, store), search, url))
    return SearchResult(own, learned, found, tuple(search.unreadable))


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


def _holds(entry: LearnedEntry, part: str) -> bool:
    return part in entry.url.lower() or part in entry.key


def _own(rules: Sequence[ManualRule], text: str, url: Url | None) -> list[FoundRule]:
    """Returns the entries that apply to the URL, switched off, expired and splicing ones included, or hold the text."""
    part = text.strip().lower()
    found = [FoundRule(rule, url is not None and _covers(rule, url)) for rule in rules]
    return [item for item in found if item.covers or part in f"{item.rule.pattern} {item.rule.comment}".lower()]


def _covers(rule: ManualRule, url: Url) -> bool:
    action = ListAction.BLOCK if rule.action is ListAction.SPLICE else rule.action
    alone = ManualRules([replace(rule, enabled=True, expires_at=None, action=action)])
    return bool(alone.matching(url, alone.for_host(url), 0.0))


def _about(engine: FilterEngine, search: _SourceSearch, url: Url) -> Iterator[FoundLine]:
    found = [*search.lines(lambda item: lines_about(item, url)), *_adblock(engine, search.known, url)]
    yield from found
    # A snapshot may come from elsewhere, or hold what a source held before: then it has the list, but the line cannot be found.
    named = {item.source for item in found}
    for answer in engine.explain(Request(url)).answers:
        verdict = answer.verdict
        name = verdict.source_list if verdict else ""
        if verdict and name and name not in named and not name.startswith("learned:"):
            yield FoundLine(name, True, verdict.category, verdict.action.value, verdict.line, verdict.rule, verdict.rule)


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
