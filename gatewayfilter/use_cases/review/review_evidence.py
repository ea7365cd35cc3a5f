"""The evidence of a review task for people: its text cut at the words found, their arithmetic, its host, who met it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gatewayfilter.model import HOST_ZONE, ZONE_FACTORS, LogQuery
from gatewayfilter.urls import parse_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gatewayfilter.model import Evidence, ReviewTask
    from gatewayfilter.store import Store

_SHORTEST: Final = 2
"""Characters of a word that is marked."""
_MOST_WORDS: Final = 300
_MOST_LOGGED: Final = 200
_LOG_S: Final = 0.1
"""How long the log is searched for who met a host."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text; `hit` is the evidence that it is, `None` for the text between hits."""

    text: str
    hit: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a score: `base` times `factor` of its zone is what it adds."""

    hit: Evidence
    base: float
    factor: float


@dataclass(frozen=True, slots=True)
class HostRecord:
    """What is known of the host of a task.

    Attributes:
        harmful: category → number of other pages judged harmful.
        harmless: number of other pages judged harmless.
        devices: devices that met the host, among the newest `requests` of the log.
        searched_all: no older request was left out.
    """

    host: str
    harmful: Mapping[str, int]
    harmless: int
    devices: int
    requests: int
    searched_all: bool


def marked_text(text: str, evidence: Sequence[Evidence]) -> tuple[Piece, ...]:
    """Cuts a text at every place of every word of the evidence; the pieces joined are the text."""
    words: dict[str, Evidence] = {}
    for hit in evidence[:_MOST_WORDS]:
        if hit.zone == HOST_ZONE:
            continue
        for part in hit.word.split(" + "):
            word = part.strip().strip("*").strip().lower()
            if len(word) >= _SHORTEST:
                words.setdefault(word, hit)
    if not words:
        return (Piece(text),) if text else ()
    pattern = re.compile("|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)), re.IGNORECASE)
    pieces: list[Piece] = []
    done = 0
    for found in pattern.finditer(text):
        if found.start() > done:
            pieces.append(Piece(text[done : found.start()]))
        pieces.append(Piece(found[0], words.get(found[0].lower())))
        done = found.end()
    if done < len(text):
        pieces.append(Piece(text[done:]))
    return tuple(pieces)


def terms_of(task: ReviewTask) -> tuple[Term, ...]:
    """Returns the words that count for the category that the task was made in, heaviest first, with the zones' factors."""
    category = task.score_breakdown.category if task.score_breakdown else task.classification.category or task.category
    hits = [hit for hit in task.classification.evidence if hit.category == category and hit.zone != HOST_ZONE]
    return tuple(_term(hit) for hit in sorted(hits, key=lambda hit: -hit.weight))


def _term(hit: Evidence) -> Term:
    factor = ZONE_FACTORS.get(hit.zone, 1.0) if hit.weight > 0 else 1.0  # what counts against has factors of its own
    return Term(hit, hit.weight / factor, factor)


def host_facts(task: ReviewTask) -> tuple[Evidence, ...]:
    """Returns facts about the page's host that counted, beside its words."""
    return tuple(hit for hit in task.classification.evidence if hit.zone == HOST_ZONE)


def host_record(store: Store, task: ReviewTask) -> HostRecord:
    """Returns what is known of the host of a task. At most a tenth of a second for the log."""
    host = parse_url(task.url).host
    facts = store.host_facts.facts_of(task.url, host, task.classification.text_digest)
    page = store.log_search.page(LogQuery(host=host), _MOST_LOGGED, budget_s=_LOG_S)
    devices = {record.user or record.client for _, record in page.records}
    return HostRecord(
        host, facts.harmful, facts.harmless, len(devices), len(page.records), page.before is None and not page.timed_out
    )


def grouped(tasks: Iterable[ReviewTask]) -> list[list[ReviewTask]]:
    """Returns tasks by likeness, the groups in the order of their first tasks."""
    groups: dict[int, list[ReviewTask]] = {}
    for task in tasks:
        groups.setdefault(task.group_id or task.task_id, []).append(task)
    return list(groups.values())
