"""`/api/v1/words`: the sensitive words that pages are judged by, and a judgement of a page that is sent."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from gatewayfilter.use_cases.learning.word_work import LONGEST_PHRASE, MOST_TEXT, WordWork
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.routers import ApiRouter
from gatewayfilter.web.services import WebServices

router = ApiRouter("/words", tags=["words"])

Kind = Literal["", "word", "combination", "near", "context", "exception", "removed"]
Code = Annotated[str, Path(min_length=1, max_length=60, pattern=r"^[a-z0-9][a-z0-9_-]*$", description="Code of the category.")]
Phrase = Annotated[str, Field(min_length=1, max_length=LONGEST_PHRASE)]


class WordCategoryModel(BaseModel):
    """A category of words."""

    category: Annotated[str, Field(description="Its code.")]
    words: Annotated[int, Field(description="Number of words.")]
    context: Annotated[int, Field(description="Number of words that count against it.")]
    combinations: Annotated[int, Field(description="Number of combinations.")]
    limit: Annotated[float, Field(description="Score from which a page is harmful.")]
    short_share: Annotated[float, Field(description="Share of the limit that counts for pages with few words.")]
    min_words: Annotated[int, Field(description="Different words that a page needs.")]


class WordModel(BaseModel):
    """A phrase."""

    kind: Annotated[str, Field(description="word, combination, near, context, exception or removed.")]
    phrase: Annotated[str, Field(description="The phrase; a + b counts only where both stand on a page.")]
    weight: Annotated[float | None, Field(description="What it adds, null where it has no weight.")]
    own: Annotated[bool, Field(description="Added or changed here, not of the program.")]


class WordList(BaseModel):
    """A page of the words of a category."""

    items: Annotated[list[WordModel], Field(description="The heaviest first, exceptions and removed ones last.")]
    total: Annotated[int, Field(description="How many there are in all.")]
    next: Annotated[int | None, Field(description="What `after` of the next page is, null on the last.")]


class NewWords(BaseModel):
    """Phrases that are added."""

    phrases: Annotated[list[Phrase], Field(min_length=1, max_length=1000, description="a + b counts only where both stand.")]
    weight: Annotated[float, Field(5.0, gt=0, le=1000, description="Weight of each.")]
    context: Annotated[bool, Field(False, description="They count against the category.")]
    exception: Annotated[bool, Field(False, description="They cover words inside them, which then do not count.")]


class Phrases(BaseModel):
    """Phrases that are removed."""

    phrases: Annotated[list[Phrase], Field(min_length=1, max_length=1000, description="As the list of words has them.")]


class WordImport(BaseModel):
    """A file of phrases."""

    text: Annotated[str, Field(max_length=900_000, description="One phrase a line, an e2guardian list, or TOML of an export.")]
    name: Annotated[str, Field("phrases.txt", max_length=200, description="Name of the file: .toml for an export.")]
    weight: Annotated[float, Field(5.0, gt=0, le=1000, description="Weight of phrases that bring none.")]


class Changed(BaseModel):
    """How many phrases were new or changed."""

    changed: Annotated[int, Field(description="Their number.")]


class Removed(BaseModel):
    """How many phrases were removed."""

    removed: Annotated[int, Field(description="Their number.")]
    missing: Annotated[list[str], Field(description="Those that were not there.")]


class BadLineModel(BaseModel):
    """A line that is no phrase."""

    line: Annotated[int, Field(description="Its number.")]
    why: Annotated[str, Field(description="What is wrong with it.")]


class Imported(BaseModel):
    """What an import did."""

    category: Annotated[str, Field(description="Category of the phrases.")]
    read: Annotated[int, Field(description="Phrases in the file.")]
    changed: Annotated[int, Field(description="New or changed ones.")]
    rejected: Annotated[int, Field(description="Bad lines.")]
    samples: Annotated[list[BadLineModel], Field(description="The first bad lines.")]


class PageModel(BaseModel):
    """A page or text to judge."""

    content: Annotated[str, Field(min_length=1, max_length=MOST_TEXT, description="The text, or the HTML.")]
    html: Annotated[bool, Field(False, description="It is HTML.")]
    url: Annotated[str, Field("", max_length=2000, description="Its address, which counts a little.")]


class HitModel(BaseModel):
    """A word that was found."""

    word: Annotated[str, Field(description="The word or combination.")]
    category: Annotated[str, Field(description="Its category.")]
    weight: Annotated[float, Field(description="What it adds.")]
    zone: Annotated[str, Field(description="Where it stands: title, description, keywords, main, rest, url.")]
    position: Annotated[int, Field(description="Character offset in the zone's text.")]


class JudgementModel(BaseModel):
    """How a page was judged; nothing was learned."""

    category: Annotated[str, Field(description="Category of the page, empty for harmless.")]
    doubt: Annotated[str, Field(description="Category that it may belong to: it would be allowed and reviewed.")]
    score: Annotated[float, Field(description="Score in the category, or the highest of all.")]
    limit: Annotated[float, Field(description="Limit of that category.")]
    scores: Annotated[dict[str, float], Field(description="Scores above zero by category.")]
    certainty: Annotated[float | None, Field(description="Probability that it is harmful, 0 to 1.")]
    title: Annotated[str, Field(description="Title of the page.")]
    evidence: Annotated[list[HitModel], Field(description="Words found, the heaviest first.")]
    breakdown: Annotated[dict[str, Any] | None, Field(description="Sums of the score, null where nothing counts.")]


@router.get("", operation_id="list_word_categories")
def list_categories(services: Services, _: Viewer) -> list[WordCategoryModel]:
    """Returns the categories of words."""
    return [WordCategoryModel(**item) for item in _work(services).categories()]


@router.post("/test", operation_id="test_words")
def judge_words(services: Services, _: Viewer, page: PageModel) -> JudgementModel:
    """Judges a page by the words in use. At most ten seconds."""
    return JudgementModel(**_work(services).judge(page.content, html=page.html, url=page.url))


@router.get("/{category}", operation_id="list_words")
def list_words(
    services: Services,
    _: Viewer,
    category: Code,
    q: Annotated[str, Query(max_length=LONGEST_PHRASE, description="Part of the phrase.")] = "",
    kind: Annotated[Kind, Query(description="Only of this kind.")] = "",
    language: Annotated[Literal["", "zh", "other"], Query(description="zh for phrases with Chinese characters.")] = "",
    *,
    own: Annotated[bool, Query(description="Only those added here.")] = False,
    after: Annotated[int, Query(ge=0, le=1_000_000, description="`next` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500, description="Most items.")] = 100,
) -> WordList:
    """Returns the words of a category."""
    found = _work(services).find(
        category,
        text=q,
        kind=kind,
        language=language,
        own=own,
        after=after,
        limit=limit,
    )
    more = after + limit if found["total"] > after + limit else None
    return WordList(items=[WordModel(**row) for row in found["rows"]], total=found["total"], next=more)


@router.post("/{category}/add", operation_id="add_words")
def add_words(services: Services, who: Admin, category: Code, new: NewWords) -> Changed:
    """Adds phrases, or changes their weight; a running filter applies them within a second."""
    return Changed(changed=_work(services).add(who.actor, category, **new.model_dump()))


@router.post("/{category}/remove", operation_id="remove_words")
def remove_words(services: Services, who: Admin, category: Code, phrases: Phrases) -> Removed:
    """Removes phrases, those that come with the program too."""
    return Removed(**_work(services).remove(who.actor, category, phrases.phrases))


@router.post("/{category}/import", operation_id="import_words")
def import_words(services: Services, who: Admin, category: Code, file: WordImport) -> Imported:
    """Imports a file of phrases."""
    return Imported(
        **_work(services).import_file(who.actor, category, file.text.encode(errors="replace"), file.name, file.weight)
    )


@router.get("/{category}/export", operation_id="export_words", response_class=PlainTextResponse)
def export_words(
    services: Services,
    _: Viewer,
    category: Code,
    *,
    own: Annotated[bool, Query(description="Only those added here.")] = False,
) -> PlainTextResponse:
    """Returns the words of a category as TOML, which an import reads back."""
    text = _work(services).export(category, own=own)
    name = f'attachment; filename="{category}.toml"'
    return PlainTextResponse(text, headers={"content-disposition": name}, media_type="application/toml")


def _work(services: WebServices) -> WordWork:
    return WordWork(services.child, services.settings, services.store, services.clock)
