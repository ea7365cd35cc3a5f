"""The calibration: knots, trees, and what they look at."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from gatewayfilter.classify.models.calibration import (
    BLOCKED_FROM,
    DOUBT,
    INPUTS,
    KINDS,
    LONG_TEXT,
    OWN_SHARE,
    Calibration,
    Candidate,
    inputs_of,
)
from gatewayfilter.classify.models.decision_trees import DEPTH, INNER, LEAVES
from gatewayfilter.classify.models.text_model import (
    TextModel,
)
from gatewayfilter.classify.models.text_reading import NOTHING_READ, Reading
from gatewayfilter.classify.page_form import PLAIN, Form, form_of
from gatewayfilter.settings import Strictness
from tests.classify.models.text_models import NAMES, calibration, trees

UNCLEAR = Reading(*[0.0] * 8)


def candidate(**changed: Any) -> Candidate:
    return Candidate("drugs", 1.0, 1.0, 0.5, 0.0, 0.0, 3, True, True, 0.0, 400, False, PLAIN)._replace(**changed)


def test_the_scale_passes_through_its_knots() -> None:
    scale = calibration()
    found = [scale.scaled(odds, 0) for odds in (0.0, 1.0, 2.0)]
    assert found == pytest.approx(list(BLOCKED_FROM.values()))
    assert pytest.approx(min(BLOCKED_FROM.values())) == DOUBT
    rising = [scale.scaled(odds, 0) for odds in np.linspace(-60, 60, 121)]
    assert rising == sorted(rising)
    assert 0 < rising[0] < 1e-9 < 1 - 1e-9 < rising[-1] <= 1
    read = [scale.certainty(candidate(), NOTHING_READ._replace(mean=mean)) for mean in (-0.05, 1.05, 2.05)]
    assert read[0] == pytest.approx(BLOCKED_FROM[Strictness.STRICT], abs=0.03)
    assert read[1] >= BLOCKED_FROM[Strictness.STANDARD] > read[0]
    assert read[2] >= BLOCKED_FROM[Strictness.RELAXED] > read[1]


def test_a_tree_is_followed_as_it_was_grown() -> None:
    chance = np.random.default_rng(3)
    grown = trees(
        start=0.5,
        inputs=chance.integers(0, len(INPUTS), (40, INNER)).astype(np.int16),
        limits=chance.normal(size=(40, INNER)).astype(np.float32),
        leaves=chance.normal(size=(40, LEAVES)).astype(np.float32),
    )
    for _ in range(20):
        values = chance.normal(size=len(INPUTS)).astype(np.float32)
        total = grown.start
        for tree in range(40):
            node = 0
            for _ in range(DEPTH):
                node = 2 * node + 1 + int(values[grown.inputs[tree, node]] > grown.limits[tree, node])
            total += float(grown.leaves[tree, node - INNER])
        assert grown.sum_of(values.tolist()) == pytest.approx(total, abs=1e-4)


def test_trees_of_a_category_count_beside_those_of_all() -> None:
    own = replace(trees(), start=trees().start + 10.0)
    scale = calibration(own={NAMES.index("drugs"): own})
    for loaded in (scale, Calibration.of(scale.arrays())):
        drugs, gambling = (loaded.odds(candidate(category=name), UNCLEAR) for name in ("drugs", "gambling"))
        assert gambling == pytest.approx(calibration().odds(candidate(), UNCLEAR))
        assert drugs - gambling == pytest.approx(10.0 * OWN_SHARE)


def test_the_bundled_certainty_rises_with_the_words_and_the_reading(bundled: TextModel) -> None:
    scale = bundled.calibration
    for ideographic in (False, True):
        page = candidate(ideographic=ideographic)
        read = [scale.odds(page, Reading(*[mean] * 8)) for mean in np.linspace(-3, 3, 25).tolist()]
        assert read == sorted(read)
        assert read[0] < read[-1]
        said = [scale.odds(page._replace(ratio=ratio, strong=ratio), UNCLEAR) for ratio in np.linspace(0, 5, 21)]
        assert said == sorted(said)


def test_the_form_of_a_text() -> None:
    prose = form_of(
        "The library is open from Monday to Saturday, and new novels stand beside the entrance.\n" * 3, ideographic=False
    )
    menu = form_of("home\nslots\n12:30\n88.50\n" * 3, ideographic=False)
    assert prose.short == 0 < menu.short <= 1
    assert prose.line > menu.line > 0
    assert prose.digits == 0 < menu.digits < 1
    assert form_of("图书馆周一到周六开放", ideographic=True).latin == 0 < menu.latin == 1
    assert form_of("", ideographic=False) == form_of("\n\n", ideographic=True) == PLAIN


@limits(max_examples=50)
@given(st.text(st.characters(exclude_categories=()), max_size=300), st.booleans())
def test_any_text_has_a_form(text: str, ideographic: bool) -> None:  # noqa: FBT001  given by position
    form = form_of(text, ideographic=ideographic)
    assert np.isfinite(form).all()
    assert len(inputs_of(candidate(form=form), 0, UNCLEAR)) == len(INPUTS) == 12 + len(Reading._fields) + len(Form._fields)


def test_each_kind_of_page_has_knots_of_its_own() -> None:
    columns = [
        calibration().column(candidate(category=name, ideographic=ideographic, length=length))
        for name in NAMES
        for ideographic in (False, True)
        for length in (LONG_TEXT, LONG_TEXT + 1)
    ]
    assert columns == list(range(KINDS * len(NAMES)))
