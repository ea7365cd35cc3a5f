"""The API of words. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class WordCategoryModel(TypedDict):
    """A category of words."""

    category: str
    words: int
    context: int
    combinations: int
    limit: float
    short_share: float
    min_words: int


class PageModel(TypedDict):
    """A page or text to judge."""

    content: str
    html: NotRequired[bool]
    url: NotRequired[str]


class JudgementModel(TypedDict):
    """How a page was judged; nothing was learned."""

    category: str
    doubt: str
    score: float
    limit: float
    scores: dict[str, float]
    certainty: float | None
    title: str
    evidence: list[HitModel]
    breakdown: dict[str, Any] | None


class HitModel(TypedDict):
    """A word that was found."""

    word: str
    category: str
    weight: float
    zone: str
    position: int


class WordList(TypedDict):
    """A page of the words of a category."""

    items: list[WordModel]
    total: int
    next: int | None


class WordModel(TypedDict):
    """A phrase."""

    kind: str
    phrase: str
    weight: float | None
    own: bool


class NewWords(TypedDict):
    """Phrases that are added."""

    phrases: list[str]
    weight: NotRequired[float]
    context: NotRequired[bool]
    exception: NotRequired[bool]


class Changed(TypedDict):
    """How many phrases were new or changed."""

    changed: int


class Phrases(TypedDict):
    """Phrases that are removed."""

    phrases: list[str]


class Removed(TypedDict):
    """How many phrases were removed."""

    removed: int
    missing: list[str]


class WordImport(TypedDict):
    """A file of phrases."""

    text: str
    name: NotRequired[str]
    weight: NotRequired[float]


class Imported(TypedDict):
    """What an import did."""

    category: str
    read: int
    changed: int
    rejected: int
    samples: list[BadLineModel]


class BadLineModel(TypedDict):
    """A line that is no phrase."""

    line: int
    why: str


class WordsApi:
    """Operations of words."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_word_categories(self) -> Answer[list[WordCategoryModel]]:
        """Returns the categories of words."""
        return self._transport.send(Call("GET", "/api/v1/words"))

    def test_words(self, body: PageModel) -> Answer[JudgementModel]:
        """Judges a page by the words in use. At most ten seconds."""
        return self._transport.send(Call("POST", "/api/v1/words/test", body=body))

    def list_words(
        self,
        category: str,
        *,
        q: str | None = None,
        kind: Literal["", "word", "combination", "near", "context", "exception", "removed"] | None = None,
        language: Literal["", "zh", "other"] | None = None,
        own: bool | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Answer[WordList]:
        """Returns the words of a category."""
        return self._transport.send(
            Call(
                "GET",
                "/api/v1/words/{category}",
                parameters={"category": category},
                query={"q": q, "kind": kind, "language": language, "own": own, "after": after, "limit": limit},
            )
        )

    def add_words(self, category: str, body: NewWords) -> Answer[Changed]:
        """Adds phrases, or changes their weight; a running filter applies them within a second."""
        return self._transport.send(Call("POST", "/api/v1/words/{category}/add", parameters={"category": category}, body=body))

    def remove_words(self, category: str, body: Phrases) -> Answer[Removed]:
        """Removes phrases, those that come with the program too."""
        return self._transport.send(Call("POST", "/api/v1/words/{category}/remove", parameters={"category": category}, body=body))

    def import_words(self, category: str, body: WordImport) -> Answer[Imported]:
        """Imports a file of phrases."""
        return self._transport.send(Call("POST", "/api/v1/words/{category}/import", parameters={"category": category}, body=body))

    def export_words(self, category: str, *, own: bool | None = None) -> Answer[bytes]:
        """Returns the words of a category as TOML, which an import reads back."""
        return self._transport.send(
            Call("GET", "/api/v1/words/{category}/export", parameters={"category": category}, query={"own": own})
        )
