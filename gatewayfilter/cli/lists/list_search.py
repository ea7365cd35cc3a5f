"""`gatewayfilter list search`: every entry, line and rule that applies to a host or URL, or holds a text."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.cli.ui.progress import showing
from gatewayfilter.errors import UrlError
from gatewayfilter.model import EntryKind, ListAction, ManualRule, Request, ResourceType
from gatewayfilter.urls import parse_loose_url, parse_url
from gatewayfilter.use_cases.lists.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.model import LearnedEntry
    from gatewayfilter.sources import SourceFile, Subscriptions
    from gatewayfilter.sources.search import ListLine
    from gatewayfilter.urls import Url
    from gatewayfilter.wiring import Progress

_ELSEWHERE = parse_url("https://elsewhere.invalid/")
"""A page of a third party."""

_MOST_LINES = 20
"""Lines of one list that are shown where a part of their text was searched for."""


@dataclass(frozen=True, slots=True)
class _Found:
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
class _Own:
    """A manual rule; `covers`: whether it applies to the URL, or only holds the text."""

    rule: ManualRule
    covers: bool

    def state(self, now: float) -> str:
        expired = self.rule.expires_at is not None and self.rule.expires_at <= now
        return " (expired)" if expired else "" if self.rule.enabled else " (off)"


@click.command(
    cls=FilterCommand,
    examples=(
        "gatewayfilter list search example.com",
        "gatewayfilter list search https://cdn.example/ad.js --json",
        "gatewayfilter list search --partial casino",
    ),
    prints_data=True,
)
@click.argument("text", metavar="HOST|URL|TEXT")
@click.option("--partial", is_flag=True, help="Every line of the lists in which the text stands, the first 20 of each list.")
@click.pass_obj
def search(invocation: Invocation, *, text: str, partial: bool) -> int:
    """Find the lists that have a host or URL: your own entries, what was learned, and every line of every source.

    Your own entries and learned pages are also found by a part of their text. Sources that are switched off are searched, too.
    Exit code 1 when it is on no list.
    """
    from gatewayfilter.wiring import open_engine, subscriptions

    settings = invocation.settings()
    now = time.time()
    url = _url(text)
    with invocation.store() as store, showing(quiet=invocation.json, patience_s=1.0) as progress:
        own = _own(store.lists.rules(), text, url)
        learned = [entry for entry in store.lists.learned() if _holds(entry, text.strip().lower())]
        known = subscriptions(settings)
        if partial:
            found = list(_partly(known, text.strip(), progress))
        else:
            found = [] if url is None else list(_about(open_engine(settings, store), known, url, progress))
    if invocation.json:
        print_json({"own": own, "learned": learned, "lists": found})
        return 0 if own or learned or found else 1
    rows: list[tuple[object, ...]] = [
        ("own", f"{item.rule.action}{item.state(now)}", item.rule.rule_id, _describe(item)) for item in own
    ]
    rows += [(f"learned: {entry.category or 'harmless'}", entry.action.value, "", entry.url) for entry in learned]
    rows += [(item.source + ("" if item.enabled else " (off)"), item.means, item.line, _said(item)) for item in found]
    if rows:
        print_table(("where", "means", "line", "what"), rows)
        return 0
    say(f"{text} is on no list." if partial else f"{text} is on no list. (--partial searches for a part of a line.)")
    return 1


def _url(text: str) -> Url | None:
    try:
        return parse_loose_url(text)
    except UrlError:
        return None


def _holds(entry: LearnedEntry, part: str) -> bool:
    return part in entry.url.lower() or part in entry.key


def _own(rules: Sequence[ManualRule], text: str, url: Url | None) -> list[_Own]:
    """Returns the entries that apply to the URL, switched off, expired and splicing ones included, or hold the text."""
    part = text.strip().lower()
    found = [_Own(rule, url is not None and _covers(rule, url)) for rule in rules]
    return [item for item in found if item.covers or part in f"{item.rule.pattern} {item.rule.comment}".lower()]


def _covers(rule: ManualRule, url: Url) -> bool:

    from gatewayfilter.engine.state.manual_rules import ManualRules

    action = ListAction.BLOCK if rule.action is ListAction.SPLICE else rule.action
    alone = ManualRules([replace(rule, enabled=True, expires_at=None, action=action)])
    return bool(alone.matching(url, alone.for_host(url), 0.0))


def _describe(item: _Own) -> str:
    rule = item.rule
    notes = [note for note in (rule.group and f"group {rule.group}", rule.comment) if note]
    hint = "" if item.covers else " [by its text]"
    return f"{Pattern(rule.kind, rule.pattern).describe(rule.action)}{f' ({", ".join(notes)})' if notes else ''}{hint}"


def _said(item: _Found) -> str:
    return item.text if not item.entry or item.entry == item.text else f"{item.text}  → {_entry(item.entry)}"


def _entry(key: str) -> str:
    kind = EntryKind.DOMAIN if key.startswith(".") else EntryKind.HOST if "/" not in key else EntryKind.URL
    return Pattern(EntryKind.PREFIX if key.endswith("/*") else kind, key).describe()


def _about(engine: FilterEngine, known: Subscriptions, url: Url, progress: Progress) -> Iterator[_Found]:
    found = [*_keyed(known, url, progress), *_adblock(engine, known, url)]
    yield from found
    # A snapshot may come from elsewhere, or hold what a source held before: then it has the list, but the line cannot be found.
    named = {item.source for item in found}
    for answer in engine.explain(Request(url)).answers:
        verdict = answer.verdict
        name = verdict.source_list if verdict else ""
        if verdict and name and name not in named and not name.startswith("learned:"):
            yield _Found(name, True, verdict.category, verdict.action.value, verdict.line, verdict.rule, verdict.rule)


def _keyed(known: Subscriptions, url: Url, progress: Progress) -> Iterator[_Found]:
    from gatewayfilter.sources.search import lines_about

    return _lines(known, progress, lambda item: lines_about(item, url))


def _partly(known: Subscriptions, text: str, progress: Progress) -> Iterator[_Found]:
    from gatewayfilter.sources.search import lines_with_text

    return _lines(known, progress, lambda item: islice(lines_with_text(item, text), _MOST_LINES))


def _lines(known: Subscriptions, progress: Progress, find: Callable[[SourceFile], Iterable[ListLine]]) -> Iterator[_Found]:
    files = known.every_file()
    for number, (item, enabled) in enumerate(files):
        progress(f"searching {item.source.name}", number, len(files))
        source = item.source
        try:
            for found in find(item):
                yield _Found(source.name, enabled, source.category, source.action.value, found.line, found.text, found.key)
        except OSError as error:
            say(f"gatewayfilter: cannot read {item.path}: {error.strerror}", err=True)


def _adblock(engine: FilterEngine, known: Subscriptions, url: Url) -> list[_Found]:
    """Returns every network rule in the snapshot that matches one of the possible requests for the URL."""
    ways = [Request(url), *(Request(url, _ELSEWHERE, resource_type) for resource_type in ResourceType)]
    sources = engine.snapshot.sources
    matches = {(match.source, match.line, match.rule): match for way in ways for match in engine.snapshot.adblock.match_all(way)}
    enabled = {item.definition.name for item in known.all() if item.definition.enabled}
    return [
        _Found(
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
