"""The buffer between fetching and scanning, and the evidence of what was blocked: pages are kept in the archive.

A page goes from the fetcher to the scanner in memory, and to the disk beside: nothing waits for the disk. Only when the scanner
lags, pages that are not urgent stay on the disk alone until it has caught up. A page is packed where it is judged, while it is in
that processor's cache; a thread of its own writes it.

Source: [url-filter] file buffer; [page-dedup steps 1-2].
Deviation: the paper's scanner always reads from the buffer; here a user's first visit never waits for a disk.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from gatewayfilter.crawl.buffer.backlog import Backlog
from gatewayfilter.crawl.buffer.classify_batcher import judge_together
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import EvidenceStore, Page, PageArchive, PageSink
from gatewayfilter.model import Classification
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

MOST_BESIDE = 64
"""Packed pages that wait for the disk; beyond it pages are judged without being archived, and counted."""
MOST_BACKLOG = 5_000
"""Pages that wait on the disk to be scanned; beyond it fetching waits for the scanner."""


type _Place = tuple[Future[list[str]], int]
"""Where the reference of a page will be: that of one among those that are written together."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A page out of the backlog.

    Attributes:
        page: `None` when the archive no longer had it.
        classification: `None` also for one of a kind that is not judged.
        task: to which it belongs, `""` for none.
        depth: how many links away from where the task began.
    """

    page: Page | None
    classification: Classification | None = None
    task: str = ""
    depth: int = 0


class PageBuffer:
    """Judges pages through another sink and archives them. Implements `interfaces.BatchSink`.

    Counts `pages_archived`, `archive_failures`, `pages_buffered` and `pages_lost`.

    Args:
        sink: judges; called in the thread that calls `page` or `scan_first`.
        archive: where pages lie.
        evidence: the index of the pages behind harmful verdicts.
        evidence_s: for which evidence is kept at least: as long as learned blocks count.
        counters: where pages are counted.
        backlog: what waits to be scanned; `None` buffers nothing.
        evidence_only: archives harmful pages alone.
        clock: Unix seconds.
    """

    def __init__(
        self,
        sink: PageSink,
        archive: PageArchive,
        evidence: EvidenceStore,
        evidence_s: float,
        counters: Counters,
        backlog: Backlog | None = None,
        *,
        evidence_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sink = sink
        self._archive = archive
        self._evidence = evidence
        self._evidence_s = evidence_s
        self._counters = counters
        self._backlog = backlog
        self._evidence_only = evidence_only
        self._clock = clock
        self._disk = ThreadPoolExecutor(1, "crawl-archive")
        self._beside = threading.BoundedSemaphore(MOST_BESIDE)

    @property
    def waiting(self) -> int:
        """How many pages wait to be scanned."""
        return 0 if self._backlog is None else len(self._backlog)

    @property
    def has_room(self) -> bool:
        """Whether further pages may wait on the disk."""
        return self._backlog is not None and len(self._backlog) < MOST_BACKLOG

    def page(self, page: Page) -> Classification | None:
        """Judges a page; it is archived beside, and kept as evidence when it is harmful.

        Raises:
            StoreError: the verdict could not be kept.
        """
        return self.batch((page,))[0]

    def batch(self, pages: Sequence[Page]) -> list[Classification | None]:
        """Judges several pages as `page` does, together where the sink can.

        Raises:
            StoreError: a verdict could not be kept; others may have been.
        """
        archived = [None] * len(pages) if self._evidence_only else self._keep_beside(pages)
        classifications = list(judge_together(self._sink, pages))
        for page, kept, classification in zip(pages, archived, classifications, strict=True):
            if classification is not None and classification.harmful:
                place = kept or self._keep_beside((page,))[0]
                if place is not None:
                    self._disk.submit(self._keep_written, page, *place)
        return classifications

    def put(self, page: Page, task: str = "", depth: int = 0) -> "Future[None]":
        """Archives a page (of a task, so many links away from its start) for later.

        When that is done, it will be scanned even if this process is killed.

        The future raises `OSError` when it could not be written: then the page is the caller's still.
        """
        return self._disk.submit(self._put, page, task, depth)

    def scan_first(self) -> Scanned | None:
        """Judges the page that has waited longest; `None` when none waits. It goes on waiting until `advance`.

        Raises:
            StoreError: the verdict could not be kept.
        """
        waiting = self._backlog.first() if self._backlog is not None else None
        if waiting is None:
            return None
        reference, task, depth = _read_waiting(waiting)
        page = self._archive.read(reference)
        if page is None:
            self._counters.add("pages_lost")
            _log.warning("a page left the archive before it was scanned: crawl.archive_mb is too small, or a segment is damaged")
            return Scanned(None)
        classification = self._sink.page(page)
        if classification is not None and classification.harmful:
            self._disk.submit(self._keep_evidence, page, reference)
        return Scanned(page, classification, task, depth)

    def evidence_of(self, page: Page) -> str:
        """Returns where the page behind an earlier verdict is stored, `""` for none. Raises `StoreError`."""
        return self._evidence.archived(page.url)

    def keep_longer(self, page: Page, reference: str) -> None:
        """Keeps the evidence of a page that is as it was for as long as its verdict counts now."""
        self._disk.submit(self._keep_evidence, page, reference)

    def advance(self) -> None:
        """Takes the page that has waited longest out of the backlog."""
        if self._backlog is not None:
            try:
                self._backlog.advance()
            except OSError as error:
                _log.warning("cannot note that a page was scanned: %s; after a restart it is scanned again", error.strerror)

    def flush(self) -> None:
        """Waits until all pages so far are on the disk."""
        self._disk.submit(int).result()

    def _keep_beside(self, pages: Sequence[Page]) -> list[_Place | None]:
        """Packs pages, and has them written together. Returns where the reference of each will be, `None` without one."""
        chosen: list[Page] = []
        places: list[int | None] = []
        for page in pages:
            has_room = bool(page.body) and self._beside.acquire(blocking=False)
            places.append(len(chosen) if has_room else None)
            if has_room:
                chosen.append(page)
            elif page.body:
                self._counters.add("archive_failures")
        if not chosen:
            return [None] * len(pages)
        try:
            records = [self._archive.pack(page, self._clock()) for page in chosen]
            written = self._disk.submit(self._keep_packed, records)
        except BaseException:
            self._beside.release(len(chosen))
            raise
        return [None if place is None else (written, place) for place in places]

    def _keep_packed(self, records: Sequence[bytes]) -> list[str]:
        try:
            return self._keep(records)
        finally:
            self._beside.release(len(records))

    def _keep(self, records: Sequence[bytes]) -> list[str]:
        """Returns the reference of each, `""` where the page could not be written."""
        try:
            references = self._archive.append_all(records)
        except OSError as error:
            if len(records) > 1:
                return [self._keep((record,))[0] for record in records]
            self._counters.add("archive_failures")
            _log.warning("cannot archive a page: %s", error.strerror)
            return [""]
        self._counters.add("pages_archived", len(records))
        return references

    def _put(self, page: Page, task: str, depth: int) -> None:
        if self._backlog is None:
            raise OSError("no backlog")
        reference = self._archive.keep(page, self._clock())
        self._counters.add("pages_archived")
        self._backlog.put(f"{reference} {task} {depth}" if task else reference)
        self._counters.add("pages_buffered")

    def _keep_written(self, page: Page, written: "Future[list[str]]", place: int) -> None:
        self._keep_evidence(page, written.result()[place])

    def _keep_evidence(self, page: Page, reference: str) -> None:
        if not reference:
            return
        try:
            self._archive.pin(reference, self._clock() + self._evidence_s)
            for url in {page.url, page.final_url}:
                self._evidence.note_archived(url, reference)
        except (OSError, StoreError) as error:
            self._counters.add("archive_failures")
            _log.warning("cannot record where the evidence of a page is stored: %s", error)


def _read_waiting(waiting: str) -> tuple[str, str, int]:
    """Returns reference, task and depth of a line of the journal; what is no depth is the start."""
    reference, _, rest = waiting.partition(" ")
    task, _, depth = rest.partition(" ")
    return reference, task, int(depth) if depth.isascii() and depth.isdecimal() else 0
