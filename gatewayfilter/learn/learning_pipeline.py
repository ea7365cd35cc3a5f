"""The pipeline of a fetched page: classification, list entries, review tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gatewayfilter.classify import is_pdf
from gatewayfilter.documents.page_parts import HTML_TYPES
from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Classify, ClassifyImage, Page, ReadText
from gatewayfilter.learn.page_kind import is_readable
from gatewayfilter.learn.reflected_words import address_words, asked_words, touches
from gatewayfilter.learn.review.task_intake import TaskIntake
from gatewayfilter.learn.verdicts.list_growth import ListGrowth, is_confirmed
from gatewayfilter.learn.verdicts.manual_verdicts import asks_for_credentials, holds_here, is_login_clone
from gatewayfilter.learn.verdicts.recognition import Recognition
from gatewayfilter.model import Classification, ContentId, Fingerprint, LearnedEntry
from gatewayfilter.settings import DomainGrowth, GrowthMode, LearnSettings
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True)
class _Judged:
    """A page's verdict, the page's identity where it has one, and whether the verdict is manual."""

    classification: Classification
    identity: ContentId | None = None
    by_hand: bool = False

    @property
    def plain(self) -> bool:
        """Whether it is a harmless page without a manual verdict."""
        return not self.by_hand and not self.classification.harmful


class LearningPipeline:
    """Judges pages and grows the lists. Implements `interfaces.BatchSink`.

    Counts `pages_skipped`, `pages_harmful`, `pages_harmless`, `pages_doubtful` (harmless ones in doubt), `fingerprint_hits` (of
    them, those with content judged before), `hosts_harmful`, `images_known_bad`, `near_duplicates` (harmless ones that are nearly
    the same as a harmful one) and `pages_reflected` (skipped because only the words of their request make them harmful).

    Args:
        classify: judges what is not known.
        list_growth: puts it on the lists.
        counters: where pages are counted.
        settings: the treatment of harmful pages.
        recognition: finds the verdict of content that was judged before; `None` judges every page.
        intake: makes review tasks; `None` makes none.
        read_text: returns the text of a page, for review tasks and for manual verdicts on the same text.
        images: judges images that are on no list of known ones; `None` uses the lists alone.
    """

    def __init__(
        self,
        classify: Classify,
        list_growth: ListGrowth,
        counters: Counters,
        settings: LearnSettings | None = None,
        *,
        recognition: Recognition | None = None,
        intake: TaskIntake | None = None,
        read_text: ReadText | None = None,
        images: ClassifyImage | None = None,
    ) -> None:
        self._classify = classify
        self._list_growth = list_growth
        self._counters = counters
        self._settings = settings or LearnSettings()
        self._recognition = recognition
        self._intake = intake
        self._read_text = read_text
        self._images = images

    def page(self, page: Page) -> Classification | None:
        """Classifies the page and grows the lists. CPU-bound and writes to the database: call it off the event loop.

        Returns:
            The classification, or `None` for a page that is not judged: not 2xx, empty, neither HTML nor text (nor a known
            image), one that the classifier cannot read, or one that is harmful only by the words of its own query.

        Raises:
            StoreError: the verdict could not be kept.
        """
        return self.batch((page,))[0]

    def batch(self, pages: Sequence[Page]) -> list[Classification | None]:
        """Judges pages as `page` does, and keeps the verdicts of harmless ones, which are nearly all, in one transaction.

        Raises:
            StoreError: a verdict could not be kept; others may have been.
        """
        fresh: dict[ContentId, tuple[Classification, str]] = {}
        words = self._recognition.words() if self._recognition is not None else ""
        judged = [(page, self._judge(page, known, fresh)) for page, known in self._recognized(pages)]
        if self._recognition is not None and fresh:
            self._recognition.record_all(fresh, words)
        verdicts = [(page, self._looked_at(page, found)) for page, found in judged]
        harmless = [(page, found.classification) for page, found in verdicts if found and found.plain]
        if harmless:
            self._list_growth.learn_all(harmless)
        for page, found in verdicts:
            if found is None:
                self._counters.add("pages_skipped")
            elif found.plain:
                self._find_near_duplicates(page, found.classification, found.identity)
                self._ask_of_doubt(page, found.classification, found.identity)
                self._counters.add("pages_harmless")
            else:
                self._learn(page, found)
        return [None if found is None else found.classification for _, found in verdicts]

    def _looked_at(self, page: Page, found: _Judged | None) -> _Judged | None:
        """Returns a verdict after the second look. Fingerprints keep the classifier's own: its facts are those of one host."""
        if found is None or found.by_hand or _is_image(page):
            return found
        moved = self._list_growth.looked_at(page, found.classification)
        if (moved.category, moved.doubt) != (found.classification.category, found.classification.doubt):
            self._counters.add("second_looks")
        return replace(found, classification=moved)

    def _learn(self, page: Page, found: _Judged) -> None:
        """Learns a page that is harmful, or has a manual verdict."""
        classification = found.classification
        mode = self._settings.mode_of(classification.category)
        entry = self._put_on_list(page, classification, by_hand=found.by_hand, mode=mode)
        if classification.harmful:
            asked = found.by_hand or is_confirmed(entry)
            self._ask_people(page, classification, found.identity, by_hand=asked, mode=mode)
            self._learn_host(page, classification)
        self._counters.add("pages_harmful" if classification.harmful else "pages_harmless")

    def knows_images(self) -> bool:
        """Returns whether images are worth fetching: some are on a list, or a classifier judges them."""
        return self._images is not None or (self._recognition is not None and self._recognition.knows_images())

    def is_near_duplicate(self, page: Page) -> bool:
        """Returns whether the page that was just judged is harmless but nearly the same as a harmful one; true once."""
        return self._intake is not None and self._intake.near_duplicates.take(page.final_url)

    def _put_on_list(self, page: Page, classification: Classification, *, by_hand: bool, mode: GrowthMode) -> LearnedEntry:
        block = by_hand or mode is not GrowthMode.REVIEW
        counts = not classification.harmful or (not by_hand and self._counts(page, classification))
        if classification.harmful and not block and self._intake is not None:
            # An address that has this manual verdict already gets no second task.
            block = self._intake.confirmed(parse_url(page.url).key, classification.category)
        return self._list_growth.learn(page, classification, block=block, by_hand=by_hand, counts=counts)

    def _counts(self, page: Page, classification: Classification) -> bool:
        """Returns whether a harmful page may count for its host: not by the words of its path alone, which a site may repeat."""
        if page.secondhand or self._settings.domains is DomainGrowth.OFF or _is_image(page):
            return False
        return self._stands(page, classification, address_words(page)) is not None

    def _recognized(self, pages: Sequence[Page]) -> list[tuple[Page, tuple[ContentId, Fingerprint | None] | None]]:
        """Returns each page with its identity and what is recorded of it, `None` where a page is not judged by its content."""
        if self._recognition is None:
            return [(page, None) for page in pages]
        judged = [(page, self._is_judged(page)) for page in pages]
        found = iter(self._recognition.pages([page for page, counts in judged if counts]))
        return [(page, next(found) if counts else None) for page, counts in judged]

    def _judge(
        self,
        page: Page,
        recognized: tuple[ContentId, Fingerprint | None] | None,
        fresh: dict[ContentId, tuple[Classification, str]],
    ) -> _Judged | None:
        """Judges a page; what was not known is put among the `fresh`, to be recorded."""
        listed = self._listed_image(page)
        if listed is not None:
            return listed
        if recognized is None:
            found = (
                self._unrepeated(page, self._classified(page)) if self._recognition is None and self._is_judged(page) else None
            )
            return None if found is None else _Judged(found)
        identity, known = recognized
        if known is not None and known.judge:
            if holds_here(known, page, self._classified):
                self._counters.add("fingerprint_hits")
                return _Judged(known.classification, identity, by_hand=True)
        elif known is not None or identity in fresh:
            found = self._unrepeated(page, known.classification if known is not None else fresh[identity][0])
            if found is not None:
                self._counters.add("fingerprint_hits")
            return None if found is None else _Judged(found, identity)
        return self._rejudge(page, identity, fresh)

    def _rejudge(self, page: Page, identity: ContentId, fresh: dict[ContentId, tuple[Classification, str]]) -> _Judged | None:
        found = self._classified(page)
        if found is not None and (found.harmful or found.doubt):
            by_hand = self._said_of_text(page)
            if by_hand is not None:
                return _Judged(by_hand, identity, by_hand=True)
            found = self._unrepeated(page, found)
        if found is None:
            return None
        if self._is_of_content(page, found):
            fresh[identity] = (found, page.final_url)
        return _Judged(found, identity)

    def _unrepeated(self, page: Page, found: Classification | None) -> Classification | None:
        """Returns a verdict without the words of the request, `None` for a page that only they make harmful or doubtful."""
        if found is None or _is_image(page):
            return found
        if not found.harmful:
            return self._undoubted(page, found) if found.doubt else found
        left = self._without(page, found, asked_words(page))
        if left is not None and (left.harmful or left.doubt):
            return left
        self._counters.add("pages_reflected")
        return None

    def _undoubted(self, page: Page, found: Classification) -> Classification:
        """Returns a harmless verdict without a doubt that only the words of the request raise."""
        ignored = asked_words(page)
        alone = self._classified(replace(page, ignored=ignored)) if ignored else None
        return found if alone is None or alone.harmful or alone.doubt else replace(found, doubt="")

    def _stands(self, page: Page, found: Classification, ignored: str) -> Classification | None:
        """Returns what is left of a harmful verdict without these words, `None` where it is harmful no more."""
        left = self._without(page, found, ignored)
        return left if left is not None and left.harmful else None

    def _without(self, page: Page, found: Classification, ignored: str) -> Classification | None:
        """Returns the verdict without these words, `None` for a page that cannot be read."""
        if not ignored or not touches(ignored, found):
            return found
        alone = self._classified(replace(page, ignored=ignored))
        return replace(alone, text_digest=found.text_digest) if alone is not None else None

    def _is_of_content(self, page: Page, found: Classification) -> bool:
        """Returns whether a verdict holds for the same content at any address, so that its fingerprint may answer for it."""
        if _is_image(page):
            return True
        kind = page.content_type
        if (found.harmful or found.doubt) and kind not in _HTML:  # as plain text, comments and scripts of a page count too
            return False
        if kind not in HTML_TYPES and not is_pdf(kind, page.body):  # what is read otherwise than as a page opens no page
            return False
        if _is_by_address(page, found):
            return False
        telling = (hit for hit in found.evidence if hit.zone == "url" and (found.harmful or hit.weight < 0))
        if not found.doubt and not any(telling):
            return True
        alone = self._classified(replace(page, url="", final_url="", ignored=asked_words(page)))
        return alone is not None and (alone.category, alone.doubt) == (found.category, found.doubt)

    def _classified(self, page: Page) -> Classification | None:
        try:
            if _is_image(page):
                return self._images.classify_image(page.body, page.content_type) if self._images is not None else None
            return self._classify.classify_page(page)
        except ClassifyError:
            return None

    def _is_judged(self, page: Page) -> bool:
        return _is_answered(page) and self._images is not None if _is_image(page) else is_readable(page)

    def _listed_image(self, page: Page) -> _Judged | None:
        """Returns the verdict of the list of known images on a picture."""
        if self._recognition is None or not _is_image(page) or not _is_answered(page):
            return None
        known = self._recognition.image(page.body)
        if known is None:
            return None
        self._counters.add("images_known_bad")
        return _Judged(known.classification, by_hand=True)

    def _said_of_text(self, page: Page) -> Classification | None:
        """Returns the manual verdict on a page with the same text and other markup."""
        text = self._text_of(page)
        if not text or self._recognition is None:
            return None
        found = self._recognition.find(self._recognition.ids.of_text(text))
        return found.classification if found is not None and holds_here(found, page, self._classified) else None

    def _text_of(self, page: Page) -> str:
        if self._read_text is None:
            return ""
        try:
            return self._read_text.text_of(page)
        except ClassifyError:
            return ""

    def _content_of(self, page: Page) -> tuple[str, ContentId | None]:
        text = self._text_of(page)
        return text, self._recognition.ids.of_text(text) if text and self._recognition is not None else None

    def _ask_people(
        self, page: Page, classification: Classification, identity: ContentId | None, *, by_hand: bool, mode: GrowthMode
    ) -> None:
        if self._intake is None or by_hand or mode is GrowthMode.BLOCK:
            return
        text, content = self._content_of(page)
        blocked = mode is not GrowthMode.REVIEW
        self._intake.page(page, classification, blocked=blocked, text=text, identity=identity, content=content)

    def _ask_of_doubt(self, page: Page, classification: Classification, identity: ContentId | None) -> None:
        """Opens a review task for a page in doubt, which stays allowed."""
        if not classification.doubt:
            return
        self._counters.add("pages_doubtful")
        if self._intake is not None and self._settings.mode_of(classification.doubt) is not GrowthMode.BLOCK:
            text, content = self._content_of(page)
            self._intake.doubt(page, classification, text=text, identity=identity, content=content)

    def _find_near_duplicates(self, page: Page, classification: Classification, identity: ContentId | None) -> None:
        """Notes a harmless page that is nearly the same as a harmful one, and opens a review task for it; it stays allowed."""
        if self._intake is None:
            return
        near_duplicates = self._intake.near_duplicates.find(classification.title, lambda: self._text_of(page))
        if near_duplicates is None:
            return
        self._counters.add("near_duplicates")
        self._intake.near_duplicates.note(page.final_url)
        if self._settings.mode_of(near_duplicates.category) is not GrowthMode.BLOCK:
            text, content = self._content_of(page)
            self._intake.join_task(page, classification, near_duplicates, text=text, identity=identity, content=content)

    def _learn_host(self, page: Page, classification: Classification) -> None:
        entry = (
            self._list_growth.learn_host(page)
            if self._intake is None
            else self._list_growth.learn_host(page, self._intake.refused)
        )
        if entry is None:
            return
        blocked = self._settings.domains is DomainGrowth.BLOCK
        if blocked:
            self._counters.add("hosts_harmful")
        if self._intake is not None:
            self._intake.host(entry, classification, blocked=blocked)


def _is_image(page: Page) -> bool:
    return page.content_type.startswith("image/")


def _is_by_address(page: Page, found: Classification) -> bool:
    """Returns whether the address decides about a page: the same login page is harmless at its owner's, and a clone elsewhere."""
    if is_login_clone(found):
        return True
    return not found.harmful and asks_for_credentials(page)


def _is_answered(page: Page) -> bool:
    return 200 <= page.status < 300 and bool(page.body)
