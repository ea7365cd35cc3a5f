"""Fingerprints of judged content: a known one costs a hash instead of a classification.

Source: [page-dedup] known content gets its recorded verdict; a hit refreshes the validity of one month.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import FingerprintStore, Page
from gatewayfilter.learn.verdicts.content_id import ContentIds, image_digest, image_identity
from gatewayfilter.model import Classification, ContentId, ContentKind, Fingerprint

VALID_S = 30 * 86_400.0
"""One month, as in the paper."""
MANUAL_VALID_S = 3650 * 86_400.0
"""Of a manual verdict. Deviation: the paper's month is for verdicts that can be computed again; reviewers are not asked twice."""
_MOST_RECENT = 4096
"""Fingerprints kept in memory, some 2 KB each."""
_RECENT_S = 600.0
"""For which they are used without a database query, though another learner may have judged again."""
_WARM_AFTER = 16
"""Lookups in the database after which a process reads the fingerprints that were found last, all at once: one by one each costs
0.1 ms and more. Commands that judge a page or two do not."""
_HITS_OF_HARMLESS = 5
"""Evidence that is kept with a harmless verdict: reading it back is half of what knowing a page from the database costs."""
_FLUSH_AFTER = 200
"""Hits counted in memory before they are written: knowing a page again shall not cost a transaction."""
_FLUSH_EVERY_S = 60.0


