"""Translations of the dashboard: gettext catalogues, one file for each subject, read at start."""

from io import BytesIO
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import Translations

FOLDER: Final = Path(__file__).parents[1] / "locales"
LANGUAGES: Final = {"en": "English", "zh": "简体中文"}
"""Language codes of the interface, with what they are called."""
_FOLDERS: Final = {"zh": "zh_Hans"}
LOCALES: Final = {"en": "en_GB", "zh": "zh_Hans_CN"}
"""Babel's locale of each language."""


def read_catalog(language: str, folder: Path = FOLDER) -> Catalog:
    """Returns all messages of a language, of the files of all subjects."""
    merged = Catalog(locale=LOCALES[language])
    for path in _files(language, folder):
        with path.open("rb") as file:
            for message in read_po(file, locale=LOCALES[language]):
                if message.id:
                    merged[message.id] = message
    return merged


def translations(language: str) -> Translations:
    """Returns the translations into a language; without any for English, in which the messages are written."""
    found = Translations()
    for number, path in enumerate(_files(language)):  # one at a time: a catalogue takes ten times what its translations take
        compiled = BytesIO()
        with path.open("rb") as file:
            write_mo(compiled, read_po(file, locale=LOCALES[language]))
        compiled.seek(0)
        subject = Translations(compiled)
        found = found.merge(subject) if number else subject  # the first has the rule of plurals
    return found


def _files(language: str, folder: Path = FOLDER) -> list[Path]:
    """Returns the files of a language, none for English."""
    return sorted((folder / _FOLDERS[language]).glob("*.po")) if language in _FOLDERS else []


def best_language(accepted: str, chosen: str = "") -> str:
    """Returns the language of a page.

    Args:
        accepted: the request's `Accept-Language`.
        chosen: by the account or a cookie; another than ours does not count.
    """
    if chosen in LANGUAGES:
        return chosen
    weighted: list[tuple[float, str]] = []
    for part in accepted[:400].lower().split(","):
        tag, _, quality = part.strip().partition(";q=")
        try:
            weighted.append((float(quality or 1), tag.partition("-")[0]))
        except ValueError:
            continue
    for _, tag in sorted(weighted, key=lambda item: -item[0]):
        if tag in LANGUAGES:
            return tag
    return "en"
