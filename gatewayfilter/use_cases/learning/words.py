"""The sensitive words that pages are judged by: shown, added, removed, imported and exported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatewayfilter.classify import CustomWords, PhraseList, WordFile, export_category, format_word_file, parse_phrase_list
from gatewayfilter.classify.lexicon.word_file import CATEGORY_NAME, parse_word_file
from gatewayfilter.errors import ClassifyError
from gatewayfilter.use_cases.category_names import check_category
from gatewayfilter.use_cases.network_facts import known_categories
from gatewayfilter.wiring import custom_words, load_lexicon

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.classify import Lexicon
    from gatewayfilter.config import Settings


@dataclass(frozen=True, slots=True)
class WordCategory:
    """A category of words.

    Attributes:
        words, context, combinations: how many there are.
        limit: weight at which a page is harmful.
        short_share, min_words: of pages with few words.
    """

    category: str
    words: int
    context: int
    combinations: int
    limit: float
    short_share: float
    min_words: int


@dataclass(frozen=True, slots=True)
class WordRow:
    """A phrase.

    Attributes:
        kind: word, combination, near, context, exception or removed.
        weight: of one, `None` where it has none.
    """

    kind: str
    phrase: str
    weight: float | None


@dataclass(frozen=True, slots=True)
class CategoryWords:
    """The words of a category, heaviest first, exceptions and removed ones after them."""

    category: str
    limit: float | None
    short_share: float | None
    min_words: int | None
    words: tuple[WordRow, ...]


@dataclass(frozen=True, slots=True)
class NewPhrases:
    """Phrases that are to be added.

    Attributes:
        phrases: `a + b` counts only where both stand on a page.
        weight: of each.
        context: they count against the category.
        exception: they cover words inside them, which then do not count; they have no weight.
    """

    category: str
    phrases: tuple[str, ...]
    weight: float = 5.0
    context: bool = False
    exception: bool = False


@dataclass(frozen=True, slots=True)
class RemovedPhrases:
    """How many phrases were removed, and those that were not there."""

    removed: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of a file that is no phrase."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class WordImport:
    """What an import did.

    Attributes:
        read: phrases in the file.
        changed: new or changed ones.
        rejected: number of bad lines; `samples` has the first of them.
    """

    category: str
    read: int
    changed: int
    rejected: int
    samples: tuple[BadLine, ...]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a file of phrases is read.

    Attributes:
        category: of the phrases; `""` for the one that the file names.
        new_category: a category that is not known is made.
        weight: of phrases that bring none.
        scale: what weights of e2guardian lists are multiplied by.
        charset: `""` to find it out.
    """

    category: str = ""
    new_category: bool = False
    weight: float = 5.0
    scale: float = 0.2
    charset: str = ""


def word_categories(settings: Settings, lexicon: Lexicon | None = None) -> list[WordCategory]:
    """Returns the categories of words, by name; `lexicon` where it was read before."""
    return [
        WordCategory(
            item.name,
            len(item.words),
            len(item.context),
            len(item.combinations) + len(item.near),
            item.limit,
            item.short_share,
            item.min_words,
        )
        for item in sorted((lexicon or load_lexicon(settings)).categories.values(), key=lambda item: item.name)
    ]


def category_words(settings: Settings, category: str, *, only_own: bool = False, lexicon: Lexicon | None = None) -> CategoryWords:
    """Returns the words of a category; `lexicon` where it was read before.

    Raises:
        ClassifyError: there is no such category.
    """
    file = word_file(settings, category, only_own=only_own, lexicon=lexicon)
    return CategoryWords(category, file.limit, file.short_share, file.min_words, tuple(_rows(file)))


def word_file(settings: Settings, category: str, *, only_own: bool = False, lexicon: Lexicon | None = None) -> WordFile:
    """Returns the words of a category as a file holds them; `lexicon` where it was read before.

    Raises:
        ClassifyError: there is no such category.
    """
    if only_own:
        return custom_words(settings).read(category)
    return export_category(lexicon or load_lexicon(settings), category)


def exported_words(settings: Settings, category: str, *, only_own: bool = False, lexicon: Lexicon | None = None) -> str:
    """Returns the words of a category as TOML, which an import reads back; `lexicon` where it was read before.

    Raises:
        ClassifyError: there is no such category.
    """
    return format_word_file(word_file(settings, category, only_own=only_own, lexicon=lexicon))


