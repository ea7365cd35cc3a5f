"""Pages from templates, in the language and theme of the request."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from fastapi import Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined, pass_context
from jinja2.bccache import Bucket
from jinja2.runtime import Context

from gatewayfilter import __version__
from gatewayfilter.errors import GatewayFilterError, StoreError
from gatewayfilter.web.rendering.assets import Assets
from gatewayfilter.web.rendering.browser_names import browser_name
from gatewayfilter.web.rendering.catalogs import LANGUAGES, LOCALES, best_language, translations
from gatewayfilter.web.rendering.category_titles import CategoryTitles
from gatewayfilter.web.rendering.explanation_texts import ExplanationTexts
from gatewayfilter.web.rendering.formats import Formats
from gatewayfilter.web.rendering.message_texts import MessageTexts
from gatewayfilter.web.rendering.navigation import Waiting, entries_for
from gatewayfilter.web.rendering.pacing import FRAME_S, LONG, is_navigation, paced
from gatewayfilter.web.services import WebServices

_log = logging.getLogger(__name__)

LANGUAGE_COOKIE: Final = "language"
THEME_COOKIE: Final = "theme"
WAITING: Final = "gatewayfilter-waiting"
"""A header field of parts of pages that answer a change: what waits for a person now, by the key of its entry, as JSON."""
TEMPLATES: Final = Path(__file__).parents[1] / "templates"
_KEPT_TEMPLATES: Final = 40
"""Templates of a language in memory, partials included; a further one takes a millisecond to read again."""
_SENTENCES: Final = frozenset({"problem", "error", "detail"})
"""Variables of templates that hold a sentence of the program: it is written in the language of the page."""
_THEMES: Final = frozenset({"light", "dark"})
_FRAME_END: Final = '<div class="toolbar">'
"""In `base.html`: what stands before it is the same for every state of the filter."""
_HTML: Final = "text/html; charset=utf-8"
FAULT: Final = "a fault of the program; the log has it"


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates in a folder. On a full or damaged disk they are compiled again: people need the dashboard then."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


class Pages:
    """Renders templates. One for the process.

    Args:
        assets: the static files, also an attribute.
    """

    def __init__(self, assets: Assets) -> None:
        self.assets = assets
        self._translations = {language: translations(language) for language in LANGUAGES}
        self._formats: dict[tuple[str, str], Formats] = {}
        self._small = False
        self._messages: dict[str, MessageTexts] = {}
        self._environments = {language: self._environment(language) for language in LANGUAGES}

    def _environment(self, language: str) -> Environment:
        environment = Environment(
            loader=PackageLoader("gatewayfilter.web", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.i18n"],
            cache_size=_KEPT_TEMPLATES,
        )
        environment.install_gettext_translations(self._translations[language], newstyle=True)  # type: ignore[attr-defined]
        environment.globals["ngettext"] = _counted(cast("Callable[..., str]", environment.globals["ngettext"]))
        titles = CategoryTitles(language)
        environment.filters["category"] = titles
        environment.filters["browser"] = browser_name
        translated = self._translations[language].gettext
        messages = self._messages[language] = MessageTexts(language, translated)
        environment.filters["told"] = messages
        environment.filters["action"] = messages.action
        environment.filters["noted"] = messages.detail
        environment.filters["explained"] = ExplanationTexts(language, translated, titles)
        environment.globals["static"] = self.assets.url
        environment.globals["icon_shapes"] = self.assets.shapes
        environment.globals["version"] = __version__
        environment.globals["languages"] = LANGUAGES
        return environment

    def keep_small(self, folder: Path) -> None:
        """Keeps less in memory, and compiled templates in a folder, so that the next process compiles none.

        Compiling takes 0.1 s of CPU for a page, and leaves holes in the memory of the process.

        Args:
            folder: of this user alone; made when needed.
        """
        self._small = True
        for language, environment in self._environments.items():
            own = folder / language  # what a filter makes of a constant is in the code
            with suppress(OSError):
                own.mkdir(mode=0o700, parents=True)
            environment.bytecode_cache = _CompiledTemplates(str(own))

    def compile_all(self) -> None:
        """Compiles every template for every language, into the folder of `keep_small`; 3 s of CPU where none is there."""
        for environment in self._environments.values():
            for name in environment.list_templates():
                environment.get_template(name)

    def formats(self, request: Request) -> Formats:
        """Returns the formats of the request's language, with times in the filter's time zone."""
        services: WebServices = request.app.state.services
        key = language_of(request), services.zone_name
        found = self._formats.get(key)
        if found is None:
            found = self._formats[key] = Formats(key[0], services.zone, small=self._small)
        return found

    def gettext(self, request: Request, message: str, **values: object) -> str:
        """Returns a message in the request's language, for texts that are made in Python."""
        translated: str = self._translations[language_of(request)].gettext(message)
        return translated % values if values else translated

    def fragment(self, request: Request, template: str, /, **context: Any) -> str:
        """Returns the HTML of a template.

        Args:
            request: whose language, theme and identity count.
            template: its path below `templates/`.
            context: its variables, beside `identity`, `csrf`, `nav`, `counts`, `active`, `language`, `theme`, `fmt`, `now`,
                `zone`, `request_path`, `here`.
        """
        language = language_of(request)
        values = {**self._shared(request, language), **self._translated(language, context)}
        return self._environments[language].get_template(template).render(values)

    def parts(self, request: Request, template: str, later: Callable[[], dict[str, Any]], /, **context: Any) -> Iterator[str]:
        """Yields the HTML of a page in two parts: its frame, which a browser shows meanwhile, then the rest.

        Args:
            request: as for `fragment`.
            template: of a whole page, whose macros and assignments use nothing of `later`.
            later: returns the variables of the toolbar and of the main part; called after the frame was taken. What it raises is
                told in place of the main part: the status of the answer was sent.
            context: the variables of the frame.
        """
        language = language_of(request)
        found = self._environments[language].get_template(template)
        made = found.new_context({**self._shared(request, language), **self._translated(language, context)})
        pieces, frame = found.root_render_func(made), list[str]()
        for piece in pieces:
            frame.append(piece)
            if _FRAME_END in piece:
                break
        yield "".join(frame)
        try:
            made.parent.update(self._translated(language, later()))
            rest = "".join(pieces)
        except GatewayFilterError as error:
            if isinstance(error, StoreError):  # as in errors.py: others are faults of the input
                _log.warning("%s %s: %s", request.method, request.url.path, error)
            rest = self._told_late(request, str(error), context)
        except Exception as error:  # noqa: BLE001  as errors.py answers any other page
            _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
            rest = self._told_late(request, FAULT, context)
        yield rest

    def _told_late(self, request: Request, detail: str, context: dict[str, Any]) -> str:
        """Returns what follows the frame of a page that tells of a fault."""
        return self.fragment(request, "system/error.html", **context, detail=detail).partition(_FRAME_END)[2]

    def _shared(self, request: Request, language: str) -> dict[str, Any]:
        identity = getattr(request.state, "identity", None)
        theme = request.cookies.get(THEME_COOKIE, "")
        return {
            "identity": identity,
            "csrf": identity.csrf if identity else "",
            "nav": entries_for(int(identity.role)) if identity else (),
            "counts": Waiting(partial(_waiting, request)),
            "active": "",
            "language": language,
            "locale": LOCALES[language].replace("_", "-"),
            "theme": theme if theme in _THEMES else "",
            "fmt": self.formats(request),
            "zone": request.app.state.services.zone_name,
            "now": time.time(),
            "request_path": request.url.path,
            "here": _here(request),
        }

    def _translated(self, language: str, context: dict[str, Any]) -> dict[str, Any]:
        """Returns variables with their sentences of the program in a language."""
        sentences = {name: value for name, value in context.items() if name in _SENTENCES and isinstance(value, str)}
        return context | {name: self._messages[language](sentence).text for name, sentence in sentences.items()}

    def told(self, language: str, sentence: str) -> str:
        """Returns a sentence of the program, such as an error, in a language; in English where it is not translated."""
        return self._messages[language](sentence).text

    def page(self, request: Request, template: str, /, status: int = 200, **context: Any) -> HTMLResponse:
        """Returns a template as the answer to a request; arguments as `fragment`."""
        answer = HTMLResponse(self.fragment(request, template, **context), status)
        if request.method == "POST" and is_partial(request) and getattr(request.state, "identity", None) is not None:
            answer.headers[WAITING] = json.dumps(_waiting(request))
        return answer


