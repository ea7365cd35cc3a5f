"""The compiled twin of the loops of score.py: the same figures from the same hits."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.classify import score
from gatewayfilter.classify.lexicon.lexicon import Combination
from gatewayfilter.classify.lexicon.match_filter import Meaning, Role
from gatewayfilter.classify.score import ZoneHits
from gatewayfilter.compiled import load
from gatewayfilter.model import ZONE_FACTORS

COMPILED: Any = load("gatewayfilter.classify._score")
pytestmark = pytest.mark.skipif(COMPILED is None, reason="the module is not built")

FACTORS = {zone: {role: min(factor, 1.5) for role in Role} for zone, factor in ZONE_FACTORS.items()}
MEANINGS = [
    Meaning(f"word {number}", category, role, weight)
    for number, (category, role, weight) in enumerate(
        (category, role, weight)
        for category in ("a", "b", "any")
        for role in Role
        for weight in (-14.0, -3.5, 0.0, 0.1, 4.9, 5.0, 8.0, 12.3)
    )
]
_zones = st.sampled_from(sorted(ZONE_FACTORS))
_hits = st.dictionaries(st.sampled_from(MEANINGS), st.tuples(st.integers(0, 5), st.integers(5, 9)), max_size=20)
_found = st.lists(st.builds(ZoneHits, _zones, st.just("some text of a page"), st.booleans(), _hits), max_size=6)
_evidence = st.tuples(
    st.text(max_size=2), st.sampled_from(["a", "b"]), st.sampled_from([-14.0, -0.5, 0.0, 3.1, 9.0]), _zones, st.integers(-1, 9)
)


@settings(max_examples=30)
@given(_found)
def test_each_meaning_counts_where_it_counts_most(found: list[ZoneHits]) -> None:
    arguments = found, FACTORS, ZONE_FACTORS, Role.PART, Role.NEAR
    expected = score.best(*arguments)
    assert list(COMPILED.best(*arguments).items()) == list(expected.items())


PARTS = [meaning for meaning in MEANINGS if meaning.role is Role.PART]
_combined = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(
    lambda parts: (Combination(tuple(part.phrase for part in parts), 3.7), tuple(parts))
)
_combinations = st.dictionaries(st.sampled_from(PARTS), st.lists(_combined, max_size=3), max_size=8)


@settings(max_examples=30)
@given(_found, _combinations, st.sampled_from([0.3, 0.77, 1.0]))
def test_the_same_counts(found: list[ZoneHits], combinations: dict[Any, Any], chance: float) -> None:
    best = score.best(found, FACTORS, ZONE_FACTORS, Role.PART, Role.NEAR)
    arguments = best, combinations, chance, Role.PART, Role.NEAR
    expected = score.counted_of(*arguments)
    assert list(COMPILED.counted_of(*arguments).items()) == list(expected.items())


@settings(max_examples=30)
@given(st.lists(st.tuples(_evidence, st.sampled_from([0.1, 4.9, 5.0, 8.0, 12.0]), st.booleans()), max_size=30))
def test_the_same_is_added_up(counted: list[Any]) -> None:
    arguments = counted, ZONE_FACTORS, score.DECISIVE_ZONES, score.DECISIVE, score.WEAK, score.HEAD_WORD
    assert COMPILED.add_up(*arguments) == score.add_up(*arguments)


@settings(max_examples=30)
@given(st.lists(_evidence, max_size=30), st.sampled_from(["a", "b", ""]))
def test_the_heaviest_comes_first(evidence: list[Any], winner: str) -> None:
    assert COMPILED.heaviest(evidence, winner) == score.heaviest(evidence, winner)
