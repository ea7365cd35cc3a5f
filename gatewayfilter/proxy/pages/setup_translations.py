"""The words of the set-up page, in English and simplified Chinese: `templates/setup-en.toml`, `templates/setup-zh.toml`."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gatewayfilter.proxy.pages.translations import choose_texts

_TEMPLATES: Final = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class GatewayFacts:
    """The facts about the machine that the page shows.

    Attributes:
        up: whether `gateway up` has loaded its rules.
        quic_refused: whether QUIC is refused.
        dot_refused: whether DNS over TLS is refused.
    """

    up: bool = False
    quic_refused: bool = False
    dot_refused: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """What is known of one way around the filter."""

    closed: bool
    name: str
    words: str


@dataclass(frozen=True, slots=True)
class SetupTexts:
    """All words of one language.

    Attributes:
        language: for the `lang` attribute.
        words: headings and sentences by name.
        systems: system → its name (`title`) and how the certificate is installed there (`steps`: `text`, `code`, `download`).
    """

    language: str
    words: Mapping[str, str]
    systems: Mapping[str, Mapping[str, Any]]

    @classmethod
    def load(cls, name: str) -> "SetupTexts":
        """Reads a language's file."""
        found = tomllib.loads((_TEMPLATES / f"setup-{name}.toml").read_text(encoding="utf-8"))
        return cls(found["language"], found["words"], found["systems"])

    def notes(self, facts: GatewayFacts, doh: tuple[int, int], *, transparent: bool) -> Iterator[Note]:
        """Yields what is known of the ways around the filter.

        Args:
            facts: of the gateway.
            doh: how many well-known servers of DNS over HTTPS are blocked, and how many are known.
            transparent: connections are redirected; otherwise devices use a proxy, which resolves names itself.
        """
        words = self.words
        refused = facts.up and facts.quic_refused
        if transparent:
            blocked, known = doh
            yield Note(refused, words["quic"], words["quic_closed" if refused else "quic_open"])
            text = words["doh_some"].format(blocked=blocked, known=known) if known else words["doh_unknown"]
            yield Note(0 < known == blocked, words["doh"], text)
        else:
            yield Note(closed=True, name=words["quic"], words=words["quic_proxy_closed" if refused else "quic_proxy"])
            yield Note(closed=True, name=words["doh"], words=words["doh_proxy"])


ENGLISH: Final = SetupTexts.load("en")
CHINESE: Final = SetupTexts.load("zh")


def setup_texts(accept_language: str) -> SetupTexts:
    """Returns the words that an Accept-Language header likes best."""
    return CHINESE if choose_texts(accept_language).language.startswith("zh") else ENGLISH
