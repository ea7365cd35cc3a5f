"""The intake of review tasks: harmful pages and hosts become tasks for a reviewer.

Source: [page-dedup] bad content becomes a disposal task for review by a person; tasks of similar pages form a group.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import ExplainScore, Page, ReviewStore
from gatewayfilter.learn.review.near_duplicates import NearDuplicates
from gatewayfilter.learn.review.similarity import are_alike, simhash
from gatewayfilter.model import (
    Classification,
    ContentId,
    LearnedEntry,
    ReviewKind,
    ReviewState,
    ReviewTask,
    ScoreBreakdown,
    TaskOutline,
)
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url

MAX_TEXT = 20_000
"""Characters of a page's text that a task keeps."""
_COMPARED = 300
"""Newest open tasks of a category that a page is held against."""


class TaskIntake:
    """Opens tasks, at most one for each list key, and none where the same manual verdict stands already.

    Tasks about pages in doubt: at most one for each content, and at most half of all open tasks. When the page of such a task is
    judged harmful, the task becomes one about a harmful page. Counts `reviews_opened` and `reviews_dropped`.

    Attributes:
        near_duplicates: finds harmless pages that are nearly the same as blocked ones.

    Args:
        store: where tasks are kept.
        counters: where they are counted.
        most_open: tasks that may wait at once; beyond it new ones are dropped and counted.
        clock: Unix seconds.
        together: makes one transaction of what is read and written meanwhile, in which no other task is opened.
        explain: returns the score breakdown; `None` keeps none with tasks.
    """

    def __init__(
        self,
        store: ReviewStore,
        counters: Counters,
        most_open: int,
        clock: Callable[[], float] = time.time,
        together: Callable[[], AbstractContextManager[None]] = nullcontext,
        explain: ExplainScore | None = None,
    ) -> None:
        self._explain = explain
        self.near_duplicates = NearDuplicates(store, clock)
        self._store = store
        self._counters = counters
        self._most_open = most_open
        self._clock = clock
        self._together = together

    def page(
        self,
        page: Page,
        classification: Classification,
        *,
        blocked: bool,
        text: str = "",
        identity: ContentId | None = None,
        content: ContentId | None = None,
    ) -> int | None:
        """Opens a task for a harmful page. Returns its number, `None` when there is none to open.

        Args:
            page: what was judged.
            classification: the verdict.
            blocked: whether the page is blocked meanwhile.
            text: the visible text.
            identity: of the page's body.
            content: of its text.

        Raises:
            StoreError: the database refuses.
        """
        task = self._task(page, classification, classification.category, text)
        return self._open(replace(task, blocked=blocked, page=identity, content=content), page)

    def doubt(
        self,
        page: Page,
        classification: Classification,
        *,
        text: str = "",
        identity: ContentId | None = None,
        content: ContentId | None = None,
    ) -> int | None:
        """Opens a task for a page in doubt, which stays allowed. Returns its number, `None` when there is none to open.

        Args:
            page: what was judged.
            classification: the verdict: harmless, with a doubt.
            text: the visible text.
            identity: of the page's body.
            content: of its text.

        Raises:
            StoreError: the database refuses.
        """
        task = replace(
            self._task(page, classification, classification.doubt, text), doubtful=True, page=identity, content=content
        )
        return self._open(task, page)

    def join_task(
        self,
        page: Page,
        classification: Classification,
        other: TaskOutline,
        *,
        text: str = "",
        identity: ContentId | None = None,
        content: ContentId | None = None,
    ) -> int | None:
        """Opens a task for a harmless page that is nearly the same as the harmful page of another task, in that one's group.

        The page stays allowed until a reviewer decides. Returns the task's number, `None` when there is none to open.

        Args:
            page: what was judged.
            classification: the verdict.
            other: the other task.
            text: the visible text.
            identity: of the page's body.
            content: of its text.

        Raises:
            StoreError: the database refuses.
        """
        task = self._task(page, classification, other.category, text)
        return self._open(replace(task, group_id=other.group_id, page=identity, content=content), page)

    def _task(self, page: Page, classification: Classification, category: str, text: str) -> ReviewTask:
        asked, answered = parse_url(page.url), parse_url(page.final_url)
        return ReviewTask(
            task_id=0,
            kind=ReviewKind.PAGE,
            url=page.url,
            final_url="" if answered.key == asked.key else page.final_url,
            key=asked.key,
            category=category,
            classification=classification,
            blocked=False,
            created_at=self._clock(),
            text=text[:MAX_TEXT],
            simhash=simhash(text),
        )

    def host(self, entry: LearnedEntry, classification: Classification, *, blocked: bool) -> int | None:
        """Opens a task for a host that is or would be listed whole. Returns its number, `None` when there is none to open.

        Raises:
            StoreError: the database refuses.
        """
        task = ReviewTask(
            task_id=0,
            kind=ReviewKind.DOMAIN,
            url=entry.url,
            key=entry.key,
            category=entry.category,
            classification=classification,
            blocked=blocked,
            created_at=self._clock(),
            text=entry.detail,
        )
        return self._open(task)

    def refused(self, key: str) -> bool:
        """Returns whether the last task about this list key was rejected.

        Raises:
            StoreError: the database refuses.
        """
        task = self._store.newest_of(key)
        return task is not None and task.state is ReviewState.REJECTED

    def confirmed(self, key: str, category: str) -> bool:
        """Returns whether the last task about this list key was approved, in this category.

        Raises:
            StoreError: the database refuses.
        """
        task = self._store.newest_of(key)
        return task is not None and task.state is ReviewState.APPROVED and task.category == category

    def _open(self, task: ReviewTask, page: Page | None = None) -> int | None:
        if not self._is_wanted(task, self._store.newest_of(task.key)):
            return None
        task = replace(task, score_breakdown=self._breakdown_of(page, task.category))  # costs a judgement: beside the transaction
        group_id = task.group_id or (self._group_of(task) if task.kind is ReviewKind.PAGE else 0)
        with self._together():
            earlier = self._store.newest_of(task.key)
            if not self._is_wanted(task, earlier):  # another learner was faster
                return None
            if earlier is not None and earlier.state is ReviewState.OPEN:
                self._store.renew(replace(task, task_id=earlier.task_id))
                return earlier.task_id
            if self._is_full(task):
                self._counters.add("reviews_dropped")
                return None
            self._counters.add("reviews_opened")
            # What a reviewer allowed passes all the same, by that manual rule.
            allowed = earlier is not None and earlier.state is ReviewState.REJECTED and task.kind is ReviewKind.PAGE
            return self._store.add(replace(task, group_id=group_id, blocked=task.blocked and not allowed))

    def _is_wanted(self, task: ReviewTask, earlier: ReviewTask | None) -> bool:
        return _is_change(task, earlier) and not (task.doubtful and self._store.same_content(task))

    def _is_full(self, task: ReviewTask) -> bool:
        if task.doubtful and self._store.open_count(doubtful=True) >= max(self._most_open // 2, 1):
            return True
        return self._store.open_count() >= self._most_open

    def _breakdown_of(self, page: Page | None, category: str) -> ScoreBreakdown | None:
        if page is None or self._explain is None or page.content_type.startswith("image/"):
            return None
        try:
            return self._explain.breakdown_of(page, category)
        except ClassifyError:
            return None

    def _group_of(self, task: ReviewTask) -> int:
        """Returns the group of an open task with the same page or a near duplicate, 0 for none."""
        title = task.classification.title
        for other in self._store.outlines(task.category, _COMPARED):
            same = task.page is not None and task.page.digest == other.page_digest
            if same or are_alike(title, task.simhash, other.title, other.simhash):
                return other.group_id
        return 0


def _is_change(task: ReviewTask, earlier: ReviewTask | None) -> bool:
    """Returns whether this list key has neither an open task nor the same manual verdict already.

    An open task about a page in doubt gives way to one about the same page that is harmful.
    """
    if earlier is None:
        return True
    if earlier.state is ReviewState.OPEN:
        return earlier.doubtful and not task.doubtful
    return earlier.category != task.category
