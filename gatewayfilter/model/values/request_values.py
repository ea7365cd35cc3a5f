"""The values of a policy that act on requests and responses: their keys, what each may be, and their canonical form.

A policy keeps them as texts in canonical form, as `policy set` takes them; the engine compiles what is in force.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from gatewayfilter.errors import PolicyError
from gatewayfilter.model.values.file_types import FILE_GROUPS, FILE_TYPES

NONE: Final = "none"
"""The value of a list that is empty, in place of an inherited one."""
MOST_TERMS: Final = 1_000
LONGEST_TERM: Final = 100
MOST_DOWNLOAD_MB: Final = 1_000_000


class SearchEngine(StrEnum):
    """A search engine with a SafeSearch that a network can enforce. Baidu has none."""

    GOOGLE = "google"
    BING = "bing"
    DUCKDUCKGO = "duckduckgo"
    YANDEX = "yandex"
    ECOSIA = "ecosia"
    BRAVE = "brave"


class YouTubeMode(StrEnum):
    """The Restricted Mode of YouTube."""

    OFF = "off"
    MODERATE = "moderate"
    STRICT = "strict"


class TlsHandling(StrEnum):
    """The treatment of TLS connections: decrypted; judged by their name; decrypted only to show a block page."""

    INTERCEPT = "intercept"
    SNI_ONLY = "sni-only"
    PAGE_ONLY = "page-only"


class PolicyStrictness(StrEnum):
    """How certain the classifier must have been of a learned entry that counts."""

    RELAXED = "relaxed"
    STANDARD = "standard"
    STRICT = "strict"


class LogDetail(StrEnum):
    """What the log keeps of a client's requests; the names are those of `log.privacy`."""

    FULL = "full"
    NO_QUERY = "no-query"
    HOST = "host"
    OFF = "off"


def engines_of(text: str) -> frozenset[SearchEngine]:
    """Returns the engines of a value of `safesearch`.

    Raises:
        PolicyError: it names another engine.
    """
    if text in {"on", "off"}:
        return frozenset(SearchEngine) if text == "on" else frozenset()
    names = _items(text)
    for name in names:
        if name == "baidu":
            raise PolicyError("safesearch: Baidu has no SafeSearch; block it with a manual rule, or use search-terms")
        _check("safesearch: there is no search engine", name, [engine.value for engine in SearchEngine])
    return frozenset(map(SearchEngine, names))


def terms_of(text: str) -> tuple[str, ...]:
    """Returns the words and phrases of a value of `search-terms`, in their order.

    Raises:
        PolicyError: there are too many, or one is too long.
    """
    if text == NONE:
        return ()
    found = tuple(dict.fromkeys(part for part in (" ".join(part.split()) for part in text.split(",")) if part))
    if not found or len(found) > MOST_TERMS:
        raise PolicyError(f"search-terms are 1 to {MOST_TERMS} words or phrases with commas between them, or {NONE}")
    if long := [term for term in found if len(term) > LONGEST_TERM]:
        raise PolicyError(f"search-terms: {long[0][:30]!r}… is longer than {LONGEST_TERM} characters")
    return found


def types_of(text: str) -> frozenset[str]:
    """Returns the file types and groups of a value of `file-types`.

    Raises:
        PolicyError: it names another one.
    """
    if text == NONE:
        return frozenset()
    names = [name.removeprefix(".") for name in _items(text)]
    for name in names:
        _check("file-types: there is no type or group", name, [*FILE_GROUPS, *FILE_TYPES])
    return frozenset(names)


def megabytes_of(text: str) -> int:
    """Returns a value of `max-download-mb`; 0 is no limit.

    Raises:
        PolicyError: it is no whole number in the range.
    """
    if not (text.isascii() and text.isdecimal()) or len(text) > 7 or int(text) > MOST_DOWNLOAD_MB:
        raise PolicyError(f"max-download-mb is a whole number up to {MOST_DOWNLOAD_MB}, 0 for no limit, not {text[:30]!r}")
    return int(text)


def _safesearch(text: str) -> str:
    engines = engines_of(text)
    return text if text in {"on", "off"} else ",".join(sorted(engines))


def _choice(key: str, choices: type[StrEnum]) -> Callable[[str], str]:
    names = [choice.value for choice in choices]

    def canonical(text: str) -> str:
        if text not in names:
            raise PolicyError(f"{key} is one of {', '.join(names)}, not {text[:30]!r}")
        return text

    return canonical


_CANONICAL: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "safesearch": lambda text: _safesearch(text.lower()),
        "youtube": _choice("youtube", YouTubeMode),
        "search-terms": lambda text: ",".join(terms_of(text)) or NONE,
        "file-types": lambda text: ",".join(sorted(types_of(text.lower()))) or NONE,
        "max-download-mb": lambda text: str(megabytes_of(text)),
        "strictness": _choice("strictness", PolicyStrictness),
        "tls": _choice("tls", TlsHandling),
        "log-privacy": _choice("log-privacy", LogDetail),
    }
)
REQUEST_KEYS: Final = tuple(_CANONICAL)


def request_key(key: str) -> str:
    """Returns the key that is meant, with hyphens for underscores; `""` for the key of another value."""
    key = key.replace("_", "-")
    return key if key in _CANONICAL else ""


def canonical_value(key: str, text: str) -> str:
    """Returns a value in canonical form.

    Args:
        key: of `REQUEST_KEYS`.
        text: as typed.

    Raises:
        PolicyError: it is no value of this key.
    """
    return _CANONICAL[key](text.strip())


def usable_values(record: object) -> dict[str, str]:
    """Returns those of the stored values that this version can use: a later version may have written others."""
    found: dict[str, str] = {}
    for key, text in record.items() if isinstance(record, Mapping) else ():
        try:
            found[key] = canonical_value(key, text)
        except (KeyError, AttributeError, PolicyError):
            continue
    return found


def _items(text: str) -> list[str]:
    found = [part for part in (part.strip() for part in text.split(",")) if part]
    if not found:
        raise PolicyError("an empty list; `KEY=` unsets a value")
    return found


def _check(sentence: str, name: str, known: list[str]) -> None:
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known[:12])}"
        raise PolicyError(f"{sentence} {name[:30]!r}{hint}")
