"""The view of a classification, for `check`, `crawl` and `classify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.cli.ui.output import counted, print_table, say
from gatewayfilter.model import HOST_ZONE, in_words
from gatewayfilter.settings import Strictness

if TYPE_CHECKING:
    from gatewayfilter.model import Classification, ScoreBreakdown

_SHOWN_EVIDENCE = 12

_STRICTNESS = {
    Strictness.RELAXED: "the clearest pages alone are blocked",
    Strictness.STANDARD: "pages are blocked that are almost certainly harmful; doubtful ones are allowed and go to review",
    Strictness.STRICT: "doubtful pages are blocked, too",
}


def show_judgement(classification: Classification, strictness: Strictness | None = None) -> None:
    """Prints category, score and limit, certainty, the other scores, and the heaviest words with their places.

    Args:
        classification: the judgement.
        strictness: the one in use, whose meaning is printed beside the certainty; `None` prints none.
    """
    if classification.harmful:
        say(f"{classification.category.upper()}: {classification.summary()}")
    elif classification.doubt:
        say(f"IN DOUBT, allowed: {classification.doubt}, {classification.summary()}")
    else:
        say(f"HARMLESS: nearest to a limit with a score of {classification.score:.1f} (limit {classification.limit:.1f})")
    _show_certainty(classification, strictness)
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
    words = [hit for hit in classification.evidence if hit.zone != HOST_ZONE]
    hits = words[:_SHOWN_EVIDENCE]
    if hits:
        say()
        print_table(
            ("word", "category", "weight", "zone", "position"),
            [(hit.word, hit.category, f"{hit.weight:.2f}", hit.zone, hit.position) for hit in hits],
        )
    if (more := len(words) - len(hits)) > 0:
        say(f"and {counted(more, 'more hit')}")
    show_second_look(classification)


def show_second_look(classification: Classification) -> None:
    """Prints the facts of the second look, if there was one, with what each changes of the log-odds."""
    facts = [hit for hit in classification.evidence if hit.zone == HOST_ZONE]
    if facts:
        say()
        print_table(("second look", "log-odds"), [(fact.word, f"{fact.weight:+.1f}" if fact.weight else "") for fact in facts])


def _show_certainty(classification: Classification, strictness: Strictness | None) -> None:
    worded = in_words(classification.certainty, classification.doubt)
    if worded:
        say(f"certainty that it is harmful: {worded}")
    if worded and strictness is not None:
        say(f"strictness: {strictness}: {_STRICTNESS[strictness]}")


def show_breakdown(then: ScoreBreakdown, now: ScoreBreakdown | None = None, *, compared: bool = False) -> None:
    """Prints how a score came about, line by line.

    Args:
        then: the score breakdown.
        now: by other words, beside it.
        compared: there is a second judgement, whose score breakdown is `now`; `None` is then one without any hit.
    """
    both = [_breakdown_rows(then), _breakdown_rows(now) if now else {_WORDS: ("0.0", ""), _SCORE: ("= 0.0", "")}]
    labels = [label for label in _LABELS if label in both[0] or (compared and label in both[1])]
    if not compared:
        rows = [(label.format(then.category), *both[0][label]) for label in labels]
        print_table(("score breakdown", "", ""), rows)
        return
    cells = [(label.format(then.category), *(" ".join(side.get(label, ("", ""))).strip() for side in both)) for label in labels]
    print_table(("score breakdown", "then", "by today's words"), cells)


_WORDS, _TOPIC, _CONTEXT, _OPINION, _SCORE = _LABELS = (
    "words and combinations",
    "topic words",
    "context",
    "certainty, second opinion",
    "score of {}",
)


def _breakdown_rows(total: ScoreBreakdown) -> dict[str, tuple[str, str]]:
    """Returns label → amount and remark, without lines that add nothing."""
    rows = {_WORDS: (f"{total.strong:.1f}", "")}
    if total.topic:
        rows[_TOPIC] = (f"+ {total.topic_counted:.1f}", f"of {total.topic:.1f}" if total.topic_counted < total.topic else "")
    if total.context:
        capped = f"of {total.context:.1f}" if total.context_counted < total.context else ""
        rows[_CONTEXT] = (f"- {total.context_counted:.1f}", capped)
    if total.opinion:
        rows[_OPINION] = (f"{'+' if total.opinion > 0 else '-'} {abs(total.opinion):.1f}", "")
    few = f"; {total.words} of {total.min_words} words that it needs" if total.words < total.min_words else ""
    rows[_SCORE] = (f"= {total.score:.1f}", f"limit {total.limit:.1f}{few}")
    return rows
