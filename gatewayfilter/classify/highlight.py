"""Shows where the words of a classification stand in a text, for `gatewayfilter words test`."""

from dataclasses import dataclass

from gatewayfilter.classify.score import UNPLACED
from gatewayfilter.classify.zones import plain_text
from gatewayfilter.model import Classification, Evidence


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the text; `evidence` is the hit that it is, `None` for the text between hits."""

    text: str
    evidence: Evidence | None = None


def highlight(text: str, classification: Classification) -> tuple[Segment, ...]:
    """Cuts a text at the hits of its own `classify_text`; the segments joined are its normal view."""
    return highlight_zone(plain_text(text).zones.get("main", ""), "main", classification)


def highlight_zone(judged: str, zone: str, classification: Classification) -> tuple[Segment, ...]:
    """Cuts the text of a zone, as it was judged (lower case, blanks folded), at the hits that count in that zone.

    Hits that only the squashed view shows have no place in it; combinations are marked by their own words.
    """
    segments: list[Segment] = []
    done = 0
    for hit in sorted(classification.evidence, key=lambda hit: (hit.position, -len(hit.word))):
        word = hit.word.removeprefix("*").removesuffix("*").strip()
        end = hit.position + len(word)
        if hit.position == UNPLACED or hit.zone != zone or hit.position < done or judged[hit.position : end] != word:
            continue
        if hit.position > done:
            segments.append(Segment(judged[done : hit.position]))
        segments.append(Segment(judged[hit.position : end], hit))
        done = end
    if done < len(judged):
        segments.append(Segment(judged[done:]))
    return tuple(segments)
