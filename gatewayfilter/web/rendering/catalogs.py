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
    for path in sorted((folder / _FOLDERS[language]).glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file, locale=LOCALES[language]):
                if message.id:
                    merged[message.id] = message
    return merged


def translations(language: str) -> Translations:
    """Returns the translations into a language; without any for English, in which the messages are written."""
    if language not in _FOLDERS:
        return Translations()
    compiled = BytesIO()
    write_mo(compiled, read_catalog(language))
    compiled.seek(0)
    return Translations(compiled)


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
