"""`/words`: the words by category, with search, own words, import and export; `/words/test` judges a page that is pasted."""

from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import File, Form, Path, Query, Request, Response, UploadFile
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from gatewayfilter.errors import ClassifyError
from gatewayfilter.use_cases.learning.word_work import KINDS, LONGEST_PHRASE, MOST_TEXT, WordWork
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.rendering.pages import is_partial, render, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_A_PAGE = 100
Kind = Literal["", "word", "combination", "near", "context", "exception", "removed"]
Code = Annotated[str, Path(max_length=60, pattern=r"^[a-z0-9][a-z0-9_-]*$")]


class View(BaseModel):
    """What a page of words shows, as its URL has it."""

    q: Annotated[str, Field(max_length=LONGEST_PHRASE)] = ""
    kind: Kind = ""
    language: Literal["", "zh", "other"] = ""
    own: bool = False
    after: Annotated[int, Field(ge=0, le=1_000_000)] = 0

    def url(self, category: str, **changed: object) -> str:
        """Returns the address of a page of words."""
        given = {key: int(value) if value is True else value for key, value in {**self.model_dump(), **changed}.items() if value}
        return f"/words/{category}" + (f"?{urlencode(given)}" if given else "")


class WordsForm(BaseModel):
    """The form that adds words: one a line."""

    phrases: Annotated[str, Field(max_length=20_000)]
    weight: Annotated[float, Field(gt=0, le=1000)] = 5.0
    kind: Literal["word", "context", "exception"] = "word"


class PageForm(BaseModel):
    """The form of the page to judge."""

    content: Annotated[str, Field(max_length=MOST_TEXT)] = ""
    html: Literal["auto", "text", "html"] = "auto"
    url: Annotated[str, Field(max_length=2000)] = ""


@router.get("/words")
def categories(request: Request, services: Services, _: Viewer) -> Response:
    """Shows the categories of words."""
    # The child process that reads the words may be starting.
    return render_early(request, "learning/words.html", lambda: {"categories": _work(services).categories()}, active="words")


@router.get("/words/test")
def sandbox(request: Request, _: Viewer) -> Response:
    """Shows the form for a page to judge."""
    return _sandbox(request, PageForm())


@router.post("/words/test")
def judge(request: Request, services: Services, _: Viewer, form: Annotated[PageForm, Form()]) -> Response:
    """Judges a page, and shows what was found in it."""
    if not form.content.strip():
        return _sandbox(request, form)
    html = form.html == "html" or (form.html == "auto" and form.content.lstrip()[:1] == "<")
    try:
        judged = _work(services).judge(form.content, html=html, url=form.url)
    except ClassifyError as error:
        return _sandbox(request, form, 422, problem=str(error))
    return _sandbox(request, form, judged=judged)


@router.get("/words/{category}")
def words(request: Request, services: Services, _: Viewer, category: Code, view: Annotated[View, Query()]) -> Response:
    """Shows the words of a category."""
    return _words(request, services, category, view)


@router.post("/words/{category}/add")
def add(request: Request, services: Services, who: Admin, category: Code, form: Annotated[WordsForm, Form()]) -> Response:
    """Adds words."""
    values = {"weight": form.weight, "context": form.kind == "context", "exception": form.kind == "exception"}
    try:
        _work(services).add(who.actor, category, _lines(form.phrases), **values)
    except ClassifyError as error:
        return _words(request, services, category, View(), 422, problem=str(error), written=form.phrases)
    return RedirectResponse(f"/words/{category}?own=1", 303)


@router.post("/words/{category}/remove")
def remove(
    request: Request, services: Services, who: Admin, category: Code, phrase: Annotated[str, Form(max_length=LONGEST_PHRASE)]
) -> Response:
    """Removes a word."""
    _work(services).remove(who.actor, category, [phrase])
    if is_partial(request):
        return render(request, "learning/_word_removed.html", phrase=phrase)
    return RedirectResponse(f"/words/{category}", 303)


@router.post("/words/{category}/import")
def import_file(
    request: Request, services: Services, who: Admin, category: Code, file: Annotated[UploadFile, File()]
) -> Response:
    """Imports a file of phrases."""
    try:
        name = (file.filename or "phrases.txt")[-LONGEST_PHRASE:]
        done = _work(services).import_file(who.actor, category, file.file.read(), name, 5.0)
    except ClassifyError as error:
        return _words(request, services, category, View(), 422, problem=str(error))
    return _words(request, services, category, View(own=True), imported=done)


def _work(services: WebServices) -> WordWork:
    return WordWork(services.child, services.settings, services.store, services.clock)


def _lines(text: str) -> list[str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or max(map(len, lines)) > LONGEST_PHRASE:
        raise ClassifyError(f"write a phrase a line, of at most {LONGEST_PHRASE} characters")
    return lines


def _words(request: Request, services: WebServices, category: str, view: View, status: int = 200, **more: Any) -> Response:
    frame = {"active": "words", "category_code": category, "view": view}
    content = partial(_content, services, category, view, more)
    if request.method == "GET" and category in services.categories:
        return render_early(request, "learning/words_of_category.html", content, **frame)
    return render(request, "learning/words_of_category.html", status, **frame, **content())


def _content(services: WebServices, category: str, view: View, more: dict[str, Any]) -> dict[str, Any]:
    found = _work(services).find(
        category,
        text=view.q,
        kind=view.kind,
        language=view.language,
        own=view.own,
        after=view.after,
        limit=_A_PAGE,
    )
    end = view.after + _A_PAGE
    return {
        "problem": "",
        "imported": None,
        "written": "",
        **found,
        "kinds": KINDS,
        "older": view.url(category, after=end) if found["total"] > end else "",
        "newer": view.url(category, after=max(0, view.after - _A_PAGE)) if view.after else "",
        "first": view.after + 1,
        "last": min(end, found["total"]),
        **more,
    }


def _sandbox(request: Request, form: PageForm, status: int = 200, **more: Any) -> Response:
    context = {"judged": None, "problem": "", **more}
    return render(request, "learning/words_test.html", status, active="words", form=form, **context)
