"""Templates of English sentences: a sentence is recognized by its template, and written in another language."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

_PLACE: Final = re.compile(r"%\((\w+)\)s")


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence for a page.

    Attributes:
        is_english: whether nothing of it is translated.
    """

    text: str
    is_english: bool


class SentenceTemplate:
    """A message with places. Its regular expression is made when a sentence has its words: of hundreds, few are ever needed.

    Args:
        message: with places such as `%(name)s`.
        forms: regular expressions of what may stand at a place, by its name; anything on others.
    """

    __slots__ = ("_form", "_forms", "_pieces", "message")

    def __init__(self, message: str, forms: Mapping[str, str]) -> None:
        self.message = message
        self._forms = forms
        self._pieces = _PLACE.split(message)
        self._form: re.Pattern[str] | None = None

    def written(self, text: str, translate: Callable[[str], str], value: Callable[[str, str], str]) -> str | None:
        """Returns a sentence in another language, `None` where it is not of this template.

        Args:
            text: the sentence.
            translate: returns the message in the language.
            value: returns what stands at a place, by the name of the place and its English text.
        """
        if not all(words in text for words in self._pieces[::2]):
            return None
        if self._form is None:
            self._form = self._compiled()
        found = self._form.fullmatch(text)
        if found is None:
            return None
        return translate(self.message) % {name: value(name, given) for name, given in found.groupdict().items()}

    def _compiled(self) -> re.Pattern[str]:
        forms = self._forms
        parts = (
            f"(?P<{piece}>{forms.get(piece, '.+?')})" if at % 2 else re.escape(piece) for at, piece in enumerate(self._pieces)
        )
        return re.compile("".join(parts), re.DOTALL)


def sentence_templates(messages: Iterable[str], forms: Mapping[str, str]) -> tuple[SentenceTemplate, ...]:
    """Returns the templates of messages; arguments as for `SentenceTemplate`."""
    return tuple(SentenceTemplate(message, forms) for message in messages)
