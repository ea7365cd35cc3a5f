"""The registry of categories (`lists/categories.toml`): titles, and the default action of each."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from gatewayfilter.errors import ListError
from gatewayfilter.model import ListAction

OTHER = "other"
_WORD = re.compile(r"[a-z0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Category:
    """One category.

    Attributes:
        category_id: as in verdicts and settings.
        title, title_zh: for display, in English and in simplified Chinese.
        description: one sentence.
        action: what its lists mean unless a subscription sets another.
        aliases: words in file and folder names by which it is guessed.
    """

    category_id: str
    title: str
    title_zh: str
    description: str
    action: ListAction
    aliases: tuple[str, ...] = ()


class Categories:
    """All categories, in the file's order."""

    def __init__(self, categories: tuple[Category, ...]) -> None:
        self._by_id = {category.category_id: category for category in categories}
        self._by_alias = {word: category.category_id for category in categories for word in category.aliases}
        self._by_alias |= {category_id: category_id for category_id in self._by_id}

    @classmethod
    def load(cls, path: Path) -> Self:
        """Reads the registry.

        Raises:
            ListError: it cannot be read, or a category lacks something.
        """
        return cls(_categories(read_text(path), path))

    def __iter__(self) -> Iterator[Category]:
        return iter(self._by_id.values())

    def __contains__(self, category_id: object) -> bool:
        return category_id in self._by_id

    def get(self, category_id: str) -> Category:
        """Returns a category, also by an alias; an unregistered one is titled by its name and blocks."""
        known = self._by_id.get(self._by_alias.get(category_id, category_id))
        return known or Category(category_id, category_id, category_id, "", ListAction.BLOCK)

    def guess(self, address: str) -> str:
        """Returns the category that the last parts of an address or path name (`…/gambling/domains`), `other` when none does.

        A category that allows is only guessed from a whole name: `bank-phishing.txt` is no list of banks.
        """
        for part in reversed(re.split(r"[/\\]", address)[-3:]):
            name = part.lower().partition("?")[0].partition(".")[0]
            if name in self._by_alias:
                return self._by_alias[name]
            for word in _WORD.findall(name):
                found = self._by_alias.get(word)
                if found and self._by_id[found].action is ListAction.BLOCK:
                    return found
        return OTHER


def read_text(path: Path) -> str:
    """Returns a file's text.

    Raises:
        ListError: it cannot be read, or is no UTF-8.
    """
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ListError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ListError(f"{path} is not TOML: {error}") from error


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Returns the content of a TOML file from its text.

    Raises:
        ListError: it is no TOML.
    """
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise ListError(f"{path} is not TOML: {error}") from error


@lru_cache(maxsize=2)
def _categories(text: str, path: Path) -> tuple[Category, ...]:
    """Returns the categories of a registry's content. They are needed often, and parsing takes some milliseconds."""
    try:
        return tuple(_category(category_id, table) for category_id, table in parse_toml(text, path).items())
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ListError(f"{path} is not a registry of categories: {error!r}") from error


def _category(category_id: str, table: dict[str, Any]) -> Category:
    return Category(
        category_id,
        title=str(table["title"]),
        title_zh=str(table["title_zh"]),
        description=str(table["description"]),
        action=ListAction(table["action"]),
        aliases=tuple(str(alias) for alias in table.get("aliases", ())),
    )