class Recognition:
    """Recorded verdicts by content. Threads may share one.

    A verdict of the classifier counts as long as the words that it was judged by are in use; a manual one always.

    Args:
        store: where fingerprints are kept.
        ids: makes identities.
        words: returns the version of the words in use.
        clock: Unix seconds.
    """

    def __init__(
        self, store: FingerprintStore, ids: ContentIds, words: Callable[[], str], clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._words = words
        self._clock = clock
        self._recent: OrderedDict[ContentId, tuple[Fingerprint, float]] = OrderedDict()
        self._hits: dict[ContentId, int] = {}
        self._flushed_at = clock()
        self._lock = threading.Lock()
        self._looked_up = 0
        self._has_images = False
        self._asked_for_images_at = float("-inf")
        self.ids = ids

    def page(self, page: Page) -> tuple[ContentId, Fingerprint | None]:
        """Returns what `pages` returns of one page."""
        return self.pages((page,))[0]

    def pages(self, pages: Sequence[Page]) -> list[tuple[ContentId, Fingerprint | None]]:
        """Returns the identity of each page's body, and what is recorded of it and still counts; one look-up for all.

        Raises:
            StoreError: the fingerprints cannot be read or written.
        """
        contents = [self.ids.of_page(page.body) for page in pages]
        now = self._clock()
        found = self._recently_found(contents, now)
        missing = [content for content in dict.fromkeys(contents) if content not in found]
        if missing:
            stored = self._stored(missing, now)
            self._note_lookup(now)
            self._remember(stored.values(), now)
            found |= stored
        return [(content, self._counting(found.get(content), now)) for content in contents]

    def knows_images(self) -> bool:
        """Returns whether any image is stored; queries the database once a minute at most.

        A database that refuses is queried again later: nothing but images depends on the answer.
        """
        now = self._clock()
        if now - self._asked_for_images_at >= _FLUSH_EVERY_S:
            self._asked_for_images_at = now
            with suppress(StoreError):
                self._has_images = self._store.holds(ContentKind.IMAGE)
        return self._has_images

    def image(self, body: bytes) -> Fingerprint | None:
        """Returns what is recorded of an image.

        Raises:
            StoreError: the fingerprints cannot be read or written.
        """
        return self.find(image_identity(image_digest(body)))

    def find(self, content: ContentId) -> Fingerprint | None:
        """Returns what is recorded of this content and still counts, and notes the hit.

        Raises:
            StoreError: the fingerprints cannot be read or written.
        """
        now = self._clock()
        found = self._recently_found([content], now).get(content)
        if found is None:
            found = self._store.find(content, now)
            self._note_lookup(now)
            if found is not None:
                self._remember([found], now)
        return self._counting(found, now)

    def _stored(self, contents: Sequence[ContentId], now: float) -> dict[ContentId, Fingerprint]:
        if len(contents) > 1:
            return self._store.find_all(contents, now)
        found = self._store.find(contents[0], now)
        return {} if found is None else {contents[0]: found}

    def _recently_found(self, contents: Sequence[ContentId], now: float) -> dict[ContentId, Fingerprint]:
        found: dict[ContentId, Fingerprint] = {}
        with self._lock:
            for content in contents:
                recent = self._recent.get(content)
                if recent is not None and now < recent[1] and now < recent[0].expires_at:
                    found[content] = recent[0]
        return found

    def _counting(self, found: Fingerprint | None, now: float) -> Fingerprint | None:
        """Returns a fingerprint that still counts, and notes the hit."""
        if found is None or (not found.judge and found.words != self._words()):
            return None
        self._note_hit(found.content, now)
        return found

    def _note_lookup(self, now: float) -> None:
        self._looked_up += 1
        if self._looked_up == _WARM_AFTER:
            self._warm_up(now)

    def record(
        self, content: ContentId, classification: Classification, url: str, *, judge: str = "", at: float | None = None
    ) -> None:
        """Records a verdict for this content; a manual one is not replaced by the classifier's.

        Args:
            content: what was judged.
            classification: the verdict.
            url: where it was seen.
            judge: the reviewer's name, `""` for the classifier.
            at: when it was judged (Unix seconds), `None` for now.

        Raises:
            StoreError: it cannot be written.
        """
        now = self._clock()
        self._put([self._fingerprint(content, classification, url, judge, now if at is None else at, now)])

    def words(self) -> str:
        """Returns the version of the words in use."""
        return self._words()

    def record_all(self, judged: Mapping[ContentId, tuple[Classification, str]], words: str) -> None:
        """Records verdicts of the classifier, each with the URL where its content was seen, in one transaction.

        Args:
            judged: the verdicts.
            words: the version in use before the first of them was judged: words that change meanwhile judge them again.

        Raises:
            StoreError: they cannot be written.
        """
        now = self._clock()
        made = [self._fingerprint(content, found, url, "", now, now) for content, (found, url) in judged.items()]
        self._put([replace(fingerprint, words=words) for fingerprint in made])

    def _fingerprint(
        self, content: ContentId, classification: Classification, url: str, judge: str, at: float, now: float
    ) -> Fingerprint:
        words = "" if judge else self._words()
        if not classification.harmful:
            classification = replace(classification, evidence=classification.evidence[:_HITS_OF_HARMLESS])
        return Fingerprint(content, classification, judge, words, url, at, now + (MANUAL_VALID_S if judge else VALID_S))

    def _put(self, fingerprints: Sequence[Fingerprint]) -> None:
        self._store.put_all(fingerprints)
        with self._lock:
            for fingerprint in fingerprints:
                self._recent.pop(fingerprint.content, None)

    def recorded(self, content: ContentId) -> Fingerprint | None:
        """Returns what is recorded of this content, whatever words it was judged by; that is no hit.

        Raises:
            StoreError: the fingerprints cannot be read.
        """
        return self._store.find(content, self._clock())

    def forget(self, content: ContentId) -> None:
        """Forgets what is recorded: the next time it is judged again.

        Raises:
            StoreError: it cannot be written.
        """
        self._store.remove(content)
        with self._lock:
            self._recent.pop(content, None)

    def flush(self) -> None:
        """Writes the hits that were counted in memory.

        Raises:
            StoreError: they cannot be written; they are counted again the next time.
        """
        with self._lock:
            hits, self._hits = self._hits, {}
            self._flushed_at = self._clock()
        try:
            self._store.touch(hits, self._flushed_at + VALID_S)
        except BaseException:
            with self._lock:
                for content, more in hits.items():
                    self._hits[content] = self._hits.get(content, 0) + more
            raise

    def _note_hit(self, content: ContentId, now: float) -> None:
        with self._lock:
            self._hits[content] = self._hits.get(content, 0) + 1
            due = len(self._hits) >= _FLUSH_AFTER or now - self._flushed_at >= _FLUSH_EVERY_S
        if due:
            self.flush()

    def _warm_up(self, now: float) -> None:
        self._remember(reversed(self._store.newest(_MOST_RECENT, now)), now)

    def _remember(self, fingerprints: Iterable[Fingerprint], now: float) -> None:
        """Keeps harmless verdicts of the classifier without doubt.

        Others are looked up each time: a reviewer may have decided otherwise meanwhile, in another process.
        """
        with self._lock:
            for fingerprint in fingerprints:
                if fingerprint.classification.harmful or fingerprint.classification.doubt or fingerprint.judge:
                    continue
                self._recent[fingerprint.content] = fingerprint, now + _RECENT_S
                self._recent.move_to_end(fingerprint.content)
                if len(self._recent) > _MOST_RECENT:
                    self._recent.popitem(last=False)
