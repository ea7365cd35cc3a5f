"""The operator's own words: one file a category in the state folder, laid over the bundled lexicon."""

from collections.abc import Mapping
from pathlib import Path

from gatewayfilter.classify.lexicon.lexicon import Lexicon
from gatewayfilter.classify.lexicon.phrase_list import PhraseList
from gatewayfilter.classify.lexicon.word_file import (
    MAX_WEIGHT,
    WordFile,
    check_category,
    check_phrase,
    read_word_file,
    write_word_file,
)
from gatewayfilter.classify.normalize.views import normal_view
from gatewayfilter.errors import ClassifyError

DEFAULT_WEIGHT = 5.0


class CustomWords:
    """Adds and removes words in the operator's folder. Each change writes one file whole and renames it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, category: str) -> Path:
        """Returns the file of a category.

        Raises:
            ClassifyError: no name for a category.
        """
        return self._folder / f"{check_category(category)}.toml"

    def read(self, category: str) -> WordFile:
        """Returns the operator's words of a category; empty when there are none yet.

        Raises:
            ClassifyError: the file is damaged, or no name for a category.
        """
        path = self.path(category)
        if not path.exists():
            return WordFile(category)
        file = read_word_file(path)
        if file.category != category:
            raise ClassifyError(f"{path} is for the category {file.category!r}, not {category!r}")
        return file

    def add(self, category: str, phrase: str, weight: float = DEFAULT_WEIGHT) -> bool:
        """Adds a word, or changes its weight; a negative weight makes it context that counts against the category.

        Returns whether anything changed.

        Raises:
            ClassifyError: the word or weight cannot be used, or the file cannot be written.
        """
        return self.add_all(category, PhraseList(words={phrase: weight})) > 0

    def add_exception(self, category: str, phrase: str) -> bool:
        """Adds a phrase that covers hits inside it. Returns whether it is new. Raises as `add`."""
        file = self.read(category)
        phrase = _checked(phrase)
        if phrase in file.exceptions:
            return False
        file.exceptions.append(phrase)
        file.removed = [other for other in file.removed if other != phrase]
        write_word_file(self.path(category), file)
        return True

    def add_all(self, category: str, phrases: PhraseList) -> int:
        """Adds the words, combinations and pairs of an imported list. Returns how many are new or changed. Raises as `add`."""
        file = self.read(category)
        changed = sum(_put(file, _checked(phrase), weight) for phrase, weight in phrases.words.items())
        for parts, weight in phrases.combinations.items():
            checked = tuple(map(_checked, parts))
            changed += file.combinations.get(checked) != weight
            file.combinations[checked] = weight
        for near in phrases.near:
            changed += near not in file.near
            file.near = [*(own for own in file.near if own.name != near.name), near]
        if changed:
            write_word_file(self.path(category), file)
        return changed

    def remove(self, category: str, phrase: str, lexicon: Lexicon) -> bool:
        """Takes a word, context phrase, exception, combination (`a + b`) or pair (by its name) out.

        One that another file has is marked as removed in the operator's own. Returns whether there was one.

        Args:
            category: where it counts.
            phrase: as `words show` prints it.
            lexicon: what is in use now, own words included.

        Raises:
            ClassifyError: no such category, or the file cannot be written.
        """
        known = lexicon.category(category)
        phrase = normal_view(phrase)
        parts = tuple(phrase.split(" + "))
        shared = lexicon.exceptions | lexicon.offers
        if phrase not in known.words | known.context | known.near and parts not in known.combinations and phrase not in shared:
            return False
        file = self.read(category)
        tables: tuple[dict[str, float], ...] = (file.words, file.context)
        for table in tables:
            for own in [own for own in table if normal_view(own) == phrase]:
                del table[own]
        for own_parts in [own for own in file.combinations if tuple(map(normal_view, own)) == parts]:
            del file.combinations[own_parts]
        file.near = [near for near in file.near if near.name != phrase]
        file.exceptions = [own for own in file.exceptions if normal_view(own) != phrase]
        if phrase not in file.removed:
            file.removed.append(phrase)
        write_word_file(self.path(category), file)
        return True


def export_category(lexicon: Lexicon, name: str) -> WordFile:
    """Returns a category in use as one word file; `format_word_file` makes its text.

    Exceptions belong to no category: all of them are in it.

    Raises:
        ClassifyError: no such category.
    """
    category = lexicon.category(name)
    combinations: Mapping[tuple[str, ...], float] = category.combinations
    return WordFile(
        name,
        limit=category.limit,
        min_words=category.min_words,
        exceptions=sorted(lexicon.exceptions),
        words=dict(category.words),
        context=dict(category.context),
        combinations=dict(combinations),
        short_share=category.short_share,
        near=list(category.near.values()),
    )


def _checked(phrase: str) -> str:
    try:
        return normal_view(check_phrase(phrase))
    except ValueError as error:
        raise ClassifyError(str(error)) from error


def _put(file: WordFile, phrase: str, weight: float) -> bool:
    if not 0 < abs(weight) <= MAX_WEIGHT:
        raise ClassifyError(f"a weight must not be 0 and at most {MAX_WEIGHT:.0f}, not {weight:g}")
    table, other = (file.words, file.context) if weight > 0 else (file.context, file.words)
    changed = table.get(phrase) != abs(weight) or phrase in other or phrase in file.removed
    other.pop(phrase, None)
    table[phrase] = abs(weight)
    file.removed = [removed for removed in file.removed if removed != phrase]
    return changed
