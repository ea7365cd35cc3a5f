from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.classify import CustomWords, Lexicon, PhraseList, export_category, parse_phrase_list
from gatewayfilter.classify.lexicon.word_file import WordFile, format_word_file, parse_word_file
from gatewayfilter.errors import ClassifyError
from tests.case_tables import all_cases

CATEGORIES = {"adult", "gambling", "fraud", "violence", "drugs", "malware"}


def test_the_bundled_lexicon(lexicon: Lexicon) -> None:
    assert set(lexicon.categories) == CATEGORIES
    assert lexicon.word_count() > 1500
    assert all(category.min_words >= 2 for category in lexicon.categories.values())


@all_cases(
    ("text", "sentence"),
    [
        ("limit = 3", "'category' must be"),
        ('category = "A b"', "'category' must be"),
        ('category = "a"\nword = 1', "unknown key 'word'; did you mean 'words'?"),
        ('category = "a"\nlimit = "x"', "'limit': 'x' is no weight"),
        ('category = "a"\nlimit = true', "'limit'"),
        ('category = "a"\nlimit = nan', "'limit'"),
        ('category = "a"\nmin_words = 0', "'min_words': must be from 1 to 100"),
        ('category = "a"\nshort_share = 0.05', "'short_share': must be from 0.1 to 1"),
        ('category = "a"\nshort_share = 1.5', "'short_share': must be from 0.1 to 1"),
        ('category = "any"\nshort_share = 0.5', "'short_share' cannot stand in a file"),
        ('category = "a"\nmin_words = "2"', "'min_words': must be a int"),
        ('category = "a"\n[words]\n5 = "x"', "'words.5': must be a list"),
        ('category = "a"\n[words]\n2.5 = ["x"]', "a weight with a point stands in quotes"),
        ('category = "a"\n[words]\nx = ["x"]', "'words.x': 'x' is no weight"),
        ('category = "a"\n[words]\n"-5" = ["x"]', "a weight must be above 0"),
        ('category = "a"\n[words]\n5 = ["x", 3]', "'words.5[1]': a phrase must be text"),
        ('category = "a"\n[words]\n5 = ["x", "x"]', "'words.5[1]': 'x' stands twice"),
        ('category = "a"\n[words]\n5 = ["..."]', "has no letter or digit"),
        ('category = "a"\n[words]\n5 = ["a*b"]', "'*' may stand only at an end"),
        ('category = "a"\n[combinations]\n5 = [["x"]]', "'combinations.5[0]': must be a list of 2 to 8 phrases"),
        ('category = "a"\nexceptions = "x"', "'exceptions': must be a list of phrases"),
        ("category = = 1", "line 1"),
    ],
)
def test_errors_name_file_and_key(text: str, sentence: str) -> None:
    with pytest.raises(ClassifyError) as error:
        parse_word_file(text, "my/words.toml")
    assert str(error.value).startswith("my/words.toml")
    assert sentence in str(error.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ClassifyError, match=r"a\.toml"):
        Lexicon.load([tmp_path])
    assert Lexicon.load([tmp_path / "absent"]).categories == {}


def test_later_files_add_and_override() -> None:
    first = WordFile("a", limit=10.0, words={"One": 5.0, "two": 5.0}, exceptions=["one way"], combinations={("x", "y"): 4.0})
    second = WordFile("a", min_words=1, words={"one": 7.0, "three": 1.0}, removed=["TWO", "one way", "x + y"])
    lexicon = Lexicon.of([first, second])
    category = lexicon.category("a")
    assert category.words == {"one": 7.0, "three": 1.0}
    assert (category.limit, category.min_words) == (10.0, 1)
    assert lexicon.exceptions == frozenset()
    assert category.combinations == {}
    with pytest.raises(ClassifyError, match="there is no word category 'b'; known are: a"):
        lexicon.category("b")


PHRASES = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=20).map(
    lambda text: f"a{text}b".replace("*", "").replace("\ufe61", "").replace("\uff0a", "")
)


@settings(max_examples=30)
@given(st.dictionaries(PHRASES, st.sampled_from([1.0, 2.5, 10.0])), st.lists(PHRASES, unique=True), st.tuples(PHRASES, PHRASES))
def test_a_word_file_reads_back_equal(words: dict[str, float], phrases: list[str], parts: tuple[str, str]) -> None:
    file = WordFile("a-b", "en", 3.5, 2, phrases, phrases, words, words, {parts: -2.0})
    assert parse_word_file(format_word_file(file), "x") == file


