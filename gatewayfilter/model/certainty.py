"""The levels of certainty: the words, in English and Chinese, for a calibrated probability that a page is harmful.

The thresholds of the words are here only. The words describe; whether a page is blocked is decided by `classify.strictness`.
"""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CertaintyLevel:
    """A level of certainty.

    Attributes:
        least: the lowest probability of this level.
        word: in English.
        chinese: in simplified Chinese.
    """

    least: float
    word: str
    chinese: str


DOUBTFUL: Final = CertaintyLevel(0.3, "doubtful", "存疑")
CERTAINTY_LEVELS: Final = (
    CertaintyLevel(0.99, "certain", "确定"),
    CertaintyLevel(0.9, "likely", "很可能"),
    DOUBTFUL,
    CertaintyLevel(0.0, "unlikely", "不太可能"),
)
"""The highest first."""

_CHINESE: Final = {level.word: level.chinese for level in CERTAINTY_LEVELS}
_WORDED: Final = re.compile(rf", ({'|'.join(_CHINESE)}) \((<?\d+) %\)")


def level_of(certainty: float) -> CertaintyLevel:
    """Returns the level of a probability, 0 to 1."""
    return next((level for level in CERTAINTY_LEVELS if certainty >= level.least), CERTAINTY_LEVELS[-1])


def in_words(certainty: float | None, doubt: str = "") -> str:
    """Returns a probability in words, ``likely (97 %)``; `""` where none was estimated.

    Args:
        certainty: the probability, 0 to 1.
        doubt: the category of a page that is allowed and goes to review: it is called doubtful whatever its probability.
    """
    if certainty is None:
        return DOUBTFUL.word if doubt else ""
    level = DOUBTFUL if doubt else level_of(certainty)
    return f"{level.word} ({_percent(certainty)} %)"


def evidence_in_chinese(evidence: str) -> str:
    """Returns the evidence of a list entry with its level of certainty in Chinese."""
    return _WORDED.sub(lambda found: f"，{_CHINESE[found[1]]}（{found[2]}%）", evidence, count=1)  # noqa: RUF001  Chinese commas


def _percent(certainty: float) -> str:
    """Returns whole per cent, rounded down: 100 is a manual verdict only."""
    return "<1" if 0 < certainty < 0.01 else f"{int(certainty * 100 + 1e-9)}"
