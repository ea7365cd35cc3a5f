"""What is made ready ahead: the first pages at the start, and when somebody opens the one to log in; child processes after that.

The first check of a URL does not wait for a start, nor the first page for what it reads.
"""

import logging
import pickle
import sys
import threading
import time
from contextlib import closing
from functools import partial
from typing import Final

from fastapi import Request
from starlette.types import ASGIApp

from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.store.kept_answers import KeptAnswers
from gatewayfilter.use_cases.learning.word_work import WordWork
from gatewayfilter.web.access.identity import Authenticator, Identity
from gatewayfilter.web.child_process import ChildProcess
from gatewayfilter.web.page_warmer import warm_pages
from gatewayfilter.web.rendering.pages import TEMPLATES, language_of
from gatewayfilter.web.services import WebServices

_log = logging.getLogger(__name__)

_PREPARE: Final = "gatewayfilter.web.access.check_job:prepare"
_FIRST_LANGUAGE: Final = "en"
"""Of the pages that are made ready before anybody has asked for one; those of others are, when somebody logs in."""
_LOG_IN: Final = frozenset({"/login", "/setup"})
_GREET_S: Final = 60.0
"""Seconds between two times that the page to log in makes pages ready: everybody who reaches the dashboard may open it."""
_COMPILE_S: Final = 60.0
_AFTER_S: Final = 0.1
"""From a person's first page to the start of children: it comes first, with its files."""


class ChildWarmer:
    """Starts the children of `WebServices`, and asks for the first pages, in the background.

    Args:
        services: with the child processes, and the OpenAPI document that another one makes.
        after_s: seconds until children are started.
    """

    def __init__(self, services: WebServices, after_s: float = _AFTER_S) -> None:
        self._services = services
        self._after_s = after_s
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._app: ASGIApp | None = None
        self._greeted_at: dict[str, float] = {}
        self._was_greeted = False

    def begin(self, app: ASGIApp) -> None:
        """Makes the first pages ready, and starts the child that checks URLs; returns at once.

        Whoever opens the dashboard after the filter has started asks why something was blocked, or not. Without work the child
        ends.

        Args:
            app: the application that has the pages.
        """
        self._app = app
        job = self._services.checker, _PREPARE, pickle.dumps(self._services.settings)
        threading.Thread(target=_begin, args=job, name="child-warmer", daemon=True).start()
        self._read_pages(_FIRST_LANGUAGE)

    def greet(self, language: str) -> None:
        """Makes the first pages of a person who logs in ready, at most once a minute in a language; returns at once.

        In the first run of a folder, and of a release, words are counted and templates compiled, too. The children that stay wait
        for somebody who is logged in: they take 150 MB each.
        """
        self._read_pages(language)
        self._prepare_once()

    def _prepare_once(self) -> None:
        with self._lock:
            if self._app is None or self._was_greeted:
                return
            self._was_greeted = True
        threading.Thread(target=_prepare, args=(self._services,), name="child-warmer", daemon=True).start()

    def _read_pages(self, language: str) -> None:
        with self._lock:
            now = time.monotonic()
            if self._app is None or now < self._greeted_at.get(language, -_GREET_S) + _GREET_S:
                return
            self._greeted_at[language] = now
        threading.Thread(target=_warm, args=(self._app, language), name="page-warmer", daemon=True).start()

    def wake(self) -> None:
        """Starts what does not run; returns at once."""
        services = self._services
        self._prepare_once()  # who has kept the session of an earlier run opens no page to log in
        if services.checker.running and services.child.running and services.editing.running:
            return
        with self._lock:
            if self._timer is not None and self._timer.is_alive():
                return
            self._timer = threading.Timer(self._after_s, self._start)
            self._timer.daemon = True
            self._timer.start()

    def _start(self) -> None:
        services = self._services
        jobs: tuple[tuple[ChildProcess, str, object], ...] = (
            (services.checker, _PREPARE, pickle.dumps(services.settings)),
            (services.child, "gatewayfilter.use_cases.learning.word_jobs:categories", services.settings),
            (services.editing, "gatewayfilter.use_cases.learning.extraction_jobs:list_rules", services.settings),
        )
        # Each on its own: a page that needs the second one does not wait until the first has loaded the lists.
        threads = [threading.Thread(target=_begin, args=job, name="child-warmer", daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        try:
            services.openapi_document()
        except GatewayFilterError as error:
            _log.info("the OpenAPI document was not made ahead: %s", error)


def _warm(app: ASGIApp, language: str) -> None:
    try:
        warm_pages(app, language)
    except Exception:  # noqa: BLE001  whatever it is, pages can do without
        _log.exception("the first pages were not made ready")


def _prepare(services: WebServices) -> None:
    """Does one after the other: a person who has logged in may ask for words at once, and templates can be compiled later."""
    _count_words(services)
    _compile_templates(services)


def _count_words(services: WebServices) -> None:
    """Has the words of each category counted where that is not kept: in the first run of a folder, and of a release."""
    try:
        WordWork(services.child, services.settings, services.store, services.clock).categories()
    except GatewayFilterError as error:
        _log.info("the words were not counted ahead: %s", error)


def _compile_templates(services: WebServices) -> None:
    """Has all templates compiled by a child process of its own where that was not done: as often as the words are counted."""
    cache = services.settings.data_dir / "cache"
    with closing(ChildProcess(_COMPILE_S)) as child:
        make = partial(child.run, "gatewayfilter.web.page_warmer:compile_templates", cache / "templates")
        try:
            KeptAnswers(cache).rows("templates", TEMPLATES.rglob("*.html"), make, sys.version)
        except GatewayFilterError as error:
            _log.info("the templates were not compiled ahead: %s", error)


def _begin(child: ChildProcess, job: str, value: object) -> None:
    try:
        if not child.running:
            child.run(job, value)
    except GatewayFilterError as error:
        _log.info("a child process of the dashboard was not started ahead: %s", error)


class WakingAuthenticator:
    """Identifies as another one does; wakes the children when a person opens a page, and greets who opens the one to log in.

    Args:
        inner: identifies.
        warmer: starts the children, and reads pages ahead.
    """

    def __init__(self, inner: Authenticator, warmer: ChildWarmer) -> None:
        self._inner = inner
        self._warmer = warmer

    def identify(self, request: Request) -> Identity | None:
        """Returns the identity, `None` for nobody."""
        found = self._inner.identify(request)
        if found is not None and _opens_page(request, found):
            self._warmer.wake()
        elif found is None and request.method == "GET" and request.url.path in _LOG_IN:
            self._warmer.greet(language_of(request))
        return found


def _opens_page(request: Request, identity: Identity) -> bool:
    """Returns whether a person does; not so a script, or a part of a page that renews itself."""
    return identity.session is not None and "hx-request" not in request.headers and not request.url.path.startswith("/api/")
