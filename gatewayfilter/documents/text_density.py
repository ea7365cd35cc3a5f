"""The main text of a page by text density: where prose stands close together.

Source: [cloud-crawler §5.1]: density, Gaussian smoothing over neighbours, maximum-sum subsequence.
Deviation: a block element takes the place of a line, so that a minified page reads like any other; characters in links
count against a block instead of not at all; ideographs weigh more than letters (docs/decisions/0006-text-density.md).
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from gatewayfilter.compiled import load

SIGMA = 1.0
"""Standard deviation of the smoothing, in blocks: a caption between two paragraphs is carried, a teaser beside a menu is not."""
THRESHOLD = 25.0
"""Smoothed density that counts neither for nor against main text: half a line of prose outside links."""
MAX_DENSITY = 400.0
"""A longer block counts no more than one of this length: a single imprint or licence must not outweigh an article."""
LINK_WEIGHT = 0.5
"""What a character in a link takes away."""
LEAST_SUM = 150.0
"""Less than two lines of prose is no article."""
LINK_HEAVY = 0.5
"""Share of characters in links above which a block is never main text."""
_IDEOGRAPH_WEIGHT = 2.5
"""An ideograph carries as much as two letters and a half."""
_CJK = re.compile(r"[\u3400-\u9fff\uac00-\ud7a3\u3040-\u30ff]")
_compiled = load("gatewayfilter.documents._density")


class Block(NamedTuple):
    """The text of one block element, whitespace folded, and how many of its characters stand in links."""

    text: str
    link_chars: int

    @property
    def link_heavy(self) -> bool:
        """Whether it is mostly links."""
        return self.link_chars > len(self.text) * LINK_HEAVY


def split_by_density(blocks: Sequence[Block]) -> tuple[list[str], list[str]]:
    """Returns the texts of the main blocks and of the rest, in order; blocks that are mostly links are always rest.

    A page without an article (captions, a landing page) has all its other blocks as main text. Linear in the blocks.
    """
    start, end = main_run(blocks)
    if start == end:
        start, end = 0, len(blocks)
    if _compiled is not None:
        parts: tuple[list[str], list[str]] = _compiled.split(blocks, start, end, LINK_HEAVY)
        return parts
    return pure_split(blocks, start, end)


def pure_split(blocks: Sequence[Block], start: int, end: int) -> tuple[list[str], list[str]]:
    """Does the work of `split_by_density` once the run is known, where it is not compiled."""
    main: list[str] = []
    rest: list[str] = []
    for index, block in enumerate(blocks):
        (main if start <= index < end and not block.link_heavy else rest).append(block.text)
    return main, rest


def main_run(blocks: Sequence[Block]) -> tuple[int, int]:
    """Returns the run of blocks (start, end) that is the main text, `(0, 0)` for none."""
    if _compiled is None:
        return pure_main_run(blocks)
    run: tuple[int, int] = _compiled.main_run(
        list(blocks), _WEIGHTS, THRESHOLD, LEAST_SUM, MAX_DENSITY, LINK_WEIGHT, _IDEOGRAPH_WEIGHT
    )
    return run


def pure_main_run(blocks: Sequence[Block]) -> tuple[int, int]:
    """Does the work of `main_run` where it is not compiled."""
    densities = smoothed([density(block) for block in blocks], SIGMA)
    return densest_run([value - THRESHOLD for value in densities], LEAST_SUM)


def density(block: Block) -> float:
    """Returns the characters outside links, bounded, less half of those inside; in units of letters."""
    weight = _IDEOGRAPH_WEIGHT if not block.text.isascii() and _CJK.search(block.text) else 1.0
    plain = (len(block.text) - block.link_chars) * weight
    return min(plain, MAX_DENSITY) - block.link_chars * weight * LINK_WEIGHT


def smoothed(values: Sequence[float], sigma: float) -> list[float]:
    """Returns the values weighed with their neighbours by a normal distribution, cut off beyond two standard deviations.

    What lies beyond the ends counts as 0. O(n · sigma).
    """
    weights = _weights(sigma)
    reach = len(weights) // 2
    padded = [0.0] * reach + list(values) + [0.0] * reach
    sums = [0.0] * len(values)
    for offset, weight in enumerate(weights):  # one sum after the other, as compiled: sum() and sumprod() round otherwise
        sums = [total + weight * value for total, value in zip(sums, padded[offset:], strict=False)]
    return sums


def _weights(sigma: float) -> list[float]:
    reach = math.ceil(2 * sigma)
    raw = [math.exp(-(offset**2) / (2 * sigma**2)) for offset in range(-reach, reach + 1)]
    whole = math.fsum(raw)
    return [weight / whole for weight in raw]


_WEIGHTS = _weights(SIGMA)


def densest_run(values: Sequence[float], least: float) -> tuple[int, int]:
    """Returns the run (start, end) with the highest sum and above `least`, `(0, 0)` for none; the first of equals. O(n)."""
    best, best_run = least, (0, 0)
    total, start = 0.0, 0
    for index, value in enumerate(values):
        total += value
        if total <= 0.0:
            total, start = 0.0, index + 1
        elif total > best:
            best, best_run = total, (start, index + 1)
    return best_run
