"""The different terms of a text: compiled and in Python the same, whatever the text."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.classify.models import text_model
from gatewayfilter.classify.models.text_model import (
    BITS,
    MAX_CHARACTERS,
    WINDOW,
    DistinctTerms,
    plain_distinct_terms,
    plain_sums,
    sums_of,
)
from gatewayfilter.classify.normalize.views import squashed_view
from gatewayfilter.compiled import load, why_not

NOT_BUILT = why_not("gatewayfilter.classify.models._terms")
compiled = load("gatewayfilter.classify.models._terms")
needs_compiled = pytest.mark.skipif(bool(NOT_BUILT), reason=f"_terms is not in use: {NOT_BUILT}")
SIGNS = "abz'09 _-.\n\u0301\u00b2\u00e9\u0660\u0e01\u2160\u3042\u4e00\u9fa5\uac00\ud800\uff21\U00020000\U0001f600"
"""Letters, digits and ideographs of each length in UTF-8, and what parts them."""


def told_apart(terms: DistinctTerms) -> tuple[int, int, list[tuple[int, int]], list[int]]:
    """Returns terms in an order that does not depend on who found them."""
    rows = sorted(zip(terms.windows.tolist(), terms.places.tolist(), strict=True))
    return terms.words, terms.window_count, rows, sorted(terms.places[terms.is_first].tolist())


@needs_compiled
@settings(max_examples=30)
@given(st.text(SIGNS, max_size=700) | st.text(max_size=300))
@example("")
@example("free spins " * 32)  # 64 words: half a window is rounded to the even number
@example("free spins " * 96)
@example("one two three " * 300)
@example("\u514d" * MAX_CHARACTERS)
def test_compiled_terms_are_those_of_python(text: str) -> None:
    assert compiled is not None
    found = DistinctTerms(*compiled.distinct_terms(squashed_view(text[:MAX_CHARACTERS]), WINDOW, BITS))
    assert told_apart(found) == told_apart(plain_distinct_terms(text))


def test_each_place_is_first_once_and_each_term_once_a_window() -> None:
    terms = text_model.distinct_terms(" ".join(f"word{chr(97 + index % 23)}" for index in range(400)))
    assert terms.words == 400
    assert terms.window_count == 3
    keys = list(zip(terms.windows.tolist(), terms.places.tolist(), strict=True))
    assert len(set(keys)) == len(keys) > len(set(terms.places.tolist())) == np.count_nonzero(terms.is_first)


@needs_compiled
@pytest.mark.parametrize(("text", "window", "bits"), [("a", 0, 20), ("a", 128, 0), ("a", 128, 21), ("a " * 5000, 1, 20)])
def test_what_does_not_fit_a_key_is_refused(text: str, window: int, bits: int) -> None:
    assert compiled is not None
    with pytest.raises(ValueError, match=r"no such windows|too many windows"):
        compiled.distinct_terms(text, window, bits)


RARITY = np.random.default_rng(7).integers(0, 256, 1 << BITS, np.uint8)
WEIGHTS = np.random.default_rng(8).integers(-128, 128, (3, 1 << BITS), np.int8)


@needs_compiled
@given(st.text(SIGNS, max_size=700), st.integers(0, 2))
@example("free spins " * 500, 1)
def test_compiled_sums_are_those_of_python(text: str, row: int) -> None:
    terms = plain_distinct_terms(text)
    for compiled_sum, plain_sum in zip(
        sums_of(terms, RARITY, WEIGHTS, row), plain_sums(terms, RARITY, WEIGHTS, row), strict=True
    ):
        assert compiled_sum.tolist() == plain_sum.tolist()


@needs_compiled
@pytest.mark.parametrize(
    ("window", "place", "count", "row"),
    [(1, 0, 1, 0), (-1, 0, 1, 0), (0, 8, 1, 0), (0, -1, 1, 0), (0, 0, 0, 0), (0, 0, 1, 2), (0, 0, 1, -1)],
)
def test_sums_of_what_does_not_belong_together_are_refused(window: int, place: int, count: int, row: int) -> None:
    assert compiled is not None
    rows = np.array([window]), np.array([place]), np.array([1], np.uint8)
    with pytest.raises(ValueError, match=r"the terms are damaged|no such weights"):
        compiled.sums(*rows, count, np.zeros(8, np.uint8), np.zeros((2, 8), np.int8), row)


class Standing:
    """Stands in for the compiled module."""

    def distinct_terms(self, text: str, window: int, bits: int) -> tuple[object, ...]:
        return text, window, bits, "places", "first"

    def sums(self, windows: Any, places: Any, first: Any, count: int, *more: Any) -> tuple[object, ...]:
        return windows.tolist(), places.tolist(), first.tolist(), count, more[-1]


def test_what_is_compiled_is_used_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = plain_distinct_terms("free spins")
    sums = [each.tolist() for each in plain_sums(terms, RARITY, WEIGHTS, 1)]
    monkeypatch.setattr(text_model, "_compiled", Standing())
    found: list[Any] = [text_model.distinct_terms(text) for text in ("c4sino", "a" * MAX_CHARACTERS + "b")]
    assert [each[:3] for each in found] == [(text, WINDOW, BITS) for text in ("casino", "a" * MAX_CHARACTERS)]
    added: Any = sums_of(terms, RARITY, WEIGHTS, 1)
    assert added == (terms.windows.tolist(), terms.places.tolist(), terms.is_first.tolist(), terms.window_count, 1)
    monkeypatch.setattr(text_model, "_compiled", None)
    assert told_apart(text_model.distinct_terms("free spins")) == told_apart(terms)
    assert [each.tolist() for each in sums_of(terms, RARITY, WEIGHTS, 1)] == sums