def _rows(file: WordFile) -> list[WordRow]:
    weighted = [
        *(("word", phrase, weight) for phrase, weight in file.words.items()),
        *(("combination", " + ".join(parts), weight) for parts, weight in file.combinations.items()),
        *(("near", near.name, near.weight) for near in file.near),
        *(("context", phrase, -weight) for phrase, weight in file.context.items()),
    ]
    weighted.sort(key=lambda row: (-row[2], row[1]))
    return [
        *(WordRow(*row) for row in weighted),
        *(WordRow("exception", phrase, None) for phrase in file.exceptions),
        *(WordRow("removed", phrase, None) for phrase in file.removed),
    ]


def add_phrases(settings: Settings, new: NewPhrases, *, new_category: bool = False) -> int:
    """Adds phrases, or changes their weight. A running filter applies them within a second. Returns the number of changed ones.

    Raises:
        ClassifyError: a phrase, a weight or the category's name is none.
        UnknownCategoryError: there is no such category; `new_category` makes it.
    """
    if new.context and new.exception:
        raise ClassifyError("a phrase is either context or an exception")
    own = _checked(settings, new.category, new=new_category)
    if new.exception:
        return sum(own.add_exception(new.category, phrase) for phrase in new.phrases)
    return own.add_all(new.category, _weighted(new.phrases, -new.weight if new.context else new.weight))


def _weighted(phrases: Sequence[str], weight: float) -> PhraseList:
    target = PhraseList()
    for phrase in phrases:
        parts = tuple(part.strip() for part in phrase.split(" + "))
        if len(parts) > 1:
            target.combinations[parts] = weight
        else:
            target.words[phrase] = weight
    return target


def remove_phrases(settings: Settings, category: str, phrases: Sequence[str]) -> RemovedPhrases:
    """Removes phrases as `category_words` has them, those that come with the program too.

    Raises:
        ClassifyError: there is no such category.
    """
    own, lexicon = custom_words(settings), load_lexicon(settings)
    missing = tuple(phrase for phrase in phrases if not own.remove(category, phrase, lexicon))
    return RemovedPhrases(len(phrases) - len(missing), missing)


def import_phrases(settings: Settings, content: bytes, name: str, options: ImportOptions) -> WordImport:
    """Imports phrases: one a line, e2guardian's phrase lists, or what `exported_words` writes (a name that ends in `.toml`).

    Args:
        settings: the settings.
        content: of the file.
        name: of the file.
        options: how it is read.

    Raises:
        ClassifyError: it holds no usable phrase, or no category is named.
        UnknownCategoryError: there is no such category; `options.new_category` makes it.
    """
    category = options.category
    own = _checked(settings, category, new=options.new_category) if category else custom_words(settings)
    exceptions: list[str] = []
    if name.endswith(".toml"):
        category, phrases, exceptions = _of_word_file(content, name, category)
    else:
        phrases = parse_phrase_list(content, weight=options.weight, scale=options.scale, charset=options.charset)
    if not category:
        raise ClassifyError("name the category of the words: --category NAME")
    if not (phrases.words or phrases.combinations or phrases.near or exceptions):
        line, why = phrases.samples[0] if phrases.samples else (1, "nothing but comments")
        raise ClassifyError(f"{name} holds no usable word; line {line}: {why}")
    changed = own.add_all(category, phrases) + sum(own.add_exception(category, phrase) for phrase in exceptions)
    read = len(phrases.words) + len(phrases.combinations) + len(phrases.near) + len(exceptions)
    return WordImport(category, read, changed, phrases.rejected, tuple(BadLine(*sample) for sample in phrases.samples))


def _of_word_file(content: bytes, name: str, category: str) -> tuple[str, PhraseList, list[str]]:
    try:
        file = parse_word_file(content.decode(), name)
    except UnicodeDecodeError as error:
        raise ClassifyError(f"{name} is not UTF-8 text: byte {error.start}") from error
    against = {phrase: -weight for phrase, weight in file.context.items()}
    return (
        category or file.category,
        PhraseList({**file.words, **against}, dict(file.combinations), near=file.near),
        file.exceptions,
    )


def _checked(settings: Settings, category: str, *, new: bool) -> CustomWords:
    """Returns the operator's own words when the category is known or may be made."""
    if not new and CATEGORY_NAME.fullmatch(category):  # `CustomWords` refuses another with what a name is
        check_category(category, known_categories(settings, allowing=True) | set(load_lexicon(settings).categories))
    return custom_words(settings)
