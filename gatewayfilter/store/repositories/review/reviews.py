"""Review tasks and all steps taken on them.

Source: [page-dedup] bad pages become tasks that a person reviews.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, or_, select, update

from gatewayfilter.model import (
    ContentId,
    ContentKind,
    ReviewKind,
    ReviewState,
    ReviewStep,
    ReviewTask,
    ScoreBreakdown,
    TaskOutline,
)
from gatewayfilter.store.sql.classification_json import as_document, from_document
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import REVIEW_STEPS, REVIEW_TASKS
from gatewayfilter.urls import digest_of

_T = REVIEW_TASKS.c
_S = REVIEW_STEPS.c
_NONE = b""
_MOST_SAME = 1000
_SIMHASH_BYTES = 8
_NEWEST_OF = (
    select(REVIEW_TASKS).where(_T.digest == bindparam("of"), _T.key == bindparam("the_key")).order_by(_T.id.desc()).limit(1)
)
_OUTLINE = select(_T.id, _T.group_id, _T.title, _T.simhash, _T.page_digest, _T.category)
_OUTLINES = (
    _OUTLINE.where(_T.state == ReviewState.OPEN.value, _T.category == bindparam("the_category"))
    .order_by(_T.id.desc())
    .limit(bindparam("most"))
)
_HARMFUL_OUTLINES = _OUTLINE.where(_T.kind == ReviewKind.PAGE.value, _T.blocked).order_by(_T.id.desc()).limit(bindparam("most"))
_OPEN = select(func.count()).where(_T.state == ReviewState.OPEN.value)
_OPEN_DOUBTFUL = _OPEN.where(_T.doubtful)
_STATS = (
    select(_T.state, _T.category, func.count(), func.min(_T.created_at))
    .group_by(_T.state, _T.category)
    .order_by(_T.state, _T.category)
)


class SqlReviewStore:
    """Implements `interfaces.ReviewStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, task: ReviewTask) -> int:
        """Adds a task; returns its number. A `group_id` of 0 becomes that number."""
        with self._database.write(Area.REVIEWS) as connection:
            task_id = int(connection.execute(insert(REVIEW_TASKS).values(_task_row(task)).returning(_T.id)).scalar_one())
            if not task.group_id:
                connection.execute(update(REVIEW_TASKS).where(_T.id == task_id).values(group_id=task_id))
            return task_id

    def renew(self, task: ReviewTask) -> bool:
        """Replaces an open task by another one about the same list key, in its group. Returns False when it is not open."""
        row = {name: value for name, value in _task_row(task).items() if name != "group_id"}
        with self._database.write(Area.REVIEWS) as connection:
            is_open = (_T.id == task.task_id) & (_T.state == ReviewState.OPEN.value)
            return bool(connection.execute(update(REVIEW_TASKS).where(is_open).values(row)).rowcount)

    def get(self, task_id: int) -> ReviewTask | None:
        """Returns a task."""
        with self._database.read() as connection:
            row = connection.execute(select(REVIEW_TASKS).where(_T.id == task_id)).one_or_none()
        return None if row is None else _task(row)

    def newest_of(self, key: str) -> ReviewTask | None:
        """Returns the newest task for this list key."""
        with self._database.read() as connection:
            row = connection.execute(_NEWEST_OF, {"of": digest_of(key), "the_key": key}).one_or_none()
        return None if row is None else _task(row)

    def tasks(
        self,
        state: ReviewState | None = None,
        *,
        category: str = "",
        group_id: int = 0,
        after: int = 0,
        limit: int = 100,
        newest_first: bool = False,
        doubtful: bool | None = None,
    ) -> list[ReviewTask]:
        """Returns tasks with numbers above `after`, in the order of their numbers or the newest first.

        With `doubtful` only those about pages in doubt, or only the others.
        """
        query = select(REVIEW_TASKS).where(_T.id > after).limit(limit)
        query = query.order_by(_T.id.desc() if newest_first else _T.id)
        if state is not None:
            query = query.where(_T.state == state.value)
        if category:
            query = query.where(_T.category == category)
        if group_id:
            query = query.where(_T.group_id == group_id)
        if doubtful is not None:
            query = query.where(_T.doubtful == doubtful)
        with self._database.read() as connection:
            return [_task(row) for row in connection.execute(query)]

    def groups(self, limit: int) -> list[tuple[int, int]]:
        """Returns (group, count) of open tasks with similar pages, the largest first; groups of two tasks and more."""
        count = func.count()
        query = select(_T.group_id, count).where(_T.state == ReviewState.OPEN.value).group_by(_T.group_id).having(count > 1)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(count.desc(), _T.group_id).limit(limit))
            return [(group, found) for group, found in rows]

    def same_content(self, task: ReviewTask) -> list[ReviewTask]:
        """Returns the tasks with the same page body or text as this one, itself included, by number."""
        same = []
        if task.page is not None:
            same.append((_T.page_digest == task.page.digest) & (_T.page_proof == task.page.proof))
        if task.content is not None:
            same.append((_T.text_digest == task.content.digest) & (_T.text_proof == task.content.proof))
        if not same:
            return []
        query = select(REVIEW_TASKS).where(or_(*same)).order_by(_T.id).limit(_MOST_SAME)
        with self._database.read() as connection:
            return [_task(row) for row in connection.execute(query)]

    def outlines(self, category: str, limit: int) -> list[TaskOutline]:
        """Returns the outlines of the newest open tasks of a category, the newest first."""
        with self._database.read() as connection:
            return _outlines(connection.execute(_OUTLINES, {"the_category": category, "most": limit}))

    def harmful_outlines(self, limit: int) -> list[TaskOutline]:
        """Returns the outlines of the newest tasks of blocked pages, the newest first."""
        with self._database.read() as connection:
            return _outlines(connection.execute(_HARMFUL_OUTLINES, {"most": limit}))

    def open_count(self, *, doubtful: bool = False) -> int:
        """Returns the number of open tasks; with `doubtful` only of those about pages in doubt."""
        with self._database.read() as connection:
            return connection.execute(_OPEN_DOUBTFUL if doubtful else _OPEN).scalar_one()

    def decide(self, task: ReviewTask, step: ReviewStep) -> ReviewStep:
        """Writes state, category, `decided_at` and `decided_by` of the task and the step in one transaction; returns the step."""
        with self._database.write(Area.REVIEWS) as connection:
            return _write(connection, task, step)

    def undo(self, task: ReviewTask, undone: int, step: ReviewStep) -> ReviewStep:
        """Does `decide`, and marks the step with this number as undone."""
        with self._database.write(Area.REVIEWS) as connection:
            connection.execute(update(REVIEW_STEPS).where(_S.id == undone).values(undone=True))
            return _write(connection, task, step)

    def steps(self, task_id: int = 0, *, limit: int = 100) -> list[ReviewStep]:
        """Returns steps, of one task or (0) of all, the newest first."""
        query = select(REVIEW_STEPS).order_by(_S.id.desc()).limit(limit)
        if task_id:
            query = query.where(_S.task_id == task_id)
        with self._database.read() as connection:
            return [ReviewStep(*row) for row in connection.execute(query)]

    def stats(self) -> list[tuple[str, str, int, float]]:
        """Returns (state, category, count, creation of the oldest) for each state and category."""
        with self._database.read() as connection:
            return [(state, category, count, oldest) for state, category, count, oldest in connection.execute(_STATS)]

    def decided_since(self, since: float) -> list[tuple[float, float]]:
        """Returns (creation, decision) of tasks decided since then; all in Unix seconds."""
        query = select(_T.created_at, _T.decided_at).where(_T.decided_at >= since, _T.state != ReviewState.OPEN.value)
        with self._database.read() as connection:
            return [(created, decided) for created, decided in connection.execute(query)]


def _outlines(rows: Iterable[Any]) -> list[TaskOutline]:
    return [
        TaskOutline(task_id, group_id, title, int.from_bytes(simhash), bytes(page_digest), category)
        for task_id, group_id, title, simhash, page_digest, category in rows
    ]


def _write(connection: Connection, task: ReviewTask, step: ReviewStep) -> ReviewStep:
    decided = {
        "state": task.state.value,
        "category": task.category,
        "blocked": task.blocked,
        "decided_at": task.decided_at,
        "decided_by": task.decided_by,
    }
    connection.execute(update(REVIEW_TASKS).where(_T.id == task.task_id).values(decided))
    row = {
        "task_id": task.task_id,
        "at": step.at,
        "who": step.who,
        "action": step.action,
        "undone": step.undone,
        "detail": step.detail,
    }
    step_id = connection.execute(insert(REVIEW_STEPS).values(row).returning(_S.id)).scalar_one()
    return replace(step, step_id=int(step_id), task_id=task.task_id)


def _task_row(task: ReviewTask) -> dict[str, object]:
    return {
        "digest": digest_of(task.key),
        "kind": task.kind.value,
        "url": task.url,
        "key": task.key,
        "category": task.category,
        "state": task.state.value,
        "group_id": task.group_id,
        "blocked": task.blocked,
        "created_at": task.created_at,
        "decided_at": task.decided_at,
        "decided_by": task.decided_by,
        "title": _storable(task.classification.title),
        "simhash": task.simhash.to_bytes(_SIMHASH_BYTES),
        "page_digest": task.page.digest if task.page else _NONE,
        "page_proof": task.page.proof if task.page else _NONE,
        "text_digest": task.content.digest if task.content else _NONE,
        "text_proof": task.content.proof if task.content else _NONE,
        "classification": as_document(task.classification),
        "text": zlib.compress(task.text.encode(errors="replace")),
        "final_url": task.final_url,
        "score_breakdown": asdict(task.score_breakdown) if task.score_breakdown else None,
        "doubtful": task.doubtful,
    }


def _storable(text: str) -> str:
    """Returns a text that any database accepts: PostgreSQL rejects NUL characters, all databases lone surrogates."""
    return text.encode(errors="replace").decode().replace("\0", "")


def _task(row: Any) -> ReviewTask:
    return ReviewTask(
        task_id=row.id,
        kind=ReviewKind(row.kind),
        url=row.url,
        key=row.key,
        category=row.category,
        classification=from_document(row.classification),
        blocked=row.blocked,
        created_at=row.created_at,
        state=ReviewState(row.state),
        group_id=row.group_id,
        text=zlib.decompress(row.text).decode(),
        simhash=int.from_bytes(row.simhash),
        page=_content(ContentKind.PAGE, row.page_digest, row.page_proof),
        content=_content(ContentKind.TEXT, row.text_digest, row.text_proof),
        decided_at=row.decided_at,
        decided_by=row.decided_by,
        final_url=row.final_url,
        score_breakdown=ScoreBreakdown(**row.score_breakdown) if row.score_breakdown else None,
        doubtful=row.doubtful,
    )


def _content(kind: ContentKind, digest: Sequence[int], proof: Sequence[int]) -> ContentId | None:
    return ContentId(kind, bytes(digest), bytes(proof)) if digest else None
