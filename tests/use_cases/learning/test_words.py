from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ClassifyError, UnknownCategoryError
from gatewayfilter.use_cases.learning.word_sandbox import judge_page, page_of_text
from gatewayfilter.use_cases.learning.words import (
    ImportOptions,
    NewPhrases,
    add_phrases,
    category_words,
    exported_words,
    import_phrases,
    remove_phrases,
    word_categories,
)
from gatewayfilter.wiring import load_lexicon
from tests.use_cases.small_program import small_program


@pytest.mark.slow
def test_phrases_are_added_shown_and_removed(settings: Settings) -> None:
    assert add_phrases(settings, NewPhrases("gambling", ("lucky wheel", "deposit + code"), 8.0)) == 2
    assert add_phrases(settings, NewPhrases("gambling", ("bingo wings",), exception=True)) == 1
    own = category_words(settings, "gambling", only_own=True).words
    assert [(row.kind, row.phrase, row.weight) for row in own] == [
        ("combination", "deposit + code", 8.0),
        ("word", "lucky wheel", 8.0),
        ("exception", "bingo wings", None),
    ]
    assert "lucky wheel" in exported_words(settings, "gambling")
    removed = remove_phrases(settings, "gambling", ["lucky wheel", "not there"])
    assert (removed.removed, removed.missing) == (1, ("not there",))
    assert "gambling" in [item.category for item in word_categories(settings)]


def test_a_misspelt_category_is_not_made(settings: Settings) -> None:
    with pytest.raises(UnknownCategoryError, match="did you mean 'gambling'") as caught:
        add_phrases(settings, NewPhrases("gamblin", ("x y",)))
    assert "--" not in str(caught.value)
    assert add_phrases(settings, NewPhrases("gamblin", ("x y",)), new_category=True) == 1
    with pytest.raises(ClassifyError, match="either context or an exception"):
        add_phrases(settings, NewPhrases("gambling", ("x",), context=True, exception=True))


def test_a_file_is_imported_and_its_bad_lines_named(settings: Settings) -> None:
    found = import_phrases(settings, b"lucky wheel\n<>\n", "mine.txt", ImportOptions("gambling"))
    assert (found.read, found.changed, found.rejected, found.samples[0].line) == (1, 1, 1, 2)
    again = import_phrases(settings, exported_words(settings, "gambling", only_own=True).encode(), "x.toml", ImportOptions())
    assert (again.category, again.read, again.changed) == ("gambling", 1, 0)
    with pytest.raises(ClassifyError, match=r"x\.toml is not UTF-8"):
        import_phrases(settings, b"\xff", "x.toml", ImportOptions())


@pytest.mark.slow
def test_a_text_is_judged_and_marked(settings: Settings) -> None:
    found = judge_page(settings, page_of_text("free spins at our online casino <script>alert(1)</script>"))
    marked = [segment.evidence.word for segment in found.zones[0].segments if segment.evidence]
    assert any("casino" in word for word in marked)
    assert found.score_breakdown is not None
    assert found.score_breakdown.category == "gambling"


def test_words_that_were_read_before_are_those_that_are_shown(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_program(tmp_path / "bundled", monkeypatch)
    before = load_lexicon(settings)
    add_phrases(settings, NewPhrases("gambling", ("lucky wheel", "wheel + luck"), 8.0))
    (old,) = (item for item in word_categories(settings, before) if item.category == "gambling")
    (new,) = (item for item in word_categories(settings) if item.category == "gambling")
    assert (new.words - old.words, new.combinations - old.combinations) == (1, 1)
    for lexicon, is_there in ((before, False), (None, True)):
        rows = category_words(settings, "gambling", lexicon=lexicon).words
        assert (("lucky wheel", 8.0) in [(row.phrase, row.weight) for row in rows]) is is_there
        assert ("lucky wheel" in exported_words(settings, "gambling", lexicon=lexicon)) is is_there


def test_words_combinations_and_exceptions_of_a_file_are_counted_together(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_program(tmp_path / "bundled", monkeypatch)
    add_phrases(settings, NewPhrases("gambling", ("lucky wheel", "wheel + luck", "big + win"), 8.0))
    add_phrases(settings, NewPhrases("gambling", ("bingo wings", "wheel chair"), exception=True))
    near = '\n[[near]]\nname = "wheels"\nweight = 3\none = ["wheel"]\nother = ["luck"]\n'
    content = exported_words(settings, "gambling", only_own=True) + near
    found = import_phrases(settings, content.encode(), "x.toml", ImportOptions("other", new_category=True))
    assert (found.category, found.read, found.changed, found.rejected) == ("other", 6, 6, 0)
