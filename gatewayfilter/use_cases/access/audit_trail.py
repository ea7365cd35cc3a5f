"""The audit log: each change by a person is recorded with who made it, and with its inverse where there is one."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from gatewayfilter.model import Actor, AuditEntry, Change
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.inverses import inverse_of_changes

_MOST_STEPS: Final = 2_000
"""Steps of a change that can be taken back; an import of more is recorded without an inverse."""


@dataclass(slots=True)
class Recording:
    """What is recorded of a change, while it is being made; the caller may fill it in.

    Attributes:
        detail: for people.
        entry_id: number of the entry after the change, 0 when nothing was changed.
    """

    subject: str
    detail: str = ""
    entry_id: int = 0


class AuditTrail:
    """Records changes.

    Args:
        store: the database.
        clock: Unix seconds.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    def record(self, actor: Actor, action: str, subject: str, detail: str = "", undo: Mapping[str, Any] | None = None) -> int:
        """Records a change that was made. Returns the number of the entry.

        Args:
            actor: who made it.
            action: a code: noun, dot, verb in the past (`rule.added`).
            subject: what was changed.
            detail: for people.
            undo: by `inverses`.
        """
        return self._store.audit.add(AuditEntry(0, self._clock(), actor, action, subject, detail, undo))

    @contextmanager
    def changing(self, actor: Actor, action: str, subject: str, detail: str = "") -> Iterator[Recording]:
        """Makes the changes of the block in one transaction, and records them with their inverse, if anything was changed.

        For changes of manual rules, clients, groups, policies, schedules, quotas and pauses; the inverse is found by itself.
        Everything in the block is undone when it raises. Keep it short: no other list or policy is changed meanwhile.
        """
        recording = Recording(subject, detail)
        with self._store.changing():
            last = self._store.feed.last_seq()
            before = self._store.policies.read()
            yield recording
            changes = self._changes_since(last)
            if changes:
                now = self._clock()
                undo = inverse_of_changes(before, changes, now) if len(changes) <= _MOST_STEPS else None
                entry = AuditEntry(0, now, actor, action, recording.subject, recording.detail, undo)
                recording.entry_id = self._store.audit.add(entry)

    def _changes_since(self, seq: int) -> list[Change]:
        found: list[Change] = []
        while len(found) <= _MOST_STEPS and (more := self._store.feed.read(found[-1].seq if found else seq)):
            found += more
        return found
