"""A review task's page judged by the words in use today, beside what it was judged when the task was made."""

from dataclasses import dataclass

from gatewayfilter.classify import breakdown_of
from gatewayfilter.config import Settings
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification, ReviewTask, ScoreBreakdown
from gatewayfilter.store import Store
from gatewayfilter.wiring import classifier, page_archive, recognition, words_in_use


@dataclass(frozen=True, slots=True)
class JudgedToday:
    """A task's page by the words in use.

    Attributes:
        score_breakdown: of the category that the task was made in, `None` where nothing on the page counts for it any more.
        whole: the archived page was judged; otherwise the text that the task keeps, without its zones.
    """

    classification: Classification
    score_breakdown: ScoreBreakdown | None
    whole: bool


def archived_page(settings: Settings, store: Store, task: ReviewTask) -> Page | None:
    """Returns the page that a task is about as it was fetched, `None` when it is no longer in the archive.

    Raises:
        StartupError: the key of the fingerprints cannot be read.
        StoreError: the database refuses.
    """
    archive = page_archive(settings)
    if archive is None or task.page is None:
        return None
    ids = recognition(settings, store).ids
    for url in task.urls:
        reference = store.verdicts.archived(url)
        page = archive.read(reference) if reference else None
        if page is not None and ids.of_page(page.body) == task.page:  # a newer state of the page is another page
            return page
    return None


def judged_today(settings: Settings, store: Store, task: ReviewTask) -> JudgedToday | None:
    """Judges a task's page by the words in use; `None` where those judged it already, and where nothing is known of it.

    Raises:
        ClassifyError: the words cannot be used.
        StartupError, StoreError: as `archived_page`.
    """
    then = task.score_breakdown
    if then is None or then.words_version == (version := words_in_use(settings)):
        return None
    page = archived_page(settings, store, task)
    explained = classifier(settings).explain(page or _text_alone(task))
    return JudgedToday(explained.classification, breakdown_of(explained, version, then.category), page is not None)


def _text_alone(task: ReviewTask) -> Page:
    url = task.final_url or task.url
    return Page(task.url, url, 200, {"content-type": "text/plain; charset=utf-8"}, task.text.encode(errors="replace"))
