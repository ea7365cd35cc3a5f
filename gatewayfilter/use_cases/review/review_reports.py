"""What became of review tasks: counts, waiting times, and phrases that cover the words of harmless pages."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from gatewayfilter.use_cases.review.review_tasks import all_tasks

if TYPE_CHECKING:
    from gatewayfilter.config import Settings
    from gatewayfilter.learn.review.phrase_suggestions import ProposedPhrase
    from gatewayfilter.store import Store

_WEEK_S: Final = 7 * 86_400.0


def review_counts(store: Store, now: float) -> dict[str, Any]:
    """Returns how many tasks wait and for how long, how fast tasks were decided this week, and `counts` by state and category.

    Args:
        store: with the tasks.
        now: Unix seconds.
    """
    rows = store.reviews.stats()
    waits = sorted((decided - created) / 3600 for created, decided in store.reviews.decided_since(now - _WEEK_S))
    waiting = [row for row in rows if row[0] == "open"]
    return {
        "open": sum(count for _, _, count, _ in waiting),
        "oldest_open_hours": round((now - min(oldest for *_, oldest in waiting)) / 3600, 1) if waiting else None,
        "decided_in_7_days": len(waits),
        "median_hours_to_decision": round(median(waits), 1) if waits else None,
        "counts": [
            {"state": state, "category": category, "tasks": count, "oldest_hours": round((now - oldest) / 3600, 1)}
            for state, category, count, oldest in rows
        ],
    }


def proposed_phrases(settings: Settings, store: Store, limit: int) -> list[ProposedPhrase]:
    """Returns exception phrases: what stands around the words on rejected pages, and on no approved one.

    Args:
        settings: with the words in use.
        store: with the tasks.
        limit: most phrases.
    """
    from gatewayfilter.learn.review.phrase_suggestions import propose  # noqa: PLC0415  with the classifier
    from gatewayfilter.model import ReviewState  # noqa: PLC0415
    from gatewayfilter.wiring import kept_lexicon  # noqa: PLC0415

    known = kept_lexicon(settings).exceptions
    return propose(all_tasks(store, ReviewState.REJECTED), all_tasks(store, ReviewState.APPROVED), limit, known)


def phrases(settings: Settings, limit: int) -> list[dict[str, Any]]:
    """Returns `proposed_phrases` as plain values, for a child process."""
    from gatewayfilter.wiring import open_store  # noqa: PLC0415

    with closing(open_store(settings)) as store:
        return [asdict(one) for one in proposed_phrases(settings, store, limit)]
