"""The operator's statistical model, trained on the pages that people decided, and what their decisions say of blocks.

Results are plain values, for a child process too: the model's libraries take memory that the dashboard does without.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from gatewayfilter.classify import LinearModel
from gatewayfilter.classify.models.training import train as train_model
from gatewayfilter.learn.own_model import Origin, OwnModel, decided_counts, decided_examples
from gatewayfilter.learn.review.false_blocks import FalseBlockRow, false_block_rows
from gatewayfilter.learn.verdicts.word_feedback import MOST_PAGES, lowered_words
from gatewayfilter.wiring import open_store, words_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.classify.models.training import Example
    from gatewayfilter.config import Settings
    from gatewayfilter.learn import LoweredWord
    from gatewayfilter.store import Store

WEEK_S: Final = 7 * 86_400.0


def own_model(settings: Settings) -> OwnModel:
    """Returns the operator's model."""
    return OwnModel(words_folder(settings))


def trained(settings: Settings, store: Store, examples: Sequence[Example] | None, now: float) -> tuple[LinearModel, bool]:
    """Trains a model, and puts it to use if it is useful. Returns it, and whether it is in use.

    Args:
        settings: with the folder of words.
        store: with the decided reviews.
        examples: to train on, `None` for the decided reviews.
        now: Unix seconds.

    Raises:
        ClassifyError: there are too few examples, or the model cannot be written.
    """
    own = own_model(settings)
    if examples is not None:
        model = train_model(examples, now)
        return model, own.put(model, Origin.FILES, 0)
    decided = sum(decided_counts(store.reviews).values())
    model = train_model(decided_examples(store.reviews), now)
    return model, own.put(model, Origin.REVIEWS, decided)


def summary(model: LinearModel | None, *, used: bool) -> dict[str, Any]:
    """Returns what a model was trained on and how well it does."""
    if model is None:
        return {"used": False}
    facts = {"examples": model.examples, "harmful": model.harmful, "auc": round(model.auc, 4), "trained_at": model.trained_at}
    return {**facts, "used": used}


def status(settings: Settings) -> dict[str, Any]:
    """Returns the summary of the model in use, `{"used": False}` without one."""
    return summary(LinearModel.load(own_model(settings).path), used=True)


def train(settings: Settings, now: float) -> dict[str, Any]:
    """Trains on the decided reviews; as `trained`. Returns the summary."""
    with closing(open_store(settings)) as store:
        model, used = trained(settings, store, None, now)
    return summary(model, used=used)


def remove(settings: Settings) -> bool:
    """Removes the model; none is trained by itself afterwards. Returns whether there was one.

    Raises:
        ClassifyError: it cannot be removed.
    """
    return own_model(settings).remove()


def false_blocks(store: Store, since: float) -> tuple[list[FalseBlockRow], list[LoweredWord]]:
    """Returns the false blocks that people found by week and category, and the words that weigh less since, lightest first."""
    words = lowered_words(store.decisions.decided_pages(MOST_PAGES))
    lowered = sorted(words.values(), key=lambda word: (word.factor, word.category, word.word))
    return false_block_rows(store.decisions.decisions_since(since)), lowered


def false_block_document(rows: Sequence[FalseBlockRow], lowered: Sequence[LoweredWord]) -> dict[str, Any]:
    """Returns what `false_blocks` returns as plain values: `weeks` and `lowered`."""
    return {"weeks": [_row(row) for row in rows], "lowered": [asdict(word) for word in lowered]}


def false_block_report(settings: Settings, since: float) -> dict[str, Any]:
    """Returns `false_block_document`, for a child process."""
    with closing(open_store(settings)) as store:
        return false_block_document(*false_blocks(store, since))


def _row(row: FalseBlockRow) -> dict[str, object]:
    return {
        "week": row.week,
        "category": row.category,
        "decided": row.decided,
        "false_blocks": row.false_blocks,
        "rate": None if row.rate is None else round(row.rate, 4),
        "reviewed": row.reviewed,
    }
