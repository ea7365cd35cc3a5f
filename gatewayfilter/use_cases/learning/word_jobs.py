"""Work on words for a child process: arguments and results are plain values, so that the parent loads no classifier.

Each function takes the settings first, and raises what its use case does.
"""

import re
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Final

from gatewayfilter.config import Settings
from gatewayfilter.interfaces import Page
from gatewayfilter.use_cases.learning import words
from gatewayfilter.use_cases.learning.word_sandbox import judge_page, page_of_text
from gatewayfilter.wiring import kept_lexicon, words_in_use

_IDEOGRAPH: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_MOST_SEGMENTS: Final = 4_000
_MOST_AROUND: Final = 400
"""Characters that are shown between two hits."""


@dataclass(frozen=True, slots=True)
class _State:
    """The words of a version: what was read of them stays right until they change. Reading them takes 0.3 s."""

    version: str
    settings: Settings = field(compare=False)


@lru_cache(maxsize=1)
def _categories(state: _State) -> list[words.WordCategory]:
    return words.word_categories(state.settings, kept_lexicon(state.settings))


@lru_cache(maxsize=32)
def _words(state: _State, category: str, *, own: bool) -> words.CategoryWords:
    return words.category_words(state.settings, category, only_own=own, lexicon=None if own else kept_lexicon(state.settings))


def categories(settings: Settings) -> list[dict[str, Any]]:
    """Returns the categories of words, by name."""
    return [asdict(item) for item in _categories(_State(words_in_use(settings), settings))]


def find_words(
    settings: Settings, category: str, *, text: str, kind: str, language: str, own: bool, after: int, limit: int
) -> dict[str, Any]:
    """Returns words of a category.

    Args:
        settings: the settings.
        category: its code.
        text: part of the phrase, `""` for any.
        kind: word, combination, near, context, exception or removed; `""` for any.
        language: `zh` for phrases with ideographs, `other` for those without, `""` for all.
        own: only the operator's own.
        after: how many are left out at the beginning.
        limit: most rows.
    """
    state = _State(words_in_use(settings), settings)
    found = _words(state, category, own=own)
    added = {row.phrase for row in _words(state, category, own=True).words}
    folded = text.strip().lower()
    rows = [
        row
        for row in found.words
        if (not kind or row.kind == kind)
        and folded in row.phrase.lower()
        and (not language or (language == "zh") == bool(_IDEOGRAPH.search(row.phrase)))
    ]
    shown = [{**asdict(row), "own": row.phrase in added} for row in rows[after : after + limit]]
    return {"category": category, "limit": found.limit, "total": len(rows), "rows": shown, "own": len(added)}


def add(settings: Settings, **values: Any) -> int:
    """Adds phrases; returns how many were new or changed. Arguments are those of `words.NewPhrases`."""
    return words.add_phrases(settings, words.NewPhrases(**values))


def remove(settings: Settings, category: str, phrases: list[str]) -> dict[str, Any]:
    """Removes phrases."""
    return asdict(words.remove_phrases(settings, category, phrases))


def import_file(settings: Settings, content: bytes, name: str, category: str, weight: float) -> dict[str, Any]:
    """Imports a file of phrases."""
    return asdict(words.import_phrases(settings, content, name, words.ImportOptions(category=category, weight=weight)))


def export(settings: Settings, category: str, *, own: bool) -> str:
    """Returns the words of a category as TOML."""
    if own:
        return words.exported_words(settings, category, only_own=True)
    return words.exported_words(settings, category, lexicon=kept_lexicon(settings))


def judge(settings: Settings, content: str, *, html: bool, url: str) -> dict[str, Any]:
    """Judges a page or text by the words in use, with its hits in their places; nothing is learned."""
    kind = {"content-type": "text/html; charset=utf-8"}
    page = Page(url, url, 200, kind, content.encode(errors="replace")) if html else page_of_text(content)
    judged = judge_page(settings, page)
    found = judged.classification
    return {
        "category": found.category,
        "doubt": found.doubt,
        "score": found.score,
        "limit": found.limit,
        "scores": found.scores,
        "title": found.title,
        "certainty": found.certainty,
        "evidence": [asdict(hit) for hit in found.evidence],
        "breakdown": asdict(judged.score_breakdown) if judged.score_breakdown is not None else None,
        "zones": [
            {
                "name": zone.name,
                "pieces": [
                    {"text": _around(piece.text) if piece.evidence is None else piece.text, "hit": _hit(piece.evidence)}
                    for piece in zone.segments[:_MOST_SEGMENTS]
                ],
            }
            for zone in judged.zones
        ],
    }


def _hit(evidence: Any) -> dict[str, Any] | None:
    return None if evidence is None else asdict(evidence)


def _around(text: str) -> str:
    """Returns what stands between two hits, its middle left out where it is long."""
    return text if len(text) <= _MOST_AROUND else f"{text[: _MOST_AROUND // 2]} … {text[-_MOST_AROUND // 2 :]}"