def test_own_words(tmp_path: Path) -> None:
    bundled = tmp_path / "bundled"
    bundled.mkdir()
    (bundled / "a.toml").write_text(format_word_file(WordFile("a", words={"old": 5.0})), encoding="utf-8")
    folders = [bundled, tmp_path / "own"]
    own = CustomWords(folders[1])
    assert own.add("a", "New Word", 7)
    assert not own.add("a", "new word", 7)
    assert own.add("a", "good word", -3)
    assert own.add_exception("a", "old town")
    assert not own.add_exception("a", "Old Town")
    lexicon = Lexicon.load(folders)
    assert lexicon.category("a").words == {"old": 5.0, "new word": 7.0}
    assert lexicon.category("a").context == {"good word": 3.0}
    assert lexicon.exceptions == {"old town"}
    assert own.remove("a", "OLD", lexicon)
    assert own.remove("a", "new word", lexicon)
    assert not own.remove("a", "absent", lexicon)
    assert Lexicon.load(folders).category("a").words == {}
    assert own.add("a", "old", 2)
    assert Lexicon.load(folders).category("a").words == {"old": 2.0}
    assert [path.name for path in folders[1].iterdir()] == ["a.toml"]
    exported = export_category(Lexicon.load(folders), "a")
    assert parse_word_file(format_word_file(exported), "x").words == {"old": 2.0}


@pytest.mark.parametrize(
    ("category", "phrase", "weight"),
    [("A", "x", 1), ("../a", "x", 1), ("a", "", 1), ("a", "...", 1), ("a", "x", 0), ("a", "x", 1e9)],
)
def test_own_words_that_cannot_be(tmp_path: Path, category: str, phrase: str, weight: float) -> None:
    with pytest.raises(ClassifyError):
        CustomWords(tmp_path).add(category, phrase, weight)
    assert list(tmp_path.iterdir()) == []


def test_an_e2guardian_list() -> None:
    lines = [
        '#listcategory: "Gambling"',
        "",
        "<casino><30>",
        "< poker ><40>",
        "<free>,<casino chips><50>",
        "< news ><-60>",
        "<><5>",
    ]
    data = "\n".join([*lines, "< no weight >", "nonsense <"]).encode()
    found = parse_phrase_list(data, scale=0.1, weight=2)
    assert found.title == "Gambling"
    assert found.words == {"*casino*": 3.0, "poker": 4.0, "news": -6.0, "no weight": 2.0, "nonsense <": 2.0}
    assert found.combinations == {("*casino chips*", "*free*"): 5.0}
    assert found.rejected == 1
    assert found.samples[0][0] == 7


@all_cases(("codec", "charset"), [("gb18030", "gb2312"), ("big5", "big5"), ("utf-8", "")])
def test_chinese_lists_in_their_charsets(codec: str, charset: str) -> None:
    text = "<賭場><30>\n<線上投注>,<開戶><50>\n" if codec == "big5" else "<赌场><30>\n<线上投注>,<开户><50>\n"
    found = parse_phrase_list(text.encode(codec), scale=1, charset=charset)
    assert found.words == {"赌场": 30.0}
    assert list(found.combinations.values()) == [50.0]


def test_a_plain_list() -> None:
    found = parse_phrase_list("# words\nCasino\n\n***\n赌场\n".encode())
    assert found.words == {"casino": 5.0, "赌场": 5.0}
    assert found.rejected == 1


def test_importing_into_own_words(tmp_path: Path) -> None:
    own = CustomWords(tmp_path)
    phrases = PhraseList(words={"casino": 5.0, "news": -1.0}, combinations={("a", "b"): 3.0})
    assert own.add_all("mine", phrases) == 3
    assert own.add_all("mine", phrases) == 0
    category = Lexicon.load([tmp_path]).category("mine")
    assert (category.words, category.context, category.combinations) == ({"casino": 5.0}, {"news": 1.0}, {("a", "b"): 3.0})


def test_real_phrase_lists(data_folder: Path) -> None:
    for file in sorted((data_folder / "phraselists").iterdir()):
        found = parse_phrase_list(file.read_bytes())
        assert found.words or found.combinations, file.name


@given(st.binary(max_size=500))
def test_any_list_is_read(data: bytes) -> None:
    parse_phrase_list(data)
