"""How a classification is shown: by `check`, `crawl` and `classify` alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.cli.output import counted, print_table, say

if TYPE_CHECKING:
    from gatewayfilter.model import Classification

_SHOWN_EVIDENCE = 12


def show_judgement(classification: Classification) -> None:
    """Prints category, score and limit, the other scores, and the heaviest words with their places."""
    if classification.harmful:
        say(f"{classification.category.upper()}: {classification.summary()}")
    else:
        say(f"HARMLESS: nearest to a limit with a score of {classification.score:.1f} (limit {classification.limit:.1f})")
    if classification.title:
        say(f"title: {classification.title}")
    if classification.charset:
        say(f"charset: {classification.charset}")
    others = {name: score for name, score in classification.scores.items() if name != classification.category}
    if others:
        say(
            "other scores: "
            + ", ".join(f"{name} {score:.1f}" for name, score in sorted(others.items(), key=lambda item: -item[1]))
        )
    if classification.fields:
        say()
        print_table(("field", "value"), [(name, value) for name, values in classification.fields.items() for value in values])
    hits = classification.evidence[:_SHOWN_EVIDENCE]
    if hits:
        say()
        print_table(
            ("word", "category", "weight", "zone", "position"),
            [(hit.word, hit.category, f"{hit.weight:.2f}", hit.zone, hit.position) for hit in hits],
        )
    if (more := len(classification.evidence) - len(hits)) > 0:
        say(f"and {counted(more, 'more hit')}")
