"""How a score came about, as it is kept and shown."""

from gatewayfilter.classify.classifier import Explained
from gatewayfilter.model import ScoreBreakdown


def breakdown_of(explained: Explained, words_version: str, category: str = "") -> ScoreBreakdown | None:
    """Returns how a category's score came about, `None` where nothing counts for it.

    Args:
        explained: a judgement with its sums.
        words_version: of the words that judged.
        category: category of the score; by default the page's, and of a harmless page the one nearest to its limit.
    """
    found = explained.classification
    # Each category has a limit of its own.
    shares = {name: total.score / total.limit for name, total in explained.sums.items() if name in found.scores}
    name = category or found.category or max(shares, key=lambda name: shares[name], default="")
    if (total := explained.sums.get(name)) is None:
        return None
    score = found.scores.get(name, 0.0)
    return ScoreBreakdown(
        words_version=words_version,
        category=name,
        strong=round(total.strong, 3),
        topic=round(total.topic, 3),
        topic_counted=round(total.topic_counted, 3),
        context=round(total.context, 3),
        context_counted=round(total.context_counted, 3),
        opinion=round(score - total.score, 3),
        score=score,
        limit=total.limit,
        words=total.words,
        min_words=total.min_words,
    )