def _waiting(request: Request) -> dict[str, int]:
    """Returns what waits for a person; nothing where the database refuses: the page tells of that, if it needs it."""
    services: WebServices = request.app.state.services
    try:
        return services.waiting()
    except StoreError:
        return {}


def _here(request: Request) -> str:
    """Returns the path and query of a page that can be opened again; the start where it answers a form."""
    if request.method != "GET":
        return "/"
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def _counted(ngettext: Callable[..., str]) -> Callable[..., str]:
    """Returns `ngettext` of templates with its number written as numbers are in the language: 1,616."""

    @pass_context
    def counted(context: Context, singular: str, plural: str, number: int, **values: object) -> str:
        formats = context.get("fmt")
        written = {} if formats is None else {"num": formats.number(number)}
        return ngettext(context, singular, plural, number, **{**written, **values})

    return counted


@cache
def pages_of_process() -> Pages:
    """Returns the templates and static files, read once: several applications of a process share them."""
    return Pages(Assets())


def language_of(request: Request) -> str:
    """Returns the language of the answer: by account, cookie, or the browser."""
    identity = getattr(request.state, "identity", None)
    chosen = (identity.language if identity else "") or request.cookies.get(LANGUAGE_COOKIE, "")
    return best_language(request.headers.get("accept-language", ""), chosen)


def render(request: Request, template: str, /, status: int = 200, **context: Any) -> Response:
    """Returns a page of the application that serves the request; as `Pages.page`.

    A browser gets the frame of a long one first, and shows it while the rest comes.
    """
    pages: Pages = request.app.state.pages
    if not is_navigation(request):
        return pages.page(request, template, status, **context)
    frame, end, rest = pages.fragment(request, template, **context).partition(_FRAME_END)
    if len(rest) < LONG:
        return HTMLResponse(frame + end + rest, status)
    return StreamingResponse(paced(iter((frame + end, rest)), FRAME_S), status, media_type=_HTML)


def render_early(request: Request, template: str, later: Callable[[], dict[str, Any]], /, **context: Any) -> StreamingResponse:
    """Returns a page whose frame is sent at once, while its content is read; arguments as for `Pages.parts`."""
    pages: Pages = request.app.state.pages
    parts = pages.parts(request, template, later, **context)
    # The frame is made before the answer begins: a fault in it is still answered as such.
    pause_s = FRAME_S if is_navigation(request) else 0.0
    return StreamingResponse(paced(chain([next(parts)], parts), pause_s), media_type=_HTML)


def gettext(request: Request, message: str, **values: object) -> str:
    """Returns a message in the request's language; as `Pages.gettext`."""
    pages: Pages = request.app.state.pages
    return pages.gettext(request, message, **values)


def is_partial(request: Request) -> bool:
    """Returns whether htmx asks for a part of a page."""
    return request.headers.get("hx-request") == "true" and request.headers.get("hx-boosted") != "true"
