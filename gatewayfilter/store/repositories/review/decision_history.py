"""Decision history: the reviewers' decisions on pages that stand, for feedback and statistics.

A decision stands when no later step of its task took it back: the task keeps the time of the decision in force.
"""

from sqlalchemy import and_, bindparam, func, select

from gatewayfilter.interfaces import DecidedPage, PageDecision
from gatewayfilter.model import ReviewKind, ReviewState
from gatewayfilter.store.sql.classification_json import from_document
from gatewayfilter.store.sql.database import Database
from gatewayfilter.store.sql.schema import REVIEW_STEPS, REVIEW_TASKS

_T = REVIEW_TASKS.c
_S = REVIEW_STEPS.c
_REJECTED = ReviewState.REJECTED.value
_LAST_STEP = select(func.max(_S.id))
_PAGES = (
    select(_T.id, _T.url, _T.final_url, _T.group_id, _T.state, _T.category, _T.classification)
    .where(_T.kind == ReviewKind.PAGE.value, _T.state != ReviewState.OPEN.value)
    .order_by(_T.id.desc())
    .limit(bindparam("most"))
)
_DECISIONS = (
    select(
        _T.id,
        _T.category,
        _T.classification["category"].as_string().label("judged"),
        _T.classification["doubt"].as_string().label("doubted"),
        _T.state,
        _T.decided_at,
        _S.detail,
    )
    .join(REVIEW_STEPS, and_(_S.task_id == _T.id, _S.at == _T.decided_at, _S.undone.is_(False), _S.action != "undo"))
    .where(_T.kind == ReviewKind.PAGE.value, _T.state != ReviewState.OPEN.value, _T.decided_at >= bindparam("since"))
    .order_by(_T.decided_at, _S.id)
)


class SqlDecisionHistory:
    """Implements `interfaces.DecisionHistory`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last_step(self) -> int:
        """Returns the number of the newest step, 0 for none."""
        with self._database.read() as connection:
            return int(connection.scalar(_LAST_STEP) or 0)

    def decided_pages(self, limit: int) -> list[DecidedPage]:
        """Returns the pages with a decision that stands, the newest tasks first."""
        with self._database.read() as connection:
            return [
                DecidedPage(
                    row.id,
                    row.final_url or row.url,
                    row.group_id,
                    row.state == _REJECTED,
                    row.category,
                    from_document(row.classification),
                )
                for row in connection.execute(_PAGES, {"most": limit})
            ]

    def decisions_since(self, since: float) -> list[PageDecision]:
        """Returns the decisions that stand and were made since then (Unix seconds), in the order of their times."""
        found: dict[int, PageDecision] = {}
        with self._database.read() as connection:
            for row in connection.execute(_DECISIONS, {"since": since}):
                category = row.judged or row.doubted or row.category
                blocked = bool(row.detail.get("blocked"))
                found[row.id] = PageDecision(category, row.state == _REJECTED, blocked, row.decided_at)
        return list(found.values())
