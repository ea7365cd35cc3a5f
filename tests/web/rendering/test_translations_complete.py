"""Every message of the dashboard's templates and code is translated, and no translation is left over."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Message
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po

from gatewayfilter.config import load
from gatewayfilter.use_cases.setting_values import shown_settings
from gatewayfilter.web.rendering.catalogs import FOLDER, LANGUAGES, best_language, read_catalog

WEB = FOLDER.parent
KEYWORDS: dict[str, Any] = {"_": None, "gettext": (2,), "ngettext": (1, 2), "_n": None}
PLACE = re.compile(r"%\((\w+)\)")


def messages() -> dict[str | tuple[str, ...], str]:
    """All messages, with a place where each stands."""
    found: dict[str | tuple[str, ...], str] = {}
    sources: list[tuple[Path, str, dict[str, Any]]] = [
        (path, "jinja2.ext:babel_extract", {"_": None, "gettext": None, "ngettext": (1, 2)})
        for path in WEB.rglob("templates/**/*.html")
    ]
    sources += [(path, "python", KEYWORDS) for path in WEB.rglob("*.py")]
    for path, method, keywords in sources:
        for line, message, _comments, _context in extract_from_file(
            method, path, keywords=keywords, options={"extensions": "jinja2.ext.i18n", "trimmed": "false", "silent": "false"}
        ):
            found.setdefault(message, f"{path.relative_to(WEB)}:{line}")
    for one in shown_settings(load()):
        found.setdefault(one.description, f"setting {one.key}")
    return found


def test_no_message_is_missing() -> None:
    catalog = read_catalog("zh")
    missing = {}
    for message, place in messages().items():
        key = message[0] if isinstance(message, tuple) else message
        translated = catalog.get(key)
        if translated is None or not (translated.string if isinstance(translated.string, str) else all(translated.string or ())):
            missing[key] = place
    assert missing == {}


@pytest.mark.slow
def test_no_translation_is_left_over() -> None:
    used = {message[0] if isinstance(message, tuple) else message for message in messages()}
    left = [_first(message) for message in read_catalog("zh") if message.id and _first(message) not in used]
    assert left == []


def test_placeholders_agree() -> None:
    wrong = []
    for message in read_catalog("zh"):
        if message.id:
            strings = [message.string] if isinstance(message.string, str) else list(message.string or ())
            wanted = set(PLACE.findall(message.id if isinstance(message.id, str) else message.id[1]))
            wrong += [message.id for text in strings if set(PLACE.findall(text)) - wanted or (wanted - set(PLACE.findall(text)))]
    assert wrong == []


def test_no_message_has_two_translations() -> None:
    """Files of different subjects that translate a message differently would depend on their order."""
    seen: dict[str, set[object]] = {}
    for path in sorted((FOLDER / "zh_Hans").glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file):
                if message.id:
                    seen.setdefault(_first(message), set()).add(str(message.string))
    assert {text: found for text, found in seen.items() if len(found) > 1} == {}


def test_no_file_says_a_message_twice() -> None:
    for path in sorted((FOLDER / "zh_Hans").glob("*.po")):
        ids = Counter(re.findall(r'^msgid "(.+)"$', path.read_text(encoding="utf-8"), re.MULTILINE))
        assert [text for text, count in ids.items() if count > 1] == [], path.name


def _first(message: Message) -> str:
    return str(message.id if isinstance(message.id, str) else message.id[0])


@pytest.mark.parametrize(
    ("accepted", "chosen", "language"),
    [
        ("", "", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.8", "", "en"),
        ("fr, zh;q=0.1", "", "zh"),
        ("fr", "", "en"),
        ("zh", "en", "en"),
        ("en", "klingon", "en"),
        ("zh;q=x, ;;,,", "", "en"),
        ("zh" * 100_000, "", "en"),
    ],
)
def test_the_language_is_chosen_or_the_browsers(accepted: str, chosen: str, language: str) -> None:
    assert best_language(accepted, chosen) == language
    assert language in LANGUAGES
    assert Path(FOLDER).is_dir()
