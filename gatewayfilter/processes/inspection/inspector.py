"""The inspector process: judges a page while its client waits, answers, then learns the verdict.

One runs beside each proxy worker that has `unknown = "inspect"`.
"""

import json
import logging
import signal
import socket
import threading
from collections import OrderedDict
from queue import Full, Queue
from typing import Final

from gatewayfilter.classify import ReloadingClassifier
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.errors import ClassifyError, ConfigError, GatewayFilterError, StoreError
from gatewayfilter.interfaces import Page, PassedResponse
from gatewayfilter.learn import LearningPipeline, Recognition, SecondLook, holds_here, is_readable
from gatewayfilter.model import Classification, Fingerprint
from gatewayfilter.processes.inspection.frames import LENGTHS, pack_answer
from gatewayfilter.processes.supervision.child_setup import begin_child
from gatewayfilter.settings import Settings
from gatewayfilter.store import Store
from gatewayfilter.store.page_spool import page_of
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from gatewayfilter.wiring import learning_sink, open_store, recognition, rule_book, second_look, words_folders

_log = logging.getLogger(__name__)

_MOST_TO_LEARN: Final = 64
_MOST_KNOWN: Final = 4_096
"""Judgements of content that are kept for the same content at other URLs: some 4 MB."""


def run_inspector(settings: Settings, channel: socket.socket) -> None:
    """Judges pages until the channel closes. The entry of the process."""
    begin_child(settings)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    judge = _Remembering(settings)
    learning = _Learning(settings, judge)
    with channel, channel.makefile("rwb") as stream:
        try:
            while len(lengths := stream.read(LENGTHS.size)) == LENGTHS.size:
                number, head_length, body_length = LENGTHS.unpack(lengths)
                url, status, headers, public, said = json.loads(stream.read(head_length))
                response = PassedResponse(url, status, headers, stream.read(body_length), public, said)
                page = page_of(response)
                found = learning.verdict(page) if page is not None else None
                stream.write(pack_answer(number, found))
                stream.flush()
                if public and page is not None and found is not None:
                    learning.take(page)
        except (ConnectionError, ValueError) as error:
            _log.info("the proxy worker ended: %s", error)
    learning.finish()


class _Remembering(ReloadingClassifier):
    """A classifier that keeps its last verdicts, so that learning a page does not judge it again."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            words_folders(settings),
            extractor=settings.classify.extractor,
            rules=rule_book(settings),
            topics=settings.classify.topics,
            strictness=settings.classify.strictness,
            remembers=_MOST_KNOWN,
        )
        self._recent: OrderedDict[int, tuple[Page, Classification, str]] = OrderedDict()

    def judge(self, page: Page) -> Classification | None:
        """Judges a page of a kind that is judged."""
        if not is_readable(page):
            return None
        try:
            return self.classify_page(page)
        except ClassifyError:
            return None

    def classify_page(self, page: Page) -> Classification:
        """Judges a page, or returns its verdict of a moment ago by the same words."""
        words = self.words_version()
        known = self._recent.get(id(page))
        if known is not None and known[0] is page and known[2] == words:
            return known[1]
        found = super().classify_page(page)
        self._recent[id(page)] = page, found, words
        if len(self._recent) > _MOST_TO_LEARN:
            self._recent.popitem(last=False)
        return found


class _Learning:
    """Grows the lists from a thread of its own, so that no client waits for the database."""

    def __init__(self, settings: Settings, judge: _Remembering) -> None:
        self._settings = settings
        self._judge = judge
        self._recognition: Recognition | None = None
        self._store: Store | None = None
        self._second_look = _trusted_hosts_alone(settings)
        self._looks_at_facts = False
        self._queue: Queue[Page | None] = Queue(_MOST_TO_LEARN)
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)
        self._thread.start()

    def verdict(self, page: Page) -> Classification | None:
        """Returns the earlier manual verdict on this content, or the classifier's after the second look; `None` for neither."""
        known = self._known(page)
        if known is not None and known.judge:
            if holds_here(known, page, self._judge.judge):
                return known.classification
            known = None
        found = known.classification if known is not None else self._judge.judge(page)
        if found is None or self._second_look is None or page.content_type.startswith("image/"):
            return found
        try:
            return self._second_look.look(page, found)
        except StoreError as error:
            _log.warning("%s; a page is judged without a second look", error)
            return found

    def _known(self, page: Page) -> Fingerprint | None:
        if self._recognition is None:
            return None
        try:
            return self._recognition.page(page)[1]
        except StoreError:
            return None

    def take(self, page: Page) -> None:
        """Queues a page to be learned; one too many is forgotten, and met again at its next visit."""
        try:
            self._queue.put_nowait(page)
        except Full:
            _log.warning("too much to learn at once; a page is passed over")

    def finish(self) -> None:
        """Learns what is queued, and writes what was only counted in memory."""
        try:
            self._queue.put(None, timeout=1)
        except Full:
            return
        self._thread.join(3)

    def _run(self) -> None:
        sink = self._open()
        while (page := self._queue.get()) is not None:
            sink = sink or self._open()
            try:
                if sink is not None and not may_crawl(parse_url(page.url), self._settings.crawl):
                    sink.page(page)
            except GatewayFilterError as error:
                _log.warning("%s; an inspected page is not learned", error)
            except Exception:  # noqa: BLE001  the thread must live on: no other learns
                _log.exception("learning a page failed")
        if self._store is not None:
            self._store.close()

    def _open(self) -> LearningPipeline | None:
        try:
            self._store = self._store or open_store(self._settings)
            if self._recognition is None:
                self._recognition = recognition(self._settings, self._store, self._judge.words_version)
            if not self._looks_at_facts:
                self._second_look = second_look(self._settings, self._store)
                self._looks_at_facts = True
            return learning_sink(self._settings, self._store, Counters(), judge=self._judge)
        except GatewayFilterError as error:
            _log.warning("%s; inspected pages are not learned", error)
            return None


def _trusted_hosts_alone(settings: Settings) -> SecondLook | None:
    """Returns the second look for as long as there is no database."""
    try:
        return second_look(settings, None)
    except ConfigError as error:
        _log.warning("%s; inspected pages are judged without a second look", error)
        return None
