import pytest

from gatewayfilter.model import CERTAINTY_LEVELS, Classification, Evidence, evidence_in_chinese, in_words, level_of

HITS = (Evidence("casino", "gambling", 9.0, "main", 0), Evidence("gun", "violence", 3.0, "main", 5))


@pytest.mark.parametrize(
    ("certainty", "doubt", "worded"),
    [
        (None, "", ""),
        (None, "gambling", "doubtful"),
        (1.0, "", "certain (100 %)"),
        (0.99999, "", "certain (99 %)"),
        (0.99, "", "certain (99 %)"),
        (0.98999, "", "likely (98 %)"),
        (0.9, "", "likely (90 %)"),
        (0.57, "", "doubtful (57 %)"),
        (0.97, "gambling", "doubtful (97 %)"),
        (0.1, "gambling", "doubtful (10 %)"),
        (0.29, "", "unlikely (29 %)"),
        (0.004, "", "unlikely (<1 %)"),
        (0.0, "", "unlikely (0 %)"),
    ],
)
def test_a_probability_in_words(certainty: float | None, doubt: str, worded: str) -> None:
    assert in_words(certainty, doubt) == worded


def test_levels_cover_all_probabilities_in_order() -> None:
    bounds = [level.least for level in CERTAINTY_LEVELS]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == 0.0
    assert [level_of(least) for least in bounds] == list(CERTAINTY_LEVELS)
    assert level_of(-0.01) == level_of(float("nan")) == CERTAINTY_LEVELS[-1]


def test_the_evidence_names_the_level() -> None:
    assert Classification("gambling", 42.0, 20.0, evidence=HITS).summary() == "score 42.0 (limit 20.0): casino"
    said = Classification("gambling", 42.0, 20.0, evidence=HITS, certainty=0.97)
    assert said.summary() == "score 42.0 (limit 20.0), likely (97 %): casino"
    doubted = Classification("", 12.0, 20.0, evidence=HITS, certainty=0.5, doubt="violence")
    assert doubted.summary() == "score 12.0 (limit 20.0), doubtful (50 %): gun"


def test_the_level_in_chinese() -> None:
    said = "score 42.0 (limit 20.0), likely (97 %): casino, certain (1 %)"
    assert evidence_in_chinese(said) == "score 42.0 (limit 20.0)，很可能（97%）: casino, certain (1 %)"  # noqa: RUF001
    assert evidence_in_chinese("score 4.0, unlikely (<1 %): x") == "score 4.0，不太可能（<1%）: x"  # noqa: RUF001
    assert evidence_in_chinese("score 42.0 (limit 20.0): likely") == "score 42.0 (limit 20.0): likely"
