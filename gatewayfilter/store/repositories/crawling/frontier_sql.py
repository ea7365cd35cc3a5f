"""SQL statements of the frontier."""

from typing import Any

from sqlalchemy import Row, bindparam, case, delete, func, select, update

from gatewayfilter.interfaces import QueueState
from gatewayfilter.store.sql.schema import FRONTIER, FRONTIER_HOLDS, FRONTIER_PAUSES

NO_LEVEL = -(2**31)  # below every priority
ANYBODY = -1
WHOLE = 1
HELD = "held"
"""The state of a waiting URL whose task or host is paused, outside the range of the index from which URLs are leased."""

type FrontierRow = Row[*tuple[Any, ...]]

COLUMNS = FRONTIER.c
KNOWN = select(
    COLUMNS.digest,
    COLUMNS.id,
    COLUMNS.state,
    COLUMNS.priority,
    COLUMNS.not_before,
    COLUMNS.due_at,
    COLUMNS.attempts,
    COLUMNS.task,
    COLUMNS.depth,
).where(COLUMNS.digest.in_(bindparam("digests", expanding=True)))
SHOWN = select(
    COLUMNS.id,
    COLUMNS.url,
    COLUMNS.priority,
    COLUMNS.state,
    COLUMNS.attempts,
    COLUMNS.not_before,
    COLUMNS.due_at,
    COLUMNS.error,
    COLUMNS.task,
    COLUMNS.depth,
)
COUNT = select(func.count()).select_from(FRONTIER).where(COLUMNS.state.in_(bindparam("in_states", expanding=True)))
_IS_WAITING = COLUMNS.state == QueueState.WAITING.value
WAITS = COLUMNS.state.in_((QueueState.WAITING.value, HELD))
WAITING = select(func.count(), func.min(case((_IS_WAITING, COLUMNS.due_at)))).where(WAITS)
DUE_COUNT = COUNT.where(COLUMNS.due_at <= bindparam("now"))
COUNTS = select(COLUMNS.state, func.count().label("urls")).group_by(COLUMNS.state)
HURRY = (
    update(FRONTIER)
    .where(COLUMNS.id == bindparam("row_id"))
    .values(
        priority=bindparam("new_priority"),
        not_before=bindparam("new_not_before"),
        due_at=bindparam("new_due_at"),
        task=bindparam("new_task"),
        depth=bindparam("new_depth"),
    )
)
# Not "in these two states": that would sort the result of an index, while the oldest rows are nearly all done ones.
OLDEST_SETTLED = (
    select(COLUMNS.id)
    .where(COLUMNS.state != QueueState.WAITING.value, COLUMNS.state != QueueState.LEASED.value, COLUMNS.state != HELD)
    .order_by(COLUMNS.id)
    .limit(bindparam("most"))
)
PAUSED_SINCE = select(FRONTIER_PAUSES.c.since).where(FRONTIER_PAUSES.c.id == WHOLE)
HOLDS = select(FRONTIER_HOLDS.c.kind, FRONTIER_HOLDS.c.name, FRONTIER_HOLDS.c.since).order_by(*FRONTIER_HOLDS.primary_key)
MOVE_IDS = (
    update(FRONTIER)
    .where(COLUMNS.state == bindparam("from_state"), COLUMNS.id.in_(bindparam("ids", expanding=True)))
    .values(state=bindparam("to_state"))
)
OF_TASK = select(COLUMNS.id).where(COLUMNS.state == bindparam("in_state"), COLUMNS.task == bindparam("of_task"))
OF_SLOT = select(COLUMNS.id, COLUMNS.url).where(
    COLUMNS.state == bindparam("in_state"), COLUMNS.slot.in_((bindparam("of_slot"), ANYBODY))
)
DELETE = delete(FRONTIER).where(COLUMNS.id.in_(bindparam("ids", expanding=True)))

# Both read the end of one index range, independent of the number of URLs: the next priority in use, and its due rows.
NEXT_LEVEL = select(func.min(COLUMNS.priority)).where(
    COLUMNS.state == bindparam("in_state"), COLUMNS.priority > bindparam("after")
)
DUE_IN_LEVEL = (
    select(COLUMNS.id, COLUMNS.url, COLUMNS.priority, COLUMNS.attempts, COLUMNS.task, COLUMNS.depth)
    .where(
        COLUMNS.state == bindparam("in_state"),
        COLUMNS.priority == bindparam("level"),
        COLUMNS.due_at <= bindparam("now"),
    )
    .order_by(COLUMNS.due_at, COLUMNS.id)
    .limit(bindparam("most"))
)
DUE_IN_SLOTS = DUE_IN_LEVEL.where(COLUMNS.slot.in_(bindparam("slots", expanding=True)))
EXPIRE = (
    update(FRONTIER)
    .where(COLUMNS.state == QueueState.LEASED.value, COLUMNS.due_at <= bindparam("now"))
    .values(state=QueueState.WAITING.value, token="")
)
LEASE = (
    update(FRONTIER)
    .where(COLUMNS.id.in_(bindparam("ids", expanding=True)))
    .values(
        state=QueueState.LEASED.value,
        token=bindparam("new_token"),
        holder=bindparam("new_holder"),
        due_at=bindparam("new_due_at"),
        attempts=COLUMNS.attempts + 1,
    )
)
_OURS = (
    COLUMNS.digest == bindparam("of"),
    COLUMNS.state == QueueState.LEASED.value,
    COLUMNS.token == bindparam("held_token"),
)
HELD_TOKENS = select(COLUMNS.digest, COLUMNS.token).where(
    COLUMNS.digest.in_(bindparam("digests", expanding=True)), COLUMNS.state == QueueState.LEASED.value
)
FINISH = delete(FRONTIER).where(*_OURS)
RETURN = (
    update(FRONTIER)
    .where(*_OURS)
    .values(state=bindparam("new_state"), due_at=bindparam("new_due_at"), error=bindparam("new_error"), token="")
)
PUT_BACK = RETURN.values(not_before=bindparam("new_due_at"))
PUT_BACK_UNCOUNTED = PUT_BACK.values(attempts=COLUMNS.attempts - 1)
AGAIN = PUT_BACK.values(attempts=0, priority=bindparam("new_priority"))
_RELEASE = (
    update(FRONTIER)
    .where(COLUMNS.state == QueueState.LEASED.value)
    .values(state=QueueState.WAITING.value, token="", holder="", due_at=bindparam("now"))
)
RELEASE = _RELEASE.where(COLUMNS.holder.in_(bindparam("holders", expanding=True)))
RELEASE_EXCEPT = _RELEASE.where(COLUMNS.holder.not_in(bindparam("holders", expanding=True)), COLUMNS.holder != "")
TASK_COUNTS = (
    select(COLUMNS.task, COLUMNS.state, func.count().label("urls"))
    .where(COLUMNS.task != "")
    .group_by(COLUMNS.task, COLUMNS.state)
)
REVIVE = (
    update(FRONTIER)
    .where(COLUMNS.state == QueueState.DEAD.value)
    .values(state=QueueState.WAITING.value, attempts=0, not_before=0.0, due_at=0.0, error="")
)
