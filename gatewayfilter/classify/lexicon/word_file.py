"""The files of the lexicon: TOML, one a category and language.

```toml
category = "gambling"      # required
language = "en"            # for people
limit = 20.0               # score above which a page is of the category
short_share = 0.5          # of the limit: what it falls to on pages of a few words (score.py); 1 for not at all
min_words = 3              # and so many different words are needed
exceptions = ["bingo wings"]      # cover a hit inside them
removed = ["lottery"]             # words of earlier files that do not count
offers = ["sign up now"]          # show that a page offers something: topic words then count in full (score.py)

[words]                    # weight = phrases
10 = ["online casino", "free spins"]
"2.5" = ["jackpot"]

[context]                  # what counts against it: taken away from the score
6 = ["gambling commission"]

[combinations]             # count only together
8 = [["deposit", "bonus code"]]

[[near]]                   # any phrase of one list close to any of the other, in one line; counts up to three times a page
name = "money put in"
weight = 4
one = ["deposit", "top up"]
other = ["bonus", "free bet"]
```

Exceptions and offers count for all categories, whichever file names them. The category `any` is none: its files hold
exceptions, offers, and context that counts against every category.
"""

import json
import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gatewayfilter.classify.lexicon.proximity import Proximity
from gatewayfilter.classify.normalize.views import normal_view
from gatewayfilter.errors import ClassifyError

MAX_PHRASE = 100
"""Characters of a phrase."""
MAX_WEIGHT = 1000.0
LEAST_SHORT_SHARE = 0.1
CATEGORY_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")
ANY = "any"
"""The name that files use for all categories."""
_KEYS = (
    "category",
    "language",
    "limit",
    "short_share",
    "min_words",
    "exceptions",
    "removed",
    "offers",
    "words",
    "context",
    "combinations",
    "near",
)
_NOT_OF_ANY = frozenset({"limit", "short_share", "min_words", "words", "combinations", "near"})


@dataclass(slots=True)
class WordFile:
    """Content of one file; phrases as they are written."""

    category: str
    language: str = ""
    limit: float | None = None
    min_words: int | None = None
    exceptions: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    words: dict[str, float] = field(default_factory=dict)
    context: dict[str, float] = field(default_factory=dict)
    combinations: dict[tuple[str, ...], float] = field(default_factory=dict)
    offers: list[str] = field(default_factory=list)
    short_share: float | None = None
    near: list[Proximity] = field(default_factory=list)


def check_phrase(phrase: object) -> str:
    """Returns the phrase.

    Raises:
        ValueError: it is empty, too long, or nothing but marks.
    """
    if not isinstance(phrase, str):
        raise ValueError(f"a phrase must be text, not {phrase!r}")  # noqa: TRY004  one kind of error for a bad file
    bare = normal_view(phrase.removeprefix("*").removesuffix("*"))
    if not any(map(str.isalnum, bare)):
        raise ValueError(f"{phrase!r} has no letter or digit")
    if len(bare) > MAX_PHRASE:
        raise ValueError(f"the phrase {phrase[:30]!r}… is longer than {MAX_PHRASE} characters")
    if "*" in bare:
        raise ValueError(f"{phrase!r}: '*' may stand only at an end")
    return phrase


def check_category(name: str) -> str:
    """Returns the category's name.

    Raises:
        ClassifyError: not lower-case letters, digits, `-` and `_`.
    """
    if not CATEGORY_NAME.fullmatch(name):
        raise ClassifyError(f"a category's name is lower-case letters, digits, '-' and '_', not {name[:60]!r}")
    return name


def read_word_file(path: Path) -> WordFile:
    """Reads and checks one file.

    Raises:
        ClassifyError: one sentence with the file and the line or key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ClassifyError(f"cannot read the words in {path}: {getattr(error, 'strerror', None) or error}") from error
    return parse_word_file(text, str(path))


def parse_word_file(text: str, name: str) -> WordFile:
    """Reads and checks the text of a file that errors call `name`.

    Raises:
        ClassifyError: one sentence with the name and the line or key.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ClassifyError(f"{name} is not valid TOML: {error}") from error
    for key in document:
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, cutoff=0.5)
            raise ClassifyError(f"{name}: unknown key {key!r}{f'; did you mean {near[0]!r}?' if near else ''}")
    read = _Reader(document, name)
    category = read.of("category", str, "")
    if not CATEGORY_NAME.fullmatch(category):
        raise ClassifyError(f"{name}: 'category' must be lower-case letters, digits, '-' and '_', not {category[:60]!r}")
    if category == ANY and (wrong := _NOT_OF_ANY & document.keys()):
        raise ClassifyError(f"{name}: {min(wrong)!r} cannot stand in a file of the category 'any'")
    return WordFile(
        category,
        read.of("language", str, ""),
        read.limit(),
        read.min_words(),
        read.phrases("exceptions", document.get("exceptions", [])),
        read.phrases("removed", document.get("removed", [])),
        read.weighted("words", read.phrase),
        read.weighted("context", read.phrase),
        read.weighted("combinations", read.parts, negative=True),
        read.phrases("offers", document.get("offers", [])),
        read.short_share(),
        read.near(),
    )


