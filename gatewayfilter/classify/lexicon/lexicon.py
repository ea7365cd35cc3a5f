"""The sensitive words of all categories: what counts, how much, what covers a hit and what counts against it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gatewayfilter.classify.lexicon.proximity import Proximity
from gatewayfilter.classify.lexicon.word_file import ANY, WordFile, read_word_file
from gatewayfilter.classify.normalize.views import normal_view
from gatewayfilter.errors import ClassifyError

DEFAULT_LIMIT = 20.0
DEFAULT_MIN_WORDS = 3


@dataclass(frozen=True, slots=True)
class Combination:
    """Words that count only together.

    Attributes:
        parts: phrases as the lexicon writes them, at least two.
        weight: what all of them on one page add; negative counts against the category.
    """

    parts: tuple[str, ...]
    weight: float

    def __str__(self) -> str:
        return " + ".join(self.parts)


@dataclass(slots=True)
class Category:
    """One category's words.

    Attributes:
        limit: a page whose score is above it is of this category …
        near: name → two lists of phrases that count where they stand close together.
        short_share: of the limit, what it falls to on the shortest pages; 1 for not at all.
        min_words: … when at least so many different words were found.
        words: phrase → weight, above zero.
        context: phrase → what it takes away from the score, above zero.
    """

    name: str
    limit: float = DEFAULT_LIMIT
    min_words: int = DEFAULT_MIN_WORDS
    words: dict[str, float] = field(default_factory=dict)
    context: dict[str, float] = field(default_factory=dict)
    combinations: dict[tuple[str, ...], float] = field(default_factory=dict)
    short_share: float = 1.0
    near: dict[str, Proximity] = field(default_factory=dict)

    def combined(self) -> list[Combination]:
        """Returns the combinations."""
        return [Combination(parts, weight) for parts, weight in self.combinations.items()]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All categories, and the phrases that cover a hit wherever they contain one (the longest match wins).

    A phrase is matched as whole words where its ends are letters or digits of an alphabet; `*` at an end opens that end.

    Attributes:
        offers: phrases by which a page offers something; they weigh nothing themselves (score.py).
        context: phrase → what it takes away from the score of every category, above zero.
    """

    categories: Mapping[str, Category]
    exceptions: frozenset[str] = frozenset()
    offers: frozenset[str] = frozenset()
    context: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def load(cls, folders: Sequence[Path]) -> "Lexicon":
        """Reads every `*.toml` of the folders; a later folder adds to the earlier ones, or overrides them word by word.

        A folder that is not there is passed over.

        Raises:
            ClassifyError: a file cannot be read or is wrong: the sentence names file and key.
        """
        return cls.of(read_word_file(path) for folder in folders for path in sorted(folder.glob("*.toml")))

    @classmethod
    def of(cls, files: Iterable[WordFile]) -> "Lexicon":
        """Joins word files; later ones win."""
        categories: dict[str, Category] = {}
        shared = Category(ANY)
        exceptions: set[str] = set()
        offers: set[str] = set()
        for file in files:
            _join(shared if file.category == ANY else categories.setdefault(file.category, Category(file.category)), file)
            removed = {_normalised(phrase) for phrase in file.removed}
            exceptions = (exceptions - removed) | {_normalised(phrase) for phrase in file.exceptions}
            offers = (offers - removed) | {_normalised(phrase) for phrase in file.offers}
        return cls(categories, frozenset(exceptions), frozenset(offers), shared.context)

    def word_count(self) -> int:
        """Returns how many words and combinations there are."""
        return sum(len(item.words) + len(item.combinations) + len(item.near) for item in self.categories.values())

    def category(self, name: str) -> Category:
        """Returns a category.

        Raises:
            ClassifyError: there is none of this name.
        """
        try:
            return self.categories[name]
        except KeyError:
            known = ", ".join(sorted(self.categories)) or "none"
            raise ClassifyError(f"there is no word category {name!r}; known are: {known}") from None


def _join(category: Category, file: WordFile) -> None:
    if file.limit is not None:
        category.limit = file.limit
    if file.short_share is not None:
        category.short_share = file.short_share
    if file.min_words is not None:
        category.min_words = file.min_words
    for name in file.removed:
        category.near.pop(name, None)
    for phrase in map(_normalised, file.removed):
        category.words.pop(phrase, None)
        category.context.pop(phrase, None)
        for parts in [parts for parts in category.combinations if phrase == " + ".join(parts)]:
            del category.combinations[parts]
    category.words |= {_normalised(phrase): weight for phrase, weight in file.words.items()}
    category.context |= {_normalised(phrase): weight for phrase, weight in file.context.items()}
    for near in file.near:
        sides = (tuple(dict.fromkeys(map(_normalised, side))) for side in (near.one, near.other))
        category.near[near.name] = Proximity(near.name, near.weight, *sides)
    category.combinations |= {tuple(map(_normalised, parts)): weight for parts, weight in file.combinations.items()}


def _normalised(phrase: str) -> str:
    return normal_view(phrase)
