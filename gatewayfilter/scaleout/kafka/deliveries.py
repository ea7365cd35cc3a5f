"""What was delivered of a topic's partitions: which offset may be committed, and which message ends its readers.

Work on messages ends in any order; an offset is committed only when all before it are done. The committed offset has a note: how
often reading has begun there. Where that is often, messages are taken one at a time, and one at which that does not help is given
up, so that a message that kills its reader does not stop its partition.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CAREFUL: Final = 3
"""Beginnings at one offset from which on messages are taken one at a time."""
GIVE_UP: Final = 6
"""Beginnings at one offset with which its message is given up."""
SPAN: Final = 4
"""Windows that the newest message in work may be ahead of the oldest one: what is worked on again after a kill."""


@dataclass(slots=True)
class _Partition:
    committed: int
    begun: int
    next: int
    careful_until: int


class Deliveries:
    """The partitions of one reader. Threads may share it.

    Args:
        window: most messages in work.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._partitions: dict[int, _Partition] = {}
        self._in_work: set[tuple[int, int]] = set()
        self._one = threading.Lock()

    @property
    def room(self) -> int:
        """How many messages may be taken now."""
        with self._one:
            if any(found.careful_until for found in self._partitions.values()):
                return 0 if self._in_work else 1
            oldest = {partition: found.next for partition, found in self._partitions.items()}
            for partition, offset in self._in_work:
                oldest[partition] = min(offset, oldest.get(partition, offset))
            if any(found.next - oldest[partition] >= SPAN * self._window for partition, found in self._partitions.items()):
                return 0
            return self._window - len(self._in_work)

    def knows(self, partition: int) -> bool:
        """Returns whether reading of this partition has begun."""
        return partition in self._partitions

    def begin(self, partition: int, offset: int, note: str, *, again: bool = False) -> str:
        """Begins reading a partition at an offset that was committed with a note. Returns the note to commit there now.

        Args:
            partition: which.
            offset: where.
            note: that was committed with it, `""` for none.
            again: this process has begun there before and lives: that counts once.
        """
        begun = (int(note) if note.isascii() and note.isdecimal() and len(note) < 4 else 0) + (not again)
        careful_until = offset + (SPAN + 1) * self._window if begun >= CAREFUL else 0
        with self._one:
            self._partitions[partition] = _Partition(offset, begun, offset, careful_until)
        return str(begun)

    def take(self, partition: int, offset: int) -> bool:
        """Takes a message into work. Returns False for one that is to be given up."""
        with self._one:
            self._in_work.add((partition, offset))
            found = self._partitions.get(partition)
            if found is None:
                return True  # it is another reader's meanwhile, who works on it too
            found.next = offset + 1
            return found.begun < GIVE_UP or offset != found.committed

    def done(self, partition: int, offset: int) -> None:
        """A message is done with, and what follows from it is sent."""
        with self._one:
            self._in_work.discard((partition, offset))

    def forget(self, partition: int) -> None:
        """The partition is another reader's now."""
        with self._one:
            self._partitions.pop(partition, None)
            self._in_work = {place for place in self._in_work if place[0] != partition}

    def to_commit(self) -> dict[int, tuple[int, str]]:
        """Returns for partitions that moved on the offset behind what is done, and its note."""
        with self._one:
            moved = {}
            for partition, found in self._partitions.items():
                # Not the numbers of messages: offsets have gaps, where transactions ended.
                offset = min((offset for of, offset in self._in_work if of == partition), default=found.next)
                if offset > found.committed:
                    moved[partition] = (offset, str(0 if offset > found.careful_until else CAREFUL))
            return moved

    def committed(self, moved: Mapping[int, tuple[int, str]]) -> None:
        """What `to_commit` returned is committed."""
        with self._one:
            for partition, (offset, note) in moved.items():
                found = self._partitions.get(partition)
                if found is not None:
                    found.committed, found.begun = offset, int(note)
                    if offset > found.careful_until:
                        found.careful_until = 0