class _Reader:
    """Takes values out of a document; every complaint names file and key."""

    def __init__(self, document: Mapping[str, Any], name: str) -> None:
        self._document = document
        self._name = name

    def of[T](self, key: str, kind: type[T], default: T) -> T:
        value = self._document.get(key, default)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self._wrong(key, f"must be a {kind.__name__}")
        return value

    def limit(self) -> float | None:
        value = self._document.get("limit")
        return None if value is None else self._weight("limit", value)

    def short_share(self) -> float | None:
        if "short_share" not in self._document:
            return None
        share = self._weight("short_share", self._document["short_share"])
        if not LEAST_SHORT_SHARE <= share <= 1:
            raise self._wrong("short_share", f"must be from {LEAST_SHORT_SHARE:g} to 1")
        return share

    def min_words(self) -> int | None:
        if "min_words" not in self._document:
            return None
        value = self.of("min_words", int, 1)
        if not 1 <= value <= 100:
            raise self._wrong("min_words", "must be from 1 to 100")
        return value

    def phrase(self, key: str, value: object) -> str:
        try:
            return check_phrase(value)
        except ValueError as error:
            raise self._wrong(key, str(error)) from error

    def phrases(self, key: str, values: object) -> list[str]:
        if not isinstance(values, list):
            raise self._wrong(key, "must be a list of phrases")
        if key == "removed":
            return [value for value in values if isinstance(value, str)]
        return [self.phrase(f"{key}[{index}]", value) for index, value in enumerate(values)]

    def parts(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not 2 <= len(value) <= 8:
            raise self._wrong(key, "must be a list of 2 to 8 phrases")
        return tuple(self.phrase(key, part) for part in value)

    def near(self) -> list[Proximity]:
        tables = self.of("near", list, [])
        found: list[Proximity] = []
        for index, table in enumerate(tables):
            where = f"near[{index}]"
            if not isinstance(table, dict) or table.keys() != {"name", "weight", "one", "other"}:
                raise self._wrong(where, "must have the keys name, weight, one and other")
            name = table["name"]
            if not isinstance(name, str) or not name.strip() or name in {near.name for near in found}:
                raise self._wrong(where, "'name' must be a text of its own")
            one, other = (tuple(self.phrases(f"{where}.{side}", table[side])) for side in ("one", "other"))
            if not one or not other:
                raise self._wrong(where, "'one' and 'other' must not be empty")
            found.append(Proximity(name, self._weight(f"{where}.weight", table["weight"]), one, other))
        return found

    def weighted[T](self, key: str, item: Callable[[str, object], T], *, negative: bool = False) -> dict[T, float]:
        found: dict[T, float] = {}
        for text, values in self.of(key, dict, {}).items():
            where = f"{key}.{text}"
            weight = self._weight(where, text, negative=negative)
            if not isinstance(values, list):
                hint = " (a weight with a point stands in quotes)" if isinstance(values, dict) else ""
                raise self._wrong(where, f"must be a list{hint}")
            for index, value in enumerate(values):
                phrase = item(f"{where}[{index}]", value)
                if phrase in found:
                    raise self._wrong(f"{where}[{index}]", f"{value!r} stands twice")
                found[phrase] = weight
        return found

    def _weight(self, key: str, value: object, *, negative: bool = False) -> float:
        if not isinstance(value, str | int | float):
            raise self._wrong(key, f"{value!r} is no weight")
        try:
            weight = float(value)
        except ValueError:
            raise self._wrong(key, f"{value!r} is no weight") from None
        if isinstance(value, bool) or not 0 < (abs(weight) if negative else weight) <= MAX_WEIGHT:
            raise self._wrong(key, f"a weight must be above 0 and at most {MAX_WEIGHT:.0f}")
        return weight

    def _wrong(self, key: str, what: str) -> ClassifyError:
        return ClassifyError(f"{self._name}: {key!r}: {what}")


def format_word_file(file: WordFile) -> str:
    """Returns the file's text, which reads back to an equal `WordFile`."""
    lines = [f"category = {_quoted(file.category)}"]
    if file.language:
        lines.append(f"language = {_quoted(file.language)}")
    if file.limit is not None:
        lines.append(f"limit = {file.limit}")
    if file.short_share is not None:
        lines.append(f"short_share = {file.short_share}")
    if file.min_words is not None:
        lines.append(f"min_words = {file.min_words}")
    for key, phrases in (("exceptions", file.exceptions), ("removed", file.removed), ("offers", file.offers)):
        if phrases:
            lines.append(f"{key} = [{_listed(map(_quoted, phrases))}]")
    for key, table in (("words", file.words), ("context", file.context)):
        lines += _table(key, {_quoted(phrase): weight for phrase, weight in table.items()})
    joined = {f"[{', '.join(map(_quoted, parts))}]": weight for parts, weight in file.combinations.items()}
    lines += _table("combinations", joined)
    for near in file.near:
        lines += ["", "[[near]]", f"name = {_quoted(near.name)}", f"weight = {near.weight:g}"]
        lines += [f"{side} = [{_listed(map(_quoted, phrases))}]" for side, phrases in (("one", near.one), ("other", near.other))]
    return "\n".join(lines) + "\n"


def write_word_file(path: Path, file: WordFile) -> None:
    """Writes the file whole and renames it into place.

    Raises:
        ClassifyError: it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", encoding="utf-8", delete=False) as aside:
            aside.write(format_word_file(file))
            aside.flush()
            os.fsync(aside.fileno())
        Path(aside.name).replace(path)
    except OSError as error:
        raise ClassifyError(f"cannot write the words in {path}: {error.strerror}") from error


def _table(key: str, weights: Mapping[str, float]) -> list[str]:
    if not weights:
        return []
    by_weight: dict[float, list[str]] = {}
    for item, weight in weights.items():
        by_weight.setdefault(weight, []).append(item)
    rows = [f"{_quoted(f'{weight:g}')} = [{_listed(items)}]" for weight, items in sorted(by_weight.items(), reverse=True)]
    return ["", f"[{key}]", *rows]


def _listed(items: Iterable[str]) -> str:
    return "".join(f"\n    {item}," for item in items) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
