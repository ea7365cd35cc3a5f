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


@dataclass(frozen=True, slots=True)
class SentenceTemplate:
    """A message with places, and the form of the sentences that it makes."""

    message: str
    form: re.Pattern[str]

    def written(self, text: str, translate: Callable[[str], str], value: Callable[[str, str], str]) -> str | None:
        """Returns a sentence in another language, `None` where it is not of this template.

        Args:
            text: the sentence.
            translate: returns the message in the language.
            value: returns what stands at a place, by the name of the place and its English text.
        """
        found = self.form.fullmatch(text)
        if found is None:
            return None
        return translate(self.message) % {name: value(name, given) for name, given in found.groupdict().items()}


def sentence_templates(messages: Iterable[str], forms: Mapping[str, str]) -> tuple[SentenceTemplate, ...]:
    """Returns the templates of messages.

    Args:
        messages: with places such as `%(name)s`.
        forms: regular expressions of what may stand at a place, by its name; anything on others.
    """
    return tuple(SentenceTemplate(message, _form(message, forms)) for message in messages)


def _form(message: str, forms: Mapping[str, str]) -> re.Pattern[str]:
    pieces = _PLACE.split(message)
    form = "".join(f"(?P<{piece}>{forms.get(piece, '.+?')})" if at % 2 else re.escape(piece) for at, piece in enumerate(pieces))
    return re.compile(form, re.DOTALL)
